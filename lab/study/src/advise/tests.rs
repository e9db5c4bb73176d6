//! Answers.

use super::*;
use crate::case::tests::{case, options, rate};

fn answer_of(threads: usize, names: &[&str], curves: bool) -> Advice {
    let named = |name: &&str| registry::simulated(Family::Exclusive, name).unwrap();
    let question = Question {
        place: case("micro:cs=200ns:ncs=1us", names[0], threads).place,
        locks: names.iter().map(named).collect(),
    };
    question
        .answer(&options(300), curves, |_, _, _| ())
        .unwrap()
}

/// So many threads with locks that make so many operations.
fn advice_of(threads: usize, locks: &[(&'static str, f64)]) -> Advice {
    let standing = |&(lock, ops): &(&'static str, f64)| {
        let mut standing = Standing::new(lock, rate(ops));
        standing.range = Range::of([ops]);
        standing
    };
    let mut advice = Advice::of(&case("micro", "mcs", threads).place);
    advice.locks = locks.iter().map(standing).collect();
    advice.error = Some(0.4);
    advice.compare();
    advice
}

#[test]
fn our_locks_are_in_the_registry() {
    assert_eq!(named(OURS).count(), OURS.split(", ").count());
}

#[test]
fn the_best_locks_come_first_with_their_ranges() {
    let names = ["ticket", "mcs", "hybrid", "queued", "pv_queued", "unfair"];
    let mut advice = answer_of(4, &names, true);
    let locks = &advice.locks;
    assert_eq!(locks.len(), names.len());
    let ops = |standing: &Standing| standing.measured.ops_per_sec;
    assert!(locks.is_sorted_by(|a, b| ops(a) >= ops(b)));
    for (place, standing) in locks.iter().enumerate() {
        assert_eq!(standing.range.is_some(), place < FINALISTS, "{standing:?}");
        let Range { low, high } = standing.varied();
        assert!((low..=high).contains(&ops(standing)), "{standing:?}");
        assert!(place >= FINALISTS || low < high, "{standing:?}");
    }
    let counts = advice.curves.iter().map(|curve| curve.threads);
    assert_eq!(counts.collect_vec(), [1, 2, 4, 8, 16]);
    // The picture has the best three; none of the two for comparison is among the locks.
    assert!(advice.curves.iter().all(|curve| curve.locks.len() == BEST));
    let text = advice.describe();
    for part in ["4 threads on 4 CPUs (one socket)", ", in Mop/s: "] {
        assert!(text.contains(part), "{text}");
    }
    // One figure says nothing where a constant changes a lock's regime.
    let changed = [Ok(rate(33e6)), Err("it hangs".to_owned()), Ok(rate(143e6))];
    advice.locks[0].changed = changed.into();
    advice.locks[0].range = Range::of([0.0, 143e6]);
    let told = advice.describe();
    let sure = "; near a change of regime; fails with other constants";
    assert!(told.contains(" to 143") && told.contains(sure), "{told}");
    let json = serde_json::to_value(&advice.locks[0]).unwrap();
    assert_eq!(json["changed"][1]["Err"], "it hangs");
    assert_eq!(json["changed"][0]["Ok"]["ops_per_sec"], 33e6);
}

/// By an error of 0.4 a figure may be two thirds, or 1.5 times as much.
#[test]
fn only_what_is_beyond_the_errors_is_behind() {
    let told = |locks: &[(&'static str, f64)]| {
        let advice = advice_of(4, locks);
        let rows = advice.locks.iter();
        let mut rows = rows.map(|lock| advice.row(lock)[5].clone());
        (rows.join("; "), advice.describe())
    };
    let three = [("mcs", 3e6), ("std", 2.9e6), ("ticket", 1e4)];
    let (sure, text) = told(&three);
    assert_eq!(sure, "level with others; level with mcs; behind mcs");
    assert!(
        text.contains("\nticket: first come, first served, by number"),
        "{text}"
    );
    assert!(!text.contains("Also"), "{text}");
    let more = [("unfair", 2e6), ("hybrid", 1.4e6), ("queued", 1.3e6)];
    let (_, text) = told(&[&three[..2], &more].concat());
    for part in [
        "\n\nAlso level with mcs, in Mop/s: hybrid 1.40.\n",
        "\n\nAlso behind mcs, in Mop/s: queued 1.30.\n",
    ] {
        assert!(text.contains(part), "{text}");
    }
    let sure = told(&[("mcs", 3e6), ("ticket", 1e4)]).0;
    assert_eq!(sure, "ahead of all others; behind mcs");
    assert_eq!(told(&[("mcs", 3e6)]).0, "-");
    told(&[]);
}

#[test]
fn locks_that_take_fewer_threads_are_left_out() {
    let advice = answer_of(130, &["pv_ticket_small", "unfair"], false);
    assert_eq!(
        advice.locks.iter().map(|lock| lock.lock).collect_vec(),
        ["unfair"]
    );
    assert_eq!((advice.class, advice.curves.len()), (Class::Overcommit, 0));
}

#[test]
fn a_collapse_has_a_logarithmic_axis_and_what_has_not_settled_is_hollow() {
    let drawn = |last: f64, settled: bool| {
        let curve = |(threads, ops): (usize, f64)| {
            let mut advice = advice_of(threads, &[("mcs", ops)]);
            advice.locks[0].measured.simulation.settled = Some(settled || threads == 4);
            advice
        };
        let mut advice = curve((4, 1e6));
        advice.curves = [(4, 1e6), (8, last), (16, 0.0)].map(curve).into();
        let mut picture = Vec::new();
        advice.draw(&mut picture).unwrap();
        let picture = String::from_utf8(picture).unwrap();
        let has = ["mcs", "second, log scale", "has not settled"];
        (
            has.map(|text| picture.contains(text)),
            picture.matches("<circle").count(),
        )
    };
    assert_eq!(drawn(2e5, true), ([true, false, false], 2));
    assert_eq!(drawn(5e4, true), ([true, true, false], 2));
    assert_eq!(drawn(2e5, false), ([true, false, true], 3));
}
