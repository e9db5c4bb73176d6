//! Slow paths: spinning, sleeping, giving up, and waking.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::KernelMutex;
use super::policy::{Policy, WaiterSpin};
use super::word::{self, FLAGS, HANDOFF, PICKUP, WAITERS};
use overlock_core::links::Links;
use overlock_core::node::NodeId;
use overlock_core::platform::{Atomic, Instant, Platform, Spin};
use overlock_core::sleep::wait_list::{Limit, WAITING, Waiter, kick, signal};
use overlock_core::stat::{self, Event};

/// `Node::state` of a sleeper that was woken and has not gone back to sleep.
const AWAKE: u32 = 1;

impl<P: Platform, Y: Policy> KernelMutex<P, Y> {
    /// Acquires by spinning and sleeping. Returns false once `limit` is reached.
    #[cold]
    pub(super) fn lock_slow(&self, limit: &Limit<'_, P>) -> bool {
        let for_ever = limit.is_for_ever();
        overlock_core::check!(
            !(for_ever && word::is_mine::<P>(self.owner.load(Relaxed))),
            "a thread locks a mutex that it holds: it would wait for ever"
        );
        if self.take(None) {
            return true;
        }
        if limit.is_reached() {
            return false;
        }
        if self.spin_in_queue(None, Self::spin_end(limit)) {
            stat::count::<P>(Event::MutexOptLock);
            return true;
        }
        stat::count::<P>(Event::MutexOptFail);
        match Waiter::in_word(self) {
            Some(waiter) => self.wait(&waiter, limit),
            None => limit.wait_without_node(|| self.spin_on_owner(None, Self::spin_end(limit))),
        }
    }

    /// Takes the mutex if it is free, or handed off to `id`.
    #[inline]
    pub(super) fn take(&self, id: Option<NodeId>) -> bool {
        let mut seen = self.owner.load(Relaxed);
        while Self::may_take(seen, id) {
            match self.exchange(seen) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    fn may_take(word: u32, id: Option<NodeId>) -> bool {
        word::is_free(word) || id.is_some_and(|id| word::is_handed_to(word, id))
    }

    /// Makes the caller the owner of a mutex that it [may take](Self::may_take).
    #[track_caller]
    fn exchange(&self, seen: u32) -> Result<u32, u32> {
        // (0; W) -> (me; W), or (me; WP) -> (me; W). MA: acquire, pairs with MU.
        let mine = word::mine::<P>() | seen & FLAGS & !PICKUP;
        self.owner.compare_exchange(seen, mine, Acquire, Relaxed)
    }

    /// The attempt of a woken sleeper. If it fails, the next unlock hands off to the sleeper.
    pub(super) fn take_or_request(&self, id: NodeId) -> bool {
        let mut seen = self.owner.load(Relaxed);
        loop {
            let done = if Self::may_take(seen, Some(id)) {
                self.exchange(seen).map(|_| true)
            } else if seen & HANDOFF == 0 {
                // (a; W) -> (a; WH). Relaxed: only the unlock has to see it, and its exchange does.
                let requested = seen | HANDOFF;
                let result = self
                    .owner
                    .compare_exchange(seen, requested, Relaxed, Relaxed);
                result.map(|_| false)
            } else {
                return false;
            };
            match done {
                Ok(taken) => return taken,
                Err(now) => seen = now,
            }
        }
    }

    fn spin_end(limit: &Limit<'_, P>) -> Instant {
        limit.earlier(P::now().plus_nanos(Y::SPIN_NS))
    }

    /// Watches the owner as the head of the spin queue.
    fn spin_in_queue(&self, id: Option<NodeId>, end: Instant) -> bool {
        // Others in the queue leave the lock's cache line alone, except for a sleeper that the
        // mutex may be handed off to.
        let handed_off = || id.is_some_and(|id| word::is_handed_to(self.owner.load(Relaxed), id));
        // The next in the queue becomes its head once this one owns the mutex, or is about to
        // sleep.
        let head = self.spinners.lock(Spin::Until(end), handed_off);
        head.is_some_and(|_head| self.spin_on_owner(id, end))
    }

    /// Takes the mutex once it may, as long as the owner may be running.
    pub(super) fn spin_on_owner(&self, id: Option<NodeId>, end: Instant) -> bool {
        loop {
            // Relaxed: the exchange acquires.
            let polled = P::wait_until(&self.owner, Relaxed, Spin::Until(end), |seen| {
                Self::may_take(seen, id) || P::preempted(word::cpu(seen))
            });
            let Ok(seen) = polled else { return false };
            if !Self::may_take(seen, id) {
                return false;
            }
            if self.exchange(seen).is_ok() {
                return true;
            }
            // The next wait polls before it reads the clock.
            if P::now() >= end {
                return false;
            }
        }
    }

    /// Sleeps in the list until the caller owns the mutex, or `limit` is reached.
    fn wait(&self, waiter: &Waiter<P>, limit: &Limit<'_, P>) -> bool {
        let id = waiter.id();
        self.join(waiter);
        // An unlock that came before `join` has woken nobody.
        let mut taken = self.take(Some(id));
        while !taken {
            stat::count::<P>(Event::MutexSleep);
            if waiter.sleep(limit).is_none() {
                return self.give_up(id);
            }
            taken = self.take_or_request(id)
                || self.spin_awake(id, limit)
                || self.prepare_to_sleep(waiter);
        }
        self.leave(&self.sleepers.lock(), id);
        true
    }

    pub(super) fn join(&self, waiter: &Waiter<P>) {
        let list = self.sleepers.lock();
        waiter.prepare();
        list.push_back(waiter.id());
        // (*; ) -> (*; W). Relaxed: an unlock that sees it takes the wait lock.
        self.owner.fetch_or(WAITERS, Relaxed);
    }

    /// The spin of a woken sleeper, by policy.
    fn spin_awake(&self, id: NodeId, limit: &Limit<'_, P>) -> bool {
        let end = Self::spin_end(limit);
        let taken = match Y::WAITER {
            WaiterSpin::Outside => self.spin_on_owner(Some(id), end),
            WaiterSpin::Inside => self.spin_in_queue(Some(id), end),
            WaiterSpin::Never => false,
        };
        if taken {
            stat::count::<P>(Event::MutexWaiterOptLock);
        }
        taken
    }

    /// Announces that the sleeper must be woken again, and then makes the last attempt. "Why no
    /// wake-up is lost" rests on this order. A handoff request of the sleeper stands (M2).
    fn prepare_to_sleep(&self, waiter: &Waiter<P>) -> bool {
        let list = self.sleepers.lock();
        waiter.prepare();
        drop(list);
        self.take(Some(waiter.id()))
    }

    /// Gives up at the limit, with a last attempt: a wake-up that came meanwhile was for all
    /// waiters, and the mutex may be handed off to this one. Returns whether the caller owns it.
    pub(super) fn give_up(&self, id: NodeId) -> bool {
        let list = self.sleepers.lock();
        let taken = self.take(Some(id));
        self.leave(&list, id);
        taken
    }

    /// Takes `id` out of the list. The caller holds the wait lock.
    fn leave(&self, list: &Links<P>, id: NodeId) {
        list.unlink(id);
        if list.first().is_none() {
            // (*; W..) -> (*; ). Relaxed: nobody is left to hand off to.
            self.owner.fetch_and(!FLAGS, Relaxed);
        }
    }

    /// Unlocks a mutex with waiters, or that had some just now. With `fair`, hands off to the first
    /// sleeper even without a request.
    #[cold]
    pub(super) fn unlock_slow(&self, fair: bool) {
        // Before the release: the next owner has to get past this wait lock before it can free the
        // mutex (M5).
        let list = self.sleepers.lock();
        let Some(first) = list.first() else {
            // The last sleeper has left meanwhile. The next owner would not meet the wait lock.
            drop(list);
            if !self.unlock_fast() {
                self.unlock_slow(fair);
            }
            return;
        };
        self.release(first, fair);
        // A sleeper that is awake makes a last attempt before it sleeps.
        let asleep = first.node::<P>().state.load(Relaxed) == WAITING;
        if asleep {
            signal::<P>(first, AWAKE);
        }
        // The last access to the mutex (M5).
        drop(list);
        if asleep {
            kick::<P>(first);
        }
    }

    /// Frees the mutex, or hands it off to `first`.
    fn release(&self, first: NodeId, fair: bool) {
        let mut seen = self.owner.load(Relaxed);
        loop {
            let requested = seen & HANDOFF != 0;
            let hands_off = fair || requested;
            let new = if hands_off {
                word::handed_to(first)
            } else {
                WAITERS
            };
            // (me; W) -> (0; W), or (me; WH) -> (first; WP). MU: release, pairs with MA.
            match self.owner.compare_exchange(seen, new, Release, Relaxed) {
                Ok(_) if hands_off => return stat::count::<P>(Event::MutexHandoff),
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }
}
