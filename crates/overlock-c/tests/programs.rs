//! C and C++ programs with the locks: results, exclusion, lifetime, waiting.

mod common;

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use common::{Library, Workshop, run, succeed};

/// Inlined and called, from both libraries.
const WAYS: &[(Library, &[&str])] = &[
    (Library::Shared, &["-std=c11", "-O2"]),
    (Library::Shared, &["-std=c11", "-O0"]),
    (Library::Static, &["-std=c11", "-O2", "-DOVL_NO_INLINE"]),
    (Library::Static, &["-std=gnu17", "-O3"]),
];

fn check(program: &str) {
    let workshop = Workshop::new();
    for &(library, options) in WAYS {
        let source = format!("tests/programs/{program}.c");
        succeed(&mut Command::new(
            workshop.compile(&source, library, options),
        ));
    }
}

#[test]
fn every_function_returns_what_the_header_says() {
    check("errors");
}

#[test]
fn threads_that_inline_and_threads_that_call_exclude_each_other() {
    check("counters");
}

/// Fails where a fast path that is inlined passes the statistics by, and where a wait is counted
/// twice.
#[test]
fn locks_with_names_are_counted_exactly() {
    check("named");
    let workshop = Workshop::new();
    let options = ["-std=gnu17", "-O2", "-g"];
    let program = workshop.compile("tests/programs/named.c", Library::Shared, &options);
    let tables = tempfile::tempdir().unwrap();
    let mut command = Command::new(program);
    command.env("OVERLOCK_STAT", "1");
    let printed = succeed(command.env("OVERLOCK_STAT_DIR", tables.path()));
    let words: Vec<_> = printed.split_whitespace().collect();
    let pool = words.iter().position(|&word| word == "pool").unwrap();
    let count: u32 = words[pool + 2].parse().unwrap();
    assert!(words[pool + 1] == "mutex" && count >= 8004, "{printed}");
    // The table for readers.
    assert_eq!(std::fs::read_dir(tables.path()).unwrap().count(), 1);
}

#[test]
fn a_mutex_that_nobody_holds_can_be_tried() {
    check("trylock");
}

/// Fails where an unlock touches the mutex after its release.
#[test]
fn the_last_owner_may_free_a_mutex() {
    check("freed");
}

#[test]
fn condition_variables_pass_items_on_and_may_be_freed_after_destroy() {
    check("queue");
}

/// Without `Linux::after_fork` or a lock's own, the child waits for threads that are not there.
#[test]
fn a_child_of_fork_goes_on_with_what_others_waited_for() {
    check("forks");
}

/// Fails (SIGSYS) where a system call but `futex` is still made.
#[test]
fn threads_contend_under_a_filter_that_kills() {
    check("sandbox");
}

/// Fails where threads without a thread-specific key get no slot: they wake up at once,
/// spuriously.
#[test]
fn waiters_sleep_where_the_process_has_no_keys_left() {
    let workshop = Workshop::new();
    let program = workshop.compile("tests/programs/keyless.c", Library::Shared, &["-O2"]);
    // Loaded when all keys are taken.
    let library = workshop.path().join("liboverlock.so.0");
    succeed(Command::new(program).arg(library));
}

/// Fails where a library with the locks is unmapped before the end of a thread that it has to
/// notice.
#[test]
fn a_library_with_the_locks_stays_loaded_when_it_is_closed() {
    let workshop = Workshop::new();
    let options = ["-std=gnu17", "-O2", "-shared", "-fPIC"];
    let plugin = workshop.compile("tests/programs/plugin.c", Library::Static, &options);
    let program = workshop.compile("tests/programs/unload.c", Library::Static, &["-O2"]);
    succeed(Command::new(program).arg(plugin));
}

#[test]
fn classes_go_with_the_standard_library() {
    let workshop = Workshop::new();
    for (library, options) in [
        (Library::Shared, ["-std=c++11", "-O2"]),
        (Library::Static, ["-std=c++11", "-O0"]),
        (Library::Shared, ["-std=c++20", "-O2"]),
    ] {
        let program = workshop.compile("tests/programs/classes.cpp", library, &options);
        succeed(&mut Command::new(program));
    }
}

/// In debug builds: a panic that tried to get out of the library would be undefined behaviour, or
/// an exception.
#[test]
#[cfg(debug_assertions)]
fn a_panic_ends_the_process() {
    let workshop = Workshop::new();
    let program = workshop.compile("tests/programs/misuse.c", Library::Shared, &["-O2"]);
    let output = run(&mut Command::new(program));
    assert_eq!(output.status.signal(), Some(6), "SIGABRT");
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(
        message.contains("unlock of a lock that is free"),
        "{message}"
    );
}
