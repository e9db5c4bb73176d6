//! A bounded queue: half of the threads put items in, the others take them out.
//!
//! A thread that changes the queue releases the lock, then notifies one thread that waits for the
//! change.

use super::{Member, judge};
use crate::error::Error;
use crate::lock::{BenchCondvar, BenchLock};
use crate::probe::{Pass, Probe};
use crate::workload::Sample;
use crate::world::{Word, Work, Worker, Workers, World};

/// Items that the queue takes.
const CAPACITY: u64 = 64;

/// The lock guards all words. An item is its number.
#[repr(C, align(128))]
struct Queue<V: BenchCondvar, C> {
    lock: V::Mutex,
    has_items: V,
    has_room: V,
    closed: C,
    put: C,
    taken: C,
    items: Vec<C>,
}

impl<V: BenchCondvar, C: Word> Queue<V, C> {
    fn new() -> Result<Self, Error> {
        Ok(Self {
            lock: V::Mutex::create()?,
            has_items: V::create()?,
            has_room: V::create()?,
            closed: C::new(0),
            put: C::new(0),
            taken: C::new(0),
            items: (0..CAPACITY).map(|_| C::new(0)).collect(),
        })
    }

    fn len(&self) -> u64 {
        self.put.get().wrapping_sub(self.taken.get())
    }

    fn is_closed(&self) -> bool {
        self.closed.get() != 0
    }

    fn place(&self, item: u64) -> &C {
        &self.items[(item % CAPACITY) as usize]
    }

    fn close(&self) {
        let guard = self.lock.lock();
        self.closed.set(1);
        drop(guard);
        self.has_items.notify_all();
        self.has_room.notify_all();
    }

    /// Puts an item in, unless the queue is closed.
    #[inline]
    fn put<W: World>(&self, member: &mut Member<'_, W>, item: Work) {
        member.worker.work(item);
        let ready = || self.len() < CAPACITY || self.is_closed();
        let guard = member.wait_until(&self.lock, &self.has_room, ready);
        if self.is_closed() {
            return;
        }
        let number = self.put.get();
        self.place(number).set(number);
        self.put.set(number + 1);
        drop(guard);
        member.probe.released();
        self.has_items.notify_one();
        member.operations += 1;
    }

    /// Takes an item out, unless the queue is closed.
    #[inline]
    fn take<W: World>(&self, member: &mut Member<'_, W>, item: Work) {
        let ready = || self.len() > 0 || self.is_closed();
        let guard = member.wait_until(&self.lock, &self.has_items, ready);
        if self.is_closed() {
            return;
        }
        let number = self.taken.get();
        let torn = self.place(number).get() != number;
        self.taken.set(number + 1);
        drop(guard);
        member.probe.released();
        self.has_room.notify_one();
        member.torn += u64::from(torn);
        member.operations += 1;
        member.worker.work(item);
    }
}

/// Operations are items put in and items taken out. A single thread does both in turn.
pub(super) fn drive<W: World, V: BenchCondvar>(
    world: &W,
    workers: &Workers,
    item: Work,
    pass: Pass,
) -> Result<Sample, Error> {
    let queue: Queue<V, W::Word> = Queue::new()?;
    let alone = workers.threads == 1;
    let outcome = world.run(workers, &|worker| {
        let mut member = Member::<W>::new(worker, pass);
        let puts = worker.index().is_multiple_of(2);
        while member.goes_on() {
            if puts {
                queue.put(&mut member, item);
            }
            if !puts || alone {
                queue.take(&mut member, item);
            }
        }
        queue.close();
        member.leave()
    })?;
    let (put, taken) = (queue.put.get(), queue.taken.get());
    if put < taken || put - taken > CAPACITY {
        return Err(Error::NotExclusive {
            expected: put,
            found: taken,
        });
    }
    judge(outcome, put + taken)
}
