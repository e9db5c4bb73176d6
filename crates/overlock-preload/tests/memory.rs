//! The memory and the CPU time that the drop-in takes of a process that asks for neither statistics
//! nor the validator.

#![cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]

mod common;

use std::path::Path;

use common::{compile, ours, run, same, text};

/// At most 2 MiB of .bss, which count for `mlockall` and `ulimit -d`, and 1 MiB resident.
#[test]
fn the_library_takes_little_memory() {
    let program = compile("memory.c", &[]);
    ours(&program, &[Path::new("overlock_preload")], &[]);
}

/// Fails with ENOMEM where the tables are in .bss.
#[test]
fn a_process_that_locks_its_memory_has_threads() {
    let program = compile("memory.c", &[]);
    same(&program, &[Path::new("lock")], &[&[]]);
}

/// Fails where threads beyond those that a queue names poll, or are not woken. Without room for so
/// many threads the program says so.
#[test]
fn seventeen_thousand_threads_wait_without_polls() {
    let program = compile("memory.c", &[]);
    let glibcs = run(&program, &[Path::new("many")], &[]);
    assert!(glibcs.status.success(), "{}", text(&glibcs.stdout));
    ours(&program, &[Path::new("many")], &[]);
}
