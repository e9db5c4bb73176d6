//! Scenes computed by hand.

use super::*;

fn plan(word: &str) -> Plan {
    let (what, at) = word.split_once('@').expect("a time");
    Plan {
        at: Time::from_ns(at.parse().expect("nanoseconds")),
        core: what[1..].parse().expect("a core"),
        line: 0,
        op: match what.as_bytes()[0] {
            b'R' => Op::Access(Access::Read),
            b'W' => Op::Access(Access::Write),
            b'L' => Op::Access(Access::Locked),
            b'B' => Op::Buffer,
            b'V' => Op::Watch,
            b'U' => Op::Unwatch,
            _ => unreachable!("{word} is nothing"),
        },
        watches: false,
    }
}

fn play(machine: &Machine, script: &str) -> Scene {
    let plans: Vec<Plan> = script.split_whitespace().map(plan).collect();
    Scene::run(machine, 1, &plans)
}

/// Returns all that is seen in a scene, and who has the line in the end.
fn shows(machine: &Machine, script: &str) -> String {
    let mut scene = play(machine, script);
    scene.shown.sort();
    let word = |&(at, core, what): &(Time, usize, _)| format!("{what}{core}@{} ", at.as_ns_f64());
    let words: String = scene.shown.iter().map(word).collect();
    let having = |access| {
        let has = |&core: &usize| scene.cache.has(0, core, access);
        let cores = (0..machine.all_cores()).filter(has);
        cores.map(|core| core.to_string()).collect::<Vec<_>>()
    };
    let is_owned = !having(Access::Write).is_empty();
    let readers = having(Access::Read).join(",");
    format!(
        "{words}{}:{readers}",
        if is_owned { "owned" } else { "shared" }
    )
}

/// Fails without one of the parts of a transfer, with other shares of it, where a request waits for
/// the wrong others, or where watchers are notified at another time.
#[test]
fn scenes_are_as_computed() {
    let mut machine = plain();
    for row in include_str!("scenes.txt").lines() {
        if let Some(keys) = row.strip_prefix("machine") {
            machine = plain_but(keys.trim());
        } else if let Some((script, seen)) = row.split_once(" -> ") {
            assert_eq!(shows(&machine, script), seen, "{script}");
        }
    }
}

#[test]
fn hits_and_transfers_are_counted() {
    let scene = play(&plain(), "W0@0 R0@200 R1@500 R4@700 R2@900 R8@1100");
    let traffic = scene.cache.traffic();
    let counts = [traffic.hits, traffic.near, traffic.far, traffic.memory];
    assert_eq!(counts, [1, 2, 2, 1]);
}

/// Four loads arrive at 1010, and are answered at intervals of 11. The vCPU of the first one
/// watches the line until a time. Fails where a load at that time or later is answered ahead of it:
/// when all requests have arrived, or when another one has not.
#[test]
fn no_load_is_answered_ahead_after_the_end_of_a_watch() {
    let machine = plain_but("sockets=1:cores_per_socket=8");
    for (others, end, answered) in [(0, 1015, 1), (0, 1022, 2), (1, 1015, 1), (1, 1022, 2)] {
        let mut cache = play(&machine, "W0@0 R1@500").cache;
        for core in 2..6 + others {
            let at = Time::ns(if core < 6 { 1000 } else { 1050 });
            cache.request_ahead(Time::ns(1000), at, core, core, 0);
        }
        cache.forget_signals();
        let (mut now, mut ends) = (Time::ns(1010), Vec::new());
        let loaded = cache.serve_until(&mut now, 0, Time::MAX, |_, at| {
            ends.push(at.as_ns());
            let is_first = ends.len() == 1;
            Some(if is_first { Time::ns(end) } else { Time::MAX })
        });
        assert!(loaded.is_none());
        assert_eq!(ends, [1022, 1033][..answered]);
        let at = Time::ns(1010 + 11 * answered as u64);
        assert_eq!(cache.signals, [Signal::Serve { line: 0, at }]);
    }
}

/// A line half of the ring away takes half as long again, and an adjacent one half as long. The
/// request and the data go that way, the snoop does not.
#[test]
fn distance_on_the_ring_takes_time() {
    let mut ring = plain();
    ring.costs.ring = 0.5;
    let cache = &play(&ring, "").cache;
    let ways = [0, 1, 2, 3].map(|core| cache.sites.way(core, cache.lines[0].slice));
    let alike = |way: &f64| ways.iter().filter(|other| *other == way).count();
    assert_eq!(ways.iter().map(alike).max(), Some(2));
    for (core, way) in ways.into_iter().enumerate().skip(1) {
        let scene = play(&ring, &format!("W0@0 R{core}@500"));
        let end = Time::ns(500 + 15 + 2) + Time::from_ns(45.0 * way);
        assert_eq!(scene.shown[1], (end, core, ""));
    }
}
