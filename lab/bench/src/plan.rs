//! Which rounds a run has, and how long it takes.

use std::time::Duration;

use crate::probe::Pass;
use crate::registry::Entry;

/// Starting and joining the workers, and the last operations after the stop. An allowance: under
/// overcommit a thread waits for the time slices of others, a few milliseconds each, before it sees
/// the flag.
const ROUND_OVERHEAD: Duration = Duration::from_millis(20);

/// Calibrating the clock and the work.
const SETUP: Duration = Duration::from_millis(200);

/// The time of a run that sets none, with room below the 90 seconds that it promises.
pub const DEFAULT_BUDGET: Duration = Duration::from_secs(75);

/// The shortest and the longest round that a budget makes. More than a second teaches little more.
const SHORTEST: Duration = Duration::from_millis(20);
const LONGEST: Duration = Duration::from_secs(1);

/// The rounds of a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The locks, the limit included if it is measured.
    pub locks: Vec<&'static Entry>,
    /// The thread counts.
    pub threads: Vec<usize>,
    /// Throughput rounds of each cell.
    pub runs: usize,
    /// Latency rounds of each cell.
    pub latency_runs: usize,
    /// How long a round is.
    pub round: Duration,
    /// How many times its length a round takes.
    pub stretch: f64,
    /// Whether threads are bound to CPUs.
    pub pin: bool,
    /// Whether our locks count what happens in them during the throughput rounds, which costs a
    /// little.
    pub stat: bool,
    /// When no further round of all cells begins, at least one done.
    pub deadline: Option<Duration>,
}

/// One round of one lock with one number of threads.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Index into [`Plan::locks`].
    pub lock: usize,
    /// Index into [`Plan::threads`].
    pub threads: usize,
    /// Throughput or waits.
    pub pass: Pass,
    /// Which sweep over all cells this belongs to.
    pub sweep: usize,
    /// Which round of its cell this is, of those that measure the same.
    pub round: usize,
}

impl Plan {
    /// Sets the length of rounds so that the run takes about `budget`.
    pub fn fit(&mut self, budget: Duration) {
        let count = u32::try_from(self.steps().count())
            .unwrap_or(u32::MAX)
            .max(1);
        let each = budget.saturating_sub(SETUP) / count;
        let round = each.saturating_sub(ROUND_OVERHEAD).div_f64(self.stretch);
        self.round = round.clamp(SHORTEST, LONGEST);
        self.deadline = Some(budget);
    }

    /// About how long the run takes.
    pub fn duration(&self) -> Duration {
        let count = u32::try_from(self.steps().count()).unwrap_or(u32::MAX);
        SETUP + (self.round.mul_f64(self.stretch) + ROUND_OVERHEAD) * count
    }

    /// All rounds in their order.
    ///
    /// Locks alternate within a cell, and cells within a round, so that the machine's drift hits
    /// all alike. Each round starts with another lock, so that none always follows the same
    /// one's end. Latency rounds stand among the throughput rounds for the same reason.
    pub fn steps(&self) -> impl Iterator<Item = Step> + '_ {
        let rounds = self.runs.max(self.latency_runs);
        let passes = (0..rounds).flat_map(move |round| {
            let throughput = (round < self.runs).then_some((round, Pass::Throughput));
            let latency = (round < self.latency_runs).then_some((round, Pass::Latency));
            throughput.into_iter().chain(latency)
        });
        passes
            .enumerate()
            .flat_map(move |(sweep, (round, pass))| self.sweep(sweep, round, pass))
    }

    /// Every cell once.
    fn sweep(&self, sweep: usize, round: usize, pass: Pass) -> impl Iterator<Item = Step> + '_ {
        let count = self.locks.len();
        (0..self.threads.len()).flat_map(move |threads| {
            (0..count).filter_map(move |place| {
                let lock = (place + round) % count;
                self.fits(lock, threads).then_some(Step {
                    lock,
                    threads,
                    pass,
                    sweep,
                    round,
                })
            })
        })
    }

    /// Whether the lock takes so many threads.
    pub fn fits(&self, lock: usize, threads: usize) -> bool {
        self.locks[lock].takes(self.threads[threads])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::{Family, select};

    fn plan(words: &[&str], threads: &[usize]) -> Plan {
        plan_of(Family::Exclusive, words, threads)
    }

    fn plan_of(family: Family, words: &[&str], threads: &[usize]) -> Plan {
        let mut locks = select(family, words.iter().copied()).unwrap();
        locks.extend(family.limit());
        Plan {
            locks,
            threads: threads.to_vec(),
            runs: 5,
            latency_runs: 1,
            round: Duration::from_secs(1),
            stretch: 1.0,
            pin: false,
            stat: false,
            deadline: None,
        }
    }

    #[test]
    fn the_default_run_stays_within_its_budget() {
        // The default, and as many locks as there are, at five levels of overcommit.
        for family in Family::ALL {
            for words in [&["default"][..], &["all"]] {
                let mut plan = plan_of(family, words, &[2, 4, 8, 16, 32]);
                plan.fit(DEFAULT_BUDGET);
                let duration = plan.duration();
                assert!(
                    duration <= DEFAULT_BUDGET,
                    "{family:?}, {words:?}: {duration:?}"
                );
                // Nothing was clamped to fit.
                assert!(
                    plan.round > SHORTEST,
                    "{family:?}, {words:?}: {:?}",
                    plan.round
                );
            }
        }
    }

    #[test]
    fn a_small_run_does_not_use_up_the_budget() {
        let mut plan = plan(&["std"], &[2]);
        plan.fit(DEFAULT_BUDGET);
        assert_eq!(plan.round, LONGEST);
        assert_eq!(plan.duration(), SETUP + (LONGEST + ROUND_OVERHEAD) * 12);
    }

    #[test]
    fn every_cell_gets_its_rounds() {
        let plan = plan(&["std", "usync"], &[1, 2]);
        let count = |pass| plan.steps().filter(|step| step.pass == pass).count();
        assert_eq!(count(Pass::Throughput), 3 * 2 * 5);
        assert_eq!(count(Pass::Latency), 3 * 2);
        assert_eq!(plan.steps().map(|step| step.sweep).max(), Some(5));
        let last = |pass| {
            let steps = plan.steps().filter(|step| step.pass == pass);
            steps.map(|step| step.round).max()
        };
        assert_eq!(
            (last(Pass::Throughput), last(Pass::Latency)),
            (Some(4), Some(0))
        );
    }

    #[test]
    fn the_order_rotates() {
        let plan = plan(&["std", "usync"], &[1]);
        let order: Vec<usize> = plan
            .steps()
            .filter(|step| step.pass == Pass::Throughput)
            .map(|step| step.lock)
            .collect();
        assert_eq!(order[..9], [0, 1, 2, 1, 2, 0, 2, 0, 1]);
    }
}
