//! The slow path, under the wait lock of a lock's list.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::class::{Rule, is_older};
use super::{LOCKED, NAME, WAITERS, WwMutex};
use crate::node::NodeId;
use crate::platform::{Atomic, Platform};
use crate::sleep::wait_list::{Limit, WAITING, Waiter, Waiters, kick, signal};

/// `Node::state`: the states of a waiter other than `WAITING`.
pub(super) const WOKEN: u32 = 1;
pub(super) const GRANTED: u32 = 2;

/// Bits of `Node::info`.
pub(super) const WOUNDED: u32 = 1;
pub(super) const HOLDS: u32 = 2;
pub(super) const BYPASSED: u32 = 4;

/// A thread that wants the lock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Party {
    /// Its name in the lock's word.
    pub(super) name: u32,
    /// Its context's stamp; 0 where it has no context, or one without a node.
    pub(super) stamp: usize,
    pub(super) rule: Rule,
    /// Its context holds other locks.
    pub(super) holds: bool,
}

impl Party {
    pub(super) const WITHOUT_CONTEXT: Self = Party {
        name: 0,
        stamp: 0,
        rule: Rule::WoundWait,
        holds: false,
    };
}

fn stamp<P: Platform>(id: NodeId) -> usize {
    id.node::<P>().lock.load(Relaxed)
}

fn info<P: Platform>(id: NodeId) -> u32 {
    id.node::<P>().info.load(Relaxed)
}

/// The lock, with its wait lock held.
struct LockedList<'a, P: Platform> {
    lock: &'a WwMutex<P>,
    list: Waiters<'a, P>,
}

impl<P: Platform> WwMutex<P> {
    fn lock_list(&self) -> LockedList<'_, P> {
        LockedList {
            list: self.waiters.lock(),
            lock: self,
        }
    }

    /// Acquires the lock, waiting in the list. Returns false where `me` has to be aborted.
    #[cold]
    pub(super) fn lock_slow(&self, waiter: &Waiter<P>, me: Party) -> bool {
        let locked = self.lock_list();
        // (*, *, w) -> (*, *, 1). WE: acquire, pairs with WU and with WA's release.
        if self.word.fetch_or(WAITERS, Acquire) & LOCKED == 0 {
            locked.take(me);
            return true;
        }
        locked.enter(waiter, me);
        if locked.must_give_up(waiter.id(), me) {
            locked.leave(waiter.id());
            return false;
        }
        locked.announce(waiter.id(), me);
        loop {
            let wounded = || me.holds && info::<P>(waiter.id()) & WOUNDED != 0;
            // It checks again under the wait lock, so a stale load does no harm.
            waiter.sleep_until(&Limit::NONE, || waiter.state() != WAITING || wounded());
            let locked = self.lock_list();
            if waiter.state() == GRANTED {
                return true; // Under the wait lock, so the unlocker is done with the lock.
            }
            if locked.word() & LOCKED == 0 {
                locked.list.unlink(waiter.id());
                locked.take(me);
                return true;
            }
            if locked.must_give_up(waiter.id(), me) {
                locked.leave(waiter.id());
                return false;
            }
            if waiter.state() == WOKEN {
                // Only this waiter writes the bit, but others WOUNDED.
                waiter.node().info.fetch_or(BYPASSED, Relaxed);
                waiter.prepare();
            }
        }
    }

    /// Takes a free lock while waiters are on their way to it.
    #[cold]
    pub(super) fn steal(&self, me: Party) -> bool {
        let locked = self.lock_list();
        let free = locked.word() == WAITERS;
        if free {
            locked.take(me);
        }
        free
    }

    /// Releases the lock, which `name` holds, while others wait.
    #[cold]
    pub(super) fn release_slow(&self, name: u32) {
        loop {
            let word = self.word.load(Relaxed);
            if word & !WAITERS != LOCKED | name {
                crate::check!(
                    false,
                    "unlock of a ww_mutex that another thread holds, or nobody"
                );
                return;
            }
            let locked = self.lock_list();
            if let Some(first) = locked.list.first() {
                return locked.release_to(first);
            }
            // The last waiter has left. The wait lock is released before the lock is free: the next
            // owner may free its memory.
            drop(locked);
            // (name, 1, 0) -> (-, 0, 0). WU: release, pairs with WA and WE.
            let released = self
                .word
                .compare_exchange(LOCKED | name, 0, Release, Relaxed);
            if released.is_ok() {
                return;
            }
        }
    }
}

impl<P: Platform> LockedList<'_, P> {
    fn word(&self) -> u32 {
        self.lock.word.load(Relaxed)
    }

    /// Sets the word to `holder`, with WAITERS where there are some. I1: WAITERS is set, so nobody
    /// else writes. Relaxed: other threads take the wait lock, or exchange a value that is not
    /// stored here.
    fn set(&self, holder: u32) {
        let waiters = self.list.first().map_or(0, |_| WAITERS);
        self.lock.word.store(holder | waiters, Relaxed);
    }

    /// Returns the stamp of the context that holds the lock, and its node.
    fn holder(&self) -> Option<(usize, NodeId)> {
        // A name of 0 or 1 is no node's.
        let id = NodeId::from_bits((self.word() & NAME) as u16)?;
        Some((stamp::<P>(id), id))
    }

    /// Iterates over the contexts in the list, the oldest first.
    fn contexts(&self) -> impl Iterator<Item = (usize, NodeId)> {
        (self.list.ids())
            .map(|id| (stamp::<P>(id), id))
            .filter(|&(stamp, _)| stamp != 0)
    }

    /// Puts a waiter into the list: behind all others, but before the contexts that are younger.
    fn enter(&self, waiter: &Waiter<P>, me: Party) {
        let node = waiter.node();
        waiter.prepare();
        if me.stamp == 0 {
            node.lock.store(0, Relaxed);
            node.info.store(0, Relaxed);
            return self.list.push_back(waiter.id());
        }
        // A wound may come at any time, from a lock that the context holds.
        node.info.fetch_and(WOUNDED, Relaxed);
        if me.holds {
            node.info.fetch_or(HOLDS, Relaxed);
        }
        let mut place = None;
        let mut at = self.list.last();
        while let Some(id) = at {
            match stamp::<P>(id) {
                0 => {}
                other if is_older(other, me.stamp) => break,
                _ => place = Some(id),
            }
            at = self.list.before(id);
        }
        self.list.insert_before(waiter.id(), place);
    }

    /// Whether the waiter, a context that holds other locks, might be part of a cycle, and is the
    /// one to leave it.
    fn must_give_up(&self, id: NodeId, me: Party) -> bool {
        match me.rule {
            _ if !me.holds => false,
            Rule::WoundWait => info::<P>(id) & WOUNDED != 0,
            // I5. Contexts before it are older.
            Rule::WaitDie => {
                let after = |holder| is_older(holder, me.stamp);
                self.holder().is_some_and(|(holder, _)| after(holder))
                    || self.contexts().next().is_some_and(|(_, first)| first != id)
            }
        }
    }

    /// Takes a waiter out of the list, while another thread holds the lock (I3).
    fn leave(&self, id: NodeId) {
        self.list.unlink(id);
        // (n, 1, 1) -> (n, 1, *)
        self.set(self.word() & (LOCKED | NAME));
    }

    /// Restores I4 and I5 for a new waiter in the list, and releases the wait lock.
    fn announce(self, id: NodeId, me: Party) {
        let kicked = match (me.rule, self.holder()) {
            _ if me.stamp == 0 => None,
            (Rule::WoundWait, Some((holder, node))) if me.holds && is_older(me.stamp, holder) => {
                self.wound(node)
            }
            (Rule::WoundWait, _) => None,
            // Waiters further behind have this one before them already (I5).
            (Rule::WaitDie, _) => {
                let mut behind = self.contexts().skip_while(|&(_, other)| other != id);
                let next = behind.nth(1);
                next.and_then(|(_, next)| self.notify_if_it_holds(next))
            }
        };
        self.unlock_and_kick(kicked);
    }

    /// Makes `me`, which is not in the list, the holder, restores I4 and I5, and releases the wait
    /// lock.
    fn take(self, me: Party) {
        // (-, 0, 1) -> (me, 1, *)
        self.set(LOCKED | me.name);
        let kicked = match me.rule {
            _ if me.stamp == 0 => None,
            Rule::WoundWait => {
                let mut older = self
                    .contexts()
                    .take_while(|&(stamp, _)| is_older(stamp, me.stamp));
                if older.any(|(_, id)| info::<P>(id) & HOLDS != 0) {
                    self.holder().and_then(|(_, own)| self.wound(own));
                }
                None // It is awake.
            }
            // The others have that one before them already (I5).
            Rule::WaitDie => match self.contexts().next() {
                Some((stamp, first)) if is_older(me.stamp, stamp) => self.notify_if_it_holds(first),
                _ => None,
            },
        };
        self.unlock_and_kick(kicked);
    }

    /// Unlocks: hands off to `first` if it was bypassed, or wakes it. Releases the wait lock.
    fn release_to(self, first: NodeId) {
        if info::<P>(first) & BYPASSED == 0 {
            // (n, 1, 1) -> (-, 0, 1)
            self.set(0);
            let kicked = self.notify(first);
            return self.unlock_and_kick(kicked);
        }
        self.list.unlink(first);
        let name = match stamp::<P>(first) {
            0 => Party::WITHOUT_CONTEXT.name,
            _ => u32::from(first.bits()),
        };
        // (n, 1, 1) -> (first, 1, *). It is the oldest context here, so I4 and I5 hold.
        self.set(LOCKED | name);
        signal::<P>(first, GRANTED);
        self.unlock_and_kick(Some(first));
    }

    /// Signals a waiter to check again. Returns the waiter to kick, unless it is on its way
    /// already.
    fn notify(&self, id: NodeId) -> Option<NodeId> {
        let asleep = id.node::<P>().state.load(Relaxed) == WAITING;
        if asleep {
            signal::<P>(id, WOKEN);
        }
        asleep.then_some(id)
    }

    fn notify_if_it_holds(&self, id: NodeId) -> Option<NodeId> {
        (info::<P>(id) & HOLDS != 0)
            .then(|| self.notify(id))
            .flatten()
    }

    /// Wounds the context that holds the lock (I2). Returns the node to kick, unless it was wounded
    /// before. It may sleep for another lock.
    fn wound(&self, holder: NodeId) -> Option<NodeId> {
        // Relaxed: the kick that follows publishes it (WK of `wait_list`).
        let before = holder.node::<P>().info.fetch_or(WOUNDED, Relaxed);
        (before & WOUNDED == 0).then_some(holder)
    }

    /// Releases the wait lock, then kicks.
    fn unlock_and_kick(self, kicked: Option<NodeId>) {
        drop(self.list);
        if let Some(id) = kicked {
            kick::<P>(id);
        }
    }
}
