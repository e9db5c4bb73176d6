//! The figures that only a simulation has: preemptions, and shares of the time.

use std::collections::BTreeMap;

use overlock_sim::account::{Counts, State};
use overlock_sim::cache::Traffic;
use serde::de::Error;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::world::sim::Report;

/// All throughput rounds of a lock with a number of vCPUs together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Simulated seconds.
    pub seconds: f64,
    /// A vCPU lost its CPU to another one.
    pub preemptions: u64,
    /// That one held a lock.
    pub preempted_holders: u64,
    /// That one waited for a lock.
    pub preempted_waiters: u64,
    /// Halts.
    pub halts: u64,
    /// Kicks.
    pub kicks: u64,
    /// A vCPU ran on another CPU than before.
    pub migrations: u64,
    /// Pause-loop exits.
    pub pause_exits: u64,
    /// Those that gave the CPU to another vCPU.
    pub yields: u64,
    /// Acquisitions in the queue of a queued lock.
    pub queued: u64,
    /// Those past it.
    pub unfair: u64,
    /// Accesses to a cache line that the core had.
    pub line_hits: u64,
    /// Lines that came from the core's own socket.
    pub line_near: u64,
    /// Lines that came from another socket.
    pub line_far: u64,
    /// Lines that came from memory.
    pub line_memory: u64,
    /// How the vCPUs' time is shared among the states.
    pub time: Shares,
    /// Events of the simulation.
    pub events: u64,
    /// The longest time before a measured time, in simulated seconds.
    pub warm_up: f64,
    /// Whether longer rounds would bring about the same; nothing where rounds end by themselves.
    pub settled: Option<bool>,
}

/// Shares of the time, in the order of [`State::ALL`]; they add up to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Shares([f64; State::ALL.len()]);

impl Shares {
    /// That of one state.
    pub fn of(&self, state: State) -> f64 {
        self.0[state as usize]
    }

    fn new(reports: &[Report]) -> Self {
        let seconds = |state| -> f64 {
            let times = reports.iter().map(|report| report.time(state));
            times.map(|time| time.as_secs_f64()).sum()
        };
        let all: f64 = State::ALL.iter().map(|&state| seconds(state)).sum();
        let mut shares = Self::default();
        for &state in State::ALL {
            shares.0[state as usize] = if all > 0.0 { seconds(state) / all } else { 0.0 };
        }
        shares
    }
}

impl Serialize for Shares {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(State::ALL.len()))?;
        for &state in State::ALL {
            map.serialize_entry(state.name(), &self.of(state))?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Shares {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let found: BTreeMap<String, f64> = Deserialize::deserialize(deserializer)?;
        let mut shares = Self::default();
        for &state in State::ALL {
            let share = found.get(state.name());
            shares.0[state as usize] =
                *share.ok_or_else(|| D::Error::missing_field(state.name()))?;
        }
        Ok(shares)
    }
}

impl Summary {
    /// Of the rounds of a cell; `None` where none was simulated.
    pub fn new(reports: &[Report]) -> Option<Self> {
        if reports.is_empty() {
            return None;
        }
        let count = |pick: fn(&Counts) -> u64| reports.iter().map(|r| pick(&r.counts)).sum();
        let lines = |pick: fn(&Traffic) -> u64| reports.iter().map(|r| pick(&r.traffic)).sum();
        Some(Self {
            seconds: reports.iter().map(|r| r.elapsed.as_secs_f64()).sum(),
            preemptions: count(|counts| counts.preemptions),
            preempted_holders: count(|counts| counts.holders),
            preempted_waiters: count(|counts| counts.waiters),
            halts: count(|counts| counts.halts),
            kicks: count(|counts| counts.kicks),
            migrations: count(|counts| counts.migrations),
            pause_exits: count(|counts| counts.pause_exits),
            yields: count(|counts| counts.yields),
            queued: reports.iter().map(|r| r.modes.0).sum(),
            unfair: reports.iter().map(|r| r.modes.1).sum(),
            line_hits: lines(|traffic| traffic.hits),
            line_near: lines(|traffic| traffic.near),
            line_far: lines(|traffic| traffic.far),
            line_memory: lines(|traffic| traffic.memory),
            time: Shares::new(reports),
            events: reports.iter().map(|r| r.events).sum(),
            warm_up: reports
                .iter()
                .map(|r| r.warm_up.as_secs_f64())
                .fold(0.0, f64::max),
            settled: all_of(reports.iter().map(|report| report.settled)),
        })
    }
}

/// Whether all are true; nothing where one is nothing.
fn all_of(mut all: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    all.try_fold(true, |so_far, one| Some(so_far && one?))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use overlock_sim::Time;
    use overlock_sim::account::Account;

    use super::*;

    fn report(work: u64, spin: u64, halts: u64) -> Report {
        let mut account = Account::default();
        account[State::Work] = Time::us(work);
        account[State::Spin] = Time::us(spin);
        Report {
            elapsed: Duration::from_micros(work + spin),
            accounts: vec![account; 2],
            counts: Counts {
                halts,
                ..Counts::default()
            },
            traffic: Traffic::default(),
            modes: (3, 1),
            trace: Vec::new(),
            events: 5,
            warm_up: Duration::from_micros(spin),
            settled: Some(spin < 40),
        }
    }

    #[test]
    fn rounds_add_up() {
        assert_eq!(Summary::new(&[]), None);
        let summary = Summary::new(&[report(10, 30, 4), report(20, 40, 5)]).unwrap();
        assert_eq!((summary.halts, summary.queued, summary.unfair), (9, 6, 2));
        assert_eq!((summary.seconds, summary.events), (100e-6, 10));
        assert_eq!((summary.warm_up, summary.settled), (40e-6, Some(false)));
        assert_eq!(summary.time.of(State::Work), 0.3);
        assert_eq!(summary.time.of(State::Spin), 0.7);
        assert_eq!(summary.time.of(State::Asleep), 0.0);
    }

    #[test]
    fn shares_have_the_names_of_the_states() {
        let json = serde_json::to_value(Shares::new(&[report(1, 3, 0)])).unwrap();
        assert_eq!(json["work"], 0.25);
        assert_eq!(json["spin"], 0.75);
        assert_eq!(json.as_object().unwrap().len(), State::ALL.len());
        let again: Shares = serde_json::from_value(json).unwrap();
        assert_eq!(again.of(State::Spin), 0.75);
        assert!(serde_json::from_str::<Shares>(r#"{"work": 1.0}"#).is_err());
    }
}
