//! The wakers' side of the list: which waiters get in, and the order of their signals.

use core::sync::atomic::Ordering::{Acquire, Relaxed};

use super::policy::Policy;
use super::queue::{GRANTED, HAS_IT, MAY_TRY, WANTS_READ, WANTS_WRITE, wants};
use super::{FULL, HANDOFF, HELD, READER, RwSem, WAITERS, WOKEN, WRITER};
use overlock_core::links::Links;
use overlock_core::node::NodeId;
use overlock_core::platform::{Atomic, Platform};
use overlock_core::sleep::wait_list::{Batch, Waiters, kick, signal};
use overlock_core::stat::{self, Event};

impl<P: Platform, Y: Policy> RwSem<P, Y> {
    /// Lets in the waiters that the lock can serve, and requests the handoff for a first that has
    /// waited long enough. Needed after each change that may let a waiter in (I3); harmless
    /// otherwise.
    pub(super) fn wake(&self, list: Waiters<'_, P>) {
        let Some(first) = list.first() else { return };
        let batch = Batch::default();
        if wants::<P>(first) == WANTS_WRITE {
            return self.wake_writer(list, first);
        }
        if !self.grant_reads(&list, &batch) {
            self.request_handoff_if_due(first);
        }
        drop(list);
        batch.wake(HAS_IT);
    }

    /// Requests the handoff for a first that could not be served, once it is due.
    fn request_handoff_if_due(&self, first: NodeId) {
        if self.handoff_is_due(first) {
            self.request_handoff(first);
        }
    }

    /// Wakes the first, a writer, where the lock is free.
    fn wake_writer(&self, list: Waiters<'_, P>, first: NodeId) {
        let seen = self.count.load(Relaxed);
        if seen & HELD != 0 {
            self.request_handoff_if_due(first);
        } else if seen & WOKEN == 0 {
            stat::count::<P>(Event::RwsemWakeWriter);
            // f -> f, woken. Relaxed: a waker that misses it wakes again, in vain.
            self.count.fetch_or(WOKEN, Relaxed);
            // It stays in the list until it owns the lock, or gives up.
            signal::<P>(first, MAY_TRY);
            drop(list);
            kick::<P>(first);
        }
    }

    /// Lets in the readers of the whole list, whose first is one of them. Returns whether it could.
    fn grant_reads(&self, list: &Links<P>, batch: &Batch<P>) -> bool {
        let wants_read = |&id: &NodeId| wants::<P>(id) == WANTS_READ;
        let readers = || list.ids().filter(wants_read).take(Y::BATCH);
        let mut seen = self.count.load(Relaxed);
        while seen & (WRITER | FULL) == 0 {
            let number = readers().count();
            // Handoff was the first's own. Both flags go with the last waiter.
            let clears = if list.ids().nth(number).is_none() {
                WAITERS | HANDOFF
            } else {
                HANDOFF
            };
            // (0, n) f -> (0, n + number) f without these flags. GA: acquire, pairs with WU. All
            // are readers before the first of them is signalled (I4).
            let next = (seen + number as u32 * READER) & !clears;
            match self.count.compare_exchange(seen, next, Acquire, Relaxed) {
                Ok(_) => {
                    stat::count_many::<P>(Event::RwsemWakeReader, number as u64);
                    for id in readers() {
                        list.unlink(id);
                        id.node::<P>().info.store(GRANTED, Relaxed);
                        batch.push(id);
                    }
                    return true;
                }
                Err(now) => seen = now,
            }
        }
        false
    }
}
