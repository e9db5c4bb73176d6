//! The nodes of single locks: of those that are a class of their own, and of those whose class is
//! followed one by one. A node is its lock's until [`sweep`] finds that the lock is gone.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};

use super::super::gate::Inside;
use super::super::tally;
use super::{ADDRESS, CLASSES, ClassId, LOCK, RECORDS, mix, record};

/// The first lock's node of each bucket, by a hash of the number; 0 for none. Written inside the
/// gate only.
static BUCKETS: [AtomicU32; BUCKET_COUNT] = [const { AtomicU32::new(0) }; BUCKET_COUNT];
const BUCKET_COUNT: usize = 1 << if cfg!(miri) { 6 } else { 14 };

/// One more than the highest node of a lock; the first free one below, or 0.
static END: AtomicU32 = AtomicU32::new(CLASSES as u32);
static FREE: AtomicU32 = AtomicU32::new(0);
/// Locks that are a class of their own, so far.
static OWN: AtomicU32 = AtomicU32::new(0);
/// Nodes of locks that are gone.
static GONE: AtomicU32 = AtomicU32::new(0);

/// Returns a number that no other lock has.
pub(in super::super) fn new_number() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    loop {
        let number = LAST.fetch_add(1, Relaxed) + 1;
        // A lock may keep the lower half, in which 0 stands for none.
        if number as u32 != 0 {
            return number % ADDRESS;
        }
    }
}

fn bucket(number: u64) -> &'static AtomicU32 {
    &BUCKETS[mix(number as usize) % BUCKET_COUNT]
}

/// Whether the lock with this number may have a node: a cheap filter, for the lock's owner.
pub(in super::super) fn may_have_node(number: u64) -> bool {
    // Relaxed: whoever makes the node has finished with the lock, before the owner ends it. A sweep
    // may hide the node for a moment. Then it stays, and no other lock has its number.
    bucket(number).load(Relaxed) != 0
}

/// Returns the node of the lock with this number, whether it is gone or not.
pub(in super::super) fn node_of(number: u64, _: &Inside<'_>) -> Option<u32> {
    let mut node = bucket(number).load(Relaxed);
    while node != 0 {
        let record = record(node)?;
        if record.number.load(Relaxed) == number {
            return Some(node);
        }
        node = record.next.load(Relaxed);
    }
    None
}

/// Returns the node of a single lock, a new one if there is none. `None` without room.
pub(in super::super) fn lock_node(class: ClassId, lock: usize, inside: &Inside<'_>) -> Option<u32> {
    if class.number() == 0 {
        return None;
    }
    if let Some(node) = node_of(class.number(), inside) {
        return Some(node);
    }
    let free = FREE.load(Relaxed);
    let node = match record(free).filter(|_| free != 0) {
        Some(record) => {
            FREE.store(record.next.load(Relaxed), Relaxed);
            free
        }
        None => {
            let end = END.load(Relaxed);
            RECORDS.make(end as usize)?;
            END.store(end + 1, Relaxed);
            end
        }
    };
    let record = record(node)?;
    let first = bucket(class.number());
    record.parent.store(class.node(), Relaxed);
    record.value.store(lock, Relaxed);
    record.number.store(class.number(), Relaxed);
    record.mark.store(false, Relaxed);
    record.kind.store(LOCK, Relaxed);
    record.next.store(first.load(Relaxed), Relaxed);
    first.store(node, Relaxed);
    Some(node)
}

/// Returns a class for a single lock. [`ClassId::NONE`] without room.
pub(in super::super) fn own_class(lock: usize, number: u64, inside: &Inside<'_>) -> ClassId {
    let Some(node) = lock_node(ClassId::new(0, number), lock, inside) else {
        return ClassId::NONE;
    };
    tally::add(|tally| &tally.classes);
    OWN.fetch_add(1, Relaxed);
    ClassId::new(node, number)
}

/// The lock with this number is gone.
pub(in super::super) fn end(number: u64, inside: &Inside<'_>) {
    let record = node_of(number, inside).and_then(record);
    if record.is_some_and(|record| !record.mark.swap(true, Relaxed)) {
        GONE.fetch_add(1, Relaxed);
    }
}

/// Whether so many locks are gone that their nodes are worth a search.
pub(in super::super) fn wants_sweep() -> bool {
    let end = END.load(Relaxed);
    let used = end - CLASSES as u32;
    let few = if cfg!(miri) { 16 } else { 4096 };
    GONE.load(Relaxed) >= (used / 2).max(few)
}

/// Whether any lock is gone whose node is not free.
pub(in super::super) fn any_gone() -> bool {
    GONE.load(Relaxed) != 0
}

/// Frees the nodes of the locks that are gone; nothing refers to them any more. Calls `each` for
/// each.
pub(in super::super) fn sweep(_: &Inside<'_>, mut each: impl FnMut(u32)) {
    for bucket in &BUCKETS {
        bucket.store(0, Relaxed);
    }
    FREE.store(0, Relaxed);
    GONE.store(0, Relaxed);
    for node in CLASSES as u32..END.load(Relaxed) {
        let Some(record) = record(node) else { continue };
        let list = if record.is_lock() && !record.mark.load(Relaxed) {
            bucket(record.number.load(Relaxed))
        } else {
            record.kind.store(0, Relaxed);
            record.number.store(0, Relaxed);
            each(node);
            &FREE
        };
        record.next.store(list.load(Relaxed), Relaxed);
        list.store(node, Relaxed);
    }
}

/// Returns the number of locks that are classes of their own.
pub(super) fn own() -> u32 {
    OWN.load(Relaxed)
}

/// Whether a node still stands for something: dependencies of a lock that is gone no longer count.
pub(in super::super) fn is_alive(node: u32) -> bool {
    node < CLASSES as u32 || record(node).is_some_and(|lock| !lock.mark.load(Relaxed))
}

/// Whether the lock with this number is not known to be gone.
pub(in super::super) fn is_known(number: u64, inside: &Inside<'_>) -> bool {
    node_of(number, inside).is_some_and(is_alive)
}

/// Returns the class of a node: itself, unless it is a lock of a class.
pub(in super::super) fn family(node: u32) -> u32 {
    match record(node) {
        Some(record) if record.is_lock() => match record.parent.load(Relaxed) {
            0 => node,
            parent => parent,
        },
        _ => node,
    }
}

/// Returns what a node is reported once as: its number, or that of the lock.
pub(in super::super) fn subject(node: u32) -> usize {
    match record(node) {
        Some(record) if record.is_lock() => {
            record.number.load(Relaxed) as usize | 1 << (usize::BITS - 1)
        }
        _ => node as usize,
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::GATE;
    use super::super::super::gate::Quiet;
    use super::*;

    #[test]
    fn the_node_of_a_lock_that_is_gone_becomes_anothers_after_a_sweep_only() {
        let quiet = Quiet::begin();
        let inside = GATE.enter(&quiet).unwrap();
        let [gone, stays] = [(); 2].map(|()| ClassId::new(0, new_number()));
        let node = lock_node(gone, 0x5000, &inside).unwrap();
        let other = lock_node(stays, 0x5000, &inside).unwrap();
        assert_ne!(node, other);
        end(gone.number(), &inside);
        assert!(!is_alive(node) && is_alive(other));
        assert!(!is_known(gone.number(), &inside));
        assert_eq!(node_of(gone.number(), &inside), Some(node));
        let mut freed = Vec::new();
        sweep(&inside, |node| freed.push(node));
        assert!(freed.contains(&node) && !freed.contains(&other));
        assert_eq!(node_of(gone.number(), &inside), None);
        assert_eq!(node_of(stays.number(), &inside), Some(other));
    }
}
