//! Wound/wait mutexes: several at a time, in any order.

use std::fmt::Debug;

use overlock::Linux;
use overlock_core::raw::RawLock;
use overlock_core::sleep::ww_mutex::{self, Class, Context, Error, WwMutex};

use super::Subject;
use crate::canary::Canary;
use crate::plan::{How, Side, Step};
use crate::violation::{Violation, ViolationKind};
use crate::worker::{Ask, Worker};
use crate::worker_state::Op;

/// Locks that a context takes, in an order of its own each time.
const SEATS: usize = 3;

/// Three locks of one class.
#[derive(Debug)]
pub struct Contexts {
    class: &'static Class<Linux>,
    seats: [Seat; SEATS],
}

#[derive(Debug)]
struct Seat {
    lock: WwMutex<Linux>,
    canary: Canary,
}

impl Contexts {
    pub fn new(class: &'static Class<Linux>) -> Self {
        let seat = |_| Seat {
            lock: WwMutex::new(class),
            canary: Canary::default(),
        };
        Self {
            class,
            seats: std::array::from_fn(seat),
        }
    }

    /// One lock, without a context.
    fn alone(&self, worker: &Worker, step: &Step) {
        let lock = step.bits as usize % SEATS;
        let seat = &self.seats[lock];
        let how = if step.how == How::Try {
            How::Try
        } else {
            How::Wait
        };
        let held = self.ask(worker, lock, how, || match how {
            How::Try => seat.lock.try_hold(),
            _ => Some(seat.lock.hold()),
        });
        if let Some(held) = held {
            self.change(worker, lock, step);
            worker.release(lock, || drop(held));
        }
    }

    /// As many locks as the step says, in an order that it says.
    fn together(&self, worker: &Worker, step: &Step) {
        let all = |context: &_| self.attempt(worker, step, context);
        if let Err(error) = ww_mutex::acquire(self.class, all) {
            worker.fail(Violation::new(
                ViolationKind::State,
                format!("refuses thread {}: {error}", worker.index()),
            ));
        }
    }

    /// Begins again where an older context needs what this one holds.
    fn attempt<'env>(
        &'env self,
        worker: &Worker,
        step: &Step,
        context: &Context<'env, Linux>,
    ) -> Result<(), Error> {
        let order = &order(step.bits)[..step.depth.clamp(2, SEATS)];
        let mut held = Vec::with_capacity(SEATS);
        let mut end = Ok(());
        for &lock in order {
            let raw = &self.seats[lock].lock;
            let tries = step.how == How::Try && !held.is_empty();
            let how = if tries { How::Try } else { How::Wait };
            let got = self.ask(worker, lock, how, || {
                let got = match how {
                    How::Try => context.try_lock(raw),
                    _ => context.lock(raw).map(Some),
                };
                got.unwrap_or_else(|error| {
                    end = Err(error);
                    None
                })
            });
            let Some(got) = got else { break };
            held.push((lock, got));
        }
        if held.len() == order.len() {
            for &lock in order {
                self.change(worker, lock, step);
            }
        }
        while let Some((lock, held)) = held.pop() {
            worker.release(lock, || drop(held));
        }
        end
    }

    /// Acquires by `attempt`; an abort counts as a refusal.
    fn ask<T>(
        &self,
        worker: &Worker,
        lock: usize,
        how: How,
        attempt: impl FnOnce() -> Option<T>,
    ) -> Option<T> {
        let ask = Ask {
            op: Op::exclusive(how),
            lock,
            side: Side::Write,
            // A waiter may be aborted instead.
            how: How::Try,
        };
        let canary = &self.seats[lock].canary;
        worker.acquire(ask, || canary.visits(), |_| attempt())
    }

    fn change(&self, worker: &Worker, lock: usize, step: &Step) {
        let between = worker.between_words(step.hold, step.bits);
        worker.written(lock, self.seats[lock].canary.write(worker.name(), between));
    }
}

/// One of the six orders of three.
fn order(bits: u64) -> [usize; SEATS] {
    let mut order = [0, 1, 2];
    order.swap(0, bits as usize % SEATS);
    order.swap(1, 1 + (bits >> 8) as usize % (SEATS - 1));
    order
}

impl Subject for Contexts {
    fn step(&self, worker: &Worker, step: &Step) {
        if step.bits >> 16 & 3 == 0 {
            self.alone(worker, step);
        } else {
            self.together(worker, step);
        }
    }

    fn canary(&self, lock: usize) -> Option<&Canary> {
        self.seats.get(lock).map(|seat| &seat.canary)
    }

    fn is_used(&self, lock: usize) -> bool {
        let seat = &self.seats[lock];
        seat.lock.is_locked() || seat.lock.is_contended()
    }

    fn state(&self, lock: usize) -> String {
        let seat = &self.seats[lock];
        format!(
            "locked: {}, contended: {}, sections: {}, {:?}",
            seat.lock.is_locked(),
            seat.lock.is_contended(),
            seat.canary.visits(),
            seat.lock
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_orders_are_there() {
        let mut all: Vec<_> = (0..3)
            .flat_map(|first| (0..2).map(move |second| order(first | second << 8)))
            .collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 6);
    }
}
