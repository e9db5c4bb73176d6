//! Waits that a signal handler jumps out of.

#![cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]

mod common;

use common::same_with;

const GLIBCS: &[(&str, &str)] = &[("OVERLOCK_MUTEX", "glibc"), ("OVERLOCK_RWLOCK", "glibc")];
const ORDERED: &[(&str, &str)] = &[("OVERLOCK_LOCKDEP", "1")];
const COUNTED: &[(&str, &str)] = &[("OVERLOCK_STAT", "1")];

/// Fails ("does not end") where a writer keeps the gate of a lock for which it does not wait any
/// more.
#[test]
fn a_jump_out_of_a_wait_leaves_the_lock_to_the_others() {
    same_with("jumps.c", &[], &[&[], GLIBCS, ORDERED, COUNTED]);
}
