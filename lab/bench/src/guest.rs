//! Virtual machines that ran the locks, and measured them themselves.

use std::iter::Sum;

use serde::{Deserialize, Serialize};

/// A guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Guest {
    /// The name of its hypervisor.
    pub hypervisor: &'static str,
    /// Its vCPUs, one of which only directs the others.
    pub vcpus: usize,
    /// The CPUs that they share, as the hypervisor tells the guest. One for each if it does not.
    pub cpus: usize,
    /// `known` or `unknown`: whether locks may learn which vCPUs have lost their CPUs, if the
    /// hypervisor tells.
    pub preempted: &'static str,
}

/// Counts of a guest in a round, its warm-up included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Halts that slept, or that were kicked before they slept.
    pub halts: u64,
    /// Halted vCPUs that were kicked.
    pub kicks: u64,
    /// Halts that ended otherwise.
    pub unkicked: u64,
    /// Workers that had lost their CPUs when the guest checked its progress, summed.
    pub preempted: u64,
}

impl Counts {
    /// The counts of all rounds; `None` where no guest ran any.
    pub fn sum(rounds: &[Self]) -> Option<Self> {
        (!rounds.is_empty()).then(|| rounds.iter().copied().sum())
    }
}

impl Sum for Counts {
    fn sum<I: Iterator<Item = Self>>(rounds: I) -> Self {
        rounds.fold(Self::default(), |sum, round| Self {
            halts: sum.halts + round.halts,
            kicks: sum.kicks + round.kicks,
            unkicked: sum.unkicked + round.unkicked,
            preempted: sum.preempted + round.preempted,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_add_up() {
        assert_eq!(Counts::sum(&[]), None);
        let round = Counts {
            halts: 3,
            kicks: 2,
            unkicked: 1,
            preempted: 4,
        };
        let sum = Counts::sum(&[round, round]).unwrap();
        assert_eq!((sum.halts, sum.kicks), (6, 4));
        assert_eq!((sum.unkicked, sum.preempted), (2, 8));
    }
}
