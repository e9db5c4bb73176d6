//! What is known of a vCPU.

use crate::account::{Account, State};
use crate::time::Time;

/// How long those compute that have nothing else to do.
const FOR_EVER: Time = Time::ms(1 << 40);

/// A halt: on the word at this address, since when, and until when at the latest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Halt {
    pub address: usize,
    pub since: Time,
    pub until: Option<Time>,
}

/// What a vCPU is in the middle of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    /// Its fibre runs.
    Running,
    /// Has a CPU until then, if nobody takes it away.
    Busy { until: Time },
    /// Wants to be busy for so long, with this, but has no CPU.
    Off { left: Time, with: State },
    /// Waits for a cache line, in the middle of an instruction.
    Access,
    /// Spins on this line since then.
    Watch { line: usize, since: Time },
    /// Has halted; its host polls for a kick, on its CPU.
    Polled(Halt),
    /// Has halted.
    Asleep(Halt),
    /// Has ended.
    Ended,
}

impl Doing {
    /// Goes on as soon as it has a CPU.
    pub const READY: Self = Self::Off {
        left: Time::ZERO,
        with: State::Host,
    };
    /// Wants a CPU for ever.
    pub const OTHER: Self = Self::Off {
        left: FOR_EVER,
        with: State::Host,
    };
}

#[derive(Debug)]
pub(super) struct Vcpu {
    pub doing: Doing,
    /// What it is busy with, and since when the account has not been told.
    pub state: State,
    pub since: Time,
    /// How much of that time is the host's.
    pub overhead: Time,
    pub account: Account,
    /// Counts resumptions: events that were planned for an earlier one mean nothing.
    pub stamp: u64,
    /// It is to lose its CPU after this instruction.
    pub evicted: bool,
    /// The loop of pauses that it is in, or was since it got its CPU: since when, and until when.
    /// And how long one may last before the processor notices it.
    pub spins: Option<(Time, Time)>,
    pub window: Time,
    /// It has noticed.
    pub spun_long: bool,
    /// When its store buffer is empty.
    pub drained: Time,
    /// Time that it has waited for stores which a core would not wait for.
    pub credit: Time,
    /// When the access began that it waits for, where the line was not there.
    pub asked: Option<Time>,
    /// The line of its last access, and how often that had been changed at its last load.
    pub line: usize,
    pub looked: u64,
    /// What its host adds the next time that it gets a CPU.
    pub delay: Time,
    /// How long its host polls for it.
    pub poll: Time,
    /// It has left the guest since it spun, and may be helped this time.
    pub spinning: bool,
    pub eligible: bool,
    /// It lost its CPU while it wanted to go on.
    pub robbed: bool,
    /// Locks that it holds, and whether it waits for one.
    pub holds: u32,
    pub waits: bool,
    pub ran_on: Option<usize>,
    /// How often it has got a CPU.
    pub turns: u64,
}

impl Vcpu {
    /// One that is in the middle of `doing`, at the start.
    pub fn new(doing: Doing, window: Time) -> Self {
        Self {
            doing,
            state: State::Ready,
            since: Time::ZERO,
            overhead: Time::ZERO,
            account: Account::default(),
            stamp: 0,
            evicted: false,
            spins: None,
            window,
            spun_long: false,
            drained: Time::ZERO,
            credit: Time::ZERO,
            asked: None,
            line: 0,
            looked: 0,
            delay: Time::ZERO,
            poll: Time::ZERO,
            spinning: false,
            eligible: false,
            robbed: false,
            holds: 0,
            waits: false,
            ran_on: None,
            turns: 0,
        }
    }

    /// When its host has brought it to its CPU.
    pub fn comes(&self) -> Time {
        self.since + self.overhead
    }

    /// Whether it runs, and neither is in the middle of an instruction nor being switched to.
    pub fn can_lose_cpu(&self, now: Time) -> bool {
        match self.doing {
            Doing::Busy { .. } => self.state != State::Memory && self.comes() <= now,
            Doing::Running | Doing::Watch { .. } => true,
            _ => false,
        }
    }
}
