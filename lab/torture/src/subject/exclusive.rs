//! Locks that exclude, by their raw trait.

use std::fmt::{self, Debug};

use overlock::{CancelToken, Linux};
use overlock_core::Deadline;
use overlock_core::Instant;
use overlock_core::facts::Facts;
use overlock_core::raw::{CreateError, RawCancelLock, RawFairLock, RawLock, RawTimedLock};

use super::Subject;
use super::short_lived::{LOCK as SHORT_LIVED, ShortLived};
use crate::canary::{Canary, HANDLER};
use crate::plan::{How, Side, Step, Then};
use crate::settings::LOCKS;
use crate::violation::Violation;
use crate::worker::{Ask, Worker};
use crate::worker_state::{Handled, Op};

/// A few locks of one type, each with its canary.
pub struct Exclusive<L: RawLock> {
    seats: [Seat<L>; LOCKS],
    extras: ExclusiveExtras<L>,
    in_handlers: bool,
    short_lived: Option<ShortLived<L>>,
}

struct Seat<L> {
    lock: L,
    canary: Canary,
}

type Until<L> = fn(&L, Instant) -> Option<<L as RawLock>::Token>;
type Cancellable<L> = fn(&L, &CancelToken, Option<Deadline>) -> Option<<L as RawLock>::Token>;
type UnlockFair<L> = unsafe fn(&L, <L as RawLock>::Token);
type Bump<L> = unsafe fn(&L, <L as RawLock>::Token) -> <L as RawLock>::Token;

/// The abilities of a lock beyond [`RawLock`].
#[derive(Clone, Copy, Debug)]
pub struct ExclusiveExtras<L: RawLock> {
    /// Gives up at a time.
    pub until: Option<Until<L>>,
    /// Gives up when it is cancelled.
    pub cancellable: Option<Cancellable<L>>,
    /// Hands off, and hands off to come back.
    pub fair: Option<(UnlockFair<L>, Bump<L>)>,
}

impl<L: RawLock> ExclusiveExtras<L> {
    pub fn basic() -> Self {
        ExclusiveExtras {
            until: None,
            cancellable: None,
            fair: None,
        }
    }
}

impl<L: RawTimedLock> ExclusiveExtras<L> {
    pub fn timed() -> Self {
        ExclusiveExtras {
            until: Some(L::lock_until),
            ..Self::basic()
        }
    }
}

impl<L: RawTimedLock + RawCancelLock<Linux> + RawFairLock> ExclusiveExtras<L> {
    pub fn full() -> Self {
        ExclusiveExtras {
            cancellable: Some(L::lock_cancellable),
            fair: Some((L::unlock_fair, L::bump)),
            ..Self::timed()
        }
    }
}

impl<L: RawLock> Exclusive<L> {
    /// New locks that can do what the extras say, and promise what their row says.
    ///
    /// # Errors
    ///
    /// If they cannot be created.
    pub fn new(extras: ExclusiveExtras<L>, facts: &Facts) -> Result<Self, CreateError> {
        let seat = || {
            Ok(Seat {
                lock: L::create()?,
                canary: Canary::default(),
            })
        };
        Ok(Self {
            seats: [seat()?, seat()?, seat()?, seat()?],
            extras,
            in_handlers: facts.tried_in_handlers,
            short_lived: facts.freed_by_last_user.then(ShortLived::default),
        })
    }

    fn acquire(&self, worker: &Worker, lock: usize, how: How) -> Option<L::Token> {
        let how = match how {
            How::Timed(_) if self.extras.until.is_none() => How::Wait,
            How::Cancel if self.extras.cancellable.is_none() => How::Wait,
            how => how,
        };
        let ask = Ask {
            op: Op::exclusive(how),
            lock,
            side: Side::Write,
            how,
        };
        let seat = &self.seats[lock];
        worker.acquire(
            ask,
            || seat.canary.visits(),
            |limit| match (how, self.extras.until, self.extras.cancellable) {
                (How::Try, ..) => seat.lock.try_lock(),
                (How::Timed(_), Some(until), _) => until(&seat.lock, limit.until()),
                (How::Cancel, _, Some(cancellable)) => {
                    cancellable(&seat.lock, limit.token(), limit.deadline.map(Into::into))
                }
                _ => Some(seat.lock.lock()),
            },
        )
    }

    fn leave(&self, worker: &Worker, lock: usize, token: L::Token, step: &Step) {
        let seat = &self.seats[lock];
        match (step.then, self.extras.fair) {
            (Then::LeaveFair, Some((unlock_fair, _))) => worker.release(lock, || {
                // SAFETY: callers pass the token of their acquisition of this lock.
                unsafe { unlock_fair(&seat.lock, token) }
            }),
            (Then::Bump, Some((_, bump))) => {
                // SAFETY: as above.
                let bump = || unsafe { bump(&seat.lock, token) };
                let token = worker.wait(Op::Bump, lock, Side::Write, bump);
                worker.written(lock, seat.canary.write(worker.name(), |_| {}));
                // SAFETY: as above.
                worker.release(lock, || unsafe { seat.lock.unlock(token) });
            }
            // SAFETY: as above.
            _ => worker.release(lock, || unsafe { seat.lock.unlock(token) }),
        }
    }

    /// Takes the locks from `lock` on, below `end`, one inside the other.
    fn nest(&self, worker: &Worker, step: &Step, lock: usize, end: usize) {
        if lock == end {
            return;
        }
        let Some(token) = self.acquire(worker, lock, step.how) else {
            return;
        };
        let between = worker.between_words(step.hold, step.bits);
        let canary = &self.seats[lock].canary;
        let left = worker.written(lock, canary.write(worker.name(), between));
        self.nest(worker, step, lock + 1, end);
        worker.unchanged(lock, canary, left);
        self.leave(worker, lock, token, step);
    }
}

impl<L: RawLock + Debug> Subject for Exclusive<L>
where
    L::Token: 'static,
{
    fn step(&self, worker: &Worker, step: &Step) {
        self.nest(worker, step, step.first, step.first + step.depth);
        if let Some(short_lived) = &self.short_lived {
            short_lived.step(worker, step, self.extras.fair.map(|(unlock, _)| unlock));
        }
    }

    fn interrupt(&self, index: usize, handled: &Handled) {
        if !self.in_handlers {
            return;
        }
        let lock = handled.signals.get() as usize % LOCKS;
        let seat = &self.seats[lock];
        let Some(token) = seat.lock.try_lock() else {
            return;
        };
        handled.taken.add();
        match seat.canary.write(HANDLER | index as u64, |_| {}) {
            Ok(_) => handled.written[lock].add(),
            Err(_) => _ = handled.torn.raise(lock as u64 + 1),
        }
        // SAFETY: the token is of this lock and this thread.
        unsafe { seat.lock.unlock(token) };
    }

    fn canary(&self, lock: usize) -> Option<&Canary> {
        self.seats.get(lock).map(|seat| &seat.canary)
    }

    fn is_used(&self, lock: usize) -> bool {
        let seat = &self.seats[lock];
        seat.lock.is_locked() || seat.lock.is_contended()
    }

    fn state(&self, lock: usize) -> String {
        if lock == SHORT_LIVED {
            return "whoever acquires it last frees it".to_owned();
        }
        let seat = &self.seats[lock];
        format!(
            "locked: {}, contended: {}, sections: {}, {:?}",
            seat.lock.is_locked(),
            seat.lock.is_contended(),
            seat.canary.visits(),
            seat.lock
        )
    }

    fn freed(&self) -> Result<(), Violation> {
        let short_lived = self.short_lived.as_ref();
        short_lived.map_or(Ok(()), ShortLived::at_rest)
    }
}

impl<L: RawLock + Debug> Debug for Exclusive<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.seats.iter().map(|seat| &seat.lock))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use overlock::spin::Unfair;
    use overlock_core::facts::HasFacts;

    use super::*;
    use crate::violation::ViolationKind;

    fn nothing(_: usize) -> u64 {
        0
    }

    #[test]
    fn a_lock_that_looks_used_while_all_rest_is_noticed() {
        let subject = Exclusive::<Unfair>::new(ExclusiveExtras::timed(), &Unfair::FACTS).unwrap();
        assert_eq!(subject.at_rest(&nothing), Ok(()));
        subject.seats[2].lock.lock();
        let violation = subject.at_rest(&nothing).unwrap_err();
        assert_eq!(violation.kind, ViolationKind::State);
        let start = "nobody uses lock 2: locked: true, contended: false, sections: 0, ";
        assert!(violation.message.starts_with(start), "{violation}");
    }

    #[test]
    fn a_write_that_is_lost_is_noticed() {
        let subject = Exclusive::<Unfair>::new(ExclusiveExtras::timed(), &Unfair::FACTS).unwrap();
        let _ = subject.seats[1].canary.write(0, |_| {});
        let violation = subject.at_rest(&nothing).unwrap_err();
        assert_eq!(violation.kind, ViolationKind::Count);
        let written = |lock| u64::from(lock == 1);
        assert_eq!(subject.at_rest(&written), Ok(()));
    }

    /// Signals come anywhere, also while the thread itself holds the lock.
    #[test]
    fn a_handler_takes_what_is_free_and_leaves_it_so() {
        let subject = Exclusive::<Unfair>::new(ExclusiveExtras::timed(), &Unfair::FACTS).unwrap();
        let handled = Handled::default();
        subject.interrupt(0, &handled);
        subject.seats[1].lock.lock();
        handled.signals.add();
        subject.interrupt(0, &handled);
        assert_eq!((handled.taken.get(), handled.torn.get()), (1, 0));
        assert_eq!(handled.written[0].get(), 1);
        // SAFETY: locked above.
        unsafe { subject.seats[1].lock.unlock(()) };
        let written = |lock: usize| handled.written[lock].get();
        assert_eq!(subject.at_rest(&written), Ok(()));
    }

    #[test]
    fn a_handler_that_finds_somebody_inside_says_so() {
        let subject = Exclusive::<Unfair>::new(ExclusiveExtras::timed(), &Unfair::FACTS).unwrap();
        let handled = Handled::default();
        let _ = subject.seats[0].canary.write(5, |word| {
            if word == 3 {
                subject.interrupt(0, &handled);
            }
        });
        assert_eq!(handled.torn.get(), 1);
    }
}
