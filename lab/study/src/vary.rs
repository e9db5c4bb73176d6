//! How a figure changes with the constants of the cost model. No constant is known to better than a
//! tenth; where a lock changes its regime within that, one figure says nothing.

use std::sync::Arc;

use itertools::iproduct;
use overlock_sim::Time;
use overlock_sim::host::Host;
use overlock_sim::machine::Costs;
use serde::Serialize;

use crate::case::Case;

/// Constants that change together.
type Group = for<'a> fn(&'a mut Costs, &'a mut Host) -> Vec<&'a mut Time>;

/// Transfers of cache lines, turns of spin loops, and wake-ups.
const GROUPS: [Group; 3] = [
    |costs, _| {
        vec![
            &mut costs.cluster,
            &mut costs.socket,
            &mut costs.shared,
            &mut costs.across,
            &mut costs.hop,
            &mut costs.gap,
            &mut costs.memory,
        ]
    },
    |costs, _| vec![&mut costs.turn],
    |_, host| {
        vec![
            &mut host.halt,
            &mut host.brief,
            &mut host.yields,
            &mut host.kick,
            &mut host.kick_nobody,
            &mut host.wake_idle,
            &mut host.wake_busy,
        ]
    },
];

/// Each group is made smaller and larger by a tenth.
const FACTORS: [f64; 2] = [0.9, 1.1];

/// How many changes there are.
pub const COUNT: usize = GROUPS.len() * FACTORS.len();

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
        let ranges = figures.into_iter().map(|low| Self { low, high: low });
        ranges.reduce(|one, other| Self {
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
    iproduct!(GROUPS, FACTORS).map(|(group, factor)| {
        let mut changed = case.clone();
        let costs = &mut Arc::make_mut(&mut changed.place.machine).costs;
        let host = Arc::make_mut(&mut changed.place.host);
        for time in group(costs, host) {
            *time = time.scale(factor);
        }
        changed
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::tests::case;

    #[test]
    fn each_constant_is_changed_both_ways_and_alone() {
        let case = case("micro", "mcs", 4);
        let of = |case: &Case| {
            let costs = &case.place.machine.costs;
            [costs.socket, costs.turn, case.place.host.wake_idle].map(Time::as_ns_f64)
        };
        assert_eq!(around(&case).count(), COUNT);
        let changes = around(&case).zip(iproduct!(0..GROUPS.len(), FACTORS));
        for (changed, (group, factor)) in changes {
            for (other, (now, before)) in of(&changed).into_iter().zip(of(&case)).enumerate() {
                let wanted = if other == group { factor } else { 1.0 };
                assert!((now / before - wanted).abs() < 1e-3, "{group}, {other}");
            }
        }
    }
}
