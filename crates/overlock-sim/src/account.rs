//! Where the time of a vCPU went.

use std::ops::{Index, IndexMut};

use crate::time::Time;

macro_rules! states {
    ($($(#[doc = $doc:literal])+ $state:ident = $name:literal,)+) => {
        /// What a vCPU is doing at a moment.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum State { $($(#[doc = $doc])+ $state,)+ }

        impl State {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$state),+];

            /// In reports.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$state => $name),+ }
            }
        }
    };
}

states! {
    /// Computes.
    Work = "work",
    /// Waits for a cache line, or works on one.
    Memory = "memory",
    /// Spins: looks at a word that does not change.
    Spin = "spin",
    /// Is in the hypervisor or the operating system: halting, kicking, waking, being switched.
    Host = "host",
    /// Wants a CPU and has none.
    Ready = "preempted",
    /// Sleeps.
    Asleep = "asleep",
    /// Has ended.
    Ended = "ended",
}

/// How long a vCPU was in each state. The times add up to the length of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account([Time; State::ALL.len()]);

impl Account {
    /// Of all states.
    pub fn total(&self) -> Time {
        self.0.iter().copied().sum()
    }

    /// In the states in which it has a CPU.
    pub fn on_cpu(&self) -> Time {
        [State::Work, State::Memory, State::Spin, State::Host]
            .map(|state| self[state])
            .into_iter()
            .sum()
    }

    /// Adds another one's times.
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

/// What happened to the vCPUs of a run. Those of other guests do not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// A vCPU lost its CPU to another one, or to the host, and had not offered it.
    pub preemptions: u64,
    /// That one held a lock.
    pub holders: u64,
    /// That one waited for a lock.
    pub waiters: u64,
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
}
