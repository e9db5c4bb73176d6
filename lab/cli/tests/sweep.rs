//! `overlock-lab sim sweep` and `overlock-lab sim merge` as their users meet them.

mod common;

use std::fs;
use std::path::Path;
use std::process::{Command as Process, Stdio};
use std::time::Duration;

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use overlock_study::sweep::merge::Merged;
use overlock_study::sweep::{Build, Outcome, Part};
use predicates::prelude::*;
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use common::{ends, overlock_lab, refused, signal};

fn sim(command: &str) -> Command {
    let mut program = overlock_lab();
    program.args(["sim", command]);
    program
}

/// Twelve simulations, of fewer vCPUs than CPUs: others have a warm-up of many time slices.
const SMALL: [&str; 10] = [
    "--locks",
    "ticket,hybrid",
    "--vcpus",
    "3,12",
    "--workloads",
    "micro:cs=95",
    "--seeds",
    "1..3",
    "--seconds",
    "0.0002",
];

struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn sweep(&self, name: &str, more: &[&str]) -> Assert {
        let mut command = sim("sweep");
        command.args(SMALL).args(["--out", &self.path(name)]);
        command.args(more).assert()
    }

    fn merge(&self, parts: &[&str], out: &str) -> Assert {
        let parts = parts.iter().map(|part| self.path(part));
        let mut command = sim("merge");
        command.args(parts).args(["--out", &self.path(out)]);
        command.assert()
    }

    /// A file of these results.
    fn write(&self, name: &str, part: Part) {
        let merged = Merged {
            build: part.build,
            grid: part.grid,
            lines: part.lines,
            missing: Vec::new(),
            duplicates: 0,
        };
        merged
            .write(fs::File::create(self.path(name)).unwrap())
            .unwrap();
    }

    /// All of the small grid, merged.
    fn whole(&self) -> String {
        self.sweep("whole", &["--jobs", "3"]).success();
        self.merge(&["whole"], "whole.merged").success();
        self.read("whole.merged")
    }

    /// The same, read. Its lines have the grid's order, and not that in which simulations end.
    fn part(&self) -> Part {
        Part::read(Path::new(&self.path("whole.merged")))
            .unwrap()
            .unwrap()
    }
}

#[test]
fn shards_merged_are_the_whole() {
    let place = Place::new();
    let whole = place.whole();
    assert_eq!(whole.lines().count(), 1 + 12);
    for shard in 1..=5 {
        let (name, shard) = (format!("part{shard}"), format!("{shard}/5"));
        place
            .sweep(&name, &["--shard", &shard, "--jobs", "1"])
            .success();
    }
    let parts = ["part3", "part1", "part5", "part2", "part4", "part1"];
    place
        .merge(&parts, "all")
        .success()
        .stdout(predicate::str::contains(
            "e5-2699v3, kvm, micro:cs=95ns, 12 vCPUs",
        ))
        .stdout(predicate::str::contains("Mop/s"))
        .stderr("overlock-lab: 3 results were there more than once\n");
    assert_eq!(place.read("all"), whole);
    // A merged file can be merged again, and resumed.
    place.merge(&["all"], "again").success();
    assert_eq!(place.read("again"), whole);
    place
        .sweep("again", &[])
        .success()
        .stderr(predicate::str::starts_with(
            "overlock-lab: 12 simulations, 12 of them done already\noverlock-lab: all are done; ",
        ));
}

#[test]
fn a_line_is_what_the_simulation_told() {
    let place = Place::new();
    let whole = place.whole();
    let mut lines = whole
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let header = lines.next().unwrap();
    assert_eq!(header["format"], "overlock sweep");
    assert_eq!(header["build"]["program"], env!("CARGO_PKG_VERSION"));
    assert!(header["build"]["commit"].as_str() > Some(""), "{header}");
    assert_eq!(header["grid"]["seeds"], serde_json::json!([1, 2, 3]));
    for line in lines {
        assert_eq!(line["workload"], "micro:cs=95ns", "{line}");
        let number = |value: &Value| value.as_u64().unwrap();
        let (total, waits) = (number(&line["total"]), number(&line["waits"]["count"]));
        // Each vCPU may end an operation after the round, which does not count; its wait does.
        let late = 0..=number(&line["vcpus"]);
        assert!(total > 0 && late.contains(&(waits - total)), "{line}");
        assert!(line["simulation"]["events"].as_u64() > Some(0), "{line}");
    }
}

#[test]
fn a_sweep_goes_on_after_a_half_written_line() {
    let place = Place::new();
    let whole = place.whole();
    let file = place.read("whole");
    for length in [10, 600, file.len() / 2, file.len() - 1] {
        fs::write(place.path("cut"), &file[..length]).unwrap();
        place
            .sweep("cut", &["--quiet"])
            .success()
            .stdout("")
            .stderr("");
        place.merge(&["cut"], "cut.merged").success();
        assert_eq!(place.read("cut.merged"), whole, "after {length} bytes");
    }
}

#[test]
fn what_is_missing_is_named() {
    let place = Place::new();
    place.sweep("half", &["--shard", "2/2"]).success();
    fs::write(place.path("none"), "").unwrap();
    place
        .merge(&["half", "none"], "all")
        .code(1)
        .stderr(predicate::str::contains("none has no results yet"))
        .stderr(predicate::str::contains(
            "missing: e5-2699v3, kvm, micro:cs=95ns, 3 vCPUs, ticket, seed 1",
        ))
        .stderr(predicate::str::contains("6 of 12 simulations are missing"));
    assert_eq!(place.read("all").lines().count(), 1 + 6);
    place
        .merge(&["none"], "all")
        .code(2)
        .stderr(predicate::str::contains("no part has any results"));
}

#[test]
fn contradictions_are_refused() {
    let place = Place::new();
    let whole = place.whole();
    let mut other = place.part();
    if let Outcome::Measured(measured) = &mut other.lines[0].outcome {
        measured.total += 1;
    }
    place.write("other", other);
    refused(
        place.merge(&["whole", "other"], "all"),
        &["other", "contradicts", "whole", "of one build", "seed 1"],
    );
    assert!(!Path::new(&place.path("all")).exists());
    assert_eq!(place.read("whole.merged"), whole);
}

/// Fails where builds are not compared.
#[test]
fn other_builds_are_refused() {
    let place = Place::new();
    place.whole();
    let with = |change: fn(&mut Build)| {
        let mut other = place.part();
        change(&mut other.build);
        place.write("other", other);
    };
    let says = |says: [&str; 2]| {
        let resumed = [&["other: line 1 is of overlock"], &says[..]].concat();
        refused(place.sweep("other", &[]), &resumed);
        refused(place.merge(&["whole", "other"], "all"), &resumed);
    };
    with(|build| build.commit = "4d92672".to_owned());
    says(["(commit 4d92672", "whose results are not those of"]);
    with(|build| build.changes = Some("89abcdef".to_owned()));
    says(["with changes 89abcdef", "whose results are not those of"]);
    with(|build| build.program = "0.0.9".to_owned());
    says(["overlock 0.0.9", "whose results are not those of"]);
    with(|build| build.checks ^= true);
    says(["with checks for misuse", "whose results are not those of"]);
    with(|build| build.profile = "quick".to_owned());
    says(["profile quick", "whose results are not those of"]);
    // Alone it has tables, whichever build has simulated it.
    place.merge(&["other"], "all").success();
    assert_eq!(place.read("all"), place.read("other"));
}

#[test]
fn files_of_something_else_are_refused() {
    let place = Place::new();
    let whole = place.whole();
    let with = |name: &str, content: &str| fs::write(place.path(name), content).unwrap();
    with("text", "something else\n");
    let no_file = ["text", "is no file of `overlock-lab sim sweep`"];
    refused(place.sweep("text", &[]), &no_file);
    refused(place.merge(&["text"], "all"), &no_file);
    with(
        "new",
        &whole.replacen(r#""version":4"#, r#""version":9"#, 1),
    );
    refused(place.sweep("new", &[]), &["is of format 9", "has format 4"]);
    let of_another = ["is of another grid, with seeds 1,2,3"];
    refused(place.sweep("whole", &["--seeds", "7"]), &of_another);
    place.sweep("seven", &["--seeds", "7"]).success();
    refused(place.merge(&["seven", "whole"], "all"), &of_another);
    let grid = ["sweep", "--vcpus", "3", "--out"];
    let mut other = overlock_lab();
    other.arg("sim").args(grid).arg(place.path("whole"));
    refused(
        other.assert(),
        &["whole", "is of another grid, with workloads"],
    );
    let nowhere = place.path("missing/out");
    refused(sim("merge").arg(&nowhere).assert(), &[&nowhere]);
}

/// Progress and messages that nobody can read end nothing. Fails where they are printed by
/// `eprintln!`, which panics.
#[test]
fn a_sweep_whose_messages_cannot_be_written_goes_on() {
    let place = Place::new();
    let full = || fs::File::options().write(true).open("/dev/full").unwrap();
    let sweep = |out: &str, stderr: Stdio| {
        let mut command = Process::new(env!("CARGO_BIN_EXE_overlock-lab"));
        command.args(["sim", "sweep"]).args(SMALL);
        command.args(["--jobs", "1", "--out", &place.path(out)]);
        command.stderr(stderr);
        command.status().unwrap()
    };
    assert!(sweep("unread", full().into()).success());
    assert!(sweep("read", Stdio::null()).success());
    assert_eq!(place.read("unread"), place.read("read"));
    let mut bad = Process::new(env!("CARGO_BIN_EXE_overlock-lab"));
    let status = bad
        .args(["sim", "merge", "missing"])
        .stderr(full())
        .status();
    assert_eq!(status.unwrap().code(), Some(2));
}

#[test]
fn bad_use_is_refused_in_one_line_with_what_is_valid() {
    let bad = |args: &[&str], says: &[&str]| {
        let place = Place::new();
        let mut command = sim("sweep");
        if !args.contains(&"--vcpus") {
            command.args(["--vcpus", "4"]);
        }
        command.args(args).args(["--out", &place.path("out")]);
        refused(command.assert(), says);
        assert!(!Path::new(&place.path("out")).exists());
    };
    for shard in ["0/4", "5/4", "4", "x/y", "1/0"] {
        bad(&["--shard", shard], &["--shard", shard, "such as 3/16"]);
    }
    bad(
        &["--machines", "pdp-11"],
        &["unknown machine 'pdp-11'", "barcelona"],
    );
    bad(
        &["--machines", "barcelona:cores=99"],
        &["barcelona:cores=99: cores 99", "from 1 to 16"],
    );
    bad(&["--hosts", "xen"], &["unknown host 'xen'", "kvm"]);
    bad(&["--locks", "std"], &["'std'", "the locks are", "hybrid"]);
    bad(&["--vcpus", "0"], &["--vcpus 0", "from 1 to 4096"]);
    bad(&["--vcpus", "9..5"], &["--vcpus 9..5", "1..3"]);
    bad(&["--vcpus", "0x"], &["--vcpus 0x", "such as 0.25x or 2x"]);
    bad(&["--vcpus", "manyx"], &["--vcpus manyx", "such as 0.25x"]);
    bad(
        &["--vcpus", "200x"],
        &["7200 vCPUs on e5-2699v3", "1 to 4096"],
    );
    bad(&["--seeds", "x"], &["--seeds x", "whole numbers"]);
    bad(&["--seeds", "1..9999999"], &["more than 1000000"]);
    bad(&["--seconds", "0"], &["--seconds 0"]);
    bad(&["--jobs", "0"], &["--jobs 0", "from 1"]);
    bad(
        &["--jobs", "4096", "--vcpus", "4096"],
        &["--jobs 4096", "simulations of 4096 vCPUs", "max_map_count"],
    );
    bad(
        &["--workloads", "micro:cs=x"],
        &["micro:cs=x: cs must be a time from 0ns to 1s"],
    );
    bad(
        &["--workloads", "macro"],
        &["unknown workload 'macro'", "micro"],
    );
    bad(
        &["--workloads", "micro,rw"],
        &["micro and rw", "different kinds of locks"],
    );
    let small = ["--locks", "pv_ticket_small", "--vcpus", "128"];
    bad(&small, &["no lock takes so many vCPUs"]);
    refused(sim("sweep").args(["--vcpus", "4"]).assert(), &["--out"]);
    let mut on_stdout = sim("sweep");
    on_stdout.args(["--vcpus", "4", "--out", "-"]);
    refused(on_stdout.assert(), &["--out -", "need a file"]);
    refused(sim("merge").assert(), &["PART"]);
}

#[test]
fn a_failure_is_kept_and_told_at_the_end() {
    let place = Place::new();
    place.whole();
    // A lock that fails, as its line says.
    let mut failed = Part::read(Path::new(&place.path("whole.merged")))
        .unwrap()
        .unwrap();
    failed.lines.truncate(1);
    let error = "does not exclude".to_owned();
    failed.lines[0].outcome = Outcome::Failed { error };
    place.write("failed", failed);
    let told = "1 of 12 simulations failed, first e5-2699v3, kvm, micro:cs=95ns, 3 vCPUs, ticket, seed 1: does not exclude";
    // It is not tried again: it would do the same.
    place
        .sweep("failed", &[])
        .code(1)
        .stderr(predicate::str::contains("1 of them done already"))
        .stderr(predicate::str::contains(told));
    place
        .merge(&["failed"], "all")
        .code(1)
        .stdout(predicate::str::contains("failed"))
        .stderr(predicate::str::contains(told));
}

#[test]
fn ctrl_c_keeps_what_is_done() {
    let place = Place::new();
    let out = place.path("out");
    let mut child = Process::new(assert_cmd::cargo::cargo_bin!("overlock-lab"))
        .args(["sim", "sweep", "--locks", "ticket", "--vcpus", "2"])
        .args(["--seeds", "1..100000", "--seconds", "0.001", "--out", &out])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = || fs::read_to_string(&out).map_or(0, |text| text.lines().count());
    while lines() < 4 {
        std::thread::sleep(Duration::from_millis(5));
    }
    signal(&child, Signal::INT);
    assert_eq!(ends(&mut child).code(), Some(130));
    let text = fs::read_to_string(&out).unwrap();
    assert!(text.ends_with("}\n") && text.lines().count() >= 4, "{text}");
}
