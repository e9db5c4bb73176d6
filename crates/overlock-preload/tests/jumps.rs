//! Waits that a signal handler jumps out of, or ends with the thread.

#![cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]

mod common;

use std::path::Path;

use common::{compile_as, ours, same_with};

const GLIBCS: &[(&str, &str)] = &[("OVERLOCK_MUTEX", "glibc"), ("OVERLOCK_RWLOCK", "glibc")];
const ORDERED: &[(&str, &str)] = &[("OVERLOCK_LOCKDEP", "1")];
const COUNTED: &[(&str, &str)] = &[("OVERLOCK_STAT", "1")];

/// Fails ("does not end") where a writer keeps the gate of a lock for which it does not wait any
/// more.
#[test]
fn a_jump_out_of_a_wait_leaves_the_lock_to_the_others() {
    same_with("jumps.c", &[], &[&[], GLIBCS, ORDERED, COUNTED]);
}

/// Fails ("does not end") where a reader that has left stays counted, where a notification goes to
/// a waiter that has left, or where that one takes along those behind it. On the C library's locks
/// it does not end.
#[test]
fn a_jump_out_of_a_read_or_a_condition_leaves_the_others_alone() {
    let program = compile_as("jumps.c", "jumps-further", &[]);
    let others: &[&[(&str, &str)]] = &[&[], &[("OVERLOCK_MUTEX", "glibc")], ORDERED, COUNTED];
    for setting in others {
        let answer = ours(&program, &[Path::new("further")], setting);
        assert_eq!(answer.lines().count(), 7, "{setting:?}: {answer}");
    }
}

/// Fails (SIGABRT) where the unwinding of a thread's stack goes through our frames as through
/// Rust's, and ("does not end") where a thread that has gone stays in a wait.
#[test]
fn a_thread_that_ends_in_a_wait_leaves_the_others_alone() {
    same_with("ended.c", &[], &[&[], GLIBCS, ORDERED, COUNTED]);
    let program = compile_as("ended.c", "ended-rwlocks", &[]);
    for setting in [&[][..], ORDERED, COUNTED] {
        let answer = ours(&program, &[Path::new("rwlocks")], setting);
        let ended = answer
            .lines()
            .filter(|line| line.contains(", cleaned up 1"));
        assert_eq!(ended.count(), 8, "{setting:?}: {answer}");
    }
}
