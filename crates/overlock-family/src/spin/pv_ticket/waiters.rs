//! The sleepers of paravirtual ticket locks, by ticket: an unlock finds here the waiter to kick.
//!
//! The published backends keep one (lock, wanted ticket) pair a CPU and a bitmap of CPUs that wait.
//! An unlock scans the bitmap for the pair. With thousands of threads that scan is long. Here the
//! pair lives in the waiter's queue node, and the waiting nodes are in a hash table of cache lines
//! with the key (lock, ticket). An unlock reads one line, whatever the number of threads.
//! Neighbouring tickets of a lock fall into neighbouring lines, so the waiters of one lock spread
//! evenly.
//!
//! Nothing here waits or allocates. A full line refuses a newcomer, which then spins on instead of
//! sleeping: correct, and rare enough. So registering is wait-free and may happen in signal
//! handlers. A child of fork finds nothing locked. It finds the entries of its parent's sleepers,
//! which fill cells and attract kicks for nobody.
//!
//! # Invariants
//!
//! - W1: an entry stands in its line from before its waiter raises the lock's slow-path flag until
//!   after that waiter has stopped sleeping. Only the waiter removes it.
//! - W2: a waiter sleeps only on a node whose `lock` and `info` name the ticket that it waits for.
//! - W3: a kick goes to *every* entry of the line that matches: one that a fork left behind does
//!   not hide the sleeper.
//! - W4: the halt word, `Node::kicks`, only counts up, so a kick between entering and halting is
//!   never taken back by another waiter's business, and no kicker has to know what the node does
//!   now.
//!
//! # Orderings
//!
//! The accesses here are relaxed. A kicker must find an entry only if it saw the flag that its
//! waiter raised after registering. That read-modify-write of the lock's word is a release, and
//! pairs with the acquire of the unlock's own: it orders the entry before the search. A search
//! without the flag seen may miss the entry, and need not find it.

pub(crate) mod line;

use core::sync::atomic::Ordering::Relaxed;

use crate::tables::FamilyPlatform;
use line::CELLS;
use overlock_core::node::{NodeGuard, NodeId};
use overlock_core::platform::{Atomic, Kick, Platform};
use overlock_core::sleep::wait_list::KICK;

/// An entry of the table; its waiter removes it by dropping this.
#[derive(Debug)]
pub(crate) struct Entry<'a, P: Platform> {
    cell: &'static P::U32,
    guard: &'a NodeGuard<P>,
    /// The node's kicks before it was entered.
    kicks: u32,
}

impl<P: Platform> Entry<'_, P> {
    /// Sleeps until a kick has come since the node was entered, and returns for other reasons too.
    pub(super) fn halt(&self) {
        let node = self.guard.node();
        P::halt(&node.kicks, self.kicks, None);
    }
}

impl<P: Platform> Drop for Entry<'_, P> {
    fn drop(&mut self) {
        // W1: the caller is the waiter, and awake.
        self.cell.store(0, Relaxed);
    }
}

fn cells<P: FamilyPlatform>(lock: usize, ticket: u32) -> &'static [P::U32; CELLS] {
    let lines = P::family_tables().waiters;
    // The ticket is added afterwards, unmixed.
    let index = (u64::from(P::spread(lock)) + u64::from(ticket)) % lines.len() as u64;
    &lines[index as usize].cells
}

/// Enters the claimed node as waiting for `ticket` of the lock at address `lock`; `None` where the
/// line has no room. The caller raises the lock's flag after this (W1) and rechecks the lock before
/// it [halts](Entry::halt).
pub(crate) fn enter<P: FamilyPlatform>(
    lock: usize,
    ticket: u32,
    guard: &NodeGuard<P>,
) -> Option<Entry<'_, P>> {
    let node = guard.node();
    let kicks = node.kicks.load(Relaxed);
    // W2. No kicker relies on these before the flag orders them (see the module's page).
    node.info.store(ticket, Relaxed);
    node.lock.store(lock, Relaxed);
    let name = u32::from(guard.id().bits());
    let free = |cell: &&P::U32| {
        cell.load(Relaxed) == 0 && cell.compare_exchange(0, name, Relaxed, Relaxed).is_ok()
    };
    let cell = cells::<P>(lock, ticket).iter().find(free)?;
    Some(Entry { cell, guard, kicks })
}

/// Kicks whoever sleeps for `ticket` of the lock that lies, or lay, at address `lock`: the address
/// is only a key. Returns whether anybody was entered for it.
pub(crate) fn kick<P: FamilyPlatform>(lock: usize, ticket: u32) -> bool {
    let mut found = false;
    for cell in cells::<P>(lock, ticket) {
        let Some(id) = NodeId::from_bits(cell.load(Relaxed) as u16) else {
            continue;
        };
        let node = id.node::<P>();
        if node.lock.load(Relaxed) == lock && node.info.load(Relaxed) == ticket {
            // The node may have left this wait by now and serve another one, of any lock: then that
            // one's halt ends too early, which every halt may.
            node.kicks.fetch_add(KICK, Relaxed);
            P::kick(&node.kicks, Kick::One);
            found = true;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use overlock_core::toy::{Toy, as_thread, kicks};
    use std::vec::Vec;

    fn kicked(guard: &NodeGuard<Toy>) -> u32 {
        guard.node().kicks.load(Relaxed)
    }

    #[test]
    fn a_kick_reaches_the_waiter_of_that_ticket_alone() {
        let guards: Vec<_> = (0..4)
            .map(|thread| as_thread(thread, || NodeGuard::<Toy>::new().unwrap()))
            .collect();
        // Two locks, and two tickets that share a line.
        let keys = [
            (0x1000, 2),
            (0x1000, 2 + Toy::family_tables().waiters.len() as u32),
            (0x2000, 2),
            (0x2000, 4),
        ];
        let entries: Vec<_> = keys
            .iter()
            .zip(&guards)
            .map(|(&(lock, ticket), guard)| enter(lock, ticket, guard).unwrap())
            .collect();
        assert!(!kick::<Toy>(0x3000, 2));
        for (woken, (&(lock, ticket), guard)) in keys.iter().zip(&guards).enumerate() {
            assert_eq!(kicked(guard), 0);
            assert!(kick::<Toy>(lock, ticket));
            assert_eq!(kicked(guard), KICK);
            assert_eq!(kicks(), woken + 1);
        }
        // W4: a kick before the halt makes the halt return.
        entries.iter().for_each(Entry::halt);
        drop(entries);
        assert!(
            keys.iter()
                .all(|&(lock, ticket)| !kick::<Toy>(lock, ticket))
        );
    }

    /// W3: returning after the first match would leave the second of two equal entries asleep.
    #[test]
    fn a_stale_entry_does_not_hide_the_sleeper() {
        let [stale, sleeper] =
            [1, 2].map(|thread| as_thread(thread, || NodeGuard::<Toy>::new().unwrap()));
        let _left_by_fork = enter(0x1000, 6, &stale).unwrap();
        let _entry = enter(0x1000, 6, &sleeper).unwrap();
        assert!(kick::<Toy>(0x1000, 6));
        assert_eq!((kicked(&sleeper), kicks()), (KICK, 2));
    }

    #[test]
    fn a_full_line_refuses_and_an_emptied_cell_is_used_again() {
        let guard = NodeGuard::<Toy>::new().unwrap();
        let mut entries: Vec<_> = (0..CELLS)
            .map(|_| enter(0x1000, 8, &guard).unwrap())
            .collect();
        assert!(enter(0x1000, 8, &guard).is_none());
        entries.swap_remove(5);
        assert!(enter(0x1000, 8, &guard).is_some());
    }
}
