//! Reader-writer locks, by their raw trait.

mod extras;
mod upgrade;

use std::fmt::{self, Debug};

use overlock_core::facts::Facts;
use overlock_core::raw::RawRwLock;

use super::Subject;
use super::short_lived::{LOCK as SHORT_LIVED, ManyReaders, ShortLived};
use crate::canary::Canary;
use crate::plan::{How, Side, Step, Then};
use crate::settings::LOCKS;
use crate::violation::Violation;
use crate::worker::{Ask, Limit, Worker};
use crate::worker_state::{Handled, Op};

pub use extras::{Cancellable, SharedExtras, Timed};

/// A few locks of one type, each with its canary.
pub struct Shared<L: RawRwLock> {
    seats: [Seat<L>; LOCKS],
    extras: SharedExtras<L>,
    in_handlers: bool,
    short_lived: Option<ShortLived<ManyReaders<L>>>,
}

/// A lock and what is under it.
struct Seat<L> {
    lock: L,
    canary: Canary,
}

/// Of a step's bits: one reader in four passes those that wait, where readers may.
const PAST: u64 = 3 << 8;

/// The part of a step of [`Shared`] does between acquisition and release; it takes the next locks.
type Inner<'a> = &'a dyn Fn();

impl<L: RawRwLock> Shared<L> {
    /// New locks that can do what the extras say, and promise what their row says.
    pub fn new(extras: SharedExtras<L>, facts: &Facts) -> Self {
        let seats = std::array::from_fn(|_| Seat {
            lock: L::INIT,
            canary: Canary::default(),
        });
        Self {
            seats,
            extras,
            in_handlers: facts.tried_in_handlers,
            short_lived: facts.freed_by_last_user.then(ShortLived::default),
        }
    }

    fn most(&self) -> u64 {
        self.extras.most_readers.unwrap_or(u64::MAX)
    }

    /// Acquires as `side` by `attempt`.
    fn acquire<T>(
        &self,
        worker: &Worker,
        lock: usize,
        side: Side,
        how: How,
        attempt: impl FnOnce(&L, How, &Limit) -> Option<T>,
    ) -> Option<T> {
        let how = match how {
            How::Timed(_) if self.extras.timed.is_none() => How::Wait,
            How::Cancel if self.extras.cancellable.is_none() || side == Side::Upgradable => {
                How::Wait
            }
            how => how,
        };
        let ask = Ask {
            op: Op::of(side, how),
            lock,
            side,
            how,
        };
        let seat = &self.seats[lock];
        worker.acquire(
            ask,
            || seat.canary.visits(),
            |limit| attempt(&seat.lock, how, limit),
        )
    }

    /// The section of a reader. Returns what it saw.
    fn inspect(&self, worker: &Worker, lock: usize, step: &Step, inner: Inner<'_>) -> Option<u64> {
        let canary = &self.seats[lock].canary;
        worker.check(lock, canary.enter(self.most()));
        let seen = worker.check(lock, canary.read(|| worker.pause(step.hold)));
        inner();
        worker.unchanged(lock, canary, seen);
        canary.leave();
        seen
    }

    /// As [`inspect`](Self::inspect), where nobody can have written since `last` was seen.
    fn inspect_again(&self, worker: &Worker, lock: usize, step: &Step, last: Option<u64>) {
        worker.unchanged(lock, &self.seats[lock].canary, last);
        self.inspect(worker, lock, step, &|| {});
    }

    /// The section of a writer. Returns what it left there.
    fn change(&self, worker: &Worker, lock: usize, step: &Step) -> Option<u64> {
        let between = worker.between_words(step.hold, step.bits);
        worker.written(lock, self.seats[lock].canary.write(worker.name(), between))
    }

    fn read(&self, worker: &Worker, lock: usize, step: &Step, inner: Inner<'_>) {
        let (timed, cancellable) = (&self.extras.timed, &self.extras.cancellable);
        let token = self.acquire(
            worker,
            lock,
            Side::Read,
            step.how,
            |raw, how, limit| match (how, timed, cancellable) {
                (How::Try, ..) => raw.try_read(),
                (How::Timed(_), Some(timed), _) => (timed.read)(raw, limit.until()),
                (How::Cancel, _, Some(cancellable)) => (cancellable.read)(raw, limit.token()),
                _ => match self.extras.past {
                    Some(read_past) if step.bits & PAST == 0 => Some(read_past(raw)),
                    _ => Some(raw.read()),
                },
            },
        );
        let Some(token) = token else { return };
        self.inspect(worker, lock, step, inner);
        self.leave_read(worker, lock, token, step);
    }

    fn leave_read(&self, worker: &Worker, lock: usize, mut token: L::Read, step: &Step) {
        let raw = &self.seats[lock].lock;
        match (step.then, &self.extras.fair) {
            (Then::LeaveFair, Some(fair)) => {
                // SAFETY: callers pass the token of their acquisition of this lock, here and below.
                return worker.release(lock, || unsafe { (fair.unlock_read)(raw, token) });
            }
            (Then::Bump, Some(fair)) => {
                // SAFETY: as above.
                let bump = || unsafe { (fair.bump_read)(raw, token) };
                token = worker.wait(Op::Bump, lock, Side::Read, bump);
                self.inspect(worker, lock, step, &|| {});
            }
            _ => {}
        }
        // SAFETY: as above.
        worker.release(lock, || unsafe { raw.unlock_read(token) });
    }

    fn write(&self, worker: &Worker, lock: usize, step: &Step, inner: Inner<'_>) {
        let (timed, cancellable) = (&self.extras.timed, &self.extras.cancellable);
        let token = self.acquire(
            worker,
            lock,
            Side::Write,
            step.how,
            |raw, how, limit| match (how, timed, cancellable) {
                (How::Try, ..) => raw.try_write(),
                (How::Timed(_), Some(timed), _) => (timed.write)(raw, limit.until()),
                (How::Cancel, _, Some(cancellable)) => (cancellable.write)(raw, limit.token()),
                _ => Some(raw.write()),
            },
        );
        let Some(token) = token else { return };
        let left = self.change(worker, lock, step);
        inner();
        worker.unchanged(lock, &self.seats[lock].canary, left);
        self.leave_write(worker, lock, token, step, left);
    }

    fn leave_write(
        &self,
        worker: &Worker,
        lock: usize,
        mut token: L::Write,
        step: &Step,
        left: Option<u64>,
    ) {
        let raw = &self.seats[lock].lock;
        match (step.then, &self.extras.fair, self.extras.downgrade) {
            (Then::LeaveFair, Some(fair), _) => {
                // SAFETY: callers pass the token of their acquisition of this lock, here and below.
                return worker.release(lock, || unsafe { (fair.unlock_write)(raw, token) });
            }
            (Then::Bump, Some(fair), _) => {
                // SAFETY: as above.
                let bump = || unsafe { (fair.bump_write)(raw, token) };
                token = worker.wait(Op::Bump, lock, Side::Write, bump);
                self.change(worker, lock, step);
            }
            (Then::Change, _, Some(downgrade)) => {
                // SAFETY: as above.
                let token = unsafe { downgrade(raw, token) };
                worker.hold(lock, Side::Read);
                self.inspect_again(worker, lock, step, left);
                // SAFETY: as above.
                return worker.release(lock, || unsafe { raw.unlock_read(token) });
            }
            _ => {}
        }
        // SAFETY: as above.
        worker.release(lock, || unsafe { raw.unlock_write(token) });
    }

    /// Takes the locks from `lock` on, below `end`, one inside the other.
    fn nest(&self, worker: &Worker, step: &Step, lock: usize, end: usize) {
        if lock == end {
            return;
        }
        let inner = || self.nest(worker, step, lock + 1, end);
        let fair = matches!(step.then, Then::LeaveFair | Then::Bump);
        match (step.side, &self.extras.fair) {
            (Side::Write, _) => self.write(worker, lock, step, &inner),
            (Side::Upgradable, Some(extras)) if fair => {
                (extras.upgradable_fair)(self, worker, lock, step, &inner);
            }
            (Side::Upgradable, Some(extras)) => {
                (extras.upgradable)(self, worker, lock, step, &inner);
            }
            _ => self.read(worker, lock, step, &inner),
        }
    }
}

impl<L: RawRwLock + Debug> Subject for Shared<L> {
    fn step(&self, worker: &Worker, step: &Step) {
        self.nest(worker, step, step.first, step.first + step.depth);
        if let Some(short_lived) = &self.short_lived {
            short_lived.step(worker, step, None);
        }
    }

    fn interrupt(&self, _: usize, handled: &Handled) {
        if !self.in_handlers {
            return;
        }
        let lock = handled.signals.get() as usize % LOCKS;
        let seat = &self.seats[lock];
        let Some(token) = seat.lock.try_read() else {
            return;
        };
        handled.taken.add();
        if seat.canary.enter(self.most()).is_err() || seat.canary.read(|| {}).is_err() {
            handled.torn.raise(lock as u64 + 1);
        }
        seat.canary.leave();
        // SAFETY: the token is of this lock and this thread.
        unsafe { seat.lock.unlock_read(token) };
    }

    fn canary(&self, lock: usize) -> Option<&Canary> {
        self.seats.get(lock).map(|seat| &seat.canary)
    }

    fn is_used(&self, lock: usize) -> bool {
        let seat = &self.seats[lock];
        seat.lock.is_locked() || seat.lock.is_write_locked() || seat.lock.is_contended()
    }

    fn state(&self, lock: usize) -> String {
        if lock == SHORT_LIVED {
            return "whoever acquires it last frees it".to_owned();
        }
        let seat = &self.seats[lock];
        format!(
            "locked: {}, for writing: {}, contended: {}, sections: {}, {:?}",
            seat.lock.is_locked(),
            seat.lock.is_write_locked(),
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

impl<L: RawRwLock + Debug> Debug for Shared<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.seats.iter().map(|seat| &seat.lock))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use overlock::rw::RwSem;
    use overlock_core::facts::HasFacts;

    use super::*;
    use crate::subject::Permits;
    use crate::violation::ViolationKind;

    #[test]
    fn a_lock_that_looks_used_while_all_rest_is_noticed() {
        let nothing = |_| 0;
        let subject = Shared::<RwSem>::new(SharedExtras::timed(), &RwSem::FACTS);
        assert_eq!(subject.at_rest(&nothing), Ok(()));
        subject.seats[3].lock.read();
        let violation = subject.at_rest(&nothing).unwrap_err();
        assert_eq!(violation.kind, ViolationKind::State);
        let start = "nobody uses lock 3: locked: true, for writing: false, ";
        assert!(violation.message.starts_with(start), "{violation}");
    }

    /// The watchdog asks for whatever a thread waits for, those that live for a moment too.
    #[test]
    fn the_number_of_those_that_are_freed_has_no_seat() {
        let freed = Facts {
            freed_by_last_user: true,
            ..RwSem::FACTS
        };
        let subject = Shared::<RwSem>::new(SharedExtras::timed(), &freed);
        assert_eq!(subject.visits(SHORT_LIVED), 0);
        assert!(subject.state(SHORT_LIVED).contains("frees it"));
    }

    #[test]
    fn a_handler_that_reads_beside_a_writer_says_so() {
        let subject = Shared::<Permits>::new(Permits::extras(), &Permits::FACTS);
        let handled = Handled::default();
        subject.interrupt(0, &handled);
        assert_eq!((handled.taken.get(), handled.torn.get()), (1, 0));
        let _ = subject.seats[0].canary.write(5, |word| {
            if word == 3 {
                subject.interrupt(0, &handled);
            }
        });
        assert_eq!(handled.torn.get(), 1);
    }
}
