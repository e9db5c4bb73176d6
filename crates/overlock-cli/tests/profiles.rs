//! `overlock report` of a profile: the files that are made of it.

mod common;
#[path = "../../overlock-profile/tests/common/mod.rs"]
mod synthetic;

use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use common::{cpu_time, overlock, refused, text};
use overlock_profile::{Profile, json};
use serde_json::Value;
use synthetic::{SMALL, Size, profile};
use tempfile::TempDir;

fn keep(dir: &TempDir, name: &str, profile: &Profile) -> PathBuf {
    let path = dir.path().join(name);
    json::write(&mut fs::File::create(&path).unwrap(), profile).unwrap();
    path
}

/// Fails where the time grows with the square of the number of locks, threads or waits. A release
/// build takes 5 seconds for 100,000 locks.
#[test]
fn a_profile_of_many_locks_and_threads_is_drawn_soon() {
    let dir = tempfile::tempdir().unwrap();
    let size = Size {
        waits: 8000,
        locks: 8000,
        threads: 1000,
    };
    let kept = keep(&dir, "p.json", &profile(size, 1.0));
    let mut arguments = vec!["report".into(), kept.into_os_string()];
    for file in ["html", "flame", "folded", "pprof", "firefox", "perfetto"] {
        arguments.push(format!("--{file}").into());
        arguments.push(dir.path().join(file).into());
    }
    let (took, _) = cpu_time(&arguments);
    assert!(took < 120.0, "{took}");
}

/// Fails where each lock takes room for all lengths that its waits might have: another 90 MB here,
/// and a gigabyte for 100,000 locks.
#[test]
fn a_profile_of_many_locks_takes_little_memory() {
    let dir = tempfile::tempdir().unwrap();
    let size = Size {
        waits: 10_000,
        locks: 10_000,
        threads: 100,
    };
    let kept = keep(&dir, "p.json", &profile(size, 1.0));
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -v 100000 && exec \"$0\" report \"$1\""]);
    command.arg(assert_cmd::cargo::cargo_bin!("overlock"));
    assert!(text(command.arg(kept)).starts_with("server: "));
}

#[test]
fn a_kept_profile_fits_the_schema_and_is_drawn() {
    let dir = tempfile::tempdir().unwrap();
    let kept = keep(&dir, "p.json", &profile(SMALL, 1.0));
    let again = dir.path().join("again.json");
    let mut command = overlock();
    command.arg("report").arg(&kept).arg("--json").arg(&again);
    let files = ["html", "flame", "folded", "pprof", "firefox", "perfetto"];
    for file in files {
        command.arg(format!("--{file}")).arg(dir.path().join(file));
    }
    let table = text(&mut command);
    assert!(
        table.starts_with("server: 278 ms in 281 waits for locks"),
        "{table}"
    );
    assert!(
        table.contains("\n+ 1,234 waits below the threshold\n"),
        "{table}"
    );
    assert!(
        table.lines().all(|line| line.chars().count() <= 80),
        "{table}"
    );
    assert!(table.contains("The longest waits:"), "{table}");
    assert_eq!(fs::read(&kept).unwrap(), fs::read(&again).unwrap());
    for file in files {
        assert!(
            fs::metadata(dir.path().join(file)).unwrap().len() > 1000,
            "{file}"
        );
    }
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/profile.schema.json");
    let schema: Value = serde_json::from_str(&fs::read_to_string(schema).unwrap()).unwrap();
    let document: Value = serde_json::from_str(&fs::read_to_string(kept).unwrap()).unwrap();
    jsonschema::validate(&schema, &document).unwrap();
    let mut wrong = document;
    wrong["sums"][0]["surprise"] = Value::from(1);
    assert!(jsonschema::validate(&schema, &wrong).is_err());
}

#[test]
fn stacks_may_be_the_holders_and_whole() {
    let dir = tempfile::tempdir().unwrap();
    let kept = keep(&dir, "p.json", &profile(SMALL, 1.0));
    let folded = |options: &[&str]| {
        let mut command = overlock();
        command.arg("report").arg(&kept).args(["--folded", "-"]);
        text(command.args(options))
    };
    assert!(!folded(&[]).contains("(holder unknown)"));
    assert!(folded(&["--by", "holder"]).contains(";(holder unknown);"));
    assert!(folded(&["--all-frames"]).contains("pool::get<7>;uv_mutex_lock;"));
    assert!(folded(&["--events"]).contains(" (cond) "));
}

#[test]
fn profiles_and_tables_do_not_mix() {
    let dir = tempfile::tempdir().unwrap();
    let kept = keep(&dir, "p.json", &profile(SMALL, 1.0));
    let run = |args: &[&str]| overlock().arg("report").arg(&kept).args(args).assert();
    refused(run(&["--svg", "x.svg"]), &["--svg", "of a table"]);
    refused(run(&["1"]), &["overlock merge"]);
    let table = overlock()
        .args(["report", "1", "--flame", "x.svg"])
        .assert();
    refused(table, &["--flame", "of a profile"]);
    fs::write(&kept, "{\"version\": 1}").unwrap();
    refused(
        run(&[]),
        &["cannot read", "p.json: no profile: missing field"],
    );
}

#[test]
fn a_change_is_found_and_drawn() {
    let dir = tempfile::tempdir().unwrap();
    let before = keep(&dir, "before.json", &profile(SMALL, 1.0));
    let after = keep(&dir, "after.json", &profile(SMALL, 30.0));
    let svg = dir.path().join("change.svg");
    let mut command = overlock();
    let table = text(
        command
            .arg("diff")
            .args([&before, &after])
            .arg("--flame")
            .arg(&svg),
    );
    let line = table
        .lines()
        .find(|line| line.contains(" lock_3 "))
        .unwrap();
    assert!(line.contains("x30.0") && line.contains("more"), "{table}");
    assert!(table.contains("4 runs of each side tell more"), "{table}");
    assert!(
        table.lines().all(|line| line.chars().count() <= 80),
        "{table}"
    );
    assert!(fs::read_to_string(svg).unwrap().contains("red has grown"));
    let mut command = overlock();
    command.arg("diff").args([&before; 4]).arg("--after");
    let same = text(command.args([&before; 4]));
    assert!(same.contains("noise") && !same.contains("more"), "{same}");
    let mut command = overlock();
    let json = text(command.arg("diff").args([&before, &after]).arg("--json=-"));
    let json: Value = serde_json::from_str(&json).unwrap();
    let schema = include_str!("../schema/diff.schema.json");
    jsonschema::validate(&serde_json::from_str(schema).unwrap(), &json).unwrap();
    assert_eq!([&json["runs_before"], &json["runs_after"]], [1, 1]);
    let rows = json["locks"].as_array().unwrap();
    let row = rows.iter().find(|row| row["name"] == "lock_3").unwrap();
    assert_eq!(row["verdict"], "more");
    let ns = |side: &str| row[side]["wait_ns"].as_f64().unwrap();
    assert!((ns("after") / ns("before") - 30.0).abs() < 0.1, "{row}");
    refused(overlock().arg("diff").arg(&before).assert(), &["--after"]);
}

#[test]
fn profiles_merge_and_the_whole_reports() {
    let dir = tempfile::tempdir().unwrap();
    let one = keep(&dir, "one.json", &profile(SMALL, 1.0));
    let all = dir.path().join("all.json");
    let mut command = overlock();
    let merged = command.arg("merge").args([&one, &one]).arg("-o").arg(&all);
    merged.assert().success().stdout("");
    let table = text(overlock().arg("report").arg(&all));
    assert!(
        table.starts_with("server: 556 ms in 562 waits for locks"),
        "{table}"
    );
    refused(overlock().arg("merge").arg(&one).assert(), &["--output"]);
}
