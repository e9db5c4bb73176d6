//! Time accounts: how long a vCPU was in each state, and counts of events.

use std::ops::{Index, IndexMut};

use strum::{IntoStaticStr, VariantArray};

use crate::time::Time;

/// The state of a vCPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum State {
    /// Computes.
    Work,
    /// Waits for a cache line, or works on one.
    Memory,
    /// Spins: polls a word that does not change.
    Spin,
    /// Is in the hypervisor or the operating system: halting, kicking, waking, being switched. The
    /// last state that has a CPU: [`Account::on_cpu`] counts on the order.
    Host,
    /// Is runnable and has no CPU: the steal time of a guest. That of a vCPU at the start.
    #[default]
    #[strum(serialize = "preempted")]
    Ready,
    /// Sleeps.
    Asleep,
    /// Has ended.
    Ended,
}

impl State {
    /// All states.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// The name in reports.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// How long a vCPU was in each state. The times add up to the length of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account([Time; State::ALL.len()]);

impl Account {
    /// Returns the sum over all states.
    pub fn total(&self) -> Time {
        self.0.iter().copied().sum()
    }

    /// Returns the sum over the states in which it has a CPU.
    pub fn on_cpu(&self) -> Time {
        self.0[..=State::Host as usize].iter().copied().sum()
    }

    /// Takes the times of an earlier account off.
    pub fn subtract(&mut self, earlier: &Self) {
        for (sum, less) in self.0.iter_mut().zip(earlier.0) {
            *sum = *sum - less;
        }
    }

    /// Adds the times of another account.
    pub fn add(&mut self, other: &Self) {
        for (sum, more) in self.0.iter_mut().zip(other.0) {
            *sum += more;
        }
    }
}

impl Index<State> for Account {
    type Output = Time;

    fn index(&self, state: State) -> &Time {
        &self.0[state as usize]
    }
}

impl IndexMut<State> for Account {
    fn index_mut(&mut self, state: State) -> &mut Time {
        &mut self.0[state as usize]
    }
}

/// Events of the vCPUs of a run, without those of other guests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Preemptions: a vCPU lost its CPU to another one, or to the host, without having yielded.
    pub preemptions: u64,
    /// Those of a vCPU that held a lock.
    pub holders: u64,
    /// Those of a vCPU that waited for a lock.
    pub waiters: u64,
    pub halts: u64,
    pub kicks: u64,
    /// Migrations: a vCPU ran on another CPU than before.
    pub migrations: u64,
    pub pause_exits: u64,
    /// Pause-loop exits that yielded the CPU to another vCPU.
    pub yields: u64,
}
