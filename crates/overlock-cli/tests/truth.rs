//! `overlock run --stat` says what is true, or that it is not: programs of which earlier reports
//! said something else.

mod common;
#[path = "common/preload.rs"]
mod preload;

use std::fs;
use std::path::Path;
use std::process::Command;

use preload::{compile, library, run};
use serde_json::Value;

/// The first process's report, and the table.
fn report(command: &mut Command, json: &Path) -> (Value, String) {
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    let mut document: Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/run.schema.json");
    let schema = serde_json::from_str(&fs::read_to_string(schema).unwrap()).unwrap();
    jsonschema::validate(&schema, &document).unwrap();
    (document["processes"][0].take(), text)
}

fn counted(source: &str, name: &str, options: &[&str], arguments: &[&str]) -> (Value, String) {
    let program = compile(source, name, &[]);
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("r.json");
    let option = format!("--report={}", json.display());
    let options = [options, &["--stat", &option]].concat();
    report(run(&options).arg(program).args(arguments), &json)
}

fn rows<'a>(process: &'a Value, key: &str, value: &str) -> Vec<&'a Value> {
    let rows = process["locks"].as_array().unwrap().iter();
    let is_it = |row: &&Value| match key {
        "function" => row["site"][key] == value,
        _ => row[key] == value,
    };
    rows.filter(is_it).collect()
}

fn total(rows: &[&Value]) -> u64 {
    let total = |row: &&Value| row["wait"]["total_ns"].as_u64().unwrap();
    rows.iter().map(total).sum()
}

/// Fails where a wait for a CPU after a condition is a wait for the mutex.
#[test]
fn a_slow_wake_up_after_a_condition_is_no_contention() {
    let program = compile("woken", "woken", &[]);
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("r.json");
    let option = format!("--report={}", json.display());
    let overlock = run(&["--stat", &option]);
    let allowed = rustix::thread::sched_getaffinity(None).unwrap();
    let cpu = (0..).find(|&cpu| allowed.is_set(cpu)).unwrap().to_string();
    // The wake-ups take hundreds of milliseconds in all. The producer may lose its CPU while it
    // holds the mutex, and then it is contention, but hardly in each of some runs.
    let mut texts = String::new();
    for _ in 0..10 {
        let mut command = Command::new("taskset");
        command.args(["-c", &cpu]).arg(overlock.get_program());
        command.args(overlock.get_args()).arg(&program);
        let (process, text) = report(&mut command, &json);
        let events = process["events"].as_array().unwrap();
        assert!(
            events.iter().any(|event| event["name"] == "filled"),
            "{text}"
        );
        if total(&rows(&process, "function", "consume")) < 3_000_000 {
            return;
        }
        texts += &text;
    }
    panic!("{texts}");
}

/// Fails where the function that all locks are taken by names the rows, or where the holder of a
/// mutex that knows its owner is not known.
#[test]
fn callers_of_wrappers_name_rows_and_holders_of_all_kinds() {
    let (process, text) = counted("kinds", "kinds-named", &[], &[]);
    for lock in ["plain", "recursive", "checking"] {
        let touches = rows(&process, "lock", lock);
        let touch = touches
            .iter()
            .find(|row| row["site"]["function"] == "touch");
        let touch = touch.unwrap_or_else(|| panic!("{lock}: {text}"));
        assert_eq!(touch["stack"][0]["function"], "lock_take", "{text}");
        assert_eq!(touch["init"]["function"], "main", "{text}");
        // The first wait, which may be long, finds a holder of which only the call site is known.
        let mut holders = touch["holders"].as_array().unwrap().iter();
        let is_keep = |holder: &Value| holder["site"]["function"] == "keep";
        assert!(holders.any(is_keep), "{lock}: {holders:?} {text}");
    }
}

/// Fails where each of many equal locks has a row.
#[test]
fn locks_that_are_initialised_at_one_place_are_one_row() {
    let (process, text) = counted("kinds", "kinds-equal", &["--objects"], &[]);
    let equal = rows(&process, "function", "visit");
    assert_eq!(equal.len(), 1, "{text}");
    assert!(
        equal[0]["lock"]
            .as_str()
            .unwrap()
            .starts_with("of main kinds.c:")
    );
    assert!(equal[0]["objects"].as_array().unwrap().len() > 1, "{text}");
    assert!(text.contains(" single lock "), "{text}");
    let threads = process["threads"].as_u64().unwrap();
    let lived = process["thread_ns"].as_u64().unwrap();
    assert!((3..=5).contains(&threads), "{text}");
    // The slow thread alone lives for 90 ms.
    assert!((90_000_000..3_600_000_000_000).contains(&lived), "{text}");
}

/// Fails where locks that are not counted are passed over in silence.
#[test]
fn locks_that_stay_the_c_librarys_are_listed() {
    let (process, text) = counted("kinds", "kinds-kept", &[], &["kept"]);
    let kept = process["kept"].as_array().unwrap();
    assert_eq!(kept.len(), 3, "{text}");
    for kind in ["priority", "robust", "shared"] {
        let one = kept.iter().find(|one| one["kind"] == kind).unwrap();
        assert_eq!(one["site"]["function"], "bind", "{text}");
        assert_eq!(one["objects"], 1, "{text}");
    }
    assert!(
        text.contains("Not counted, since they stay the C library's:\n"),
        "{text}"
    );
    assert!(
        text.contains(" 1 object bound to priorities, of bind kinds.c:"),
        "{text}"
    );
    assert!(!text.contains("not your problem"), "{text}");
}

/// Fails where the baseline has no figures.
#[test]
fn the_c_librarys_own_locks_are_counted_when_they_are_left_in_place() {
    for options in [
        &["--mutex", "glibc"][..],
        &["--mutex", "glibc", "--rwlock", "glibc"],
    ] {
        let (process, text) = counted("kinds", "kinds-glibcs", options, &[]);
        for lock in ["plain", "recursive", "checking"] {
            let waits = total(&rows(&process, "lock", lock));
            assert!(waits > 1_000_000, "{lock}: {text}");
        }
    }
}

/// Fails where the wait for an interpreter's lock is one for an event, or the reverse.
#[test]
fn conditions_and_semaphores_that_are_locks_are_recognised() {
    for options in [&[][..], &["--mutex", "glibc", "--rwlock", "glibc"]] {
        let (process, text) = counted("gil", "gil", options, &[]);
        for (lock, kind) in [("freed", "cond"), ("baton", "sem")] {
            let found = rows(&process, "lock", lock);
            let found = found.first().unwrap_or_else(|| panic!("{lock}: {text}"));
            assert_eq!(found["kind"], kind, "{text}");
            assert!(text.contains(&format!("{kind} as lock")), "{text}");
        }
        let events = process["events"].as_array().unwrap();
        assert!(
            events.iter().any(|event| event["name"] == "events"),
            "{text}"
        );
    }
}

/// Fails where the name is that of an interpreter's file, or of a title that was written over it.
#[test]
fn the_first_argument_names_the_program() {
    let program = compile("kinds", "kinds-called", &[]);
    let dir = tempfile::tempdir().unwrap();
    let link = dir.path().join("another name");
    std::os::unix::fs::symlink(program, &link).unwrap();
    let json = dir.path().join("r.json");
    let option = format!("--report={}", json.display());
    let (process, text) = report(run(&["--stat", &option]).arg(link).arg("kept"), &json);
    assert_eq!(process["program"], "another name", "{text}");
    assert!(text.starts_with("another name (process "), "{text}");
}

/// Fails where a run without a report says nothing, or says it elsewhere than on its own error
/// output.
#[test]
fn a_run_without_a_report_says_how_many_locks_were_replaced() {
    let program = compile("sums", "sums", &[]);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    let errors = |options: &[&str], arguments: &[&Path]| {
        let output = run(options).arg(&program).args(arguments).output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let line = "overlock: 2 of 3 locks that the program initialised were ours; \
                --stat shows the waits, --quiet not this line\n";
    assert_eq!(errors(&[], &[]), line);
    assert_eq!(
        errors(&["--mutex", "glibc"], &[]),
        line.replace("2 of", "1 of")
    );
    for options in [
        &["--quiet"][..],
        &["--spin-only"],
        &["--mutex", "glibc", "--rwlock", "glibc"],
    ] {
        assert_eq!(errors(options, &[]), "", "{options:?}");
    }
    assert_eq!(errors(&[], &[&file]), "");
    assert_eq!(fs::read(file).unwrap(), b"");
}

/// Fails where a report of the validator calls a program by the title that it has given itself.
#[test]
fn a_title_is_no_name_of_the_program() {
    let program = compile("title", "titled", &[]);
    let output = Command::new(program)
        .env("LD_PRELOAD", library())
        .env("OVERLOCK_LOCKDEP", "1")
        // Its threads never meet.
        .env("OVERLOCK_LOCKDEP_ALL", "1")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("titled(other+0x0)"), "{text}");
    assert!(!text.contains("a b c"), "{text}");
}

/// Fails where a process that nobody saw end is taken to live until its table is read.
#[test]
fn the_lifetime_of_a_process_that_vanished_is_not_made_up() {
    let program = compile("vanish", "vanish", &[]);
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("r.json");
    let option = format!("--report={}", json.display());
    let output = run(&["--stat", &option]).arg(program).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    let document: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    let processes = document["processes"].as_array().unwrap();
    assert_eq!(processes.len(), 2, "{text}");
    // The first is the program itself, whose end this one has seen.
    let lived = processes[0]["thread_ns"].as_u64().unwrap();
    assert!(lived > 1_000_000_000, "{text}");
    assert_eq!(processes[1]["thread_ns"], Value::Null, "{text}");
    assert!(text.contains(" % of 2 threads' time"), "{text}");
}
