//! The facts about each lock that its type does not say: one row a lock, beside the lock.
//!
//! The lists of the benchmarks, of torture and of the model checkers, and the tests that run on
//! every lock, read this row. None of them knows a lock by its name.

use core::fmt;
use core::time::Duration;

/// A lock with its row.
pub trait HasFacts {
    /// The row.
    const FACTS: Facts;
}

/// A lock's row: the promises of its documentation. A row starts from [`SPINNING`](Self::SPINNING)
/// or [`SLEEPING`](Self::SLEEPING), and says what is different.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// One line on what the lock is.
    pub about: &'static str,
    /// Its promise to its waiters.
    pub bound: Bound,
    /// How they wait.
    pub waiting: Waiting,
    /// The most threads that may use one lock at a time.
    pub most_threads: Option<usize>,
    /// Whether its last user may free it although an earlier unlock has not returned.
    pub freed_by_last_user: bool,
    /// Whether a signal handler may try it, or try to read it.
    pub tried_in_handlers: bool,
    /// Whether `overlock-lab bench` measures it where `--locks` names none. The recommended locks,
    /// and the published ones that they are held against, say true.
    pub compared: bool,
    /// The acquisitions that need a queue node, or the slot, of the thread.
    pub node: NeedsNode,
    /// The event that the statistics count for an acquisition off the fast path.
    pub slow: Slow,
}

impl Facts {
    /// A spinlock: waiters spin, handlers may try it, its last user may free it, no bound on
    /// waiting, no queue.
    pub const SPINNING: Self = Facts {
        about: "",
        bound: Bound::None,
        waiting: Waiting::Spins,
        most_threads: None,
        freed_by_last_user: true,
        tried_in_handlers: true,
        compared: false,
        node: NeedsNode::Never,
        slow: Slow::Uncounted,
    };

    /// A sleeping lock: waiters sleep, handlers may not use it, its last user may not free it until
    /// all unlocks have returned, no bound on waiting.
    pub const SLEEPING: Self = Facts {
        waiting: Waiting::Sleeps,
        freed_by_last_user: false,
        tried_in_handlers: false,
        node: NeedsNode::Waiter,
        ..Self::SPINNING
    };
}

/// How the waiters of a lock wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// They spin.
    Spins,
    /// They spin for a time slice of the scheduler or more, and some of them without end. The
    /// others sleep then.
    SpinsLong,
    /// They sleep, soon.
    Sleeps,
}

/// A lock's promise to its waiters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// First come, first served: once a waiter is in the queue, each other thread acquires the lock
    /// before it once at most.
    Order,
    /// A waiter can be bypassed any number of times for this long. Then it acquires the lock as
    /// soon as it runs.
    Within(Duration),
    /// The same, once for each thread that waits, and apart from the wait for a wake-up, which may
    /// depend on chance.
    Each(Duration),
    /// A waiter can be bypassed any number of times while those before it are on their way, but not
    /// without end.
    Finite,
    /// A waiter can be bypassed any number of times while the first in the queue sleeps, wakes up,
    /// or has lost its CPU.
    Running,
    /// No bound.
    None,
}

impl Bound {
    /// Returns for how long a waiter may be bypassed, with so many threads. Then it acquires the
    /// lock as soon as it runs. None where it may be bypassed for longer although it runs.
    pub fn time(self, threads: usize) -> Option<Duration> {
        match self {
            Bound::Order => Some(Duration::ZERO),
            Bound::Within(time) => Some(time),
            Bound::Each(time) => Some(time * u32::try_from(threads).unwrap_or(u32::MAX)),
            Bound::Finite | Bound::Running | Bound::None => None,
        }
    }

    /// Whether a waiter must acquire the lock at some time although others keep acquiring it.
    pub fn ends(self) -> bool {
        !matches!(self, Bound::Running | Bound::None)
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::Order => f.write_str("in order"),
            Bound::Within(time) if time.is_zero() => f.write_str("bypassed until it runs"),
            Bound::Within(time) => write!(f, "bypassed for {} ms", time.as_millis()),
            Bound::Each(time) => write!(f, "bypassed for {} ms a waiter", time.as_millis()),
            Bound::Finite => f.write_str("not bypassed without end"),
            Bound::Running => f.write_str("bypassed while the first sleeps"),
            Bound::None => f.write_str("no bound"),
        }
    }
}

/// Which acquisitions need a queue node or a slot of the thread.
/// [`Event::LockNoNode`](crate::stat::Event::LockNoNode) counts those that had to do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeedsNode {
    /// None.
    Never,
    /// All, those that do not wait included.
    Always,
    /// Those that wait.
    Waiter,
    /// Those that wait, but for the first waiter, which waits in the lock's word.
    SecondWaiter,
    /// Those that sleep, once for each sleep.
    Sleep,
}

/// The event that the statistics count for an acquisition off the fast path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slow {
    /// Not counted.
    Uncounted,
    /// [`LockSlowpath`](crate::stat::Event::LockSlowpath): it went to the queue.
    Queued,
    /// That, or [`LockPending`](crate::stat::Event::LockPending): it was the first waiter.
    QueuedOrPending,
    /// That, or [`PvLockStealing`](crate::stat::Event::PvLockStealing): it took the lock past the
    /// queue.
    QueuedOrStolen,
}
