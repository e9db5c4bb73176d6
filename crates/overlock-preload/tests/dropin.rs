//! Programs in C and C++, each run on glibc's locks and on ours: both must print the same.
//!
//! The programs are in `tests/c`. They fail where a property does not hold that both must have, and
//! print results that may differ. The tests need a C compiler, `$CC` or `cc`, and a C++ compiler,
//! `$CXX` or `c++`.

#![cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]

mod common;

use std::path::Path;

use common::{compile, compile_as, library, ours, run, same, same_with, text};

const DEFAULT: &[(&str, &str)] = &[];
/// glibc's mutexes and reader-writer locks, and ours of all other kinds. (`names.rs` has the
/// setting without ours of any kind.)
const GLIBCS: &[(&str, &str)] = &[
    ("OVERLOCK_MUTEX", "glibc"),
    ("OVERLOCK_RWLOCK", "glibc"),
    ("OVERLOCK_SPIN_ONLY", "1"),
];
const ORDERED: &[(&str, &str)] = &[("OVERLOCK_LOCKDEP", "1")];
const COUNTED: &[(&str, &str)] = &[("OVERLOCK_STAT", "1")];

const CONFINED: &[(&str, &str)] = &[("OVERLOCK_FUTEX_ALONE", "1"), common::CONFINED];

const COUNTED_ORDERED: &[(&str, &str)] = &[("OVERLOCK_STAT", "1"), ("OVERLOCK_LOCKDEP", "1")];

const ALL: &[&[(&str, &str)]] = &[DEFAULT, GLIBCS, ORDERED, COUNTED, COUNTED_ORDERED, CONFINED];

#[test]
fn mutexes_and_conditions_of_c11_behave_as_glibcs() {
    same_with("c11.c", &[], ALL);
}

#[test]
fn mutexes_behave_as_glibcs() {
    same_with("mutex.c", &[], ALL);
}

/// Fails where owners are identified by an id that glibc reuses for the next thread.
#[test]
fn a_new_thread_does_not_own_a_lock_of_an_exited_thread() {
    same_with("owner.c", &[], ALL);
}

/// Fails where a sandbox that asks a mutex for the id that the C library keeps gets another one.
#[test]
#[cfg(target_arch = "x86_64")]
fn recursive_mutexes_have_their_owners_id_where_glibcs_do() {
    same_with("owner_id.c", &[], &[&[], &[("OVERLOCK_LOCKDEP", "1")]]);
}

/// Calls every function for every kind of object in every state, including those that POSIX leaves
/// undefined.
#[test]
fn errors_are_glibcs_for_every_kind_in_every_state() {
    same_with("errnos.c", &[], ALL);
}

/// Fails where a wait keeps its original end when the clock is set. It sets the system's clock,
/// which disturbs other programs, so it is ignored by default.
#[test]
#[ignore = "sets the machine's clock, by a minute and for a second; needs root"]
fn deadlines_follow_changes_of_their_clock() {
    same(&compile("clock_set.c", &[]), &[], ALL);
}

#[test]
fn robust_and_shared_mutexes_stay_glibcs() {
    same_with("mutex_glibcs.c", &[], &[DEFAULT]);
}

#[test]
fn condition_variables_behave_as_glibcs() {
    same_with("cond.c", &[], ALL);
}

/// Fails ("does not end") where only the signalling thread can wake the thread that it has
/// signalled.
#[test]
fn a_thread_that_did_not_signal_may_unlock_the_mutex() {
    same_with("cond_unlock.c", &[], ALL);
}

#[test]
fn reader_writer_locks_behave_as_glibcs() {
    same_with(
        "rwlock.c",
        &[],
        &[DEFAULT, GLIBCS, COUNTED, COUNTED_ORDERED],
    );
}

#[test]
fn spinlocks_barriers_and_semaphores_behave_as_glibcs() {
    same_with("others.c", &[], &[DEFAULT, COUNTED]);
}

#[test]
fn cancelled_threads_leave_all_objects_usable() {
    same_with("cancel.c", &[], ALL);
}

#[test]
fn children_of_threaded_processes_find_their_locks_usable() {
    same_with("fork.c", &[], ALL);
}

#[test]
fn programs_of_reports_about_glibc_end() {
    let program = compile("reports.c", &[]);
    for setting in [DEFAULT, COUNTED] {
        ours(&program, &[], setting);
    }
}

/// Fails where a signal, a time-out, a wrong address or a cancellation is lost in a spin.
#[test]
fn waits_begin_and_end_as_in_the_kernel() {
    const ALWAYS: &[(&str, &str)] = &[("OVERLOCK_SPIN", "50")];
    const OFF: &[(&str, &str)] = &[("OVERLOCK_SPIN", "off")];
    same_with("waits.c", &[], &[DEFAULT, GLIBCS, COUNTED, ALWAYS, OFF]);
}

#[test]
fn no_update_is_lost_under_contention() {
    same_with("stress.c", &[], ALL);
}

#[test]
fn the_last_owner_may_free_a_lock() {
    // The reader-writer semaphore and the two other mutexes do not promise that.
    same_with("freed.c", &[], &[DEFAULT, GLIBCS, COUNTED]);
}

#[test]
#[ignore = "takes six minutes"]
fn the_last_owner_of_many_may_free_a_lock() {
    let arguments = [Path::new("64"), Path::new("120")];
    same_with("freed.c", &arguments, &[DEFAULT, COUNTED]);
}

#[test]
fn the_cpp_standard_library_works() {
    same_with("standard.cpp", &[], ALL);
}

#[test]
fn constructors_of_libraries_may_lock() {
    let plugin = compile("plugin.c", &["-shared", "-fPIC"]);
    same_with("plugins.c", &[&plugin], ALL);
}

#[test]
fn signal_handlers_get_the_same_arguments() {
    same_with("handlers.c", &[], &[DEFAULT, ORDERED, GLIBCS]);
}

/// Runs a scene under the validator, which must not disturb the program. Returns the reports.
fn run_validated(source: &str, scene: &str) -> String {
    run_validated_with(source, scene, &[])
}

fn run_validated_with(source: &str, scene: &str, environment: &[(&str, &str)]) -> String {
    // Scenes run at the same time, and each compiles its own program.
    let program = compile_as(
        source,
        &format!("{}-{scene}", source.replace('.', "-")),
        &[],
    );
    let library = library();
    let mut all = vec![
        ("LD_PRELOAD", library.to_str().unwrap()),
        ("OVERLOCK_LOCKDEP", "1"),
    ];
    all.extend_from_slice(environment);
    let output = run(&program, &[Path::new(scene)], &all);
    let said = text(&output.stderr);
    assert!(
        output.status.success(),
        "{scene}: {}{said}",
        text(&output.stdout)
    );
    assert_eq!(text(&output.stdout), "done\n", "{scene}");
    said
}

fn titles(said: &str) -> Vec<&str> {
    let lines = said.lines();
    lines
        .filter_map(|line| line.strip_prefix("lockdep: "))
        .collect()
}

const RELEASE: &str = "release of a lock that is not held";
const SIGNAL: &str = "inconsistent use of a lock in a signal handler";
const CHAIN: &str = "possible circular locking dependency through a signal handler";

/// Fails where the validator does not see a handler's beginning or its end.
#[test]
fn deadlocks_with_signal_handlers_are_reported() {
    for scene in ["locks", "signal", "informed"] {
        let said = run_validated("handler.c", scene);
        assert_eq!(titles(&said), [SIGNAL], "{scene}: {said}");
    }
    for scene in ["chain", "chain_late"] {
        let said = run_validated("handler.c", scene);
        assert_eq!(titles(&said), [CHAIN], "{scene}: {said}");
        for part in [
            "(handler-c-chain",
            "(outer+0x0)) is waited for in handlers",
            "(inner+0x0)) is asked for",
            "\n  10\n",
            "\nbacktrace:\n",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
    for scene in [
        "blocked",
        "tries",
        "jumps",
        "switches",
        "vfork",
        "nested",
        "chain_blocked",
    ] {
        assert_eq!(run_validated("handler.c", scene), "", "{scene}");
    }
}

#[test]
fn releases_of_locks_that_are_not_held_are_reported_with_holder_and_releaser() {
    let at = |scene: &str, function: &str| format!("at: unlock-c-{scene}({function}+0x");
    for (scene, releases, holds) in [
        ("stranger", "unlocks", "main"),
        ("writer", "unlocks_rwlock", "main"),
        ("free", "main", ""),
        ("free_rwlock", "main", ""),
    ] {
        let said = run_validated("unlock.c", scene);
        let reports = titles(&said)
            .into_iter()
            .filter(|title| !title.starts_with("WARNING"));
        assert_eq!(reports.collect::<Vec<_>>(), [RELEASE], "{scene}: {said}");
        assert!(said.contains(&at(scene, releases)), "{said}");
        match holds {
            "" => assert!(said.contains("but nobody holds it."), "{said}"),
            function => assert!(said.contains(&at(scene, function)), "{said}"),
        }
    }
    assert_eq!(run_validated("unlock.c", "fine"), "");
}

/// Fails where a timed wait counts as an untimed one, or locks acquired by one are not seen.
#[test]
fn timed_waits_are_no_part_of_a_deadlock() {
    assert_eq!(run_validated("limits.c", "ends"), "");
    let said = run_validated_with("limits.c", "behind", &[("OVERLOCK_LOCKDEP_ALL", "1")]);
    assert_eq!(
        titles(&said),
        ["possible circular locking dependency detected"],
        "{said}"
    );
}

#[test]
fn sleeps_with_locks_held_are_reported() {
    const SLEEP: &str = "WARNING: sleeping with locks held";
    let all = &[("OVERLOCK_LOCKDEP_SLEEP", "1")];
    for scene in ["waits", "meets", "joins", "joins_c11"] {
        let said = run_validated("held.c", scene);
        assert_eq!(titles(&said), [SLEEP], "{scene}: {said}");
        // The first frame that is no function of the library.
        let at = format!("sleep at held-c-{scene}({scene}+0x");
        assert!(said.contains(&at), "{at}: {said}");
    }
    // Many programs do that, so it is reported on request only.
    assert_eq!(run_validated("held.c", "sleeps"), "");
    let said = run_validated_with("held.c", "sleeps_all", all);
    assert_eq!(titles(&said), [SLEEP; 13], "{said}");
    assert_eq!(run_validated_with("held.c", "none", all), "");
}

/// Fails where the validator misses an acquisition, a release or a thread's exit. Fails also where
/// a short stack has no backtrace, or the program's symbol table is not read.
#[test]
fn lock_order_inversions_are_reported_once_and_the_program_goes_on() {
    let program = compile("order.c", &[]);
    let library = library();
    let preload = ("LD_PRELOAD", library.to_str().unwrap());
    let said = |environment: &[(&str, &str)]| {
        let output = run(&program, &[], environment);
        assert!(output.status.success());
        assert_eq!(text(&output.stdout), "done\n");
        text(&output.stderr)
    };
    assert_eq!(said(&[preload]), "");
    let tables = ("OVERLOCK_STAT_DIR", env!("CARGO_TARGET_TMPDIR"));
    for stat in ["0", "1"] {
        let reports = said(&[
            preload,
            ("OVERLOCK_LOCKDEP", "1"),
            ("OVERLOCK_STAT", stat),
            tables,
        ]);
        for (what, times) in [
            ("possible circular locking dependency", 1),
            ("exits with locks held", 1),
            ("lockdep: ", 2),
        ] {
            assert_eq!(reports.matches(what).count(), times, "{what}: {reports}");
        }
        // Names of static objects, and both backtraces: of the old dependency and of the new one.
        for part in [
            " (order-c(rwlock+0x0)){recursive shared}, at: order-c(main+0x",
            "     taken at   order-c(one_way+0x",
            "       order-c(one_way+0x",
            "\nbacktrace:\n  order-c(main+0x",
        ] {
            assert!(reports.contains(part), "{part}: {reports}");
        }
    }
}
