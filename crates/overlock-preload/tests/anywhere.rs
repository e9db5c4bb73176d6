//! Unusual environments: the smallest stacks, allocators, exhausted thread-specific keys,
//! sandboxes, programs that wrap lock functions, real-time priorities; and the CPU time of blocked
//! threads.

#![cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{compile_as, library, ours, run, same, text};

const DEFAULT: &[(&str, &str)] = &[];
const COUNTED: &[(&str, &str)] = &[("OVERLOCK_STAT", "1")];
const GLIBC: &[(&str, &str)] = &[("OVERLOCK_MUTEX", "glibc"), ("OVERLOCK_RWLOCK", "glibc")];
const FUTEX_ALONE: &[(&str, &str)] = &[("OVERLOCK_FUTEX_ALONE", "1")];

/// Compiles a program of its own for each test: tests run at the same time.
fn program(source: &str, test: &str) -> PathBuf {
    compile_as(source, &format!("anywhere-{test}"), &["-Wl,-z,now"])
}

#[test]
fn blocked_threads_take_no_cpu_time() {
    same(&program("idle.c", "idle"), &[], &[DEFAULT, FUTEX_ALONE]);
}

/// The stack that a lock call takes depends on the compiler, so this does not run in builds without
/// optimisation.
#[test]
fn the_smallest_stack_suffices() {
    const MOST: &str = if cfg!(debug_assertions) { "0" } else { "512" };
    let program = program("stack.c", "stack");
    for setting in [DEFAULT, FUTEX_ALONE] {
        assert_eq!(ours(&program, &[Path::new(MOST)], setting), "enough\n");
    }
    same(&program, &[], &[GLIBC, COUNTED]);
}

#[test]
fn locks_in_allocators_allocate_nothing_and_need_no_keys() {
    let program = program("keys.c", "keys");
    for arguments in [&[][..], &[Path::new("all")]] {
        same(&program, arguments, &[DEFAULT]);
    }
}

/// Fails (SIGSYS) where the locks do not restrict themselves to `futex` before the filter is
/// installed, or a thread is about to make another call then.
#[test]
fn seccomp_filters_that_kill_catch_no_call_of_the_locks() {
    let program = program("sandbox.c", "kill");
    for scene in ["prctl", "syscall", "syscall_prctl"] {
        let settings = &[DEFAULT, COUNTED, GLIBC];
        same(&program, &[Path::new(scene)], settings);
    }
}

#[test]
fn a_program_may_start_under_a_filter_that_kills() {
    let program = program("sandbox.c", "launch");
    let library = library();
    let later = ("PRELOAD_LATER", library.to_str().unwrap());
    for environment in [&[][..], &[later]] {
        let output = run(&program, &[Path::new("launch")], environment);
        assert!(output.status.success(), "{environment:?}: {output:?}");
        assert_eq!(text(&output.stdout), "begun\nover\n");
    }
}

/// Fails where a concurrent unlock leaves a thread asleep, or a refusal is taken for success.
#[test]
fn filters_may_refuse_optional_system_calls_at_any_time() {
    let program = program("sandbox.c", "refuse");
    for call in [
        libc::SYS_membarrier,
        libc::SYS_sched_yield,
        libc::SYS_futex_waitv,
    ] {
        for error in [libc::EPERM, libc::ENOSYS] {
            let [call, error] = [call as i32, error].map(|number| number.to_string());
            let arguments = ["refuse", &call, &error].map(Path::new);
            same(&program, &arguments, &[DEFAULT]);
        }
    }
}

#[test]
fn programs_may_wrap_what_the_library_defines() {
    let program = compile_as("wraps.c", "anywhere-wraps", &["-rdynamic"]);
    same(
        &program,
        &[],
        &[DEFAULT, COUNTED, &[("OVERLOCK_LOCKDEP", "1")]],
    );
}

/// Fails where the library is linked without `-Bsymbolic-functions`: calls of its own functions
/// would reach the program's.
#[test]
fn internal_calls_do_not_use_exported_names() {
    let read = |arguments: &[&str]| {
        let output = Command::new("readelf")
            .args(arguments)
            .arg(library())
            .output();
        text(&output.expect("readelf, of binutils, is needed").stdout)
    };
    let defined: Vec<String> = read(&["--dyn-syms", "--wide"])
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|words| words.len() == 8 && words[3] == "FUNC" && words[6] != "UND")
        .map(|words| words[7].split('@').next().unwrap().to_owned())
        .collect();
    assert!(
        defined.iter().any(|name| name == "pthread_mutex_unlock"),
        "{defined:?}"
    );
    let relocations = read(&["--relocs", "--wide"]);
    let names: Vec<&str> = relocations
        .lines()
        .filter_map(|line| line.split_whitespace().nth(4)?.split('@').next())
        .collect();
    assert!(names.contains(&"pthread_testcancel"), "{relocations}");
    for name in names {
        assert!(
            !defined.iter().any(|ours| ours == name),
            "{name} goes by its exported name"
        );
    }
}

/// Fails where a waiter polls while the lock is held, or yields, which does not run a thread of
/// lower priority.
#[test]
fn real_time_waiters_let_a_holder_of_lower_priority_run() {
    same(&program("fifo.c", "fifo"), &[], &[DEFAULT, FUTEX_ALONE]);
}

/// Fails where unlocks leave a wake-up out
/// because a thread spins, which may have lost its CPU.
#[test]
fn a_spinner_without_a_cpu_keeps_no_sleeper_from_a_free_lock() {
    let program = program("starved.c", "starved-spinner");
    same(&program, &[Path::new("spinner")], &[DEFAULT, FUTEX_ALONE]);
}

/// Fails where a lock that was handed off to a thread without a CPU cannot be taken by another one.
#[test]
fn an_heir_without_a_cpu_does_not_close_a_lock() {
    let program = program("starved.c", "starved-heir");
    same(&program, &[Path::new("heir")], &[DEFAULT, FUTEX_ALONE]);
}
