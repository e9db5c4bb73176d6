//! Programs in C and C++, each run on glibc's locks and on ours: the same answers.
//!
//! The programs are in `tests/c`. They end with a complaint where something does not hold that must
//! hold on both, and print what may differ. A C compiler is needed, by the name of `$CC` or `cc`,
//! and `$CXX` or `c++`.

#![cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]

mod common;

use std::path::Path;

use common::{compile, compile_as, library, run, same_with, text};

const DEFAULT: &[(&str, &str)] = &[];
const MUTEX: &[(&str, &str)] = &[("OVERLOCK_MUTEX", "mutex")];
const RWSEM: &[(&str, &str)] = &[("OVERLOCK_RWLOCK", "rwsem")];
const GLIBCS: &[(&str, &str)] = &[("OVERLOCK_MUTEX", "glibc"), ("OVERLOCK_RWLOCK", "glibc")];
const ORDERED: &[(&str, &str)] = &[("OVERLOCK_LOCKDEP", "1")];
const COUNTED: &[(&str, &str)] = &[("OVERLOCK_STAT", "1")];
const COUNTED_RWSEM: &[(&str, &str)] = &[("OVERLOCK_STAT", "1"), ("OVERLOCK_RWLOCK", "rwsem")];
const COUNTED_MUTEX: &[(&str, &str)] = &[("OVERLOCK_STAT", "1"), ("OVERLOCK_MUTEX", "mutex")];

const CONFINED: &[(&str, &str)] = &[("OVERLOCK_FUTEX_ALONE", "1"), common::CONFINED];

const COUNTED_ORDERED: &[(&str, &str)] = &[("OVERLOCK_STAT", "1"), ("OVERLOCK_LOCKDEP", "1")];

const ALL: &[&[(&str, &str)]] = &[
    DEFAULT,
    MUTEX,
    RWSEM,
    GLIBCS,
    ORDERED,
    COUNTED,
    COUNTED_MUTEX,
    COUNTED_ORDERED,
    CONFINED,
];

#[test]
fn mutexes_and_conditions_of_c11_answer_the_same() {
    same_with("c11.c", &[], ALL);
}

#[test]
fn mutexes_answer_the_same() {
    same_with("mutex.c", &[], ALL);
}

/// Fails where owners are named by what glibc gives to the next thread.
#[test]
fn a_thread_does_not_own_what_the_one_before_it_has_left_locked() {
    same_with("owner.c", &[], ALL);
}

/// Every function for every kind of object in every state, what POSIX leaves undefined among them.
/// (The kernel's mutex knows its owner, and a build with checks says so where another one unlocks.)
#[test]
fn every_function_answers_the_same_for_every_kind_in_every_state() {
    same_with(
        "errnos.c",
        &[],
        &[DEFAULT, RWSEM, ORDERED, COUNTED, COUNTED_ORDERED, CONFINED],
    );
}

/// Fails where a wait that has begun keeps the end that it had. Other programs do not like what it
/// does, so it runs only when it is asked for.
#[test]
#[ignore = "sets the machine's clock, by a minute and for a second; needs root"]
fn deadlines_follow_the_clock_that_they_are_of() {
    same_with("clock_set.c", &[], ALL);
}

#[test]
fn robust_mutexes_and_their_kind_stay_glibcs() {
    same_with("mutex_glibcs.c", &[], &[DEFAULT]);
}

#[test]
fn condition_variables_answer_the_same() {
    same_with("cond.c", &[], ALL);
}

/// Fails ("does not end") where the wake-up of a signalled thread is left to the thread that
/// signalled it.
#[test]
fn a_mutex_may_be_unlocked_by_another_thread_than_the_one_that_signalled() {
    // The kernel's mutex knows its owner, and a build with checks says so.
    same_with("cond_unlock.c", &[], &[DEFAULT, GLIBCS, COUNTED]);
}

#[test]
fn reader_writer_locks_answer_the_same() {
    same_with(
        "rwlock.c",
        &[],
        &[
            DEFAULT,
            RWSEM,
            GLIBCS,
            COUNTED,
            COUNTED_RWSEM,
            COUNTED_ORDERED,
        ],
    );
}

#[test]
fn spinlocks_barriers_and_semaphores_answer_the_same() {
    same_with("others.c", &[], &[DEFAULT, COUNTED]);
}

#[test]
fn cancelled_threads_leave_everything_in_order() {
    same_with("cancel.c", &[], ALL);
}

#[test]
fn children_of_threaded_processes_find_their_locks_usable() {
    same_with("fork.c", &[], ALL);
}

#[test]
fn nothing_is_lost_under_contention() {
    same_with("stress.c", &[], ALL);
}

#[test]
fn who_owned_a_lock_last_may_free_it() {
    // The reader-writer semaphore and the two other mutexes do not promise that.
    same_with("freed.c", &[], &[DEFAULT, GLIBCS, COUNTED]);
}

#[test]
#[ignore = "takes six minutes"]
fn who_owned_a_lock_last_may_free_it_with_many_threads() {
    let arguments = [Path::new("64"), Path::new("120")];
    same_with("freed.c", &arguments, &[DEFAULT, COUNTED]);
}

#[test]
fn the_standard_library_of_cpp_works() {
    same_with("standard.cpp", &[], ALL);
}

#[test]
fn libraries_may_lock_while_they_are_loaded() {
    let plugin = compile("plugin.c", &["-shared", "-fPIC"]);
    same_with("plugins.c", &[&plugin], ALL);
}

#[test]
fn handlers_of_signals_get_and_see_the_same() {
    same_with("handlers.c", &[], &[DEFAULT, ORDERED, GLIBCS]);
}

/// What a program says with the validator on, which must not keep it from its work.
fn ordered(source: &str, scene: &str) -> String {
    ordered_with(source, scene, &[])
}

fn ordered_with(source: &str, scene: &str, environment: &[(&str, &str)]) -> String {
    // Scenes run at the same time, and each is compiled.
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

/// What was reported.
fn titles(said: &str) -> Vec<&str> {
    let lines = said.lines();
    lines
        .filter_map(|line| line.strip_prefix("lockdep: "))
        .collect()
}

const RELEASE: &str = "release of a lock that is not held";
const SIGNAL: &str = "inconsistent use of a lock in a signal handler";
const CHAIN: &str = "possible circular locking dependency through a signal handler";

/// Fails where a handler's beginning or its end is not told to the validator.
#[test]
fn locks_of_handlers_that_can_interrupt_their_holders_are_reported() {
    for scene in ["locks", "signal", "informed"] {
        let said = ordered("handler.c", scene);
        assert_eq!(titles(&said), [SIGNAL], "{scene}: {said}");
    }
    for scene in ["chain", "chain_late"] {
        let said = ordered("handler.c", scene);
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
        assert_eq!(ordered("handler.c", scene), "", "{scene}");
    }
}

#[test]
fn releases_of_what_is_not_held_are_reported_with_who_holds_it_and_who_releases_it() {
    let at = |scene: &str, function: &str| format!("at: unlock-c-{scene}({function}+0x");
    for (scene, releases, holds) in [
        ("stranger", "unlocks", "main"),
        ("writer", "unlocks_rwlock", "main"),
        ("free", "main", ""),
        ("free_rwlock", "main", ""),
    ] {
        let said = ordered("unlock.c", scene);
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
    assert_eq!(ordered("unlock.c", "fine"), "");
}

/// Fails where a wait with a limit counts as any other, or what is held by one does not count.
#[test]
fn waits_that_end_by_themselves_are_no_part_of_a_deadlock() {
    assert_eq!(ordered("limits.c", "ends"), "");
    let said = ordered("limits.c", "behind");
    assert_eq!(
        titles(&said),
        ["possible circular locking dependency detected"],
        "{said}"
    );
}

#[test]
fn locks_that_are_held_in_sleep_are_a_warning() {
    const SLEEP: &str = "WARNING: sleeping with locks held";
    let all = &[("OVERLOCK_LOCKDEP_SLEEP", "1")];
    for scene in ["waits", "meets", "joins", "joins_c11"] {
        let said = ordered("held.c", scene);
        assert_eq!(titles(&said), [SLEEP], "{scene}: {said}");
        // Where from: the first that is no function of ours.
        let at = format!("sleep at held-c-{scene}({scene}+0x");
        assert!(said.contains(&at), "{at}: {said}");
    }
    // What many programs do, and some want to know.
    assert_eq!(ordered("held.c", "sleeps"), "");
    let said = ordered_with("held.c", "sleeps_all", all);
    assert_eq!(titles(&said), [SLEEP; 13], "{said}");
    assert_eq!(ordered_with("held.c", "none", all), "");
}

/// Fails where an acquisition or a release is not told to the validator, and where a thread's end
/// is not; where a short stack has no backtrace, and where the program's table of symbols is not
/// read.
#[test]
fn orders_that_can_deadlock_are_reported_once_and_the_program_goes_on() {
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
        // Names of what is static, and both backtraces: of the old dependency and of the new one.
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
