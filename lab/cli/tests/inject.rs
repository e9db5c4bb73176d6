//! Locks that are broken on purpose are caught.

mod common;

use serde_json::Value;

use common::{overlock_lab, refused};

/// The result, and what was said.
fn inject(flaw: &str) -> (Value, String) {
    let assert = overlock_lab()
        .args([
            "torture",
            "--inject",
            flaw,
            "--seconds",
            "60",
            "--seed",
            "1",
        ])
        // A lock that hangs is found after this.
        .args(["--patience", "1", "--json", "-"])
        .assert()
        .code(1);
    let output = assert.get_output();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    (document, String::from_utf8(output.stderr.clone()).unwrap())
}

fn caught(flaw: &str, kind: &str, says: &[&str]) {
    let (document, text) = inject(flaw);
    assert_eq!(document["passed"], false);
    assert_eq!(document["locks"][0]["violation"]["kind"], kind, "{text}");
    for part in says {
        assert!(text.contains(part), "'{part}' is not in: {text}");
    }
    let replay = format!("replay: overlock-lab torture --inject {flaw} --seed 1 --threads ");
    assert!(
        text.contains(&replay) && text.contains(" --patience 1"),
        "{text}"
    );
}

#[test]
fn two_that_enter_are_caught() {
    caught("no-exclusion", "exclusion", &["does not exclude: thread "]);
}

#[test]
fn a_lost_kick_is_caught_with_who_waits() {
    let says = [
        "hangs: thread ",
        "asleep) waits in lock of lock ",
        "locked: ",
    ];
    caught("lost-kick", "hang", &says);
}

#[test]
fn a_waiter_that_is_passed_for_ever_is_caught() {
    caught("starving", "starvation", &["starves: thread "]);
}

#[test]
fn a_writer_beside_readers_is_caught() {
    caught("rw", "exclusion", &["does not exclude: thread "]);
}

#[test]
fn an_unknown_flaw_is_refused_with_those_that_there_are() {
    let run = overlock_lab().args(["torture", "--inject", "all"]).assert();
    refused(
        run,
        &["no-exclusion, lost-kick, starving, relaxed, lingering, rw"],
    );
}
