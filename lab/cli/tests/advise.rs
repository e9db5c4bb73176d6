//! `overlock-lab sim advise` as its users meet it.

mod common;

use std::fs;

use assert_cmd::assert::Assert;
use predicates::prelude::*;
use serde_json::{Value, json};

use common::{all_refused, overlock_lab, refused};

const QUICK: &[&str] = &["--machine", "graviton3:cores=4", "--seconds", "0.0005"];
const LOAD: &[&str] = &["--section", "200ns", "--gap", "1us"];

fn advise(args: &[&[&str]]) -> Assert {
    let mut command = overlock_lab();
    command.args(["sim", "advise"]).args(args.concat()).assert()
}

#[test]
fn bad_use_is_refused_with_what_is_valid() {
    all_refused(
        "sim advise => --section
         sim advise --section 200ns => --gap
         sim advise --machine x7560 --section long --gap 1us => --section long
         sim advise --machine x7560 --section 1us --gap long => --gap long
         sim advise --machine x7560 --section 1us --gap -1 => --gap -1: must be a time
         sim advise --machine x7560 --section 1us --gap 1us:lines=3 => --gap 1us:lines=3
         sim advise --machine x7560 --section 20ms --gap 5s => --gap 5.0 s: must be at most 1.0 s
         sim advise --machine x7560 --section 1us --gap 1us --locks cohort => unknown lock 'cohort'
         sim advise --machine x7560 --section 1us --gap 1us --locks cna,ShflLock => --locks cna,ShflLock: models
         sim advise --section 1us --gap 1us --lock queue => --report
         sim advise --machine abacus --section 1us --gap 1us => abacus
         sim advise --report /nowhere/at/all => /nowhere/at/all
         sim which-lock 7 => unknown class '7' | two-sockets
         sim which-lock 8 --locks tikcet => did you mean 'ticket'?
         sim which-lock 8 --locks cna => models of published locks",
    );
}

/// The best three with their ranges, peers by the names that people use, and a picture.
#[test]
fn the_answer_has_three_locks_and_a_picture() {
    let dir = tempfile::tempdir().unwrap();
    let picture = dir.path().join("advice.svg");
    let locks = ["--locks", "ticket,mcs,std,pthread_mutex,hybrid"];
    let more = ["--threads", "4", "--svg", picture.to_str().unwrap()];
    let told = advise(&[QUICK, LOAD, &locks, &more]).success();
    told.stdout(
        predicate::str::contains("4 threads on 4 CPUs (one socket), micro:cs=200ns:ncs=1us")
            .and(predicate::str::contains("how sure"))
            .and(predicate::str::contains("glibc"))
            .and(predicate::str::contains("model:").not()),
    );
    let picture = fs::read_to_string(&picture).unwrap();
    assert!(picture.contains("threads for each CPU"), "{picture}");
    let json = advise(&[QUICK, LOAD, &locks, &["--json", "-"]]).success();
    let json: Value = serde_json::from_slice(&json.get_output().stdout).unwrap();
    assert_eq!(json["locks"].as_array().unwrap().len(), 5);
    assert!(json["locks"][0]["range"]["low"].as_f64() > Some(0.0));
}

/// Fails where the best lock is one that nobody can install. On two sockets a lock that stays on
/// one is ahead of a ticket by far.
#[test]
fn models_of_published_locks_are_no_answers() {
    let dir = tempfile::tempdir().unwrap();
    let picture = dir.path().join("advice.svg");
    let machine = "--machine e5-2699v3 --section 0 --gap 0 --threads 36 --seconds 200us";
    let machine: Vec<&str> = machine.split(' ').collect();
    let locks = ["--locks", "ticket,cna"];
    let svg = ["--svg", picture.to_str().unwrap()];
    let told = advise(&[&machine, &locks, &svg]).success();
    let told = String::from_utf8(told.get_output().stdout.clone()).unwrap();
    let row = |lock: &str| told.lines().position(|line| line.trim().starts_with(lock));
    assert!(row("ticket") < row("cna "), "{told}");
    assert!(
        told.contains("ahead of ticket, which no library has"),
        "{told}"
    );
    assert!(told.contains("Models of published locks, which no library has, in Mop/s: cna "));
    let picture = fs::read_to_string(&picture).unwrap();
    assert!(picture.contains("cna (no library has it)"), "{picture}");
    let json = advise(&[&machine, &locks, &["--json", "-"]]).success();
    let json: Value = serde_json::from_slice(&json.get_output().stdout).unwrap();
    assert_eq!(json["locks"].as_array().unwrap().len(), 1);
    assert_eq!(json["models"][0]["lock"], "cna");
}

/// Fails where the simulator's longest gap limits what may be asked.
#[test]
fn a_lock_that_is_hardly_wanted_is_no_question() {
    let load: &[&str] = &["--section", "200us", "--gap", "5s"];
    let told = advise(&[QUICK, load]).success();
    let says = "No lock matters here: 4 threads that hold it for 200 us and are away for 5.0 s";
    told.stdout(predicate::str::starts_with(says));
    let json = advise(&[QUICK, load, &["--json", "-"]]).success();
    let json: Value = serde_json::from_slice(&json.get_output().stdout).unwrap();
    assert_eq!(json["locks"], json!([]));
    assert!(json["busy"].as_f64() < Some(0.001), "{json}");
}

/// An option has to say what a report does not.
#[test]
fn a_report_of_a_profile_is_a_load() {
    let dir = tempfile::tempdir().unwrap();
    let report = dir.path().join("r.json");
    let mut profile = serde_json::to_value(overlock_profile::Profile {
        version: overlock_profile::VERSION,
        ..Default::default()
    })
    .unwrap();
    profile["run"]["seconds"] = json!(1.0);
    profile["run"]["cpus"] = json!(8);
    profile["processes"] = json!([{"pid": 1, "program": "server"}]);
    let mut lock = serde_json::to_value(overlock_profile::Lock::default()).unwrap();
    lock["name"] = json!("queue");
    lock["hold_avg_ns"] = json!(250.0);
    profile["locks"] = json!([lock]);
    fs::write(&report, profile.to_string()).unwrap();
    let report = ["--report", report.to_str().unwrap()];
    refused(advise(&[QUICK, &report]), &["--gap is needed"]);
    let locks = ["--gap", "1us", "--locks", "ticket,mcs"];
    let told = advise(&[QUICK, &report, &locks]).success();
    let told = told.stdout(
        predicate::str::contains("The lock queue of the report: held for 250 ns")
            .and(predicate::str::contains("cs=250ns")),
    );
    let warned = "the report is of 8 CPUs, and the machine of this answer has 4";
    told.stderr(predicate::str::contains(warned));
    let machine = ["--machine", "graviton3:cores=8", "--seconds", "0.0005"];
    let told = advise(&[&machine, &report, &locks]).success();
    told.stderr(predicate::str::contains("the report").not());
}

#[test]
fn classes_of_machines_have_a_table() {
    let args = "sim which-lock 8 --locks ticket,std --seconds 0.0001 --quiet --json -";
    let told = overlock_lab().args(args.split(' ')).assert().success();
    let cells: Value = serde_json::from_slice(&told.get_output().stdout).unwrap();
    let cells = cells.as_array().unwrap();
    assert_eq!(cells.len(), 12);
    for cell in cells {
        let locks = cell["locks"].as_array().unwrap();
        assert_eq!(locks.len(), 2, "{cell}");
        let best = &locks[0];
        let figures = [
            &best["range"]["low"],
            &best["ops_per_sec"],
            &best["range"]["high"],
        ];
        assert!(figures.map(Value::as_f64).is_sorted(), "{cell}");
        assert!(figures[1].as_f64() > Some(0.0), "{cell}");
        assert_eq!(best["changed"].as_array().unwrap().len(), 6, "{cell}");
        assert!(cell["error"].as_f64() > Some(0.0), "{cell}");
    }
}
