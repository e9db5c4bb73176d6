//! Pairs that pass a turn to and fro, each pair with a lock of its own: the time from one thread's
//! notification to the other's next step, and nothing else.
//!
//! With an odd number of threads, the last three pass it round. Each thread has a condition
//! variable of its own, and releases the lock before it notifies the next.

use super::{Member, judge};
use crate::error::Error;
use crate::lock::{BenchCondvar, BenchLock};
use crate::probe::{Pass, Probe};
use crate::workload::Sample;
use crate::world::{Word, Worker, Workers, World};

/// A pair, or the three that are left. The lock guards the words.
#[repr(C, align(128))]
struct Ring<V: BenchCondvar, C> {
    lock: V::Mutex,
    /// Whose turn it is.
    turn: C,
    passes: C,
    closed: C,
    seats: Vec<V>,
}

impl<V: BenchCondvar, C: Word> Ring<V, C> {
    fn new(seats: usize) -> Result<Self, Error> {
        Ok(Self {
            lock: V::Mutex::create()?,
            turn: C::new(0),
            passes: C::new(0),
            closed: C::new(0),
            seats: (0..seats).map(|_| V::create()).collect::<Result<_, _>>()?,
        })
    }

    fn has_turn(&self, seat: usize) -> bool {
        self.turn.get() == seat as u64
    }

    fn is_closed(&self) -> bool {
        self.closed.get() != 0
    }

    fn close(&self) {
        let guard = self.lock.lock();
        self.closed.set(1);
        drop(guard);
        for seat in &self.seats {
            seat.notify_all();
        }
    }

    /// Waits for the turn and passes it on, unless the ring is closed.
    #[inline]
    fn pass<W: World>(&self, member: &mut Member<'_, W>, seat: usize) {
        let next = if seat + 1 == self.seats.len() {
            0
        } else {
            seat + 1
        };
        let ready = || self.has_turn(seat) || self.is_closed();
        let guard = member.wait_until(&self.lock, &self.seats[seat], ready);
        if self.is_closed() {
            return;
        }
        self.passes.add(1);
        self.turn.set(next as u64);
        drop(guard);
        member.probe.released();
        self.seats[next].notify_one();
        member.operations += 1;
    }
}

/// How many threads sit in each ring.
fn rings(threads: usize) -> Vec<usize> {
    let mut rings = vec![2; (threads / 2).max(1)];
    if let Some(last) = rings.last_mut() {
        *last = threads - (threads / 2).saturating_sub(1) * 2;
    }
    rings
}

/// Operations are turns.
pub(super) fn drive<W: World, V: BenchCondvar>(
    world: &W,
    workers: &Workers,
    pass: Pass,
) -> Result<Sample, Error> {
    let rings: Vec<Ring<V, W::Word>> = rings(workers.threads)
        .into_iter()
        .map(Ring::new)
        .collect::<Result<_, _>>()?;
    let outcome = world.run(workers, &|worker| {
        let mut member = Member::<W>::new(worker, pass);
        let place = (worker.index() / 2).min(rings.len() - 1);
        let (ring, seat) = (&rings[place], worker.index() - place * 2);
        while member.goes_on() {
            ring.pass(&mut member, seat);
        }
        ring.close();
        member.leave()
    })?;
    let found = rings.iter().map(|ring| ring.passes.get()).sum();
    judge(outcome, found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_has_a_seat() {
        assert_eq!(rings(1), [1]);
        assert_eq!(rings(2), [2]);
        assert_eq!(rings(3), [3]);
        assert_eq!(rings(4), [2, 2]);
        assert_eq!(rings(7), [2, 2, 3]);
    }
}
