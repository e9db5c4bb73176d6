//! Workloads of one's own.

use super::*;

/// A file, its printed form, changed keys and options are one workload.
#[test]
fn workloads_have_files_and_keys_too() {
    let dir = tempfile::tempdir().unwrap();
    let own = "base = \"micro\"\nabout = \"mine\"\ncs = \"95ns\"\nncs = \"0.1us\"\n";
    let file = written(&dir, "own.toml", own);
    let wanted = simulated(&["micro", "--cs", "95", "--ncs", "100"]);
    assert_eq!(wanted["settings"]["cs_ns"], 95.0);
    assert_eq!(simulated(&[&file]), wanted);
    assert_eq!(simulated(&["micro:cs=95:ncs=100ns"]), wanted);
    assert_eq!(simulated(&[&format!("{file}:cs=5"), "--cs", "95"]), wanted);
    let shown = text(overlock_lab().args(["sim", "--show", "micro:cs=95:ncs=100"]));
    assert_eq!(simulated(&[&written(&dir, "shown.toml", &shown)]), wanted);

    let out = dir.path().join("sweep.jsonl");
    let workloads = format!("{file}:ncs=0,build");
    let mut sweep = overlock_lab();
    let sweep = sweep.args(["sim", "sweep", "--seeds", "1", "--quiet", "--out"]);
    let sweep = sweep.arg(&out).args(TINY).args(["--workloads", &workloads]);
    sweep.assert().success();
    let lines = fs::read_to_string(&out).unwrap();
    assert!(lines.contains("\"workload\":\"micro:cs=95ns\"") && lines.contains("\"build\""));
    let tables = text(overlock_lab().args(["sim", "merge"]).arg(&out));
    assert!(tables.contains("micro:cs=95ns"), "{tables}");
}

#[test]
fn what_is_wrong_with_a_workload_is_named_with_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let bad = |text: &str, says: &[&str]| {
        let file = written(&dir, "bad.toml", text);
        for command in [&[][..], &["trace"]] {
            let mut program = overlock_lab();
            refused(program.arg("sim").args(command).arg(&file).assert(), says);
        }
        let sweep = [
            "sim",
            "sweep",
            "--vcpus",
            "2",
            "--out",
            "unused",
            "--workloads",
        ];
        refused(overlock_lab().args(sweep).arg(&file).assert(), says);
    };
    bad(
        "\ncs = \"5ns\"\nbase = \"semop\"\n",
        &["bad.toml:2: the workload semop has no key 'cs'; it has arrays"],
    );
    bad(
        "base = \"macro\"",
        &["bad.toml:1: unknown workload 'macro'; the workloads are micro"],
    );
    bad(
        "base = \"rw\"\nrecrods = 5",
        &["bad.toml:2: unknown key 'recrods'; did you mean 'records'?"],
    );
    bad(
        "base = \"micro\"\ncs = 5",
        &["bad.toml:2: cs needs a unit, as in \"5ns\""],
    );
    bad("cs = \"5ns\"", &["bad.toml: base is missing", "condvar"]);
    let refused = |args: &[&str], says: &[&str]| {
        refused(overlock_lab().arg("sim").args(args).assert(), says);
    };
    refused(
        &["traec"],
        &["unknown workload 'traec'; the workloads are micro"],
    );
    refused(
        &["micro:cs=5", "--reads", "5"],
        &["--reads is for `sim rw` only"],
    );
    refused(&["--show", "rw:cs=2s"], &["rw:cs=2s: cs must be a time"]);
}
