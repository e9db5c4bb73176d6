//! The waiters' side of the list: join, sleep, and leave with the lock or without.

use core::sync::atomic::Ordering::{Acquire, Relaxed};

use super::policy::Policy;
use super::{HANDOFF, HELD, RwSem, WAITERS, WOKEN, WRITER};
use overlock_core::links::Links;
use overlock_core::node::NodeId;
use overlock_core::platform::{Atomic, Platform};
use overlock_core::sleep::wait_list::{Limit, WAITING, Waiter, Waiters};
use overlock_core::stat::{self, Event};

/// `Node::info`: what a waiter wants.
pub(super) const GRANTED: u32 = 0;
pub(super) const WANTS_READ: u32 = 1;
pub(super) const WANTS_WRITE: u32 = 2;

/// `Node::state` of a signalled waiter: it owns the lock; or, for a writer, the lock is free.
pub(super) const HAS_IT: u32 = 1;
pub(super) const MAY_TRY: u32 = 2;

/// The result of an attempt of a queued writer.
enum Attempt {
    Acquired,
    /// It is the first, and nobody bypasses it from now on.
    RequestedHandoff,
    Failed,
}

/// Returns what the waiter `id` wants.
pub(super) fn wants<P: Platform>(id: NodeId) -> u32 {
    id.node::<P>().info.load(Relaxed)
}

impl<P: Platform, Y: Policy> RwSem<P, Y> {
    /// Joins the list, at its end. The caller checks the lock afterwards (I3).
    fn join(&self, list: &Links<P>, waiter: &Waiter<P>, wants: u32) {
        waiter.prepare();
        waiter.node().info.store(wants, Relaxed);
        waiter.node().lock.store(0, Relaxed);
        let first = list.first().is_none();
        list.push_back(waiter.id());
        if first {
            // f = 0 -> waiters. Relaxed: see the page's orderings.
            self.count.fetch_or(WAITERS, Relaxed);
        }
    }

    /// Returns the flags to clear when `id`, the first of the list, leaves. Handoff was its own.
    fn flags_of(list: &Links<P>, id: NodeId) -> u32 {
        if list.last() == Some(id) {
            WAITERS | HANDOFF
        } else {
            HANDOFF
        }
    }

    /// Leaves the list without the lock, and wakes the next in line.
    fn give_up(&self, list: Waiters<'_, P>, id: NodeId) {
        let flags = if list.first() == Some(id) {
            Self::flags_of(&list, id)
        } else {
            0
        };
        list.unlink(id);
        if flags != 0 {
            // Relaxed: it publishes nothing. The wait lock orders the list.
            self.count.fetch_and(!flags, Relaxed);
        }
        self.wake(list);
    }

    /// Acquires for reading by way of the list.
    pub(super) fn sleep_read(&self, limit: &Limit<'_, P>) -> bool {
        let Some(waiter) = Waiter::new(self) else {
            return limit.wait_without_node(|| self.take_read().is_ok());
        };
        let list = self.waiters.lock();
        // RA, in `take_read`: the published lock once had no acquire here.
        if list.first().is_none() && self.take_read().is_ok() {
            stat::count::<P>(Event::RwsemRlockFast);
            return true;
        }
        self.join(&list, &waiter, WANTS_READ);
        self.wake(list);
        if waiter.state() == WAITING {
            stat::count::<P>(Event::RwsemSleepReader);
        }
        let acquired = self.sleep_until_granted(&waiter, limit);
        stat::count::<P>(if acquired {
            Event::RwsemRlock
        } else {
            Event::RwsemRlockFail
        });
        acquired
    }

    /// Sleeps until granted, or until `limit`; the waiter is out of the list in both cases.
    fn sleep_until_granted(&self, waiter: &Waiter<P>, limit: &Limit<'_, P>) -> bool {
        if waiter.sleep(limit).is_some() {
            return true;
        }
        let list = self.waiters.lock();
        let granted = wants::<P>(waiter.id()) == GRANTED;
        if granted {
            // The waker still has the node, and is about to signal.
            drop(list);
            waiter.sleep(&Limit::NONE);
        } else {
            self.give_up(list, waiter.id());
        }
        granted
    }

    /// Acquires for writing by way of the list.
    pub(super) fn sleep_write(&self, limit: &Limit<'_, P>) -> bool {
        let Some(waiter) = Waiter::new(self) else {
            return limit.wait_without_node(|| self.take_write());
        };
        let mut list = self.waiters.lock();
        self.join(&list, &waiter, WANTS_WRITE);
        loop {
            let attempt = self.take_queued(&list, &waiter);
            if let Attempt::Acquired = attempt {
                stat::count::<P>(Event::RwsemWlock);
                return true;
            }
            if limit.is_reached() {
                stat::count::<P>(Event::RwsemWlockFail);
                self.give_up(list, waiter.id());
                return false;
            }
            waiter.prepare();
            drop(list);
            let requested = matches!(attempt, Attempt::RequestedHandoff);
            if !(requested && self.spin_alone(limit)) {
                stat::count::<P>(Event::RwsemSleepWriter);
                waiter.sleep(limit);
            }
            list = self.waiters.lock();
        }
    }

    /// Tries to acquire for a queued writer, under the wait lock. On success it leaves the list.
    fn take_queued(&self, list: &Links<P>, waiter: &Waiter<P>) -> Attempt {
        let id = waiter.id();
        let first = list.first() == Some(id);
        let was_woken = if waiter.state() == MAY_TRY { WOKEN } else { 0 };
        let mut seen = self.count.load(Relaxed);
        loop {
            let takes = first && seen & HELD == 0;
            let next = if takes {
                // (0, 0) f -> (1, 0) f without our flags
                (seen | WRITER) & !(Self::flags_of(list, id) | was_woken)
            } else {
                // (w, n) woken -> (w, n): the holder's release wakes again. It must not come
                // between load and exchange (I3).
                seen & !was_woken
            };
            if next == seen {
                break;
            }
            // WA: acquire, pairs with WU and RU.
            match self
                .count
                .compare_exchange_weak(seen, next, Acquire, Relaxed)
            {
                Ok(_) if takes => {
                    list.unlink(id);
                    self.set_owner();
                    return Attempt::Acquired;
                }
                Ok(_) => break,
                Err(now) => seen = now,
            }
        }
        if first && self.handoff_is_due(id) {
            self.request_handoff(id);
            return Attempt::RequestedHandoff;
        }
        Attempt::Failed
    }

    /// Whether the first of the list, which cannot be served now, may request the handoff. Its wait
    /// counts from the first such call.
    pub(super) fn handoff_is_due(&self, first: NodeId) -> bool {
        let now = (P::now().as_nanos() / 1000) as usize;
        let due = &first.node::<P>().lock;
        match due.load(Relaxed) {
            0 => {
                let wait = (Y::HANDOFF_NS / 1000) as usize;
                due.store(now.wrapping_add(wait).max(1), Relaxed);
                false
            }
            // By the difference: microseconds in 32 bits wrap after 71 minutes.
            due => now.wrapping_sub(due) as isize >= 0,
        }
    }

    pub(super) fn request_handoff(&self, first: NodeId) {
        // f -> f, handoff. Relaxed: later releases find it, and the rest is under the wait lock.
        if self.count.fetch_or(HANDOFF, Relaxed) & HANDOFF == 0 {
            stat::count::<P>(match wants::<P>(first) {
                WANTS_WRITE => Event::RwsemWlockHandoff,
                _ => Event::RwsemRlockHandoff,
            });
        }
    }
}
