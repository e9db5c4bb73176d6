//! `overlock run --lockdep`: the reports of several processes, and the sum at the end.

mod common;
#[path = "common/preload.rs"]
mod preload;

use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use preload::{compile, library, run};
use rustix::process::Signal;
use serde_json::Value;

const LINE: &str = "======================================================================";

/// Fails where a report is written in pieces, between which another process writes.
#[test]
fn reports_of_several_processes_are_whole() {
    let program = compile("several", "several", &["-O1"]);
    let output = run(&["--lockdep"]).arg(program).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    let parts: Vec<&str> = text.split(LINE).collect();
    // Before the first, between two, and the sum at the end.
    let reports: Vec<&str> = parts.iter().copied().skip(1).step_by(2).collect();
    assert_eq!(reports.len(), 4 * 7, "{text}");
    let mut seen = HashSet::new();
    for report in reports {
        let mut threads = report
            .lines()
            .filter_map(|line| line.strip_prefix("several/")?.split(' ').next());
        let thread = threads.next().unwrap();
        for part in [
            format!("1 lock held by several/{thread}:"),
            format!("by thread {thread}, of locks "),
        ] {
            assert!(report.contains(&part), "{part}: {report}");
        }
        // In each trace, the callers that are kept.
        let is_caller = |line: &&str| line.trim_start().starts_with("deep several.c:");
        assert_eq!(report.lines().filter(is_caller).count(), 26, "{report}");
        seen.insert(thread.to_owned());
    }
    assert_eq!(seen.len(), 4);
    assert!(text.ends_with(" 0 reports, 28 warnings\n"), "{text}");
}

/// A program of the library's own tests, which runs a scene.
fn scenes(test: &str) -> PathBuf {
    let source = "../../../overlock-preload/tests/c/harmless";
    // Its source defines that itself.
    compile(source, &format!("check-{test}"), &["-U_GNU_SOURCE"])
}

/// The sum of a scene.
fn sum_of(program: &Path, scene: &str, options: &[&str]) -> String {
    let output = run(options).arg(program).arg(scene).output().unwrap();
    let text = said(&output);
    text.lines().last().unwrap_or_default().to_owned()
}

/// `overlock check` with these options, of a scene.
fn check(program: &Path, scene: &str, options: &[&str]) -> Output {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("overlock"));
    command.arg("check").args(options).arg("--library");
    command.arg(library()).arg("--").arg(program).arg(scene);
    command.output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn the_exit_code_says_whether_there_was_a_report() {
    let program = scenes("exits");
    for (scene, options, code) in [
        ("plain", &[][..], 3),
        ("plain", &["--error-exitcode", "9"], 9),
        ("plain", &["--error-exitcode", "0"], 0),
        ("gate", &[], 0),
        // A warning is none.
        ("alone", &[], 0),
        ("no such scene", &[], 1),
    ] {
        let output = check(&program, scene, options);
        assert_eq!(
            output.status.code(),
            Some(code),
            "{scene}: {}",
            said(&output)
        );
    }
}

#[test]
fn a_report_is_left_out_by_the_line_that_it_shows() {
    let program = scenes("suppressed");
    let text = said(&check(&program, "plain", &[]));
    let mut lines = text.lines();
    let shown = lines.find_map(|line| line.strip_prefix("suppress it with: "));
    assert_eq!(shown, Some("deadlock:take"), "{text}");
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("check.suppressions");
    let options = ["--suppressions", file.to_str().unwrap()];
    for line in [
        "deadlock:take",
        "called_from:^takes$",
        "module:check-suppressed",
        "order:harmless.c",
    ] {
        std::fs::write(&file, format!("# known\n\n{line}\n")).unwrap();
        let output = check(&program, "plain", &options);
        assert_eq!(output.status.code(), Some(0), "{line}: {}", said(&output));
        let sum = "overlock: 4 locks of 4 classes, 0 reports, 1 suppressed\n";
        assert_eq!(said(&output), sum, "{line}");
    }
    for line in ["sleep:take", "called_from:other", "deadlock:^ake"] {
        std::fs::write(&file, line).unwrap();
        let output = check(&program, "plain", &options);
        assert_eq!(output.status.code(), Some(3), "{line}");
    }
    std::fs::write(&file, "deadlok:take").unwrap();
    let refused = check(&program, "plain", &options);
    assert_eq!(refused.status.code(), Some(2));
}

/// A document of this schema.
fn valid(document: &str, schema: &str) -> Value {
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join(schema);
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(schema).unwrap()).unwrap();
    let document = serde_json::from_str(document).unwrap();
    jsonschema::validate(&schema, &document).unwrap();
    document
}

/// The output of `overlock check`, and the file of this name that it writes.
fn kept(program: &Path, name: &str, more: &[&str]) -> (String, String) {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let options = [&["--report", file.to_str().unwrap()], more].concat();
    let output = check(program, "plain", &options);
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    (said(&output), std::fs::read_to_string(file).unwrap())
}

#[test]
fn reports_can_be_kept_as_text_and_as_json() {
    let program = scenes("kept");
    let (text, file) = kept(&program, "check.txt", &[]);
    assert_eq!(file, text);
    let (_, json) = kept(&program, "check.json", &[]);
    let json = valid(&json, "schema/check.schema.json");
    let report = &json["reports"][0];
    assert_eq!(json["sum"]["reports"], 1);
    assert_eq!(report["kind"], "order");
    assert_eq!(report["places"][0]["function"], "take");
    assert_eq!(report["backtrace"][1]["function"], "takes");
    let file = report["places"][0]["file"].as_str().unwrap();
    assert!(file.ends_with("harmless.c"), "{file}");
}

#[test]
fn and_as_sarif() {
    let program = scenes("sarif");
    for (name, more) in [
        ("check.sarif", &[][..]),
        ("check.log", &["--format", "sarif"]),
    ] {
        let (_, sarif) = kept(&program, name, more);
        let sarif = valid(&sarif, "tests/sarif.schema.json");
        let run = &sarif["runs"][0];
        let result = &run["results"][0];
        assert_eq!(result["ruleId"], run["tool"]["driver"]["rules"][0]["id"]);
        // Validators ask for it.
        let about = run["tool"]["driver"]["informationUri"].as_str();
        assert!(about.unwrap().starts_with("https://"));
        let place = &result["locations"][0]["physicalLocation"];
        let uri = place["artifactLocation"]["uri"].as_str().unwrap();
        assert!(uri.ends_with("/harmless.c"), "{uri}");
        assert!(place["region"]["startLine"].as_u64().unwrap() > 0);
    }
}

/// Fails where a table that is full is told in the middle of the output alone.
#[test]
fn the_sum_and_the_files_say_what_was_not_looked_at() {
    let source = "../../../overlock-preload/tests/c/storm";
    let program = compile(source, "check-unchecked", &["-U_GNU_SOURCE"]);
    let what = "too many locks held; the newest ones of this thread are not seen";
    for name in ["unchecked.json", "unchecked.sarif"] {
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("overlock"));
        command.arg("check").arg("--report").arg(&file);
        command
            .arg("--library")
            .arg(library())
            .arg("--")
            .arg(&program);
        let output = command.args(["deep", "80"]).output().unwrap();
        let line = format!("overlock: WARNING: not all was checked: {what}\n");
        let said = said(&output);
        assert!(said.ends_with(&line), "{said}");
        assert_eq!(said.matches(what).count(), 1, "{said}");
        let text = std::fs::read_to_string(file).unwrap();
        if name.ends_with(".json") {
            let json = valid(&text, "schema/check.schema.json");
            assert_eq!(json["sum"]["unchecked"][0], what);
        } else {
            let sarif = valid(&text, "tests/sarif.schema.json");
            let told = &sarif["runs"][0]["invocations"][0]["toolExecutionNotifications"];
            assert_eq!(told[0]["message"]["text"], what);
        }
    }
}

#[test]
fn cycles_of_one_thread_alone_are_in_the_sum_unless_they_are_reported() {
    let program = scenes("sums");
    let sum_of = |scene: &str, options: &[&str]| sum_of(&program, scene, options);
    let scene = "alone_among_others";
    let sum = "overlock: 4 locks of 4 classes";
    assert_eq!(
        sum_of(scene, &["--lockdep"]),
        format!("{sum}, 0 reports; 1 cycle of one thread, or of threads that never met (--all)")
    );
    let all = sum_of(scene, &["--lockdep", "--lockdep-all"]);
    assert_eq!(all, format!("{sum}, 1 report"));
    let two = sum_of("second_thread", &["--lockdep"]);
    assert_eq!(two, "overlock: 5 locks of 5 classes, 1 report");
    let first = sum_of("alone_at_first", &["--lockdep"]);
    assert_eq!(first, "overlock: 5 locks of 5 classes, 1 report, 1 warning");
}

#[test]
fn a_cycle_under_a_common_lock_is_in_the_sum() {
    let program = compile("gated", "gated", &["-O1"]);
    let output = run(&["--lockdep"]).arg(program).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        text,
        "overlock: 3 locks of 3 classes, 0 reports; 1 cycle harmless, under a common lock\n"
    );
}

/// Fails where the short form is another path, or has no reports for programs.
#[test]
fn run_with_lockdep_is_the_short_form() {
    let program = scenes("short");
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("r.json");
    let report = format!("--report={}", json.display());
    let output = run(&["--lockdep", &report])
        .arg(&program)
        .arg("plain")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    let document: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    assert_eq!(document["sum"]["reports"], 1);
    assert_eq!(document["reports"][0]["suppress_with"], "deadlock:take");
    let file = dir.path().join("known");
    std::fs::write(&file, "deadlock:take\n").unwrap();
    let known = format!("--suppressions={}", file.display());
    let sum = "overlock: 4 locks of 4 classes, 0 reports, 1 suppressed";
    assert_eq!(sum_of(&program, "plain", &["--lockdep", &known]), sum);
    // It would do nothing.
    let output = run(&[&known]).arg("true").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("goes with --lockdep"));
}

/// Fails (it does not end) where the signal is blocked while the validator waits.
#[test]
fn a_program_that_hangs_in_the_validator_ends_as_its_user_says_and_the_report_is_there() {
    let program = compile("stuck", "stuck", &["-rdynamic"]);
    let plugin = compile("stuck", "stuck.so", &["-DPLUGIN", "-shared", "-fPIC"]);
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("stuck.json");
    for signal in [Signal::INT, Signal::TERM] {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("overlock"));
        command.args(["check", "--all", "--error-exitcode=0", "--library"]);
        command.arg(library()).arg("--report").arg(&file);
        command.arg("--").arg(&program).arg(&plugin);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let stdout = child.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        assert_eq!(line, "stuck\n");
        // It waits by then, as a rule.
        thread::sleep(Duration::from_millis(300));
        common::signal(&child, signal);
        let status = common::ends(&mut child);
        assert_eq!(status.signal(), Some(signal.as_raw()), "{status:?}");
        let json = std::fs::read_to_string(&file).unwrap();
        let json = valid(&json, "schema/check.schema.json");
        assert_eq!(json["reports"][0]["kind"], "order");
    }
}
