//! `overlock-lab sim sweep` and `overlock-lab sim merge` as their users meet them.

mod common;

use std::fs;
use std::path::Path;
use std::process::{Command as Process, Stdio};
use std::time::Duration;

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use predicates::prelude::*;
use predicates::str::contains;
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use common::{all_refused, ends, overlock_lab, refused, signal};

fn sim(command: &str) -> Command {
    let mut program = overlock_lab();
    program.args(["sim", command]);
    program
}

/// Twelve simulations, of fewer vCPUs than CPUs: others have a warm-up of many time slices.
const SMALL: &str = "--locks ticket,hybrid --vcpus 3,12 --workloads micro:cs=95 --seeds 1..3 \
                     --seconds 0.0002";

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
        command
            .args(SMALL.split(' '))
            .args(["--out", &self.path(name)]);
        command.args(more).assert()
    }

    fn merge(&self, parts: &[&str], out: &str) -> Assert {
        let parts = parts.iter().map(|part| self.path(part));
        let mut command = sim("merge");
        command.args(parts).args(["--out", &self.path(out)]);
        command.assert()
    }

    /// All of the small grid, merged.
    fn whole(&self) -> String {
        self.sweep("whole", &["--jobs", "3"]).success();
        self.merge(&["whole"], "whole.merged").success();
        self.read("whole.merged")
    }

    /// The file `other`: the whole with a change.
    fn change(&self, from: &str, to: &str) {
        let whole = self.read("whole.merged");
        assert!(whole.contains(from), "{whole}");
        fs::write(self.path("other"), whole.replacen(from, to, 1)).unwrap();
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
        .stdout(contains("e5-2699v3, kvm, micro:cs=95ns, 12 vCPUs"))
        .stdout(contains("Mop/s"))
        .stderr("");
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
    assert_eq!(header["format"], "overlock sweep 6");
    let build = header["build"].as_str().unwrap();
    let program = format!("overlock {} (commit ", env!("CARGO_PKG_VERSION"));
    assert!(
        build.starts_with(&program) && build.contains("profile"),
        "{build}"
    );
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
fn what_is_missing_is_named() {
    let place = Place::new();
    place.sweep("half", &["--shard", "2/2"]).success();
    fs::write(place.path("none"), "").unwrap();
    place
        .merge(&["half", "none"], "all")
        .code(1)
        .stderr(contains(
            "missing: e5-2699v3, kvm, micro:cs=95ns, 3 vCPUs, ticket, seed 1",
        ))
        .stderr(contains("6 of 12 simulations are missing"));
    assert_eq!(place.read("all").lines().count(), 1 + 6);
    place
        .merge(&["none"], "all")
        .code(2)
        .stderr(contains("no part has any results"));
}

/// Fails where results or builds are not compared.
#[test]
fn contradictions_and_other_builds_are_refused() {
    let place = Place::new();
    let whole = place.whole();
    place.change("\"total\":", "\"total\":1");
    let says = ["other: line 2 contradicts an earlier one", "seed 1"];
    refused(place.merge(&["whole", "other"], "all"), &says);
    assert!(!Path::new(&place.path("all")).exists());
    assert_eq!(place.read("whole.merged"), whole);

    place.change("(commit ", "(commit 9");
    let says = ["(commit 9", "whose results are not those of"];
    refused(place.sweep("other", &[]), &says);
    refused(place.merge(&["whole", "other"], "all"), &says);
    // Alone it has tables, whichever build has simulated it.
    place.merge(&["other"], "all").success();
    assert_eq!(place.read("all"), place.read("other"));
}

/// They are left as they are.
#[test]
fn files_of_something_else_are_refused() {
    let place = Place::new();
    let whole = place.whole();
    let changed = |from: &str, to: &str| whole.replacen(from, to, 1);
    let no_file = "is no file of this version of `overlock-lab sim sweep`";
    let (seeds, order) = ("\"seeds\":[1,2],", "is of another grid: {\"machines\"");
    for (content, says) in [
        ("something else".to_owned(), no_file),
        (changed("sweep 6", "sweep 5"), no_file),
        (
            changed("\"grid\"", "\"grit\""),
            "line 1 is damaged: missing field `grid`",
        ),
        (changed("[1,2,3]", "[1,2]"), seeds),
        (changed("[3,12]", "[12,3]"), order),
        (
            changed("\"seed\":1", "\"seed\":4"),
            "line 2 is not of this grid",
        ),
        (changed("\n", "\n\n"), "line 2 is damaged"),
        (changed("\"avg\"", "\"average\""), "line 2 is damaged"),
        (changed("(commit ", "(commit unknown "), "(commit unknown "),
    ] {
        fs::write(place.path("other"), &content).unwrap();
        refused(place.sweep("other", &[]), &[says]);
        assert_eq!(place.read("other"), content);
    }
    // It is not a sweep that was killed in its first line.
    fs::write(place.path("other"), "something else").unwrap();
    refused(place.merge(&["other"], "all"), &[no_file]);
    // Nobody knows whether two unknown builds are the same.
    fs::write(place.path("other"), changed("(commit ", "(commit unknown ")).unwrap();
    let unknown = ["it may be another build"];
    refused(place.merge(&["other", "other"], "all"), &unknown);
    place.merge(&["other"], "all").success();
    refused(
        place.merge(&["whole", "seven"], "all"),
        &["seven: No such file"],
    );
    let null = sim("sweep")
        .args(SMALL.split(' '))
        .args(["--out", "/dev/null"])
        .assert();
    refused(null, &["/dev/null: results need a file"]);
    let held = fs::File::open(place.path("whole")).unwrap();
    held.lock().unwrap();
    refused(
        place.sweep("whole", &[]),
        &["another sweep writes to it now"],
    );
    let nowhere = place.path("missing/out");
    refused(sim("merge").arg(&nowhere).assert(), &[&nowhere]);
}

/// Fails where levels are those of the first machine, and where a part beyond the sweep counts as
/// done.
#[test]
fn each_machine_has_its_levels_and_parts_may_be_small() {
    let place = Place::new();
    let machines = "--locks ticket --seeds 1 --machines barcelona:cores=2,barcelona";
    let part = |shard: &str, out: &str| {
        let mut sweep = sim("sweep");
        sweep
            .args(machines.split(' '))
            .args(["--vcpus", "0.25x,4x"]);
        sweep.args(["--seconds", "0.0002", "--shard", shard]);
        sweep.args(["--out", &place.path(out)]).assert().success()
    };
    part("7/9", "none").stderr(
        "overlock-lab: 0 simulations, 0 of them done already\n\
         overlock-lab: part 7 of 9 is empty, since the sweep has 4 in all\n",
    );
    let header: Value = serde_json::from_str(&place.read("none")).unwrap();
    assert_eq!(
        header["grid"]["machines"].to_string(),
        r#"[["barcelona:cores=2",[1,8]],["barcelona",[4,64]]]"#
    );
    part("1/9", "one").stderr(contains("1 simulation, 0 of them done already"));
    place
        .merge(&["none", "one", "one"], "all")
        .code(1)
        .stderr(contains("3 of 4 simulations are missing"));
}

/// Progress and messages that nobody can read end nothing. Fails where they are printed by
/// `eprintln!`, which panics.
#[test]
fn a_sweep_whose_messages_cannot_be_written_goes_on() {
    let place = Place::new();
    let full = || fs::File::options().write(true).open("/dev/full").unwrap();
    let sweep = |out: &str, stderr: Stdio| {
        let mut command = Process::new(env!("CARGO_BIN_EXE_overlock-lab"));
        command.args(["sim", "sweep"]).args(SMALL.split(' '));
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
    let place = Place::new();
    let out = place.path("out");
    let of_one = |command: &str, table: &str| {
        let lines = table
            .lines()
            .map(|line| format!("{command} {}\n", line.trim()));
        all_refused(&lines.collect::<String>());
        assert!(!Path::new(&out).exists());
    };
    of_one(
        &format!("sim sweep --out {out} --vcpus 4"),
        "--shard 0/4 => --shard 0/4 | such as 3/16
         --shard 4 => --shard 4 | such as 3/16
         --shard 1/18446744073709551615 => --shard 1/18446744073709551615 | up to 1000000
         --machines pdp-11 => unknown machine 'pdp-11' | barcelona
         --machines barcelona:cores=99 => barcelona:cores=99: cores 99 | from 1 to 16
         --hosts xen => unknown host 'xen' | kvm
         --locks usync => 'usync' | the locks are | hybrid
         --seeds x => --seeds x | whole numbers
         --seeds 1..9999999 => more than 1000000
         --seconds 0 => --seconds 0
         --jobs 0 => --jobs 0 | from 1
         --workloads micro:cs=x => micro:cs=x: cs must be a time from 0ns to 1s
         --workloads macro => unknown workload 'macro' | micro
         --workloads micro,rw => micro and rw | different kinds of locks",
    );
    of_one(
        &format!("sim sweep --out {out} --vcpus"),
        "0 => --vcpus 0 | from 1 to 4096
         9..5 => --vcpus 9..5 | 1..3
         0x => --vcpus 0x | from 1 to 4096 | such as 0.25x
         2xx => --vcpus 2xx | such as 0.25x
         manyx => --vcpus manyx | such as 0.25x
         200x => 7200 vCPUs on e5-2699v3 | 1 to 4096
         128 --locks pv_ticket_small => no lock takes so many vCPUs
         4096 --jobs 4096 => --jobs 4096 | simulations of 4096 vCPUs | max_map_count",
    );
    all_refused(
        "sim sweep --vcpus 4 => --out
         sim sweep --vcpus 4 --out - => --out - | need a file
         sim merge => PART",
    );
}

#[test]
fn a_failure_is_kept_and_told_at_the_end() {
    let place = Place::new();
    place.whole();
    // A lock that fails, as its line says.
    let whole = place.read("whole.merged");
    let mut lines = whole.lines();
    let (header, first) = (lines.next().unwrap(), lines.next().unwrap());
    let (key, _) = first.split_once(",\"elapsed_s\"").unwrap();
    let failed = format!("{header}\n{key},\"error\":\"does not exclude\"}}\n");
    fs::write(place.path("other"), failed).unwrap();
    let told = "1 of 12 simulations failed, first e5-2699v3, kvm, micro:cs=95ns, 3 vCPUs, ticket, seed 1: does not exclude";
    // It is not tried again: it would do the same.
    place
        .sweep("other", &[])
        .code(1)
        .stderr(contains("1 of them done already"))
        .stderr(contains(told));
    place
        .merge(&["other"], "all")
        .code(1)
        .stdout(contains("failed"))
        .stderr(contains(told));
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
