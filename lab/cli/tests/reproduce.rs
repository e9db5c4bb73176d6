//! `overlock-lab sim reproduce` as its users meet it.

mod common;

use assert_cmd::assert::Assert;
use predicates::prelude::*;
use serde_json::Value;

use common::{overlock_lab, refused};

fn reproduce(args: &[&str]) -> Assert {
    let mut command = overlock_lab();
    command.args(["sim", "reproduce"]).args(args).assert()
}

#[test]
fn tables_are_listed() {
    let names = predicate::str::contains("hybrid-micro")
        .and(predicate::str::contains("semop"))
        .and(predicate::str::contains("rwsem"));
    reproduce(&["--list"]).success().stdout(names);
}

#[test]
fn bad_use_is_refused_with_what_is_valid() {
    let unknown = ["unknown table 'dbench'", "pv-ticket-dbench"];
    refused(reproduce(&["dbench"]), &unknown);
    refused(reproduce(&[]), &["TABLE"]);
    refused(reproduce(&["all", "--length", "0"]), &["--length 0"]);
    refused(reproduce(&["all", "--jobs", "0"]), &["--jobs 0"]);
    refused(reproduce(&["all", "--seeds", "0"]), &["--seeds 0"]);
    refused(
        reproduce(&["rwsem", "--json", "/nowhere/at/all"]),
        &["--json", "/nowhere/at/all"],
    );
}

/// Each figure beside the published one, for people and for programs, the same at any number of
/// jobs.
#[test]
fn a_table_stands_beside_the_published_one() {
    let quick = ["qdisc", "--length", "0.05", "--seed", "3", "--seeds", "2"];
    let told = |more: &[&str]| {
        let output = reproduce(&[&quick[..], more].concat()).success();
        String::from_utf8(output.get_output().stdout.clone()).unwrap()
    };
    let text = told(&["--jobs", "1"]);
    assert!(
        text.contains("fast_queue over ticket") && text.contains("null model"),
        "{text}"
    );
    assert_eq!(text, told(&["--jobs", "3"]));

    let json: Value = serde_json::from_str(&told(&["--json", "-"])).unwrap();
    assert_eq!(json[0]["table"], "qdisc");
    assert_eq!(
        (&json[0]["seed"], &json[0]["seeds"]),
        (&3.into(), &2.into())
    );
    let line = &json[0]["lines"][0];
    let [simulated, published, ratio] =
        ["measured", "published", "ratio"].map(|name| line[name].as_f64().unwrap());
    // 905 over 665 Mbit/s.
    assert!((published - 1.361).abs() < 0.001);
    assert!((simulated / published - ratio).abs() < 1e-9);
}
