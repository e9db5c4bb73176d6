//! `overlock::Mutex`: what its guards add to the raw lock.

use std::fmt::{self, Debug};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use overlock::{Mutex, MutexGuard};

use super::Subject;
use crate::canary::Canary;
use crate::plan::{How, Side, Step, Then};
use crate::settings::LOCKS;
use crate::worker::{Ask, Limit, Worker};
use crate::worker_state::Op;

/// The data that the mutexes protect. By reference, so that others can ask it for its counts.
type Data = Arc<Canary>;

/// A few mutexes around their canaries.
pub struct GuardedMutex {
    seats: [Seat; LOCKS],
}

struct Seat {
    mutex: Arc<Mutex<Data>>,
    canary: Data,
}

impl GuardedMutex {
    pub fn new() -> Self {
        Self {
            seats: std::array::from_fn(|_| {
                let canary = Data::default();
                Seat {
                    mutex: Arc::new(Mutex::new(Arc::clone(&canary))),
                    canary,
                }
            }),
        }
    }

    fn ask<T>(
        &self,
        worker: &Worker,
        lock: usize,
        how: How,
        attempt: impl FnOnce(&Limit) -> Option<T>,
    ) -> Option<T> {
        let ask = Ask {
            op: Op::exclusive(how),
            lock,
            side: Side::Write,
            how,
        };
        worker.acquire(ask, || self.seats[lock].canary.visits(), attempt)
    }

    fn nest(&self, worker: &Worker, step: &Step, lock: usize, end: usize) {
        if lock == end {
            return;
        }
        let mutex = &self.seats[lock].mutex;
        let guard = self.ask(worker, lock, step.how, |limit| match step.how {
            How::Wait => Some(mutex.lock()),
            How::Try => mutex.try_lock(),
            How::Timed(time) => mutex.try_lock_for(Duration::from_nanos(time)),
            How::Cancel => mutex.lock_cancellable(limit.token()).ok(),
        });
        let Some(guard) = guard else { return };
        let left = self.write(worker, lock, &guard, step);
        self.nest(worker, step, lock + 1, end);
        worker.unchanged(lock, &guard, left);
        self.leave(worker, lock, guard, step);
    }

    /// The same through a guard that keeps its mutex alive.
    fn alone(&self, worker: &Worker, step: &Step) {
        let lock = step.first;
        let mutex = &self.seats[lock].mutex;
        let guard = self.ask(worker, lock, step.how, |_| match step.how {
            How::Try => mutex.try_lock_arc(),
            How::Timed(time) => mutex.try_lock_arc_for(Duration::from_nanos(time)),
            How::Wait | How::Cancel => Some(mutex.lock_arc()),
        });
        if let Some(guard) = guard {
            self.write(worker, lock, &guard, step);
            worker.release(lock, || drop(guard));
        }
    }

    fn write(&self, worker: &Worker, lock: usize, canary: &Canary, step: &Step) -> Option<u64> {
        let between = worker.between_words(step.hold, step.bits);
        worker.written(lock, canary.write(worker.name(), between))
    }

    fn leave(&self, worker: &Worker, lock: usize, mut guard: MutexGuard<'_, Data>, step: &Step) {
        let again = |guard: &mut MutexGuard<'_, Data>, f: &dyn Fn(&mut MutexGuard<'_, Data>)| {
            worker.wait(Op::Bump, lock, Side::Write, || f(guard));
            self.write(worker, lock, guard, step);
        };
        match (step.then, step.bits >> 4 & 3) {
            (Then::LeaveFair, _) => {
                return worker.release(lock, || MutexGuard::unlock_fair(guard));
            }
            (Then::Bump, _) => again(&mut guard, &|guard| MutexGuard::bump(guard)),
            (Then::Change, 0) => again(&mut guard, &|guard| MutexGuard::unlocked(guard, || {})),
            (Then::Change, 1) => {
                again(&mut guard, &|guard| MutexGuard::unlocked_fair(guard, || {}));
            }
            (Then::Change, _) => {
                let part = MutexGuard::map(guard, |canary| canary);
                self.write(worker, lock, &part, step);
                return worker.release(lock, || drop(part));
            }
            (Then::Panic, _) => {
                // Unwinding releases it.
                let panic = AssertUnwindSafe(|| {
                    let _guard = guard;
                    resume_unwind(Box::new(()));
                });
                return worker.release(lock, || drop(catch_unwind(panic)));
            }
            (Then::Leave, _) => {}
        }
        worker.release(lock, || drop(guard));
    }
}

impl Subject for GuardedMutex {
    fn step(&self, worker: &Worker, step: &Step) {
        if step.bits & 7 == 0 && step.how != How::Cancel {
            self.alone(worker, step);
        } else {
            self.nest(worker, step, step.first, step.first + step.depth);
        }
    }

    fn canary(&self, lock: usize) -> Option<&Canary> {
        self.seats.get(lock).map(|seat| &*seat.canary)
    }

    fn is_used(&self, lock: usize) -> bool {
        let seat = &self.seats[lock];
        seat.mutex.is_locked() || seat.mutex.is_contended()
    }

    fn state(&self, lock: usize) -> String {
        // SAFETY: it is not unlocked here.
        let raw = unsafe { self.seats[lock].mutex.raw() };
        let visits = self.visits(lock);
        format!(
            "locked: {}, contended: {}, sections: {visits}, {raw:?}",
            self.seats[lock].mutex.is_locked(),
            self.seats[lock].mutex.is_contended()
        )
    }
}

impl Debug for GuardedMutex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardedMutex").finish_non_exhaustive()
    }
}
