//! The state of a vCPU.

use overlock_core::platform::spins::Budget;

use super::buffer::Buffered;
use super::spin::{Phase, Spin, Spun};
use crate::account::{Account, State};
use crate::host::PauseExit;
use crate::time::Time;

/// The work of vCPUs that compute for ever.
const FOR_EVER: Time = Time::ms(1 << 40);

/// The current activity of a vCPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Doing {
    /// Its fibre runs.
    #[default]
    Running,
    /// Has a CPU until then, unless it is preempted.
    Busy { until: Time },
    /// Has to be busy for this long, in this state, but has no CPU.
    Off { left: Time, with: State },
    /// Waits for a cache line, or for its buffered store, in the middle of an instruction.
    Access,
    /// Spins on this line since then.
    Watch { line: usize, since: Time },
    /// Spins, ahead of its time: see [`Ahead`](super::ahead::Ahead).
    Ahead,
    /// Has halted.
    Asleep,
    /// Has ended.
    Ended,
}

impl Doing {
    /// Runs as soon as it has a CPU.
    pub const READY: Self = Self::Off {
        left: Time::ZERO,
        with: State::Host,
    };
    /// Computes for ever as soon as it has a CPU.
    pub const OTHER: Self = Self::Off {
        left: FOR_EVER,
        with: State::Work,
    };
}

#[derive(Debug, Default)]
pub(super) struct Vcpu {
    pub doing: Doing,
    /// Its state, and since when the account does not include it.
    pub state: State,
    pub since: Time,
    /// The host's part of that time.
    pub overhead: Time,
    pub account: Account,
    /// Counts resumptions: events with an earlier stamp are void.
    pub stamp: u64,
    /// Whether it loses its CPU after this instruction.
    pub preempt_pending: bool,
    /// Its loop of pauses on this CPU, if any: when it began and when it last paused. And the
    /// length at which the processor notices such a loop.
    pub spins: Option<(Time, Time)>,
    pub window: Time,
    /// The longest interval between two pauses of a loop, if the processor notices loops.
    gap: Option<Time>,
    /// Its iterations that end early if it is preempted: since when, and their length.
    pub turns: Option<(Time, Time)>,
    /// Whether the processor has noticed it.
    pub spun_long: bool,
    pub buffered: Option<Buffered>,
    /// Its wait, if the engine carries one out, how far that is, and why its fibre goes on then,
    /// with the polls left.
    pub spin: Option<Spin>,
    pub phase: Phase,
    pub spun: Option<(Spun, Option<u64>)>,
    /// The line of its last access, and how often that had been changed at its last load.
    pub line: usize,
    pub changes_seen: u64,
    /// Additional delay when it gets a CPU the next time.
    pub delay: Time,
    /// The address of the word for which it sleeps, or is about to.
    pub sleeps_at: Option<usize>,
    /// When its last halt ends at the latest.
    pub until: Option<Time>,
    /// Its time for spins before sleeps that are in vain.
    pub budget: Option<Budget>,
    /// The number of locks that it holds, and whether it waits for one.
    pub holds: u32,
    pub waits: bool,
    pub ran_on: Option<usize>,
    /// How often it has got a CPU.
    pub dispatches: u64,
    /// How many operations it has performed, by its own account.
    pub performed: u64,
}

impl Vcpu {
    /// A vCPU with this activity, at the start.
    pub fn new(doing: Doing, exit: Option<PauseExit>) -> Self {
        Self {
            doing,
            window: exit.map_or(Time::MAX, |exit| exit.window),
            gap: exit.map(|exit| exit.gap),
            ..Self::default()
        }
    }

    /// Its account up to `now`, unless it is ahead of its time.
    pub fn account_at(&self, now: Time) -> Account {
        let mut account = self.account;
        for (state, time) in self.since_then(now) {
            account[state] += time;
        }
        account
    }

    /// Enters another state.
    pub fn enter(&mut self, now: Time, next: State) {
        for (state, time) in self.since_then(now) {
            self.account[state] += time;
        }
        self.overhead = Time::ZERO;
        self.since = now;
        self.state = next;
    }

    /// The time that the account does not include yet.
    fn since_then(&self, now: Time) -> [(State, Time); 2] {
        let time = now - self.since;
        let overhead = time.min(self.overhead);
        [(State::Host, overhead), (self.state, time - overhead)]
    }

    /// It begins or continues a loop of pauses at `now`. Returns when the processor will notice it.
    pub fn pauses(&mut self, now: Time) -> Time {
        let Some(gap) = self.gap else {
            return Time::MAX;
        };
        let known = self.spins.filter(|&(_, until)| now - until <= gap);
        let (since, _) = *self.spins.insert(known.unwrap_or((now, now)));
        since + self.window
    }

    /// It has paused until then.
    pub fn paused(&mut self, at: Time) {
        if let Some((_, until)) = &mut self.spins {
            *until = at;
        }
    }

    /// It has watched a line in the time between.
    pub fn polled(&mut self, since: Time, until: Time) {
        if let Some(spin) = &mut self.spin {
            spin.polled(since, until);
        }
    }

    /// It watches a line from `at` on. Returns when that ends without a change: at a time, after
    /// some polls, or by a pause-loop exit.
    pub fn watch_ends(&mut self, at: Time) -> Time {
        let noticed = self.pauses(at);
        let end = |spin: &Spin| spin.end(at).min(noticed).max(at + spin.iteration);
        self.spin.as_ref().map_or(noticed, end)
    }

    /// It has watched a line since then, has requested it, and loads the word at `at`, in vain.
    /// Returns when its next watch ends without a change; `None` if its wait is over before.
    pub fn watches_again(&mut self, since: Time, requested: Time, at: Time) -> Option<Time> {
        let mut spin = self.spin?;
        spin.polled(since, requested);
        (!spin.is_over(at)).then(|| {
            self.spin = Some(spin);
            self.paused(requested);
            self.watch_ends(at)
        })
    }

    /// Returns when the processor notices its loop of pauses.
    pub fn noticed(&self) -> Time {
        self.spins
            .map_or(Time::MAX, |(since, _)| since + self.window)
    }

    /// When the context switch to it ends.
    pub fn comes(&self) -> Time {
        self.since + self.overhead
    }

    /// Whether it runs, and is neither in the middle of an instruction nor in a context switch.
    pub fn can_lose_cpu(&self, now: Time) -> bool {
        match self.doing {
            Doing::Busy { .. } => self.state != State::Memory && self.comes() <= now,
            Doing::Running | Doing::Watch { .. } => true,
            _ => false,
        }
    }
}
