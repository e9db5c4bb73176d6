//! The memory and the CPU time that the drop-in takes of a process that asks for neither statistics
//! nor the validator.

#![cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]

mod common;

use std::path::Path;

use common::{compile, library, ours, run, same, text};

/// If cargo builds several packages at a time, the library has what others ask of a common
/// dependency, too: tables of locks that it does not use.
fn is_built_alone() -> bool {
    const TABLE: &[u8] = b"family7STORAGE";
    let bytes = std::fs::read(library()).unwrap();
    let has_table = bytes.windows(TABLE.len()).any(|name| name == TABLE);
    if has_table {
        assert!(
            std::env::var_os("OVERLOCK_BUILT_ALONE").is_none(),
            "it is not"
        );
        eprintln!("skipped: built with other packages; try cargo test -p overlock-preload");
    }
    !has_table
}

/// At most 2 MiB of .bss, which count for `mlockall` and `ulimit -d`, and 1 MiB resident.
#[test]
fn the_library_takes_little_memory() {
    if !is_built_alone() {
        return;
    }
    let program = compile("memory.c", &[]);
    ours(&program, &[Path::new("overlock_preload")], &[]);
}

/// Fails with ENOMEM where the tables are in .bss.
#[test]
fn a_process_that_locks_its_memory_has_threads() {
    if !is_built_alone() {
        return;
    }
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
