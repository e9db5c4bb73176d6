//! The program around its subcommands.

mod common;
#[path = "common/preload.rs"]
mod preload;

use predicates::prelude::*;

use common::{overlock, refused};

#[test]
fn help_has_examples() {
    overlock()
        .args(["run", "--help"])
        .assert()
        .success()
        .stdout(predicate::str::contains(
            "overlock run -- ./server --port 8080",
        ))
        .stdout(predicate::str::contains("Exit codes:"));
}

#[test]
fn the_help_has_the_exit_codes() {
    for command in [
        "run", "check", "profile", "top", "report", "diff", "merge", "wakeups",
    ] {
        let help = common::text(overlock().args([command, "--help"]));
        assert!(help.contains("Exit codes:"), "{command}: {help}");
    }
}

/// Fails where a file that cannot be written is noticed once the program has run.
#[test]
fn files_that_cannot_be_written_are_refused_before_the_program_runs() {
    let dir = tempfile::tempdir().unwrap();
    let ran = dir.path().join("ran");
    let missing = dir.path().join("missing/file");
    for (words, option) in [
        (&["profile"][..], "--json"),
        (&["profile", "--locks=glibc"], "--html"),
        (&["run", "--stat"], "--report"),
        (&["check"], "--report"),
    ] {
        for path in [dir.path(), &missing] {
            let mut command = overlock();
            command.args(words).arg(option).arg(path);
            command.arg("--library").arg(preload::library());
            let assert = command.args(["--", "touch"]).arg(&ran).assert();
            refused(assert, &["cannot write", option]);
            assert!(!ran.exists(), "{words:?}");
        }
    }
}

/// Fails where the result of printing the help is ignored.
#[test]
fn help_that_cannot_be_printed_is_a_failure() {
    for words in [&["--help"][..], &["--version"], &["run", "--help"]] {
        let full = std::fs::File::create("/dev/full").unwrap();
        let output = std::process::Command::new(assert_cmd::cargo::cargo_bin!("overlock"))
            .args(words)
            .stdout(full)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1), "{words:?}: {output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.starts_with("overlock: cannot print: "), "{said}");
    }
}

#[test]
fn wakeups_are_measured() {
    overlock()
        .arg("wakeups")
        .assert()
        .success()
        .stdout(predicate::str::contains("round trips a second"));
    let json = overlock()
        .args(["wakeups", "--json"])
        .output()
        .unwrap()
        .stdout;
    let figures: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert!(figures["median_us"].as_f64().unwrap() > 0.0);
    assert!(figures["p99_us"].as_f64() >= figures["median_us"].as_f64());
}

#[test]
fn a_bare_call_shows_the_help() {
    overlock()
        .assert()
        .code(2)
        .stderr(predicate::str::contains("Usage:"));
}

#[test]
fn unknown_commands_are_refused_in_one_line() {
    refused(overlock().arg("brunch").assert(), &["'brunch'"]);
    refused(overlock().arg("bench").assert(), &["overlock-lab bench"]);
}

#[test]
fn completions_are_printed() {
    for shell in ["bash", "zsh", "fish"] {
        overlock()
            .args(["completions", shell])
            .assert()
            .success()
            .stdout(predicate::str::contains("lockdep-sleep"))
            .stdout(predicate::str::contains("report"));
    }
    overlock()
        .args(["completions", "csh"])
        .assert()
        .code(2)
        .stderr(predicate::str::contains("bash"));
}

#[test]
fn all_manual_pages_are_written() {
    let dir = tempfile::tempdir().unwrap();
    overlock()
        .args(["man", "--all"])
        .arg(dir.path())
        .assert()
        .success()
        .stdout("");
    for page in ["overlock", "overlock-run", "overlock-check"] {
        let text = std::fs::read_to_string(dir.path().join(format!("{page}.1"))).unwrap();
        assert!(text.contains(".SH NAME"), "{page}: {text}");
    }
    overlock()
        .args(["man", "--all"])
        .arg(dir.path().join("not there"))
        .assert()
        .code(1)
        .stderr(predicate::str::contains("cannot write the manual pages"));
}

/// Fails where clap_mangen writes these parts: it leaves the values out, and fills the lines.
#[test]
fn manual_pages_have_usage_and_examples_as_the_help() {
    let page = common::text(overlock().args(["man", "run"]));
    for line in [
        ".TH overlock-run 1 \" \" \"overlock 0.1.0\" \"User Commands\"",
        "\\fBoverlock run\\fR [OPTIONS] <PROGRAM>...",
        ".SH EXAMPLES\n.nf\noverlock run \\-\\- ./server \\-\\-port 8080\n",
        ".fi\n",
        ".SH \"EXIT STATUS\"\n",
    ] {
        assert!(page.contains(line), "{line}: {page}");
    }
    assert!(!page.contains("EXTRA"), "{page}");
    let page = common::text(overlock().args(["man", "top"]));
    assert!(page.contains(".SH KEYS\n.nf\n"), "{page}");
}

#[test]
fn manual_pages_are_printed() {
    overlock()
        .arg("man")
        .assert()
        .success()
        .stdout(predicate::str::contains(".TH overlock 1"));
    overlock()
        .args(["man", "lunch"])
        .assert()
        .code(2)
        .stderr(predicate::str::contains(
            "run, check, profile, top, report, diff, merge, wakeups, completions",
        ));
}
