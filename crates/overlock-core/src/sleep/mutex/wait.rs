//! The slow paths: spinning, sleeping, giving up, and waking.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::Mutex;
use super::policy::{Policy, WaiterSpin};
use super::states::Step;
use super::word::{self, FLAGS, HANDOFF, PICKUP, WAITERS};
use crate::links::{Links, backoff_sleep};
use crate::node::NodeId;
use crate::platform::{Atomic, Instant, Platform, Spin};
use crate::sleep::wait_list::{End, Limit, WAITING, Waiter, kick, signal};
use crate::stat::{self, Event};

/// `Node::state` of a sleeper that was woken and has not gone back to sleep.
const AWAKE: u32 = 1;

impl<P: Platform, Y: Policy> Mutex<P, Y> {
    /// Returns as the owner, or without the mutex once `limit` is reached.
    #[cold]
    pub(super) fn lock_slow(&self, limit: &Limit<'_, P>) -> bool {
        let for_ever = limit.is_for_ever();
        crate::check!(
            !(for_ever && word::is_mine::<P>(self.owner.load(Relaxed))),
            "a thread locks a mutex that it holds: it would wait for ever"
        );
        if self.take(None) {
            return true;
        }
        if limit.reached().is_some() {
            return false;
        }
        if self.spin_in_queue(None, Self::spin_end(limit)) {
            Step::SpinTakes.taken::<P>();
            stat::count::<P>(Event::MutexOptLock);
            return true;
        }
        Step::SpinInVain.taken::<P>();
        stat::count::<P>(Event::MutexOptFail);
        match Waiter::new() {
            Some(waiter) => self.wait(&waiter, limit),
            None => self.wait_without_node(limit),
        }
    }

    /// Takes the mutex if it is free, or was given to `id`.
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

    /// The caller becomes the owner of what [is for it](Self::may_take).
    fn exchange(&self, seen: u32) -> Result<u32, u32> {
        // (0; W) -> (me; W), or (me; WP) -> (me; W). MA: acquire, pairs with MU.
        let mine = word::mine::<P>() | seen & FLAGS & !PICKUP;
        self.owner
            .compare_exchange(seen, mine, Acquire, Relaxed)
            .inspect(|&seen| Step::of_taking(seen).taken::<P>())
    }

    /// The attempt of a sleeper that was woken. If it fails, the next unlock will hand over.
    pub(super) fn take_or_request(&self, id: NodeId) -> bool {
        let mut seen = self.owner.load(Relaxed);
        loop {
            let done = if Self::may_take(seen, Some(id)) {
                self.exchange(seen)
                    .inspect(|_| Step::WokenTakes.taken::<P>())
                    .map(|_| true)
            } else if seen & HANDOFF == 0 {
                // (a; W) -> (a; WH). Relaxed: only the unlock has to see it, and its exchange does.
                let requested = seen | HANDOFF;
                let result = self
                    .owner
                    .compare_exchange(seen, requested, Relaxed, Relaxed);
                result
                    .inspect(|_| Step::RequestHandoff.taken::<P>())
                    .map(|_| false)
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
        // The others stay away from the lock's cache line, but for the one sleeper that it may be
        // given to.
        let handed_off = || id.is_some_and(|id| word::is_handed_to(self.owner.load(Relaxed), id));
        // The next one in the queue becomes its head when this one has the mutex, or is about to
        // sleep.
        let head = self.spinners.lock(Spin::Until(end), handed_off);
        head.is_some_and(|_head| self.spin_on_owner(id, end))
    }

    /// Tries to take the mutex whenever it is for us, as long as its owner may be running.
    fn spin_on_owner(&self, id: Option<NodeId>, end: Instant) -> bool {
        loop {
            // Relaxed: the exchange acquires.
            let polled = P::wait_until(&self.owner, Relaxed, Spin::Until(end), |seen| {
                Self::may_take(seen, id) || P::preempted(word::cpu(seen))
            });
            match polled {
                Ok(seen) if Self::may_take(seen, id) => {
                    if self.exchange(seen).is_ok() {
                        return true;
                    }
                }
                _ => return false,
            }
        }
    }

    /// Sleeps in the list until the mutex is ours, or `limit` is reached.
    fn wait(&self, waiter: &Waiter<P>, limit: &Limit<'_, P>) -> bool {
        let id = waiter.id();
        self.join(waiter);
        // An unlock that came before `join` has woken nobody.
        let mut taken = self.take(Some(id));
        if taken {
            Step::JoinerTakes.taken::<P>();
        } else {
            Step::JoinerSleeps.taken::<P>();
        }
        while !taken {
            stat::count::<P>(Event::MutexSleep);
            if !matches!(waiter.sleep(limit), End::Signalled(_)) {
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
        // (*; ) -> (*; W). Relaxed: who sees it takes the guard.
        if self.owner.fetch_or(WAITERS, Relaxed) & WAITERS == 0 {
            Step::JoinFirst.taken::<P>();
        } else {
            Step::JoinBehind.taken::<P>();
        }
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
            Step::WokenSpinTakes.taken::<P>();
            stat::count::<P>(Event::MutexWaiterOptLock);
        }
        taken
    }

    /// Says that the sleeper has to be woken again, and makes the last attempt after that: the
    /// order is what "Why no wake-up is lost" rests on. What the sleeper has asked for stands
    /// (M2).
    fn prepare_to_sleep(&self, waiter: &Waiter<P>) -> bool {
        let list = self.sleepers.lock();
        waiter.prepare();
        drop(list);
        let taken = self.take(Some(waiter.id()));
        if taken {
            Step::LastAttemptTakes.taken::<P>();
        } else {
            Step::LastAttemptInVain.taken::<P>();
        }
        taken
    }

    /// `limit` is reached. The wake-up that came meanwhile was for all that wait, so the mutex is
    /// taken rather than left to nobody; and what was given to us is ours.
    pub(super) fn give_up(&self, id: NodeId) -> bool {
        let list = self.sleepers.lock();
        let taken = self.take(Some(id));
        if taken {
            Step::LimitTakes.taken::<P>();
        } else {
            Step::GiveUp.taken::<P>();
        }
        self.leave(&list, id);
        taken
    }

    /// Takes `id` out of the list, whose guard is held.
    fn leave(&self, list: &Links<P>, id: NodeId) {
        list.unlink(id);
        if list.first().is_none() {
            // (*; W..) -> (*; ). Relaxed: nobody is left to hand over to.
            self.owner.fetch_and(!FLAGS, Relaxed);
            Step::LeaveLast.taken::<P>();
        } else {
            Step::LeaveOthers.taken::<P>();
        }
    }

    /// Attempts, with naps between them: nobody can wake this thread, or hand over to it.
    #[cold]
    fn wait_without_node(&self, limit: &Limit<'_, P>) -> bool {
        stat::count::<P>(Event::LockNoNode);
        while !self.spin_on_owner(None, Self::spin_end(limit)) {
            if limit.reached().is_some() {
                return false;
            }
            backoff_sleep::<P>();
            Step::BackoffSleep.taken::<P>();
        }
        true
    }

    /// Unlocks where somebody waits, or did just now; `give`: hands over to the first sleeper even
    /// if it has not asked.
    #[cold]
    pub(super) fn unlock_slow(&self, fair: bool) {
        // Before the release: whoever owns the mutex next has to get past this guard before it can
        // free the mutex (M5).
        let list = self.sleepers.lock();
        let Some(first) = list.first() else {
            // The last sleeper has left meanwhile. The next owner would not meet the guard.
            drop(list);
            Step::UnlockAgain.taken::<P>();
            if !self.unlock_fast() {
                self.unlock_slow(fair);
            }
            return;
        };
        self.release(first, fair);
        // One that is awake will look again before it sleeps.
        let asleep = first.node::<P>().state.load(Relaxed) == WAITING;
        if asleep {
            signal::<P>(first, AWAKE);
        } else {
            Step::FindAwake.taken::<P>();
        }
        // The last access to the mutex (M5).
        drop(list);
        if asleep {
            kick::<P>(first);
        }
    }

    /// Frees the mutex, or gives it to `first`.
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
                Ok(_) if hands_off => {
                    Step::of_handoff(requested).taken::<P>();
                    return stat::count::<P>(Event::MutexHandoff);
                }
                Ok(_) => return Step::UnlockSleepers.taken::<P>(),
                Err(now) => seen = now,
            }
        }
    }
}
