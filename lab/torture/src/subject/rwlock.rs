//! `overlock::RwLock`: what its guards add to the raw lock.

use std::fmt::{self, Debug};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use overlock::{RwLock, RwLockReadGuard, RwLockUpgradableReadGuard, RwLockWriteGuard};

use super::Subject;
use crate::canary::{Canary, Torn};
use crate::plan::{How, Side, Step, Then};
use crate::settings::LOCKS;
use crate::worker::{Ask, Worker};
use crate::worker_state::Op;

/// The data that the locks protect. By reference, so that others can ask it for its counts.
type Data = Arc<Canary>;
type Reader<'a> = RwLockReadGuard<'a, Data>;
type Writer<'a> = RwLockWriteGuard<'a, Data>;
type Upgradable<'a> = RwLockUpgradableReadGuard<'a, Data>;

/// A few reader-writer locks around their canaries.
pub struct GuardedRwLock {
    seats: [Seat; LOCKS],
}

struct Seat {
    lock: RwLock<Data>,
    canary: Data,
}

impl GuardedRwLock {
    pub fn new() -> Self {
        Self {
            seats: std::array::from_fn(|_| {
                let canary = Data::default();
                Seat {
                    lock: RwLock::new(Arc::clone(&canary)),
                    canary,
                }
            }),
        }
    }

    fn ask<'a, G>(
        &'a self,
        worker: &Worker,
        lock: usize,
        step: &Step,
        attempt: impl FnOnce(&'a RwLock<Data>, How) -> Option<G>,
    ) -> Option<G> {
        // Waits for these guards cannot be cancelled.
        let how = if step.how == How::Cancel {
            How::Wait
        } else {
            step.how
        };
        let ask = Ask {
            op: Op::of(step.side, how),
            lock,
            side: step.side,
            how,
        };
        let seat = &self.seats[lock];
        worker.acquire(ask, || seat.canary.visits(), |_| attempt(&seat.lock, how))
    }

    fn inspect(&self, worker: &Worker, lock: usize, canary: &Canary, step: &Step) -> Option<u64> {
        worker.check(lock, canary.enter(u64::MAX));
        let seen = worker.check(lock, canary.read(|| worker.pause(step.hold)));
        canary.leave();
        seen
    }

    fn change(&self, worker: &Worker, lock: usize, canary: &Canary, step: &Step) -> Option<u64> {
        let between = worker.between_words(step.hold, step.bits);
        worker.written(lock, canary.write(worker.name(), between))
    }

    /// A change where nobody can have written since `seen` was there.
    fn change_after(
        &self,
        worker: &Worker,
        lock: usize,
        canary: &Canary,
        step: &Step,
        seen: Option<u64>,
    ) {
        if let (Some(seen), Some(left)) = (seen, self.change(worker, lock, canary, step))
            && left != seen + 1
        {
            worker.check::<()>(lock, Err(Torn::Changed(seen, left - 1)));
        }
    }

    fn read(&self, worker: &Worker, step: &Step, lock: usize, inner: &dyn Fn()) {
        let guard = self.ask(worker, lock, step, |lock, how| match how {
            How::Try => lock.try_read(),
            How::Timed(time) => lock.try_read_for(Duration::from_nanos(time)),
            _ => Some(lock.read()),
        });
        let Some(guard) = guard else { return };
        let seen = self.inspect(worker, lock, &guard, step);
        inner();
        worker.unchanged(lock, &guard, seen);
        self.leave_reader(worker, step, lock, guard);
    }

    fn leave_reader(&self, worker: &Worker, step: &Step, lock: usize, mut guard: Reader<'_>) {
        match step.then {
            Then::LeaveFair => worker.release(lock, || Reader::unlock_fair(guard)),
            Then::Panic => unwind(worker, lock, guard),
            Then::Change => {
                let part = Reader::map(guard, |canary| canary);
                self.inspect(worker, lock, &part, step);
                worker.release(lock, || drop(part));
            }
            Then::Bump => {
                worker.wait(Op::Bump, lock, Side::Read, || Reader::bump(&mut guard));
                self.inspect(worker, lock, &guard, step);
                worker.release(lock, || drop(guard));
            }
            Then::Leave => worker.release(lock, || drop(guard)),
        }
    }

    fn write(&self, worker: &Worker, step: &Step, lock: usize, inner: &dyn Fn()) {
        let guard = self.ask(worker, lock, step, |lock, how| match how {
            How::Try => lock.try_write(),
            How::Timed(time) => lock.try_write_for(Duration::from_nanos(time)),
            _ => Some(lock.write()),
        });
        let Some(guard) = guard else { return };
        let left = self.change(worker, lock, &guard, step);
        inner();
        worker.unchanged(lock, &guard, left);
        self.leave_writer(worker, step, lock, guard, left);
    }

    fn leave_writer(
        &self,
        worker: &Worker,
        step: &Step,
        lock: usize,
        mut guard: Writer<'_>,
        left: Option<u64>,
    ) {
        match step.then {
            Then::LeaveFair => worker.release(lock, || Writer::unlock_fair(guard)),
            Then::Panic => unwind(worker, lock, guard),
            Then::Change if step.bits & 1 == 0 => {
                let guard = Writer::downgrade(guard);
                worker.hold(lock, Side::Read);
                worker.unchanged(lock, &guard, left);
                self.inspect(worker, lock, &guard, step);
                worker.release(lock, || drop(guard));
            }
            Then::Change => {
                let guard = Writer::downgrade_to_upgradable(guard);
                worker.hold(lock, Side::Upgradable);
                worker.unchanged(lock, &guard, left);
                worker.release(lock, || drop(guard));
            }
            Then::Bump => {
                let bump = |guard: &mut Writer<'_>| match step.bits & 3 {
                    0 => Writer::unlocked(guard, || {}),
                    1 => Writer::unlocked_fair(guard, || {}),
                    _ => Writer::bump(guard),
                };
                worker.wait(Op::Bump, lock, Side::Write, || bump(&mut guard));
                self.change(worker, lock, &guard, step);
                worker.release(lock, || drop(guard));
            }
            Then::Leave => worker.release(lock, || drop(guard)),
        }
    }

    fn upgradable(&self, worker: &Worker, step: &Step, lock: usize, inner: &dyn Fn()) {
        let guard = self.ask(worker, lock, step, |lock, how| match how {
            How::Try => lock.try_upgradable_read(),
            How::Timed(time) => lock.try_upgradable_read_for(Duration::from_nanos(time)),
            _ => Some(lock.upgradable_read()),
        });
        let Some(mut guard) = guard else { return };
        let seen = self.inspect(worker, lock, &guard, step);
        inner();
        worker.unchanged(lock, &guard, seen);
        match step.then {
            Then::LeaveFair => worker.release(lock, || Upgradable::unlock_fair(guard)),
            Then::Panic => unwind(worker, lock, guard),
            Then::Bump => {
                worker.wait(Op::Bump, lock, Side::Upgradable, || {
                    Upgradable::bump(&mut guard)
                });
                self.inspect(worker, lock, &guard, step);
                worker.release(lock, || drop(guard));
            }
            Then::Leave => worker.release(lock, || drop(guard)),
            Then::Change => self.upgrade(worker, step, lock, guard, seen),
        }
    }

    fn upgrade(
        &self,
        worker: &Worker,
        step: &Step,
        lock: usize,
        mut guard: Upgradable<'_>,
        seen: Option<u64>,
    ) {
        let time = Duration::from_nanos(step.bits >> 32 & 0xf_ffff);
        let upgraded = match step.bits & 7 {
            0 => {
                let guard = Upgradable::downgrade(guard);
                worker.hold(lock, Side::Read);
                worker.unchanged(lock, &guard, seen);
                return worker.release(lock, || drop(guard));
            }
            1..=2 => {
                // It is the writer only inside, and then what it was.
                worker.set(Op::Upgrade, lock);
                let write = |canary: &mut Data| {
                    worker.hold(lock, Side::Write);
                    self.change_after(worker, lock, canary, step, seen);
                };
                if step.bits & 7 == 1 {
                    guard.with_upgraded(write);
                } else {
                    guard.try_with_upgraded_for(time, write);
                }
                worker.hold(lock, Side::Upgradable);
                worker.set(Op::Inside, lock);
                self.inspect(worker, lock, &guard, step);
                return worker.release(lock, || drop(guard));
            }
            3 => {
                worker.set(Op::TryUpgrade, lock);
                Upgradable::try_upgrade(guard)
            }
            4 => {
                worker.set(Op::UpgradeUntil, lock);
                Upgradable::try_upgrade_for(guard, time)
            }
            _ => Ok(worker.wait(Op::Upgrade, lock, Side::Write, || {
                Upgradable::upgrade(guard)
            })),
        };
        match upgraded {
            Ok(guard) => {
                worker.hold(lock, Side::Write);
                worker.set(Op::Inside, lock);
                self.change_after(worker, lock, &guard, step, seen);
                worker.release(lock, || drop(guard));
            }
            Err(guard) => {
                worker.set(Op::Inside, lock);
                worker.unchanged(lock, &guard, seen);
                worker.release(lock, || drop(guard));
            }
        }
    }

    fn nest(&self, worker: &Worker, step: &Step, lock: usize, end: usize) {
        if lock == end {
            return;
        }
        let inner = || self.nest(worker, step, lock + 1, end);
        match step.side {
            Side::Read => self.read(worker, step, lock, &inner),
            Side::Write => self.write(worker, step, lock, &inner),
            Side::Upgradable => self.upgradable(worker, step, lock, &inner),
        }
    }
}

fn unwind<G>(worker: &Worker, lock: usize, guard: G) {
    let panic = AssertUnwindSafe(|| {
        let _guard = guard;
        resume_unwind(Box::new(()));
    });
    worker.release(lock, || drop(catch_unwind(panic)));
}

impl Subject for GuardedRwLock {
    fn step(&self, worker: &Worker, step: &Step) {
        self.nest(worker, step, step.first, step.first + step.depth);
    }

    fn canary(&self, lock: usize) -> Option<&Canary> {
        self.seats.get(lock).map(|seat| &*seat.canary)
    }

    fn is_used(&self, lock: usize) -> bool {
        let seat = &self.seats[lock];
        seat.lock.is_locked() || seat.lock.is_contended()
    }

    fn state(&self, lock: usize) -> String {
        let Seat { lock, canary } = &self.seats[lock];
        // SAFETY: it is not unlocked here.
        let raw = unsafe { lock.raw() };
        format!(
            "locked: {}, for writing: {}, contended: {}, sections: {}, {raw:?}",
            lock.is_locked(),
            lock.is_locked_exclusive(),
            lock.is_contended(),
            canary.visits()
        )
    }
}

impl Debug for GuardedRwLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardedRwLock").finish_non_exhaustive()
    }
}
