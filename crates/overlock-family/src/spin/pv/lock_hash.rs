//! The lock hash: from a lock to the waiter that its unlocker has to kick.
//!
//! A paravirtual queued lock is 4 bytes and has no room for the name of the waiter that sleeps at
//! the head of its queue. The waiter, or the thread that makes it the head, enters the pair (lock,
//! node) here and marks the lock. The unlocker that meets the mark takes the entry out, releases
//! the lock and kicks.
//!
//! # Layout
//!
//! Lines of four buckets, a cache line each. A lock's address selects the line to start from; from
//! there buckets are tried one after another, round the table.
//!
//! # Invariants
//!
//! - H1: a lock has at most one entry. The lock sees to that: only the head of a queue gets one,
//!   and the entry is taken out before the lock is released. (A child of fork may find the entry of
//!   one of its parent's sleepers, and make another lock at the same address: the new lock's entry
//!   takes the place of the old one.)
//! - H2: a node is in at most one entry, so the table, with four buckets a slot, is never full.
//!   (The type of [`Storage`](crate::tables::Storage) gives it as many lines as there are slots.)
//! - H3: an entry may lie behind a hole, since taking one out leaves no mark. So a search does not
//!   stop at an empty bucket. It ends at the entry: nobody searches for a lock without one.
//!
//! No operation waits for another thread: a search for a free bucket is repeated only where others
//! have moved it. So the table works in signal handlers and after fork.
//!
//! # Orderings
//!
//! - HF, the release store that empties a bucket, pairs with HT, the acquire exchange that takes
//!   it: the last reader of the node's name is done before the next writer.
//! - That an entry is seen by the search for it is the lock's business: entering it comes before
//!   the unlock whose mark sends the unlocker here, in the unlocker's own thread or through the
//!   mark's release store.

pub(crate) mod line;

use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed};

use crate::tables::FamilyPlatform;
use line::Bucket;
use overlock_core::node::NodeId;
use overlock_core::platform::Atomic;
use overlock_core::stat::{self, Event};

/// Enters (`lock`, `node`) and returns the bucket. The caller has synchronised with whoever took
/// the lock's last entry out.
pub(crate) fn insert<P: FamilyPlatform, L>(lock: &L, node: NodeId) -> &'static Bucket<P> {
    let mut hops = 0;
    loop {
        for bucket in probe::<P>(key(lock)) {
            hops += 1;
            // HT: empty -> (lock, -). Acquire, pairs with HF.
            let taken = bucket.lock.compare_exchange(0, key(lock), Acquire, Relaxed);
            let left_by_fork = taken == Err(key(lock));
            if taken.is_ok() || left_by_fork {
                overlock_core::check!(
                    !left_by_fork || bucket.node.load(Relaxed) != u32::from(node.bits()),
                    "a waiter was entered into the lock hash twice"
                );
                // (lock, *) -> (lock, node). Relaxed: see the last point under Orderings.
                bucket.node.store(u32::from(node.bits()), Relaxed);
                stat::count_many::<P>(Event::PvHashHops, hops);
                return bucket;
            }
        }
        // H2: one was always free. Others have taken those ahead of this search, and left some
        // behind it.
    }
}

/// Takes the entry of `lock` out and returns its node; `None` if there is none.
pub(crate) fn remove<P: FamilyPlatform, L>(lock: &L) -> Option<NodeId> {
    // Relaxed: the caller has synchronised with whoever entered it, and an entry that somebody else
    // enters or takes out meanwhile is another lock's, now and before (H1).
    let bucket = probe::<P>(key(lock)).find(|bucket| bucket.lock.load(Relaxed) == key(lock))?;
    let node = bucket.node.load(Relaxed) as u16;
    bucket.clear();
    NodeId::from_bits(node)
}

fn key<L>(lock: &L) -> usize {
    ptr::from_ref(lock).addr()
}

/// Every bucket once, from the first one of the key's line on.
fn probe<P: FamilyPlatform>(key: usize) -> impl Iterator<Item = &'static Bucket<P>> {
    let lines = P::family_tables().lock_hash;
    // As a fraction, times the number of lines.
    let start = ((u64::from(P::spread(key)) * lines.len() as u64) >> 32) as usize;
    let (before, from) = lines.split_at(start);
    from.iter().chain(before).flat_map(|line| &line.0)
}

/// How many entries `lock` has.
#[cfg(test)]
pub(crate) fn entries<P: FamilyPlatform, L>(lock: &L) -> usize {
    probe::<P>(key(lock))
        .filter(|bucket| bucket.lock.load(Relaxed) == key(lock))
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use overlock_core::node::CONTEXTS;
    use overlock_core::toy::watch::{Access, Watch, before, left, watch};
    use overlock_core::toy::{SLOTS, Toy};
    use std::vec::Vec;

    /// As many locks as there are buckets: nearly all collide.
    fn fill(locks: &[u32]) {
        for (index, lock) in locks.iter().enumerate() {
            insert::<Toy, _>(lock, NodeId::new(index / CONTEXTS, index % CONTEXTS));
        }
    }

    #[test]
    fn every_node_can_sleep_at_once() {
        let locks = [0_u32; SLOTS * CONTEXTS];
        fill(&locks);
        for (index, lock) in locks.iter().enumerate().rev() {
            let node = NodeId::new(index / CONTEXTS, index % CONTEXTS);
            assert_eq!(remove::<Toy, _>(lock), Some(node));
            assert_eq!(remove::<Toy, _>(lock), None);
        }
    }

    /// H2. Another thread takes the only free bucket just before the search comes to it, and a
    /// third one leaves a bucket behind the search. Fails where `insert` searches once.
    #[test]
    fn a_search_that_misses_the_free_bucket_is_repeated() {
        let lock = 0_u32;
        let buckets: Vec<_> = probe::<Watch>(key(&lock)).collect();
        let [first, .., last] = buckets[..] else {
            panic!("there are several");
        };
        let others_take = |bucket: &Bucket<Watch>| bucket.lock.store(1, Relaxed);
        buckets.iter().for_each(|bucket| others_take(bucket));
        last.clear();
        watch(last);
        before(Access::Exchange, move || {
            others_take(last);
            first.clear();
        });
        let entered = insert::<Watch, _>(&lock, NodeId::new(0, 0));
        assert!(ptr::eq(entered, first));
        assert_eq!(left(), 0);
    }

    /// H1 after a fork. Fails where `insert` goes past an entry of its own lock (no
    /// `left_by_fork`): the search finds the one that its parent's thread has left.
    #[test]
    fn an_entry_that_a_fork_left_behind_is_replaced() {
        let lock = 0_u32;
        let [old, new] = [1, 2].map(|slot| NodeId::new(slot, 0));
        insert::<Toy, _>(&lock, old);
        insert::<Toy, _>(&lock, new);
        assert_eq!(entries::<Toy, _>(&lock), 1);
        assert_eq!(remove::<Toy, _>(&lock), Some(new));
        assert_eq!(remove::<Toy, _>(&lock), None);
    }

    /// H3. Fails where `remove` gives up at the first empty bucket
    /// (`take_while(|bucket| bucket.lock.load(Relaxed) != 0)` before its `find`).
    #[test]
    fn an_entry_behind_a_hole_is_found() {
        let locks = [0_u32; SLOTS * CONTEXTS];
        fill(&locks);
        // Every other one leaves a hole; whoever is left lies behind some of them.
        let (stay, leave): (Vec<_>, Vec<_>) =
            locks.iter().enumerate().partition(|(i, _)| i % 2 == 0);
        for (_, lock) in leave {
            assert!(remove::<Toy, _>(lock).is_some());
        }
        for (index, lock) in stay {
            let node = NodeId::new(index / CONTEXTS, index % CONTEXTS);
            assert_eq!(entries::<Toy, _>(lock), 1);
            assert_eq!(remove::<Toy, _>(lock), Some(node));
        }
    }
}
