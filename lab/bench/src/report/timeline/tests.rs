use std::borrow::Cow;

use serde_json::Value;

use super::*;

const ABOUT: About = About {
    workload: "micro",
    lock: "hybrid",
    simulation: Simulation {
        machine: Cow::Borrowed("e5-2699v3"),
        cores: 2,
        host: Cow::Borrowed("kvm"),
        others: 1,
        seed: 1,
    },
    vcpus: 2,
    cpus: 2,
};

/// The events of the marks, metadata left out: kind, track and name of each.
fn timeline(marks: &[(u64, usize, What)]) -> Vec<(String, u64, String)> {
    let marks: Vec<Mark> = marks
        .iter()
        .map(|&(at, vcpu, what)| Mark {
            at: Time::us(at),
            vcpu,
            what,
        })
        .collect();
    let mut out = Vec::new();
    write(&mut out, &ABOUT, &marks).unwrap();
    let document: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(document["otherData"]["simulation"]["host"], "kvm");
    let events = document["traceEvents"].as_array().unwrap();
    events
        .iter()
        .filter(|event| event["ph"] != "M")
        .map(|event| {
            let track = if event["pid"] == VCPUS { 'v' } else { 'c' };
            (
                format!("{} {track}{}", event["ph"].as_str().unwrap(), event["tid"]),
                event["ts"].as_f64().unwrap() as u64,
                event["name"].as_str().unwrap_or_default().to_owned(),
            )
        })
        .collect()
}

/// The events on one track, in one line.
fn track(events: &[(String, u64, String)], track: &str) -> String {
    let here = events.iter().filter(|(place, ..)| place.ends_with(track));
    let words = here.map(|(place, at, name)| match place.as_bytes()[0] {
        b'B' => format!("{at} [{name}"),
        b'E' => format!("{at} ]"),
        kind => format!("{at} {}:{name}", char::from(kind)),
    });
    words.collect::<Vec<_>>().join(", ")
}

#[test]
fn a_preempted_holder_holds_on() {
    let events = timeline(&[
        (1, 0, What::On(0)),
        (2, 0, What::Waits(7)),
        (3, 0, What::Holds(7)),
        // The other one has the CPU before this one is said to have lost it.
        (4, 1, What::On(0)),
        (4, 0, What::Preempted),
        (6, 0, What::On(1)),
        (7, 0, What::Releases(7)),
        (8, 0, What::Ends),
        (9, 1, What::Ends),
    ]);
    assert_eq!(
        track(&events, "v0"),
        "0 [not started, 1 ], 2 [waits for lock 7, 3 ], 3 [holds lock 7, 4 [preempted, 6 ], 7 ]"
    );
    assert_eq!(track(&events, "c0"), "1 [vCPU 0, 4 ], 4 [vCPU 1, 9 ]");
    assert_eq!(track(&events, "c1"), "6 [vCPU 0, 8 ]");
}

#[test]
fn a_sleeper_is_kicked_and_then_gets_a_cpu() {
    let events = timeline(&[
        (1, 0, What::On(0)),
        (1, 1, What::On(1)),
        (2, 0, What::Sleeps),
        (5, 0, What::Kicked(1)),
        (6, 0, What::On(0)),
        (7, 0, What::Ends),
        (7, 1, What::Ends),
    ]);
    assert_eq!(
        track(&events, "v0"),
        "0 [not started, 1 ], 2 [asleep, 5 i:kicked by vCPU 1, 5 ], 5 [woken, 6 f:kick, 6 ]"
    );
    assert_eq!(track(&events, "v1"), "0 [not started, 1 ], 5 s:kick");
    assert_eq!(track(&events, "c0"), "1 [vCPU 0, 2 ], 6 [vCPU 0, 7 ]");
}

#[test]
fn locks_may_be_released_in_any_order() {
    let events = timeline(&[
        (0, 0, What::On(0)),
        (1, 0, What::Holds(1)),
        (2, 0, What::Holds(2)),
        (3, 0, What::Releases(1)),
        (4, 0, What::Releases(2)),
    ]);
    assert_eq!(
        track(&events, "v0"),
        "0 [not started, 0 ], 1 [holds lock 1, 2 [holds lock 2, 3 ], 3 ], 3 [holds lock 2, 4 ]"
    );
}

#[test]
fn what_is_open_ends_with_the_last_mark() {
    let events = timeline(&[
        (1, 0, What::On(0)),
        (2, 0, What::Waits(1)),
        (3, 1, What::On(1)),
    ]);
    assert_eq!(
        track(&events, "v0"),
        "0 [not started, 1 ], 2 [waits for lock 1, 3 ]"
    );
    assert_eq!(track(&events, "c0"), "1 [vCPU 0, 3 ]");
    assert_eq!(track(&events, "c1"), "3 [vCPU 1, 3 ]");
}

#[test]
fn the_cpu_that_it_had_is_not_a_new_one() {
    let events = timeline(&[(1, 0, What::On(0)), (4, 0, What::On(0)), (5, 0, What::Ends)]);
    assert_eq!(track(&events, "c0"), "1 [vCPU 0, 5 ]");
}

#[test]
fn other_guests_have_their_tracks() {
    let events = timeline(&[
        (1, 2, What::On(0)),
        (2, 0, What::On(0)),
        (2, 2, What::Preempted),
    ]);
    assert_eq!(
        track(&events, "v2"),
        "0 [not started, 1 ], 2 [preempted, 2 ]"
    );
    assert_eq!(
        track(&events, "c0"),
        "1 [other guest, vCPU 0, 2 ], 2 [vCPU 0, 2 ]"
    );
}
