//! The programs of the threads of a check: a few scenarios for each kind of lock, run by every
//! checker on every lock of the kind.

pub mod exclusive;
pub mod fair;
pub mod marked;
pub mod reader_writer;
pub mod reentrant;
pub mod several;
pub mod waiting;
mod workers;

use std::fmt;
use std::sync::Arc;

/// A small program of some threads, written for one lock.
#[derive(Clone)]
pub struct Scenario {
    /// Its name in tables and options.
    pub name: String,
    /// How many threads it has.
    pub threads: usize,
    /// Its surroundings.
    pub setting: Setting,
    /// One execution of it, as the first of its threads.
    pub body: Arc<dyn Fn() + Send + Sync>,
}

impl fmt::Debug for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scenario")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Scenario {
    /// The same, with what it is played on before its name.
    #[must_use]
    pub fn with(mut self, what: &str) -> Self {
        self.name = format!("{what}-{}", self.name);
        self
    }
}

/// How long a scenario is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// Short enough for a search.
    Short,
    /// For random walks only.
    Long,
    /// A course of things that takes one to a certain state: its plain form, and a few random
    /// walks.
    Course,
}

/// The surroundings of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Threads with a number from this on have no queue node.
    pub slots: usize,
    /// How many CPUs there seem to be.
    pub parallelism: u32,
    /// Nanoseconds between two readings of the clock.
    pub tick: u64,
    /// Signals are delivered: for checkers that can.
    pub signals: bool,
    /// The course depends on how much time passes: for a checker with a clock of its own.
    pub timed: bool,
    /// How far a checker can go in it.
    pub length: Length,
    /// A halt may end for no reason at any moment, not only at its beginning: for checkers that
    /// can.
    pub restless: bool,
}

impl Setting {
    /// A node for everybody, two CPUs, and a fast machine.
    pub const PLAIN: Self = Setting {
        slots: crate::tables::SLOTS,
        parallelism: 2,
        tick: 20,
        signals: false,
        timed: false,
        length: Length::Short,
        restless: false,
    };

    /// One thread has a node.
    pub const ONE_NODE: Self = Setting {
        slots: 1,
        ..Self::PLAIN
    };

    /// Nobody has one.
    pub const NO_NODE: Self = Setting {
        slots: 0,
        ..Self::PLAIN
    };

    /// A machine, or a clock, on which waits seem long.
    pub const SLOW: Self = Self::PLAIN.ticking(400_000);

    /// Signals come.
    pub const SIGNALS: Self = Setting {
        signals: true,
        ..Self::PLAIN
    };

    /// The course depends on the time that passes.
    pub const TIMED: Self = Setting {
        timed: true,
        ..Self::PLAIN
    };

    /// The same with another clock.
    #[must_use]
    pub const fn ticking(self, tick: u64) -> Self {
        Setting { tick, ..self }
    }
}
