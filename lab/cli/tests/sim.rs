//! `overlock-lab sim` as its users meet it.

mod common;

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use assert_cmd::Command;
use predicates::prelude::*;
use rustix::process::Signal;
use serde_json::Value;

use common::{all_refused, ends, overlock_lab, signal, text};

/// A few vCPUs on two cores.
const TINY: &[&str] = &["--cores", "2", "--seconds", "0.0005", "--warm-up", "0"];

fn tiny_machine() -> Command {
    let mut command = overlock_lab();
    command.arg("sim").args(TINY);
    command
}

fn tiny() -> Command {
    let mut command = tiny_machine();
    command.args(["--vcpus", "2,6"]);
    command
}

#[test]
fn bad_use_is_refused_in_one_line_with_what_is_valid() {
    for command in ["sim", "sim trace"] {
        let table = "--machine abacus => unknown machine 'abacus' | e5-2699v3 | barcelona
             --host hotel => unknown host 'hotel' | kvm | threads
             --cores 37 => --cores 37 | from 1 to 36
             --cores 0 => --cores 0 | from 1 to 36
             --cores 19 => --cores 19 | cannot share them evenly | they can share 20
             --seed dice => --seed dice | whole number
             --seconds 0 => --seconds 0 | a simulated time
             --vcpus 0 => --vcpus 0 | 1
             --vcpus 5000 => 5000 | 4096
             condvar => condvar | needs the real machine
             macro => 'macro'";
        let table = table
            .lines()
            .map(|line| format!("{command} {}\n", line.trim()));
        all_refused(&table.collect::<String>());
    }
    // Options of the run itself mean nothing to a subcommand, and are not swallowed. A second
    // argument is no subcommand.
    all_refused(
        "sim semop --cs 5 => --cs is for `sim micro`, `sim build` and `sim rw` only
         sim --seed 2 trace => unknown workload 'trace'
         sim micro sweep => 'sweep' cannot be used with
         sim micro semop => unexpected argument 'semop' found
         sim sweep --machine x7560 => argument '--machine' found; did you mean '--machines'?",
    );
}

#[test]
fn a_lock_that_cannot_be_simulated_is_refused_with_the_reason() {
    let reason = "needs the real machine: locks that are written over a platform can be simulated";
    all_refused(&format!(
        "sim --locks hybrid,usync => 'usync' | {reason} | the locks are all, ours, models, default | std
         sim --locks overlock-mutex => 'overlock-mutex' | {reason}
         sim rw --locks overlock-rwlock => 'overlock-rwlock' | {reason} | overlock_rw
         sim --locks peers => 'peers' has no lock for micro
         sim --locks lock => unknown lock 'lock' | hybrid
         sim --locks pthread_mutx => did you mean 'pthread_mutex'? The locks are
         sim --locks rwsem => 'rwsem' is for rw and rwsem
         sim trace --lock usync => 'usync' | {reason}
         sim trace --lock ours => --lock ours | one lock"
    ));
}

/// The name of a peer is that of its model, and `parking_lot` is the newest.
#[test]
fn a_lock_has_its_names_in_all_commands() {
    let locks = ["STD", "pthread_mutex", "parking_lot", "MCS", "model:glibc"].join(",");
    let args = ["--locks", &locks, "--vcpus", "2", "--cs", "1.5us"];
    let told = text(tiny_machine().args(args));
    for part in ["model:std", "model:glibc ", "model:parking_lot-0.13", "mcs"] {
        assert!(told.contains(&format!("\n {part}")), "{part}: {told}");
    }
    assert!(told.contains("critical section 1500 ns"), "{told}");
    let place = "--machine graviton3:cores=2 --seconds 10us --section 1.5us --gap 0";
    let advise = format!("sim advise {place} --json - --locks {locks}");
    let told: Value = serde_json::from_str(&text(overlock_lab().args(advise.split(' ')))).unwrap();
    assert_eq!(told["locks"].as_array().unwrap().len(), 4, "{told}");
}

#[test]
fn the_tables_show_what_was_simulated() {
    let args = "--cs 20 --ncs 50 --locks hybrid,ticket --others 3".split(' ');
    let printed = text(tiny().args(args));
    for part in [
        "simulated 2 x 18 cores",
        "2 of 36 CPUs, simulated host kvm",
        "micro, critical section 20 ns",
        "1 round of 0.00050 s, seed 1, beside 3 vCPUs of other guests",
        "1x: 2 vCPUs on 2 CPUs",
        "3x: 6 vCPUs on 2 CPUs",
        "no CPU",
        "the model's",
    ] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    assert!(!printed.contains("x peer"), "{printed}");
}

#[test]
fn a_footnote_is_there_only_with_its_column() {
    for (locks, counts) in [("queued", false), ("queued,hybrid", true)] {
        let printed = text(tiny().args(["--locks", locks]));
        let titles = printed.lines().filter(|line| line.starts_with(" lock "));
        let titles: Vec<_> = titles.flat_map(str::split_whitespace).collect();
        assert_eq!(titles.contains(&"queued"), counts, "{printed}");
        assert_eq!(printed.contains("\nqueued, unfair: "), counts, "{printed}");
        let lost = titles.contains(&"preempted");
        assert_eq!(printed.contains("\npreempted: "), lost, "{printed}");
        assert!(printed.contains("\nwork to ended: "), "{printed}");
    }
}

/// No index of fairness is shown where nobody has done anything. Fails where it is that of equal
/// shares.
#[test]
fn nothing_is_not_called_fair() {
    let shown = |section| text(tiny().args(["--locks", "ticket", "--cs", section]));
    assert!(shown("100").contains("Jain"));
    assert!(!shown("1000000000").contains("Jain"));
}

#[test]
fn other_guests_take_cpus() {
    let preempted = |others: &str| {
        let args = "--seconds 0.05 --locks unfair --vcpus 2 --cores 2 --cs 5000 --json - --others";
        let mut command = overlock_lab();
        let document = text(command.arg("sim").args(args.split(' ')).arg(others));
        let document: Value = serde_json::from_str(&document).unwrap();
        let time = &document["rows"][0]["simulation"]["time"];
        time["preempted"].as_f64().unwrap()
    };
    assert!(preempted("2") > 0.3 && preempted("0") < 0.1);
}

#[test]
fn every_workload_runs() {
    for (workload, says) in [
        ("micro", "(no lock)"),
        ("semop", "4 arrays"),
        ("qdisc", "Mbit/s"),
        ("build", "build, critical section 100 ns, between 2000 ns"),
        ("fserver", "fserver; 1 round"),
        ("rw", "overlock_rw"),
        ("rwsem", "rwsem; 1 round"),
    ] {
        let printed = text(tiny().arg(workload));
        assert!(printed.contains(says), "{printed}");
    }
}

#[test]
fn the_same_command_line_prints_the_same() {
    let args = ["semop", "--json", "-", "--latency-runs", "1", "--runs", "2"];
    let run = |seed: &str| text(tiny().args(args).args(["--seed", seed]));
    let first = run("3");
    assert_eq!(first, run("3"));
    let table = || text(tiny().arg("rwsem"));
    assert_eq!(table(), table());
    let rounds = |document: &str| {
        let document: Value = serde_json::from_str(document).unwrap();
        document["rows"][0]["rounds"].clone()
    };
    let (one, other) = (rounds(&first), rounds(&run("4")));
    assert_ne!(one, other, "the seed is not used");
    assert_ne!(one[0], one[1], "both rounds have the same seed");
}

#[test]
fn a_row_is_the_same_whatever_else_is_simulated() {
    let row = |args: &str| {
        let mut command = overlock_lab();
        let command = command.args(["sim", "qdisc", "--json", "-"]).args(TINY);
        let document: Value = serde_json::from_str(&text(command.args(args.split(' ')))).unwrap();
        let mut rows = document["rows"].as_array().unwrap().iter();
        let row = rows.find(|row| row["lock"] == "hybrid" && row["threads"] == 6);
        row.unwrap().clone()
    };
    let alone = row("--locks hybrid --vcpus 6");
    assert_eq!(alone, row("--locks default --vcpus 2,6"));
    // The clock of a simulation takes no time, so that the waits are those of the same run.
    let mut timed = row("--locks hybrid --vcpus 6 --latency-runs 1");
    assert!(timed["waits"].as_u64() > Some(0));
    for key in ["waits", "p50_ns", "p99_ns", "p999_ns", "max_ns"] {
        timed[key] = Value::Null;
    }
    assert_eq!(alone, timed);
}

#[test]
fn all_files_are_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    tiny()
        .args(["--locks", "hybrid,pv_queued", "--quiet", "--json"])
        .arg(path("out.json"))
        .arg("--csv")
        .arg(path("out.csv"))
        .arg("--svg")
        .arg(path("out.svg"))
        .assert()
        .success()
        .stdout("")
        .stderr("");
    let read = |name: &str| fs::read_to_string(path(name)).unwrap();
    let document: Value = serde_json::from_str(&read("out.json")).unwrap();
    assert_eq!(document["settings"]["simulation"]["machine"], "e5-2699v3");
    assert_eq!(document["settings"]["simulation"]["cores"], 2);
    assert_eq!(document["settings"]["elapsed_s"], Value::Null);
    let rows = document["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2 * 3);
    let mut csv = csv::Reader::from_path(path("out.csv")).unwrap();
    let headers = csv.headers().unwrap().clone();
    let column = |name: &str| headers.iter().position(|header| header == name).unwrap();
    for (row, record) in rows.iter().zip(csv.records()) {
        let record = record.unwrap();
        let told = &row["simulation"];
        assert_eq!(
            record[column("simulation_kicks")],
            told["kicks"].to_string()
        );
        let spin = told["time"]["spin"].to_string();
        assert_eq!(record[column("simulation_time_spin")], spin);
        let shares = told["time"].as_object().unwrap().values();
        let sum: f64 = shares.map(|share| share.as_f64().unwrap()).sum();
        assert!((sum - 1.0).abs() < 1e-6, "{sum}");
    }
    let svg = read("out.svg");
    assert!(svg.contains("overlock-lab sim micro") && svg.contains("vCPUs"));
    let unsettled = rows.iter().any(|row| row["settled"] == false);
    assert_eq!(svg.contains("hollow: not settled"), unsettled);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3);
}

#[test]
fn machines_hosts_and_locks_are_listed() {
    let list = text(overlock_lab().args(["sim", "--list"]));
    for part in
        "machines:|westmere-ex|hosts:|kvm-2013|* hybrid|* overlock_rw| model:parking_lot".split('|')
    {
        assert!(list.contains(part), "{part}: {list}");
    }
    let mut names = list.lines().map(|line| line.trim_start_matches([' ', '*']));
    assert!(!names.any(|name| name.starts_with("parking_lot")), "{list}");
}

#[test]
fn a_lock_with_too_few_places_is_told_of() {
    let mut command = overlock_lab();
    let command = command.arg("sim").args(TINY);
    let told = command.args(["--locks", "pv_ticket_small", "--vcpus", "2,130"]);
    let most = "pv_ticket_small takes at most 127 threads";
    told.assert()
        .success()
        .stderr(predicate::str::contains(most));
}

#[test]
fn ctrl_c_ends_one_long_round_and_many_short_ones() {
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("out.json");
    let long = ["--seconds", "1000", "--vcpus", "8"];
    let short = ["--seconds", "0.000001", "--runs", "10000", "--cores", "1"];
    for args in [&long[..], &short] {
        let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin!("overlock-lab"))
            .arg("sim")
            .args(args)
            .args(["--locks", "all", "--json", json.to_str().unwrap()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let tasks = format!("/proc/{}/task", child.id());
        // The thread that waits for signals is there, so the handler is as well.
        while fs::read_dir(&tasks).map_or(0, Iterator::count) < 2 {
            assert!(child.try_wait().unwrap().is_none(), "{args:?} ended");
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(50));
        signal(&child, Signal::INT);
        assert_eq!(ends(&mut child).code(), Some(130), "{args:?}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
