//! Changes between two runs, or two groups of runs, and what of them is noise.

mod rank;

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use serde::Serialize;

use crate::key::{Key, of_locks};
use crate::{Profile, Shown, flame};

/// How sure it is that a lock's waiting time has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Less,
    More,
    /// The difference may be chance.
    Noise,
}

/// The waits of a lock, as means of the runs of a side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Side {
    pub waits: f64,
    pub wait_ns: f64,
}

/// A lock of either side.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    pub name: String,
    pub kind: String,
    pub before: Side,
    pub after: Side,
    pub verdict: Verdict,
}

/// With so many runs of each side their order tells what is noise. Of three and three the most
/// extreme order is chance one time in ten.
pub const ENOUGH: usize = 4;

/// A difference of more standard deviations than these is no chance: one in a thousand. It is a
/// strict limit, since it knows how waits differ, and not how runs do.
const DEVIATIONS: f64 = 3.3;

/// One in twenty.
const CHANCE: f64 = 0.05;

/// The waits of a lock in one run.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    waits: u64,
    wait_ns: u64,
    /// The sum of the squares of the lengths.
    squares: f64,
}

/// Compares, the largest difference first.
pub fn rows(before: &[Profile], after: &[Profile], shown: Shown) -> Vec<Row> {
    let sides = [before, after].map(|profiles| {
        let runs = profiles.iter().map(|profile| seen(profile, shown));
        runs.collect::<Vec<BTreeMap<Key, Seen>>>()
    });
    let mut keys: Vec<&Key> = sides.iter().flatten().flat_map(BTreeMap::keys).collect();
    keys.sort();
    keys.dedup();
    let mut rows: Vec<Row> = keys
        .into_iter()
        .map(|key| {
            let [before, after] = sides.each_ref().map(|runs| {
                let of_lock = runs
                    .iter()
                    .map(|run| run.get(key).copied().unwrap_or_default());
                of_lock.collect::<Vec<Seen>>()
            });
            Row {
                name: key.name.clone(),
                kind: key.kind.clone(),
                before: mean(&before),
                after: mean(&after),
                verdict: verdict(&before, &after),
            }
        })
        .collect();
    rows.sort_by(|a, b| change(b).total_cmp(&change(a)));
    rows
}

fn change(row: &Row) -> f64 {
    (row.after.wait_ns - row.before.wait_ns).abs()
}

fn seen(profile: &Profile, shown: Shown) -> BTreeMap<Key, Seen> {
    let keys = of_locks(profile);
    let mut seen: BTreeMap<Key, Seen> = BTreeMap::new();
    for sum in shown.sums(profile) {
        let of_lock = seen.entry(keys[sum.lock as usize].clone()).or_default();
        of_lock.waits += sum.waits;
        of_lock.wait_ns += sum.wait_ns;
    }
    for (lock, key) in profile.locks.iter().zip(keys) {
        if let Some(of_lock) = seen.get_mut(&key) {
            let buckets = lock.distribution.buckets();
            let squares = buckets.map(|(ns, count)| (ns as f64).powi(2) * count as f64);
            of_lock.squares += squares.sum::<f64>();
        }
    }
    seen
}

fn mean(runs: &[Seen]) -> Side {
    let of = |figure: fn(&Seen) -> u64| {
        let sum: f64 = runs.iter().map(|run| figure(run) as f64).sum();
        sum / runs.len().max(1) as f64
    };
    Side {
        waits: of(|run| run.waits),
        wait_ns: of(|run| run.wait_ns),
    }
}

/// By the order of the runs where there are enough; else by the waits' own number and lengths.
fn verdict(before: &[Seen], after: &[Seen]) -> Verdict {
    let is_noise = if before.len() >= ENOUGH && after.len() >= ENOUGH {
        let times =
            |runs: &[Seen]| -> Vec<f64> { runs.iter().map(|run| run.wait_ns as f64).collect() };
        rank::chance(&times(before), &times(after)) > CHANCE
    } else {
        deviations(before, after) <= DEVIATIONS
    };
    let difference = mean(after).wait_ns - mean(before).wait_ns;
    match difference {
        _ if is_noise || difference == 0.0 => Verdict::Noise,
        less if less < 0.0 => Verdict::Less,
        _ => Verdict::More,
    }
}

/// The distance of the two times, as if waits came by chance, each with a length of its own: the
/// variance of their sum is then the sum of the squares. Times differ by factors, so it is the
/// logarithm of their ratio.
fn deviations(before: &[Seen], after: &[Seen]) -> f64 {
    let [(one, of_one), (two, of_two)] = [before, after].map(|runs| {
        let time: f64 = runs.iter().map(|run| run.wait_ns as f64).sum();
        let squares: f64 = runs.iter().map(|run| run.squares).sum();
        (time / runs.len().max(1) as f64, squares / time.powi(2))
    });
    match (one > 0.0, two > 0.0) {
        (true, true) => (two / one).ln().abs() / (of_one + of_two).sqrt(),
        (true, false) => of_one.sqrt().recip(),
        (false, true) => of_two.sqrt().recip(),
        (false, false) => 0.0,
    }
}

/// Draws a flame graph as wide as the waiting time afterwards, red where that has grown and blue
/// where it has shrunk.
///
/// # Errors
///
/// Those of `out`.
pub fn flame(
    out: &mut dyn Write,
    before: &[Profile],
    after: &[Profile],
    shown: Shown,
) -> io::Result<()> {
    let mut stacks: HashMap<String, [u64; 2]> = HashMap::new();
    for (side, profiles) in [before, after].into_iter().enumerate() {
        let mut times: HashMap<String, u64> = HashMap::new();
        for (frames, ns) in profiles.iter().flat_map(|profile| shown.folded(profile)) {
            *times.entry(crate::folded::joined(&frames)).or_default() += ns;
        }
        for (stack, ns) in times {
            stacks.entry(stack).or_default()[side] = ns / profiles.len() as u64;
        }
    }
    let mut lines: Vec<String> = stacks
        .into_iter()
        .filter(|(_, [_, after])| *after > 0)
        .map(|(stack, [before, after])| format!("{stack} {before} {after}"))
        .collect();
    lines.sort();
    flame::draw(
        out,
        "Time in waits for locks: red has grown, blue has shrunk",
        &lines,
    )
}
