//! The validator in programs that are sound but look as if they were not, and in ones that are not.
#![cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]

mod common;

use std::path::{Path, PathBuf};

use common::{compile_as, library, run, text};

const ORDER: &str = "possible circular locking dependency detected";
const DEADLOCK: &str = "deadlock detected";
const ONLY: &str = "WARNING: locks in two orders, on the only thread so far";
const SLEEP: &str = "WARNING: sleeping with locks held";
const ALL: (&str, &str) = ("OVERLOCK_LOCKDEP_ALL", "1");
const SIGNAL: &str = "inconsistent use of a lock in a signal handler";

/// Runs a scene of the program on glibc's locks and, validated, on ours. Returns the reports.
fn said(program: &Path, scene: &str) -> String {
    said_with(program, scene, ("OVERLOCK_LOCKDEP", "1"))
}

/// With one more setting.
fn said_with(program: &Path, scene: &str, setting: (&str, &str)) -> String {
    let library = library();
    let validated = [
        ("LD_PRELOAD", library.to_str().unwrap()),
        ("OVERLOCK_LOCKDEP", "1"),
        setting,
    ];
    let mut said = String::new();
    for environment in [&[][..], &validated] {
        let output = run(program, &[Path::new(scene)], environment);
        said = text(&output.stderr);
        assert!(output.status.success(), "{scene}: {said}");
        assert_eq!(text(&output.stdout), "done\n", "{scene}: {said}");
    }
    said
}

fn titles(said: &str) -> Vec<&str> {
    let lines = said.lines();
    lines
        .filter_map(|line| line.strip_prefix("lockdep: "))
        .collect()
}

fn program(source: &str, test: &str) -> PathBuf {
    compile_as(source, &format!("lockdep-{test}"), &[])
}

/// Fails where a lock that nobody initialised is known by its address alone.
#[test]
fn new_locks_in_old_memory_are_new_locks() {
    let program = program("reused.cpp", "reused");
    for scene in [
        "heap", "stack", "stacks", "mapped", "copied", "held", "kinds", "many",
    ] {
        let said = said(&program, scene);
        assert_eq!(said, "", "{scene}");
    }
}

/// Fails where classes run out, and where those of locks that are gone are not used again.
#[test]
fn a_mistake_behind_many_locks_is_found() {
    let said = said(&program("reused.cpp", "inverted"), "inverted");
    assert_eq!(titles(&said), [ORDER], "{said}");
}

#[test]
fn what_cannot_deadlock_is_not_reported() {
    let program = program("harmless.c", "harmless");
    for scene in [
        "gate",
        "gate_of_three",
        "a_gate_each",
        "gate_gone",
        "trap",
        "reinit",
        "pipeline",
        "pipeline_seen_before",
        "pipeline_seen_between",
        "alone_among_others",
        "one_after_the_other",
        "two_for_three",
        "constructed",
    ] {
        assert_eq!(said(&program, scene), "", "{scene}");
    }
}

#[test]
fn what_can_is() {
    let program = program("harmless.c", "harmful");
    for scene in [
        "two_gates",
        "gate_once",
        "gate_shared",
        "pipeline_back",
        "pipeline_turned",
        "plain",
        "small_stack",
        "second_thread",
        "late",
    ] {
        let said = said(&program, scene);
        assert_eq!(titles(&said), [ORDER], "{scene}: {said}");
        assert!(!said.contains("harmless,"), "{scene}: {said}");
    }
    let interrupted = said(&program, "interrupt");
    assert_eq!(titles(&interrupted), [SIGNAL], "{interrupted}");
}

/// Each dependency has its thread and its locks, so a reader sees why it may be harmless.
#[test]
fn a_report_says_when_it_may_be_harmless() {
    let program = program("harmless.c", "said");
    let alone = said_with(&program, "alone", ALL);
    assert_eq!(titles(&alone), [ORDER], "{alone}");
    assert!(alone.contains("All of these dependencies were first seen on one thread"));
    assert!(alone.contains("     by thread "), "{alone}");
    let two = said(&program, "two_of_a_class");
    assert_eq!(titles(&two), [ORDER], "{two}");
    assert!(two.contains("there were two locks, 0x"), "{two}");
}

/// The only thread does what each of several may do later.
#[test]
fn orders_of_the_only_thread_are_warned_of_and_reported_when_others_use_the_locks() {
    let program = program("harmless.c", "only");
    let alone = said(&program, "alone");
    assert_eq!(titles(&alone), [ONLY], "{alone}");
    assert!(!alone.contains("DEADLOCK"), "{alone}");
    let first = said(&program, "alone_at_first");
    assert_eq!(titles(&first), [ONLY, ORDER], "{first}");
    for scene in ["alone_among_others", "one_after_the_other", "two_for_three"] {
        let all = said_with(&program, scene, ALL);
        assert_eq!(titles(&all), [ORDER], "{scene}: {all}");
    }
}

/// Fails where a signal can park a thread that holds the validator's own lock.
#[test]
fn a_thread_that_a_signal_has_parked_holds_nothing_of_ours() {
    assert_eq!(said(&program("parked.c", "parked"), ""), "");
}

/// Fails where a thread that is notified sleeps on until the mutex is released, unseen.
#[test]
fn a_thread_that_comes_back_from_a_condition_waits_for_its_mutex() {
    let program = program("back.c", "back");
    for others in ["0", "4"] {
        let said = said(&program, others);
        assert_eq!(titles(&said), [SLEEP, ORDER, DEADLOCK], "{others}: {said}");
    }
}

/// Fails (it does not end) where the callers at a dependency are asked of an unwinder that waits
/// for a lock which its thread holds: that of GCC 12.
#[test]
fn code_made_at_run_time_may_have_unwind_information() {
    assert_eq!(said(&program("jit.c", "jit"), "jit"), "");
}

/// Fails (it does not end) where a report's callers are asked of an unwinder whose locks are seen.
#[test]
fn a_program_may_have_an_unwinder_that_locks() {
    let program = compile_as("unwinder.c", "lockdep-unwinder", &["-rdynamic"]);
    assert_eq!(said(&program, ""), "");
}

/// Fails where a storm crashes the program or hides the mistake at its end, and where nobody says
/// what was not looked at.
#[test]
fn a_mistake_in_a_storm_is_found() {
    let program = program("storm.c", "storm");
    let library = library();
    let validated = [
        ("LD_PRELOAD", library.to_str().unwrap()),
        ("OVERLOCK_LOCKDEP", "1"),
    ];
    const DEEP: &str = "too many locks held; the newest ones of this thread are not seen";
    for (scene, scale, expected) in [
        ("threads", "2000", &[ORDER][..]),
        ("deep", "64", &[ORDER]),
        ("deep", "80", &[DEEP, ORDER]),
        ("churn", "400", &[ORDER]),
        ("classes", "2000", &[ORDER]),
        ("forks", "20", &[ORDER]),
        ("signals", "50", &[ORDER]),
    ] {
        let arguments = [Path::new(scene), Path::new(scale)];
        let output = run(&program, &arguments, &validated);
        let said = text(&output.stderr);
        assert!(output.status.success(), "{scene} {scale}: {said}");
        assert_eq!(text(&output.stdout), "done\n", "{scene} {scale}: {said}");
        let mut titles = titles(&said);
        // A child that was forked in the middle of a change.
        titles.retain(|title| !title.starts_with("this process was forked"));
        assert_eq!(titles, expected, "{scene} {scale}: {said}");
    }
}
