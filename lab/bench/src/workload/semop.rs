//! System V semaphores as the kernel had them in 2013: arrays of semaphores, each array under one
//! lock.
//!
//! The shape of the semop test in fast-queue-spinlock. Each thread owns one semaphore of every
//! array and raises and lowers it by one, in turn, so that no operation ever has to wait for
//! another thread: all contention is for the arrays' locks. An operation is one call: the price of
//! a system call, then, with the array locked, looking at the values that the call would leave,
//! writing them, and noting the thread that did.

use super::random::Random;
use super::{Extra, InTime, Sample, Tally, Words, many};
use crate::error::Error;
use crate::lock::BenchLock;
use crate::probe::{Either, Pass, Probe, Timed, Untimed};
use crate::world::{Word, Work, Worker, Workers, World};

/// Entering the kernel, copying the operations in, finding the array, and leaving again.
pub const CALL_NS: f64 = 100.0;

/// A semaphore's highest value, as in Linux.
const HIGHEST: u64 = 32_767;

/// The array and its calls.
#[derive(Clone, Copy, Debug)]
pub struct Calls {
    /// How many arrays there are; a call goes to any of them.
    pub arrays: usize,
    /// The private part of a call.
    pub call: Work,
}

/// One array. The lock lies beside the data that every call writes.
#[repr(C, align(128))]
struct Array<L, C> {
    lock: L,
    /// Calls so far, in the place of the time of the last one.
    changed: C,
    /// Of each semaphore its value, then the last thread that changed it.
    semaphores: Words<C>,
    count: usize,
}

/// One element of a call's array of operations.
#[derive(Clone, Copy)]
struct Operation {
    semaphore: usize,
    change: i64,
}

impl<L: BenchLock, C: Word> Array<L, C> {
    fn new(semaphores: usize) -> Result<Self, Error> {
        Ok(Self {
            lock: L::create()?,
            changed: C::new(0),
            semaphores: Words::new(2 * semaphores, |_| 0),
            count: semaphores,
        })
    }

    fn value(&self, semaphore: usize) -> &C {
        &self.semaphores[2 * semaphore]
    }

    fn last(&self, semaphore: usize) -> &C {
        &self.semaphores[2 * semaphore + 1]
    }

    fn values(&self) -> impl Iterator<Item = u64> {
        (0..self.count).map(|semaphore| self.value(semaphore).get())
    }

    /// All operations or none; none if one of them would leave a value that cannot be. The lock is
    /// held.
    #[inline]
    fn apply(&self, operations: &[Operation], who: u64) -> bool {
        for operation in operations {
            let value = self.value(operation.semaphore).get();
            if value
                .checked_add_signed(operation.change)
                .is_none_or(|value| value > HIGHEST)
            {
                return false;
            }
        }
        for operation in operations {
            let change = operation.change.cast_unsigned();
            self.value(operation.semaphore).add(change);
            self.last(operation.semaphore).set(who);
        }
        self.changed.add(1);
        true
    }
}

/// One round.
///
/// # Errors
///
/// [`Error::NotExclusive`] if calls were lost, and those of [`World::run`].
pub fn round<W: World, L: BenchLock>(
    world: &W,
    workers: &Workers,
    calls: &Calls,
    pass: Pass,
) -> Result<Sample, Error> {
    match pass {
        _ if !W::TESTS_COUNT => drive::<W, L, Either>(world, workers, calls, pass),
        Pass::Throughput => drive::<W, L, Untimed>(world, workers, calls, pass),
        Pass::Latency => drive::<W, L, Timed>(world, workers, calls, pass),
    }
}

fn drive<W: World, L: BenchLock, P: Probe>(
    world: &W,
    workers: &Workers,
    calls: &Calls,
    pass: Pass,
) -> Result<Sample, Error> {
    let new = || Array::<L, W::Word>::new(workers.threads);
    let arrays = many(calls.arrays, new)?;
    let outcome = world.run(workers, &|worker| {
        iterate::<W, L, P>(worker, &arrays, calls.call, pass)
    })?;
    let (outcome, performed) = outcome.split();
    let (mut found, mut left) = (0, false);
    for array in &arrays {
        found += array.changed.get();
        // A thread that raises a semaphore lowers it again, so every value is back at 0.
        left |= array.values().any(|value| value != 0);
    }
    let expected = performed.iter().sum();
    if L::EXCLUDES && (expected != found || left) {
        return Err(Error::NotExclusive { expected, found });
    }
    Ok(Sample::new(outcome, Extra::None))
}

/// The measured loop: two calls an iteration. Returns all calls, too; of the iteration in which the
/// time is up none counts.
fn iterate<W: World, L: BenchLock, P: Probe>(
    worker: &W::Worker,
    arrays: &[Array<L, W::Word>],
    call: Work,
    pass: Pass,
) -> (Tally, u64) {
    let mut probe = P::new(pass);
    let mut random = Random::new(worker.index() as u64);
    let (mut in_time, mut performed) = (InTime::default(), 0);
    while in_time.goes_on(worker, performed) {
        let array = &arrays[random.index(arrays.len())];
        for change in [1, -1] {
            worker.work(call);
            let guard = probe.lock(worker, &array.lock);
            let done = array.apply(
                &[Operation {
                    semaphore: worker.index(),
                    change,
                }],
                worker.index() as u64,
            );
            drop(guard);
            probe.released();
            performed += u64::from(done);
        }
    }
    (Tally::new(in_time.count(), probe), performed)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;
    use crate::peers::Std;

    fn array() -> Array<Std, AtomicU64> {
        Array::new(2).unwrap()
    }

    #[test]
    fn a_call_does_all_or_nothing() {
        let array = array();
        let up = Operation {
            semaphore: 0,
            change: 1,
        };
        let down = Operation {
            semaphore: 1,
            change: -1,
        };
        assert!(!array.apply(&[up, down], 7));
        assert_eq!(array.values().collect::<Vec<_>>(), [0, 0]);
        assert!(array.apply(&[up], 7));
        assert_eq!(array.values().collect::<Vec<_>>(), [1, 0]);
        assert_eq!(array.last(0).get(), 7);
        assert_eq!(array.changed.get(), 1);
    }

    #[test]
    fn values_have_a_top() {
        let array = array();
        let most = Operation {
            semaphore: 0,
            change: HIGHEST.cast_signed(),
        };
        assert!(array.apply(&[most], 0));
        assert!(!array.apply(
            &[Operation {
                semaphore: 0,
                change: 1
            }],
            0
        ));
    }
}
