//! Whether the measured loops cost the same around every lock: with one thread and long sections,
//! each must take what the loop without a lock takes. If one does not, the grid compares loops, not
//! locks.
//!
//! The figure is CPU time, the best of several short rounds: other load on the machine can only add
//! to it.

use std::time::Duration;

use serde::Serialize;

use super::figures::cpu;
use super::plan::{Place, Plan, places};
use super::run::{End, Outcome, run};
use super::shape::{Shape, find};
use crate::registry::{Entry, Family};
use crate::workload::Sample;
use crate::world::native::Native;

/// The shapes whose sections are long compared to any lock's cost.
const SHAPES: [(Family, &str); 2] = [
    (Family::Exclusive, "1000/5000"),
    (Family::ReaderWriter, "r90-2000/2000"),
];
/// The share that a lock of 100 ns, and noise, may add.
const TOLERANCE: f64 = 0.03;
/// Enough for one without a disturbance.
const ROUNDS: usize = 9;
const ROUND: Duration = Duration::from_millis(15);

/// A lock's loop.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Loop {
    /// The lock's family.
    pub family: &'static str,
    /// The lock.
    pub lock: &'static str,
    /// The CPU time of its loop over that of the loop without a lock.
    pub ratio: f64,
}

impl Loop {
    /// Whether it is as long as it should be.
    pub fn is_fair(&self) -> bool {
        (self.ratio - 1.0).abs() <= TOLERANCE
    }
}

/// Compares the loops of the locks of `places`, and returns the verdict.
pub fn loops(world: &Native, compared: &[Place]) -> (Vec<Loop>, End) {
    let locks = |family: Family| -> Vec<&'static Entry> {
        let mut of_it = compared.iter().filter(|place| place.shape.family == family);
        of_it
            .next()
            .map_or_else(Vec::new, |place| place.locks.clone())
    };
    let shapes: Vec<&'static Shape> = SHAPES
        .into_iter()
        .filter(|(family, _)| !locks(*family).is_empty())
        .filter_map(|(family, name)| find(&[family], name))
        .collect();
    let plan = Plan {
        places: places(&shapes, &[1], locks),
        rounds: ROUNDS,
        latency_rounds: 0,
        round: ROUND,
        seed: 0,
        deadline: None,
    };
    let outcome = run(world, &plan, 1.0, |_, _, _| {});
    (judge(&outcome), outcome.end)
}

fn judge(outcome: &Outcome) -> Vec<Loop> {
    let mut loops = Vec::new();
    for cell in &outcome.cells {
        let Some(limit) = cell.place.limit() else {
            continue;
        };
        let Some(without) = best(&cell.results[limit].samples) else {
            continue;
        };
        for (entry, results) in cell.place.locks[..limit].iter().zip(&cell.results) {
            loops.extend(best(&results.samples).map(|best| Loop {
                family: cell.place.shape.family.word(),
                lock: entry.name,
                ratio: best / without,
            }));
        }
    }
    loops
}

/// CPU time of an operation, in the round where it was the least.
fn best(samples: &[Sample]) -> Option<f64> {
    samples.iter().filter_map(cpu).min_by(f64::total_cmp)
}

/// One line for people.
pub fn describe(loops: &[Loop]) -> String {
    let unfair: Vec<String> = loops
        .iter()
        .filter(|one| !one.is_fair())
        .map(|one| format!("{} {} {:.2}", one.family, one.lock, one.ratio))
        .collect();
    let least = loops
        .iter()
        .map(|one| one.ratio)
        .fold(f64::INFINITY, f64::min);
    let most = loops.iter().map(|one| one.ratio).fold(0.0, f64::max);
    match (loops, &unfair[..]) {
        ([], _) => "Check of the loops: none, no lock here has a loop without one.".to_owned(),
        (_, []) => format!(
            "Check of the loops: with one thread and long sections every lock's takes \
             {least:.3} to {most:.3} of the one without a lock."
        ),
        (_, unfair) => format!(
            "Check of the loops FAILED: with one thread and long sections some take another time \
             than the one without a lock: {}. The machine is busy, or the figures compare loops.",
            unfair.join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(ratio: f64) -> Loop {
        Loop {
            family: "mutex",
            lock: "std",
            ratio,
        }
    }

    #[test]
    fn an_unfair_loop_is_named() {
        let text = describe(&[one(0.998), one(1.01)]);
        assert!(text.contains("0.998 to 1.010"), "{text}");
        let text = describe(&[one(1.0), one(1.4)]);
        assert!(
            text.contains("FAILED") && text.contains("mutex std 1.40"),
            "{text}"
        );
        assert!(describe(&[]).contains("none"));
    }
}
