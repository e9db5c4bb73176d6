//! What a lock promises to those that wait for it, and how they wait.

use std::time::Duration;

/// How those that wait for a lock do it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// Awake.
    Spins,
    /// Awake for a slice of the scheduler's or more, or some of them for ever; others sleep then.
    SpinsLong,
    /// Asleep, soon.
    Sleeps,
}

/// What a lock promises to those that wait for it. Each is from the docs of the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// First come, first served: once a waiter is in line, each of the others gets the lock before
    /// it once at most.
    Order,
    /// A waiter can be passed any number of times while this lasts; then it has its turn as soon as
    /// it runs.
    Within(Duration),
    /// The same, once for each thread that waits.
    Each(Duration),
    /// A waiter can be passed any number of times while those before it are on their way, but not
    /// without end.
    Finite,
    /// A waiter can be passed any number of times while the first in line sleeps, wakes up, or has
    /// lost its CPU.
    Running,
    /// No bound.
    None,
}

impl Bound {
    /// How long a waiter may be passed, with so many threads; then it has its turn as soon as it
    /// runs. None where it may be passed for longer though it runs.
    pub fn time(self, threads: usize) -> Option<Duration> {
        match self {
            Bound::Order => Some(Duration::ZERO),
            Bound::Within(time) => Some(time),
            Bound::Each(time) => Some(time * u32::try_from(threads).unwrap_or(u32::MAX)),
            Bound::Finite | Bound::Running | Bound::None => None,
        }
    }

    /// Whether a waiter's turn must come at all while others have theirs: it starves where the
    /// watchdog's patience ends before that.
    pub fn ends(self) -> bool {
        !matches!(self, Bound::Running | Bound::None)
    }

    /// It for people.
    pub fn describe(self) -> String {
        match self {
            Bound::Order => "in order".to_owned(),
            Bound::Within(time) if time.is_zero() => "passed until it runs".to_owned(),
            Bound::Within(time) => format!("passed for {} ms", time.as_millis()),
            Bound::Each(time) => format!("passed for {} ms a waiter", time.as_millis()),
            Bound::Finite => "not passed without end".to_owned(),
            Bound::Running => "passed while the first sleeps".to_owned(),
            Bound::None => "no bound".to_owned(),
        }
    }
}
