//! A barrier: threads wait for each other until a given number of them has arrived. Then all go on,
//! and the next round begins.
//!
//! # Layout
//!
//! 20 bytes; the wait lock of `list` protects `list`, `arrived` and `round`.
//!
//! | field | who writes it |
//! |---|---|
//! | `total` | nobody after `new` |
//! | `list` | threads that arrive; the last one empties it |
//! | `arrived: u32` | threads that arrive: their number so far; the last one sets it back |
//! | `round: u32` | the last one adds 1. Threads that have no place in the list read it without the wait lock |
//!
//! # States
//!
//! (arrived, round):
//!
//! ```text
//! (a, r)          --wait-->  (a + 1, r)   in the list, asleep until signalled; or, without a node, backs off until the round changes
//! (total - 1, r)  --wait-->  (0, r + 1)   the leader: signals the waiters in the list. All are through
//! ```
//!
//! # Invariants
//!
//! - B1: while the wait lock is free, `arrived < total`, and all in the list belong to the current
//!   round.
//! - B2: the last to arrive is the only one that sees `arrived` complete, and is the round's
//!   leader.
//! - B3: the leader takes the others out of the list, releases the wait lock, and signals them
//!   after that. So a thread that is through can arrive again, in the next round, before the leader
//!   has signalled the rest. The barrier may be freed when `total` calls have returned, as the
//!   borrow in Rust says.
//!
//! # Orderings
//!
//! The leader sees all that the others did before they arrived, by the wait lock. The others see it
//! by WS of `sleep/wait_list.rs`, or by BR, the release store of `round`, which pairs with BA,
//! acquire.
//!
//! # Why no wake-up is lost
//!
//! A thread that is not the last is in the list, or has read the round, before it releases the wait
//! lock. The leader acquires the wait lock after that.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::wait_list::{Batch, Limit, WaitList, Waiter, Waiters};
use crate::platform::{Atomic, Platform};
use crate::raw::RawFork;

/// A barrier: see the [module's page](self). 20 bytes.
#[derive(Debug)]
pub struct Barrier<P: Platform> {
    total: u32,
    arrived: P::U32,
    round: P::U32,
    list: WaitList<P>,
}

/// The state that the leader signals.
const COMPLETE: u32 = 1;

impl<P: Platform> Barrier<P> {
    /// Returns a barrier for `total` threads; 0 is treated as 1.
    pub const fn new(total: u32) -> Self {
        Barrier {
            total,
            arrived: Atomic::ZERO,
            round: Atomic::ZERO,
            list: WaitList::INIT,
        }
    }

    /// Waits until `total` threads have called this. Returns true in the last one of them.
    pub fn wait(&self) -> bool {
        let waiter = Waiter::<P>::new(self);
        let rank = P::rank();
        let waiters = self.list.lock();
        let arrived = self.arrived.load(Relaxed) + 1;
        if arrived >= self.total {
            self.complete(waiters);
            return true;
        }
        self.arrived.store(arrived, Relaxed);
        if let Some(waiter) = waiter {
            waiter.prepare();
            waiters.push_ranked(waiter.id(), rank);
            drop(waiters);
            waiter.sleep(&Limit::NONE);
        } else {
            let round = self.round.load(Relaxed);
            drop(waiters);
            // BA: acquire, pairs with BR.
            Limit::<P>::NONE.wait_without_node(|| self.round.load(Acquire) != round);
        }
        false
    }

    fn complete(&self, waiters: Waiters<'_, P>) {
        self.arrived.store(0, Relaxed);
        // BR: release, pairs with BA.
        self.round
            .store(self.round.load(Relaxed).wrapping_add(1), Release);
        let through = Batch::<P>::default();
        through.take_all(&waiters);
        drop(waiters);
        // B3
        through.wake(COMPLETE);
    }
}

// SAFETY: the list is all that names a node.
unsafe impl<P: Platform> RawFork for Barrier<P> {
    /// Begins the round anew: the threads that have arrived exist only in the parent.
    unsafe fn forget_waiters(&self) {
        self.arrived.store(0, Relaxed);
        self.list.forget();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toy::stage::actor;
    use crate::toy::{Point, SLOTS, Toy, as_thread, at, left};
    use std::boxed::Box;

    fn leak(total: u32) -> &'static Barrier<Toy> {
        Box::leak(Box::new(Barrier::new(total)))
    }

    #[test]
    fn the_last_to_arrive_is_the_leader_and_releases_the_others() {
        let barrier = leak(3);
        for _ in 0..2 {
            let [one, two] = [1, 2].map(|number| actor(number, move || assert!(!barrier.wait())));
            one.sleep();
            two.sleep();
            assert!(barrier.wait());
            one.end();
            two.end();
        }
        assert!(leak(1).wait() && leak(0).wait());
    }

    /// B3. Fails where `complete` signals each as it takes it out of the list: thread 1 is in the
    /// list again by then, and is taken for one of the first round.
    #[test]
    fn a_thread_may_arrive_again_before_the_rest_is_signalled() {
        let barrier = leak(3);
        let one = actor(1, move || {
            barrier.wait();
            barrier.wait();
        });
        let two = actor(2, move || _ = barrier.wait());
        one.sleep();
        two.sleep();
        let leader = actor(3, move || assert!(barrier.wait()));
        leader.to(Point::Kick); // It has signalled thread 1.
        one.startle();
        one.sleep();
        leader.end();
        two.end();
        one.startle();
        one.sleep();
        let more = [4, 5].map(|number| actor(number, move || _ = barrier.wait()));
        more[0].sleep();
        let [four, five] = more;
        five.end();
        four.end();
        one.end();
    }

    /// Fails where `complete` leaves `round` alone.
    #[test]
    fn a_thread_without_a_node_sees_the_round_change() {
        let barrier = leak(2);
        at(
            Point::Halt,
            move || assert!(as_thread(1, || barrier.wait())),
        );
        at(Point::Halt, || unreachable!("it sees the old round again"));
        assert!(!as_thread(SLOTS, || barrier.wait()));
        assert_eq!(left(), 1);
    }

    #[test]
    fn twenty_bytes() {
        assert_eq!(size_of::<Barrier<Toy>>(), 20);
    }
}
