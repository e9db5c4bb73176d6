//! The wakers' side of the list: which waiters get in, and the order of their signals.

use core::sync::atomic::Ordering::{Acquire, Relaxed};

use super::policy::Policy;
use super::queue::{
    GRANTED, HAS_IT, MAY_TRY, WANTS_READ, WANTS_UPGRADABLE, WANTS_UPGRADE, WANTS_WRITE, wants,
};
use super::states::Step;
use super::word::{READ, UPGRADABLE_READ};
use super::{FULL, HANDOFF, HELD, READERS, RwSem, UPGRADABLE, WAITERS, WOKEN, WRITER};
use overlock_core::links::Links;
use overlock_core::node::NodeId;
use overlock_core::platform::{Atomic, Platform};
use overlock_core::sleep::batch::Batch;
use overlock_core::sleep::wait_list::{Waiters, kick, signal};
use overlock_core::stat::{self, Event};

/// The waiters that a grant of shares lets in: the readers of the whole list, in their order, and
/// the first upgradable one, where there is none yet.
///
/// Only the readers up to the first writer get in where the list begins with an upgradable one that
/// has to wait: otherwise later readers would bypass that writer again and again.
struct Grantees<'a, P: Platform> {
    list: &'a Links<P>,
    next: Option<NodeId>,
    left: usize,
    /// There is no upgradable reader yet.
    upgradable: bool,
    past_writers: bool,
    /// A waiter was left out.
    skipped: bool,
}

impl<'a, P: Platform> Grantees<'a, P> {
    fn new(list: &'a Links<P>, first: NodeId, upgradable: bool, most: usize) -> Self {
        Grantees {
            list,
            next: Some(first),
            left: most,
            upgradable,
            past_writers: upgradable || wants::<P>(first) == WANTS_READ,
            skipped: false,
        }
    }
}

/// The caller may take the yielded nodes out of the list.
impl<P: Platform> Iterator for Grantees<'_, P> {
    type Item = NodeId;

    fn next(&mut self) -> Option<NodeId> {
        while let Some(id) = self.next.filter(|_| self.left > 0) {
            self.next = self.list.after(id);
            let grantee = match wants::<P>(id) {
                WANTS_READ => true,
                WANTS_UPGRADABLE => core::mem::take(&mut self.upgradable),
                _ => {
                    if !self.past_writers {
                        self.left = 0;
                    }
                    false
                }
            };
            if grantee {
                self.left -= 1;
                return Some(id);
            }
            self.skipped = true;
        }
        None
    }
}

/// The change of `count` by a grant to all grantees.
struct Grant {
    adds: u32,
    number: u64,
    with_first: bool,
    /// Flags that nobody needs after it.
    clears: u32,
}

impl Grant {
    fn new<P: Platform>(mut grantees: Grantees<'_, P>) -> Self {
        let with_first = grantees.past_writers;
        let (mut adds, mut number) = (0, 0);
        for id in &mut grantees {
            number += 1;
            adds += match wants::<P>(id) {
                WANTS_READ => READ.adds,
                _ => UPGRADABLE_READ.adds,
            };
        }
        let clears = if grantees.next.is_none() && !grantees.skipped {
            WAITERS | HANDOFF
        } else if with_first {
            HANDOFF
        } else {
            0
        };
        Grant {
            adds,
            number,
            with_first,
            clears,
        }
    }
}

impl<P: Platform, Y: Policy> RwSem<P, Y> {
    /// Lets in the waiters that the lock can serve, and requests the handoff for a first that has
    /// waited long enough. Needed after each change that may let a waiter in (I3); harmless
    /// otherwise.
    pub(super) fn wake(&self, list: Waiters<'_, P>) {
        let Some(first) = list.first() else { return };
        let batch = Batch::default();
        let served = match wants::<P>(first) {
            WANTS_WRITE => return self.wake_writer(list, first),
            WANTS_UPGRADE => {
                self.grant_upgrade(&list, first, &batch);
                true // Nobody bypasses an upgrader: it needs no handoff.
            }
            _ => self.grant_shares(&list, first, &batch),
        };
        if !served {
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
            Step::WakeWriter.taken::<P>();
            // It stays in the list until it owns the lock, or gives up.
            signal::<P>(first, MAY_TRY);
            drop(list);
            kick::<P>(first);
        }
    }

    /// Grants the upgrade, once all other readers have left.
    fn grant_upgrade(&self, list: &Links<P>, first: NodeId, batch: &Batch<P>) {
        if self.count.load(Relaxed) & READERS == 0 {
            let flags = Self::flags_of(list, first);
            // (1, 1, 0) -> (1, 0, 0). UA: acquire, pairs with RU.
            self.count.fetch_and(!(UPGRADABLE | flags), Acquire);
            Step::UpgradeGranted.taken::<P>();
            Self::grant(list, first, batch);
        }
    }

    /// Lets in the [grantees](Grantees). Returns whether the first of the list is among them.
    fn grant_shares(&self, list: &Links<P>, first: NodeId, batch: &Batch<P>) -> bool {
        let mut seen = self.count.load(Relaxed);
        loop {
            let upgradable = seen & UPGRADABLE == 0;
            let grantees = || Grantees::new(list, first, upgradable, Y::BATCH);
            if seen & (WRITER | FULL) != 0 {
                return false;
            }
            let grant = Grant::new(grantees());
            if grant.number == 0 {
                return false;
            }
            // (0, u, n) f -> (0, u or 1, n + adds) f without their flags. GA: acquire, pairs with
            // WU. All are readers before the first of them is signalled (I4).
            let next = (seen + grant.adds) & !grant.clears;
            match self.count.compare_exchange(seen, next, Acquire, Relaxed) {
                Ok(_) => {
                    Step::Grant.taken::<P>();
                    stat::count_many::<P>(Event::RwsemWakeReader, grant.number);
                    grantees().for_each(|id| Self::grant(list, id, batch));
                    return grant.with_first;
                }
                Err(now) => seen = now,
            }
        }
    }

    /// Moves a granted waiter to the batch of those to signal.
    fn grant(list: &Links<P>, id: NodeId, batch: &Batch<P>) {
        list.unlink(id);
        id.node::<P>().info.store(GRANTED, Relaxed);
        batch.push(id);
    }
}
