//! Answers.

use overlock_sim::host::Host;
use overlock_sim::machine::Machine;

use super::*;
use crate::case::tests::options;

fn advice(threads: usize, names: &[&str], curves: bool) -> Advice {
    let named = |name: &&str| locks::named(Family::Exclusive, name).unwrap();
    let question = Question {
        machine: Arc::new(Machine::named("graviton3:cores=4").unwrap()),
        host: Arc::new(Host::threads()),
        workload: "micro:cs=200ns:ncs=1us".parse().unwrap(),
        threads,
        locks: names.iter().map(named).collect(),
    };
    let answer = question.answer(&options(300), curves, |_, _, _| ());
    answer.unwrap()
}

#[test]
fn the_best_locks_come_first_with_their_ranges() {
    let names = ["ticket", "mcs", "hybrid", "queued", "pv_queued", "unfair"];
    let mut advice = advice(4, &names, true);
    let locks = &advice.locks;
    assert_eq!(locks.len(), names.len());
    assert!(locks.is_sorted_by(|a, b| a.ops_per_sec >= b.ops_per_sec));
    for (place, standing) in locks.iter().enumerate() {
        assert_eq!(standing.ranges.is_some(), place < FINALISTS, "{standing:?}");
        if let Some(ranges) = standing.ranges {
            let Range { low, high } = ranges.ops_per_sec;
            assert!((low..=high).contains(&standing.ops_per_sec) && low < high);
        }
        for other in &standing.level_with {
            let mut level = locks
                .iter()
                .filter(|lock| lock.level_with.contains(&standing.lock));
            assert!(level.any(|lock| lock.lock == *other), "{standing:?}");
        }
    }
    // The picture has the best three; none of the two for comparison is among the locks. In so
    // short a time, locks in line make nothing with more threads than CPUs.
    assert_eq!(advice.curves.len(), BEST);
    let points = advice.curves.iter().flat_map(|curve| &curve.points);
    let counts = points
        .map(|point| point.threads)
        .unique()
        .sorted()
        .collect_vec();
    assert_eq!(counts[..3], [1, 2, 4]);
    assert!(
        counts[3..].iter().all(|count| [8, 16].contains(count)),
        "{counts:?}"
    );
    let mut picture = Vec::new();
    advice.draw(&mut picture).unwrap();
    let picture = String::from_utf8(picture).unwrap();
    assert!(picture.contains(&advice.locks[0].lock));

    let text = advice.describe();
    assert!(text.contains("4 threads on 4 CPUs (one socket)"), "{text}");
    assert!(text.contains("The others, in Mop/s:"), "{text}");
    // One figure says nothing where a constant changes a lock's regime.
    advice.locks[0].ranges.as_mut().unwrap().ops_per_sec = Range {
        low: 33e6,
        high: 143e6,
    };
    let told = advice.describe();
    assert!(
        told.contains("33.0 to 143") && told.contains("; near a change of regime"),
        "{told}"
    );
}

/// A lock that takes fewer threads is no answer.
#[test]
fn locks_that_take_fewer_threads_are_left_out() {
    let advice = advice(130, &["pv_ticket_small", "unfair"], false);
    let names = advice.locks.iter().map(|lock| lock.lock.as_str());
    assert_eq!(
        (names.collect_vec(), advice.class),
        (vec!["unfair"], Class::Overcommit)
    );
    assert!(advice.curves.is_empty());
}
