//! Files of single waits over time: for the Firefox Profiler, and for Perfetto.

mod common;

use std::collections::HashMap;

use common::{LARGE, SMALL, profile};
use overlock_profile::{Profile, Shown, Wait, firefox, perfetto};
use serde_json::Value;

fn parsed(write: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) -> Value {
    let mut out = Vec::new();
    write(&mut out).unwrap();
    serde_json::from_slice(&out).unwrap()
}

fn of_locks(profile: &Profile) -> Vec<&Wait> {
    let waits = profile.waits.iter();
    waits
        .filter(|wait| !profile.locks[wait.lock as usize].is_event)
        .collect()
}

/// Slices nest, each end has its begin, whose name it has, time does not go back, and each flow has
/// two ends.
fn check(document: &Value) -> HashMap<String, usize> {
    let mut names = HashMap::new();
    let mut tracks: HashMap<(u64, u64), Vec<(f64, &Value)>> = HashMap::new();
    let mut flows: HashMap<u64, f64> = HashMap::new();
    let mut last = 0.0;
    for event in document["traceEvents"].as_array().unwrap() {
        let at = event["ts"].as_f64().unwrap();
        assert!(at >= last, "{event} after {last}");
        last = at;
        let track = ["pid", "tid"].map(|part| event[part].as_u64().unwrap());
        let open = tracks.entry((track[0], track[1])).or_default();
        match event["ph"].as_str().unwrap() {
            "B" => open.push((at, &event["name"])),
            "E" => {
                let (began, name) = open.pop().expect("it has begun");
                assert!(began <= at && *name == event["name"], "{event}");
            }
            "s" => {
                assert!(!open.is_empty(), "{event} in no slice");
                assert_eq!(flows.insert(event["id"].as_u64().unwrap(), at), None);
            }
            "f" => {
                assert!(!open.is_empty(), "{event} in no slice");
                let began = flows.remove(&event["id"].as_u64().unwrap());
                assert!(began.expect("a flow has its begin") <= at, "{event}");
            }
            "M" => {}
            other => panic!("{other}"),
        }
        if let Some(name) = event["name"].as_str()
            && event["ph"] != "E"
        {
            let first = name.split(' ').next().unwrap();
            *names.entry(first.to_owned()).or_default() += 1;
        }
    }
    assert!(tracks.values().all(Vec::is_empty), "a slice has no end");
    assert!(flows.is_empty(), "a flow has no end: {flows:?}");
    names
}

#[test]
fn perfetto_has_all_waits_with_flows_from_their_releases() {
    let profile = profile(LARGE, 1.0);
    let document = parsed(|out| perfetto::write(out, &profile, Shown::default()));
    let names = check(&document);
    let waits = of_locks(&profile);
    assert_eq!(names["waits"], waits.len());
    let released = waits
        .iter()
        .filter(|wait| wait.released_ns.is_some())
        .count();
    assert_eq!(names["releases"], released);
    assert_eq!(names["release"], 2 * released);
    assert_eq!(document["otherData"]["command"][0], "/usr/sbin/server");
    let events = document["traceEvents"].as_array().unwrap();
    let wait = events
        .iter()
        .find(|event| event["args"]["parts"]["ran_ns"] != Value::Null);
    assert!(
        wait.unwrap()["args"]["stack"]
            .as_str()
            .unwrap()
            .ends_with("main")
    );
}

/// As damaged or sampled documents have them: waits of one thread that cross, ids used twice, and a
/// release before its wait.
#[test]
fn perfetto_survives_times_that_cannot_be() {
    let mut profile = profile(SMALL, 1.0);
    let began_ns = profile.run.began_ns;
    for (index, wait) in profile.waits.iter_mut().enumerate() {
        wait.thread = index as u32 % 2;
        wait.began_ns = began_ns - 10 + index as u64 * 7;
        wait.wait_ns = 100 + index as u64 % 3 * 50;
        wait.holder = Some(index as u32 % 2);
        wait.released_ns = Some(began_ns - 100 + index as u64 * 11);
    }
    profile.threads[1].tid = profile.threads[0].tid;
    profile.threads[2].tid = profile.threads[0].tid;
    check(&parsed(|out| {
        perfetto::write(out, &profile, Shown::default())
    }));
    let empty = Profile::default();
    check(&parsed(|out| {
        perfetto::write(out, &empty, Shown::default())
    }));
}

#[test]
fn firefox_has_a_marker_and_a_weighted_sample_for_each_wait() {
    let profile = profile(SMALL, 1.0);
    let document = parsed(|out| firefox::write(out, &profile, Shown::default()));
    let threads = document["threads"].as_array().unwrap();
    let mut markers = 0;
    let mut micros = 0;
    for thread in threads {
        markers += thread["markers"]["length"].as_u64().unwrap();
        let weights = thread["samples"]["weight"].as_array().unwrap();
        micros += weights
            .iter()
            .map(|weight| weight.as_u64().unwrap())
            .sum::<u64>();
    }
    let waits = of_locks(&profile);
    assert_eq!(markers, waits.len() as u64);
    let right: u64 = waits.iter().map(|wait| (wait.wait_ns / 1000).max(1)).sum();
    assert_eq!(micros, right);
    assert_eq!(document["meta"]["symbolicated"], true);
    assert_eq!(
        document["meta"]["product"],
        "/usr/sbin/server --threads 1000"
    );
    let schema = &document["meta"]["markerSchema"][0];
    assert_eq!(schema["name"], "LockWait");
    let mut data = threads
        .iter()
        .flat_map(|thread| thread["markers"]["data"].as_array().unwrap());
    let first = data.next().unwrap();
    let parts = [
        "ran",
        "preempted",
        "throttled",
        "blocked",
        "handover",
        "no_cpu",
        "unknown",
    ];
    let sum: f64 = parts
        .iter()
        .map(|part| first[*part].as_f64().unwrap())
        .sum();
    assert!(sum > 0.001 && first["holder"].is_number(), "{first}");
    let text = document.to_string();
    assert!(text.contains("pool::get<7>") && !text.contains("(cond)"));
}
