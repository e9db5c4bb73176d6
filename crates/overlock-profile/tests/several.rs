//! Several profiles: compared, and merged.

mod common;

use common::{LARGE, SMALL, profile};
use overlock_profile::diff::{self, Verdict};
use overlock_profile::{Confidence, Lock, Merger, Profile, Shown};

fn total(profile: &Profile) -> (u64, u64) {
    let sums = profile.sums.iter();
    sums.fold((0, 0), |(waits, ns), sum| {
        (waits + sum.waits, ns + sum.wait_ns)
    })
}

/// Changes the waits for one lock, in the sums and in the distribution.
fn lengthen(profile: &mut Profile, lock: usize, factor: u64) {
    for sum in &mut profile.sums {
        if sum.lock as usize == lock {
            sum.wait_ns *= factor;
        }
    }
    let mut distribution = overlock_profile::Distribution::default();
    for (ns, count) in profile.locks[lock].distribution.buckets() {
        distribution.record_many(ns * factor, count);
    }
    profile.locks[lock].distribution = distribution;
}

fn by_name<'a>(rows: &'a [diff::Row], name: &str) -> &'a diff::Row {
    rows.iter().find(|row| row.name == name).expect(name)
}

#[test]
fn the_lock_that_changed_is_first_and_the_others_are_noise() {
    let before = profile(SMALL, 1.0);
    let mut after = before.clone();
    // Other processes have other addresses.
    for lock in &mut after.locks {
        lock.address += 0x1000;
    }
    lengthen(&mut after, 3, 100);
    let compare = |one: &Profile, two: &Profile| {
        let (one, two) = (std::slice::from_ref(one), std::slice::from_ref(two));
        diff::rows(one, two, Shown::default())
    };
    let rows = compare(&before, &after);
    assert_eq!(
        (rows[0].name.as_str(), rows[0].verdict),
        ("lock_3", Verdict::More)
    );
    assert!((rows[0].after.wait_ns / rows[0].before.wait_ns - 100.0).abs() < 0.1);
    assert!(rows[1..].iter().all(|row| row.verdict == Verdict::Noise));
    let back = compare(&after, &before);
    assert_eq!(
        (back[0].name.as_str(), back[0].verdict),
        ("lock_3", Verdict::Less)
    );
    // A tenth is within what as many waits of such lengths differ by.
    let slightly = compare(&before, &profile(SMALL, 1.1));
    assert!(slightly.iter().all(|row| row.verdict == Verdict::Noise));
    // A lock that is not there has no waits.
    let mut without = before.clone();
    without.sums.retain(|sum| sum.lock != 3);
    let gone = compare(&before, &without);
    assert_eq!(by_name(&gone, "lock_3").after.waits, 0.0);
}

#[test]
fn several_runs_tell_noise_by_their_order() {
    let runs = |factors: [f64; 4]| factors.map(|factor| profile(SMALL, factor)).to_vec();
    let before = runs([1.0, 1.02, 0.98, 1.01]);
    let slower = runs([1.11, 1.09, 1.12, 1.1]);
    let rows = diff::rows(&before, &slower, Shown::default());
    assert_eq!(
        by_name(&rows, "lock_3").verdict,
        Verdict::More,
        "by a tenth"
    );
    let mixed = runs([1.03, 0.97, 1.0, 1.01]);
    let rows = diff::rows(&before, &mixed, Shown::default());
    assert!(rows.iter().all(|row| row.verdict == Verdict::Noise));
}

#[test]
fn a_differential_flame_graph_has_both_times() {
    let (before, mut after) = (profile(SMALL, 1.0), profile(SMALL, 1.0));
    lengthen(&mut after, 3, 100);
    let mut svg = Vec::new();
    diff::flame(&mut svg, &[before], &[after], Shown::default()).unwrap();
    let svg = String::from_utf8(svg).unwrap();
    assert!(
        svg.contains("red has grown") && svg.contains("; +"),
        "{svg}"
    );
}

#[test]
fn a_fleet_merges_by_names_and_builds() {
    let one = profile(SMALL, 1.0);
    let mut two = profile(SMALL, 2.0);
    two.run.began_ns += 1_000_000;
    two.run.known.ran = Confidence::Sampled;
    two.run.locks = "glibc".to_owned();
    // The same build in a container, at other addresses.
    for frame in &mut two.frames {
        frame.module = Some("/container/server".to_owned());
    }
    for lock in &mut two.locks {
        lock.address += 0x1000;
    }
    let mut merger = Merger::new();
    merger.add(&one);
    merger.add(&two);
    let both = merger.finish();
    both.check().unwrap();
    assert_eq!(both.frames.len(), one.frames.len());
    assert_eq!(both.locks.len(), one.locks.len());
    assert_eq!(both.sums.len(), one.sums.len());
    let (a, b, sum) = (total(&one), total(&two), total(&both));
    assert_eq!((a.0 + b.0, a.1 + b.1), sum);
    assert_eq!(both.waits.len(), one.waits.len() + two.waits.len());
    assert_eq!(both.threads.len(), 2 * one.threads.len());
    let last = both.waits.last().unwrap();
    let right = two.waits.last().unwrap();
    assert_eq!(
        last.began_ns,
        right.began_ns.saturating_sub(two.run.began_ns)
    );
    assert_eq!(
        last.thread as usize,
        one.threads.len() + right.thread as usize
    );
    assert_eq!(both.run.known.ran, Confidence::Sampled);
    assert_eq!(both.run.locks, "overlock, glibc");
    assert_eq!(both.lost.short_waits, 2 * one.lost.short_waits);
    let lock = |profile: &Profile| -> Lock { profile.locks[3].clone() };
    assert_eq!(
        lock(&both).distribution.count(),
        2 * lock(&one).distribution.count()
    );
    assert_eq!(lock(&both).objects, 2 * lock(&one).objects);
}

#[test]
fn a_large_fleet_keeps_the_longest_waits_and_their_chains() {
    let one = profile(LARGE, 1.0);
    let mut merger = Merger::new();
    for _ in 0..25 {
        merger.add(&one);
    }
    let all = merger.finish();
    all.check().unwrap();
    assert_eq!(all.waits.len(), 100_000);
    assert_eq!(all.lost.single_waits, 150_000 + 25 * 17);
    let shortest = all.waits.iter().map(|wait| wait.wait_ns).min().unwrap();
    let longer = one
        .waits
        .iter()
        .filter(|wait| wait.wait_ns > shortest)
        .count();
    assert!(longer * 25 <= 100_000);
    assert!(all.waits.iter().any(|wait| wait.behind.is_some()));
}
