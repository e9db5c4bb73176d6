//! `overlock-lab sim score` as its users meet it.

mod common;

use std::fs;

use assert_cmd::assert::Assert;
use predicates::prelude::*;
use serde_json::Value;

use common::{all_refused, overlock_lab, refused};

fn score(args: &[&str]) -> Assert {
    let mut command = overlock_lab();
    command.args(["sim", "score"]).args(args).assert()
}

/// All of them can be read, and there is enough in each half.
#[test]
fn groups_are_listed_with_their_documents() {
    let listed = score(&["--list"]).success();
    let listed = String::from_utf8(listed.get_output().stdout.clone()).unwrap();
    for half in ["calibrate", "score"] {
        let of = |line: &&str| line.split_whitespace().nth(1) == Some(half);
        let counts = listed.lines().filter(of);
        let counts = counts.map(|line| line.split_whitespace().nth(2).unwrap());
        let all: usize = counts.map(|count| count.parse::<usize>().unwrap()).sum();
        assert!(all > 50, "{half}: {listed}");
    }
    assert!(
        listed.contains("cna-paper-4s") && listed.contains("EuroSys 2019"),
        "{listed}"
    );
}

#[test]
fn bad_use_is_refused_with_what_is_valid() {
    all_refused(
        "sim score dbench => unknown group 'dbench' | pv-ticket-dbench
         sim score qdisc --half score => in that half
         sim score --data /nowhere/at/all => /nowhere/at/all
         sim score --seconds 0 => --seconds",
    );
}

/// The same at any number of jobs, for people and for programs.
#[test]
fn figures_stand_beside_the_published_ones() {
    let told = |more: &[&str]| {
        let quick = ["qdisc", "--seconds", "0.001", "--seed", "3"];
        let output = score(&[&quick[..], more].concat()).success();
        String::from_utf8(output.get_output().stdout.clone()).unwrap()
    };
    let text = told(&["--jobs", "1"]);
    assert!(
        text.contains("backoff_ticket") && text.contains("skill"),
        "{text}"
    );
    assert_eq!(text, told(&["--jobs", "3"]));
    let json: Value = serde_json::from_str(&told(&["--json", "-"])).unwrap();
    assert_eq!(json["groups"][0]["name"], "qdisc");
    assert_eq!(json["figures"][0]["figure"], 665.0);
    assert!(json["figures"][0]["simulated"].as_f64() > Some(0.0));
    assert!(told(&["--markdown"]).contains("| qdisc | calibrate |"));
}

#[test]
fn figures_of_others_are_scored() {
    let dir = tempfile::tempdir().unwrap();
    let row = "group,source,machine,workload,lock,threads,figure,unit\n\
               mine,me,mine.toml,micro:cs=50,pthread_mutex,2,5,Mop/s\n";
    fs::write(dir.path().join("mine.csv"), row).unwrap();
    fs::write(
        dir.path().join("mine.toml"),
        "base = \"graviton3\"\nabout = \"mine\"\n",
    )
    .unwrap();
    fs::write(dir.path().join("wrong.csv"), row.replace("mine,me", ",me")).unwrap();
    let file = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    // Not even the text of a machine that no row names is read.
    fs::write(dir.path().join("other.toml"), b"\xff").unwrap();
    let told = |name: &str| score(&["--data", &file(name), "--seconds", "0.001"]);
    let mine = told("mine.csv").success();
    mine.stdout(predicate::str::contains("pthread_mutex").and(predicate::str::contains("mine")));
    // All tables of a folder are read.
    refused(told(""), &["wrong.csv:2: the columns group and source"]);
    refused(
        told("mine.toml"),
        &["mine.toml: Not a directory", "must be a folder, or a file"],
    );
    fs::rename(file("wrong.csv"), file("wrong.CSV")).unwrap();
    let mut bare = overlock_lab();
    bare.args(["sim", "score", "--data", "wrong.CSV"])
        .current_dir(&dir);
    bare.assert()
        .stderr(predicate::str::contains(" wrong.CSV:2: "));
    fs::remove_file(file("wrong.CSV")).unwrap();
    told("").success();
}

/// A lock of the program's models is meant, too.
#[test]
fn the_first_line_that_cannot_be_simulated_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let rows = "group,source,machine,workload,lock,threads,figure,unit\n\
                mine,me,graviton3,micro:cs=50,pthread_mutx,2,5,Mop/s\n\
                mine,me,graviton33,micro:cs=50,mcs,2,5,Mop/s\n";
    fs::write(dir.path().join("mine.csv"), rows).unwrap();
    let says = [
        "mine.csv:2: unknown lock 'pthread_mutx'",
        "did you mean 'pthread_mutex'?",
        "parking_lot-0.13",
    ];
    refused(score(&["--data", dir.path().to_str().unwrap()]), &says);
    fs::write(dir.path().join("mine.csv"), rows.lines().next().unwrap()).unwrap();
    let says = &[dir.path().to_str().unwrap(), " has no figures"];
    refused(score(&["--data", says[0], "--half", "score"]), says);
}
