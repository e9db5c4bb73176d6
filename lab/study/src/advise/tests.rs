//! Answers, and loads from reports.

use std::collections::BTreeSet;

use overlock_profile::{Lock, Profile, Run, Sum, Thread, Wait};
use overlock_sim::host::Host;
use overlock_sim::machine::Machine;

use super::report::{Load, load};
use super::text::describe;
use super::*;

fn question(machine: &str, threads: usize, names: &[&str]) -> Question {
    let named = |name: &&str| locks::named(Family::Exclusive, name).unwrap();
    Question {
        machine: Machine::named(machine).unwrap(),
        host: Host::threads(),
        workload: "micro:cs=200ns:ncs=1us".parse().unwrap(),
        threads,
        locks: names.iter().map(named).collect(),
    }
}

#[test]
fn the_best_locks_come_first_with_their_ranges() {
    let names = ["ticket", "mcs", "hybrid", "queued", "pv_queued", "unfair"];
    let asked = question("graviton3:cores=4", 4, &names);
    let advice = asked.answer(&Options::of(300), true, |_, _, _| ()).unwrap();
    assert_eq!(advice.locks.len(), names.len());
    assert!(
        advice
            .locks
            .is_sorted_by(|a, b| a.ops_per_sec >= b.ops_per_sec)
    );
    for (place, standing) in advice.locks.iter().enumerate() {
        assert_eq!(standing.ranges.is_some(), place < FINALISTS, "{standing:?}");
        if let Some(ranges) = standing.ranges {
            let Range { low, high } = ranges.ops_per_sec;
            assert!((low..=high).contains(&standing.ops_per_sec) && low < high);
        }
        for other in &standing.level_with {
            let theirs = advice
                .locks
                .iter()
                .find(|lock| lock.lock == *other)
                .unwrap();
            assert!(theirs.level_with.contains(&standing.lock), "{standing:?}");
        }
    }
    let text = describe(&advice);
    assert!(text.contains("4 threads on 4 CPUs (one socket)"), "{text}");
    assert!(text.contains("The others, in Mop/s:"), "{text}");

    // One figure says nothing where a constant changes a lock's regime.
    let mut near = advice.clone();
    near.locks[0].ranges.as_mut().unwrap().ops_per_sec = Range::one(33e6).with(143e6);
    let told = describe(&near);
    assert!(told.contains("33.0 to 143"), "{told}");
    assert!(told.contains("; near a change of regime"), "{told}");

    // The picture has the best three; none of the two for comparison is among the locks.
    assert_eq!(advice.curves.len(), BEST);
    // In so short a time, locks in line make nothing with more threads than CPUs.
    let points = advice.curves.iter().flat_map(|curve| &curve.points);
    let counts: BTreeSet<usize> = points.map(|point| point.threads).collect();
    assert!(counts.is_superset(&[1, 2, 4].into()), "{counts:?}");
    assert!(
        counts.iter().all(|count| [1, 2, 4, 8, 16].contains(count)),
        "{counts:?}"
    );
    let mut picture = Vec::new();
    advice.draw(&mut picture).unwrap();
    assert!(
        String::from_utf8(picture)
            .unwrap()
            .contains(&advice.locks[0].lock)
    );
}

/// A lock that takes fewer threads is no answer.
#[test]
fn locks_that_take_fewer_threads_are_left_out() {
    let asked = question("graviton3:cores=4", 130, &["pv_ticket_small", "unfair"]);
    let advice = asked
        .answer(&Options::of(300), false, |_, _, _| ())
        .unwrap();
    let names: Vec<&str> = advice.locks.iter().map(|lock| lock.lock.as_str()).collect();
    assert_eq!((names, advice.class), (vec!["unfair"], Class::Overcommit));
    assert!(advice.curves.is_empty());
}

/// Two threads that wait for the first lock, and three for the second.
fn profile() -> Profile {
    let lock = |name: &str, is_event| Lock {
        name: name.to_owned(),
        is_event,
        hold_avg_ns: Some(200.0),
        acquisitions: Some(1_000_000),
        ..Lock::default()
    };
    let sum = |lock, wait_ns| Sum {
        lock,
        wait_ns,
        ..Sum::default()
    };
    let wait = |lock, thread| Wait {
        lock,
        thread,
        ..Wait::default()
    };
    Profile {
        run: Run {
            seconds: 1.0,
            cpus: 8,
            ..Run::default()
        },
        threads: vec![Thread::default(); 5],
        locks: vec![
            lock("cache", false),
            lock("queue", false),
            lock("done", true),
        ],
        sums: vec![
            sum(0, 5),
            sum(1, 400_000_000),
            sum(1, 600_000_000),
            sum(2, u64::MAX / 4),
        ],
        waits: vec![
            wait(1, 0),
            wait(1, 2),
            wait(1, 2),
            wait(1, 4),
            wait(0, 1),
            wait(0, 2),
        ],
        ..Profile::default()
    }
}

#[test]
fn a_report_becomes_a_load() {
    // Of three seconds of threads one was spent in waits: 2 us for each acquisition.
    let found = load(&profile(), None).unwrap();
    let queue = Load {
        lock: "queue".to_owned(),
        threads: 3,
        section: Some(200.0),
        gap: Some(1800.0),
        cpus: 8,
    };
    assert_eq!(found, queue);
    assert_eq!(load(&profile(), Some("cache")).unwrap().threads, 2);
    // On one CPU they had a second.
    let mut crowded = profile();
    crowded.run.cpus = 1;
    assert_eq!(load(&crowded, None).unwrap().gap, Some(800.0));
    assert!(
        load(&profile(), Some("done"))
            .unwrap_err()
            .contains("no lock 'done'")
    );
    let mut unknown = profile();
    unknown.locks[1].acquisitions = None;
    assert_eq!(load(&unknown, None).unwrap().gap, None);
    unknown.locks.clear();
    unknown.sums.clear();
    assert!(load(&unknown, None).is_err());
}
