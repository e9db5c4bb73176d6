//! How a figure changes with the constants of the cost model. No constant is known to better than a
//! tenth; where a lock changes its regime within that, one figure says nothing.

use std::sync::Arc;

use overlock_sim::Time;
use serde::Serialize;

use crate::case::Case;

/// The groups of constants that change together.
pub const GROUPS: [&str; 3] = ["transfers", "spin loops", "wake-ups"];

/// How many changes there are: each group smaller, and larger.
pub const COUNT: usize = 2 * GROUPS.len();

/// Each group is made smaller and larger by this share.
const STEP: f64 = 0.1;

/// A figure that is inversely proportional to a constant has a range of 1.22; beyond this the lock
/// has changed its regime.
const REGIME: f64 = 1.35;

/// The least and the most of a figure, over all constants.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Range {
    pub low: f64,
    pub high: f64,
}

impl Range {
    /// Around all figures; `None` for none.
    pub fn of(figures: impl IntoIterator<Item = f64>) -> Option<Self> {
        let one = |figure| Self {
            low: figure,
            high: figure,
        };
        figures.into_iter().map(one).reduce(|one, other| Self {
            low: one.low.min(other.low),
            high: one.high.max(other.high),
        })
    }

    /// With ends that are off by this mean absolute logarithm.
    #[must_use]
    pub fn widened(self, error: f64) -> Self {
        Self {
            low: self.low / error.exp(),
            high: self.high * error.exp(),
        }
    }

    /// Whether the figure depends on more than the constant.
    pub fn is_regime_change(self) -> bool {
        self.high > REGIME * self.low
    }

    /// Whether some figure is in both.
    pub fn meets(self, other: Self) -> bool {
        self.low <= other.high && other.low <= self.high
    }
}

/// A case with each group of constants a tenth smaller, and a tenth larger.
pub fn around(case: &Case) -> impl Iterator<Item = Case> {
    let factors = [1.0 - STEP, 1.0 + STEP];
    let each = GROUPS.into_iter();
    each.flat_map(move |group| factors.map(|factor| scaled(group, factor, case)))
}

fn scaled(group: &str, factor: f64, case: &Case) -> Case {
    let mut changed = case.clone();
    let costs = &mut Arc::make_mut(&mut changed.machine).costs;
    let host = Arc::make_mut(&mut changed.host);
    let times: &mut [&mut Time] = match group {
        "transfers" => &mut [
            &mut costs.cluster,
            &mut costs.socket,
            &mut costs.shared,
            &mut costs.across,
            &mut costs.hop,
            &mut costs.gap,
            &mut costs.memory,
        ],
        "spin loops" => &mut [&mut costs.turn],
        _ => &mut [
            &mut host.halt,
            &mut host.brief,
            &mut host.yields,
            &mut host.kick,
            &mut host.kick_nobody,
            &mut host.wake_idle,
            &mut host.wake_busy,
        ],
    };
    for time in times {
        **time = time.scale(factor);
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::tests::case;

    #[test]
    fn each_constant_is_changed_both_ways_and_alone() {
        let case = case("micro", "mcs", 4);
        let of = |case: &Case| {
            let costs = &case.machine.costs;
            [costs.socket, costs.turn, case.host.wake_idle].map(Time::as_ns_f64)
        };
        let changed: Vec<Case> = around(&case).collect();
        assert_eq!(changed.len(), COUNT);
        for (index, changed) in changed.iter().enumerate() {
            let factor = if index % 2 == 0 { 0.9 } else { 1.1 };
            for (group, (now, before)) in of(changed).into_iter().zip(of(&case)).enumerate() {
                let wanted = if group == index / 2 { factor } else { 1.0 };
                assert!((now / before - wanted).abs() < 1e-3, "{index}, {group}");
            }
        }
    }

    #[test]
    fn a_range_is_a_regime_change_if_no_constant_explains_it() {
        let range = |low, high| Range::of([high, low, f64::midpoint(low, high)]).unwrap();
        assert!(!range(0.91, 1.11).is_regime_change());
        assert!(range(33.0, 143.0).is_regime_change());
        assert!(range(1.0, 2.0).meets(range(2.0, 3.0)) && !range(1.0, 2.0).meets(range(2.1, 3.0)));
        assert_eq!(Range::of([]), None);
    }
}
