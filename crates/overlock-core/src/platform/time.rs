//! Instants and deadlines.

use core::time::Duration;

use super::Platform;

/// A moment on the platform's monotonic clock, in nanoseconds from an arbitrary start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant(u64);

impl Instant {
    /// The moment `nanos` nanoseconds after the clock's start.
    pub const fn from_nanos(nanos: u64) -> Self {
        Instant(nanos)
    }

    /// Nanoseconds from the clock's start.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The moment `nanos` nanoseconds later; the last moment (584 years) if that overflows.
    #[must_use]
    pub const fn plus_nanos(self, nanos: u64) -> Self {
        Instant(self.0.saturating_add(nanos))
    }

    /// The moment `duration` later; the last moment if that overflows.
    #[must_use]
    pub const fn plus(self, duration: Duration) -> Self {
        let nanos = duration.as_nanos();
        self.plus_nanos(if nanos > u64::MAX as u128 {
            u64::MAX
        } else {
            nanos as u64
        })
    }

    /// Nanoseconds from `earlier` to `self`; 0 if `earlier` is the later one.
    pub const fn nanos_since(self, earlier: Instant) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// The latest end of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    /// At a moment of the monotonic clock.
    Monotonic(Instant),
    /// This many nanoseconds after 1970 by the [wall clock](Platform::wall_clock). When that is
    /// set, waits that have begun follow it, as those of `CLOCK_REALTIME` do.
    Wall(u64),
    /// This many nanoseconds by a [clock of the program's own](Platform::own_clock).
    Own {
        /// Its number.
        clock: i32,
        /// The time. Such a clock may begin long before its zero.
        at: i64,
    },
}

/// The longest sleep towards a time of a clock of the program's own: it may run faster than others,
/// or be set.
const OWN_SLEEP_NS: u64 = 10_000_000;

impl From<Instant> for Deadline {
    fn from(at: Instant) -> Self {
        Deadline::Monotonic(at)
    }
}

impl Deadline {
    /// Nanoseconds until the deadline, if the wall clock is not set until then; 0 if it is over.
    pub fn nanos_left<P: Platform>(self) -> u64 {
        match self {
            Deadline::Monotonic(at) => at.nanos_since(P::now()),
            Deadline::Wall(at) => at.saturating_sub(P::wall_clock()),
            Deadline::Own { clock, at } => at.saturating_sub(P::own_clock(clock)).max(0) as u64,
        }
    }

    /// Whether it is so far away, a millisecond or more, that a spin before the sleep cannot end
    /// late.
    #[inline]
    pub fn is_far<P: Platform>(self) -> bool {
        const FAR_NS: u64 = 1_000_000;
        self.nanos_left::<P>() >= FAR_NS
    }

    /// Whether the deadline has passed, by its clock.
    #[inline]
    pub fn is_over<P: Platform>(self) -> bool {
        self.nanos_left::<P>() == 0
    }

    /// Its moment on the monotonic clock, if the wall clock is not set until then. Never too early,
    /// but for a clock of the program's own: there it is time to look again.
    pub fn instant<P: Platform>(self) -> Instant {
        match self {
            Deadline::Monotonic(at) => at,
            // The wall clock first: the time between the two readings is added, not lost.
            Deadline::Wall(at) => {
                let left = at.saturating_sub(P::wall_clock());
                P::now().plus_nanos(left)
            }
            Deadline::Own { .. } => {
                let left = self.nanos_left::<P>();
                P::now().plus_nanos(left.min(OWN_SLEEP_NS))
            }
        }
    }

    /// The earlier one of `end` and the limit, if there is a limit.
    pub fn earlier<P: Platform>(limit: Option<Deadline>, end: Instant) -> Instant {
        limit.map_or(end, |limit| limit.instant::<P>().min(end))
    }
}

#[cfg(test)]
mod tests {
    use super::{Deadline, OWN_SLEEP_NS};
    use crate::platform::Platform;
    use crate::raw::{RawLock, RawTimedLock};
    use crate::rw::{OverlockRw, PerCpuRwSem};
    use crate::sleep::{Condvar, Overlock, RtMutex, Semaphore};
    use crate::toy::wall_clock::{
        follows_the_wall_clock, lock_follows_the_wall_clock, rwlock_follows_the_wall_clock,
    };
    use crate::toy::{Toy, halts};

    #[test]
    fn mutexes_follow_the_wall_clock() {
        lock_follows_the_wall_clock::<Overlock<Toy>>();
        lock_follows_the_wall_clock::<RtMutex<Toy>>();
    }

    /// Fails where a wait ends at a look at the clock, or never looks again.
    #[test]
    fn waits_look_at_a_clock_of_the_programs_own_until_it_has_come_so_far() {
        const LIMIT_NS: u64 = 5 * OWN_SLEEP_NS / 2;
        let lock = Overlock::<Toy>::new();
        lock.lock();
        let begin = Toy::now();
        let at = begin.plus_nanos(LIMIT_NS).as_nanos() as i64;
        assert!(lock.lock_until(Deadline::Own { clock: 0, at }).is_none());
        let waited = Toy::now().nanos_since(begin);
        assert!(
            (LIMIT_NS..=LIMIT_NS + 1_000_000).contains(&waited),
            "{waited}"
        );
        assert!(halts() >= 3);
        // SAFETY: of the acquisition above.
        unsafe { lock.unlock(()) };
    }

    #[test]
    fn reader_writer_locks_follow_the_wall_clock() {
        rwlock_follows_the_wall_clock::<OverlockRw<Toy>>();
        rwlock_follows_the_wall_clock::<PerCpuRwSem<Toy>>();
    }

    #[test]
    fn semaphores_and_condition_variables_follow_the_wall_clock() {
        let semaphore = Semaphore::<Toy>::new(0);
        follows_the_wall_clock(|deadline| semaphore.acquire_many_limited(1, Some(deadline), None));
        let (condvar, lock) = (Condvar::<Toy>::new(), Overlock::<Toy>::new());
        follows_the_wall_clock(|deadline| {
            lock.lock();
            // SAFETY: of the acquisition above.
            let ((), notified) = unsafe { condvar.wait_limited(&lock, (), Some(deadline), None) };
            // SAFETY: of the acquisition at the end of the wait.
            unsafe { lock.unlock(()) };
            notified
        });
    }
}
