//! The locks that each thread holds and waits for.
//!
//! A thread takes a record when it first meets the validator and gives it back in
//! [`thread_exits`](super::thread_exits). Only the thread itself writes its record, except that
//! other threads remove locks of its that they release. They read it when they search for a
//! deadlock.
//!
//! - T1: a lock that the stack shows as held is held. An entry is written after the lock was
//!   acquired and cleared before it is released, by the thread, or by the one that releases it in
//!   its place.
//! - T2: entries at and above `depth` are empty. An entry that is released below the top, or by
//!   another thread, leaves a hole, which goes with the top. So no entry ever moves.
//! - T3: a signal handler that interrupts the thread inside the validator finds `busy` set, and its
//!   acquisitions are not seen. It releases them before it returns, so nothing is left over.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize};

use overlock_linux::__private::calls::thread_id;

use super::class::ClassId;
use super::site::{How, Site};
use super::{lives, settings};

pub(super) use table::{
    Entered, UNSEEN, all, are_several, enter, enter_known, give, is_idle, last_class, leave, lose,
    only_this_is_left, set_hook,
};

/// The largest number of locks that a thread can be seen to hold.
pub(super) const DEPTH: usize = 64;

/// The largest number of threads that are seen at a time.
pub(super) const THREADS: usize = if cfg!(miri) { 16 } else { 4096 };

/// A held lock as other threads see it. Passed by reference at each acquisition: a copy is loaded
/// in wider pieces than the original was just stored in, which stalls the processor.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    /// Its address.
    pub lock: usize,
    /// Its class, and its number if it has one.
    pub class: ClassId,
    /// How it is held.
    pub how: How,
    /// The place of its acquisition.
    pub site: Site,
}

pub(super) struct Entry {
    /// 0 for a hole.
    lock: AtomicUsize,
    class: AtomicU64,
    site: AtomicUsize,
    /// How it is held, and acquisitions beyond the first (from bit 32), of recursive locks.
    rest: AtomicU64,
}

impl Entry {
    #[inline]
    pub(super) fn lock(&self) -> usize {
        self.lock.load(Relaxed)
    }

    #[inline]
    fn class(&self) -> ClassId {
        ClassId::from_bits(self.class.load(Relaxed))
    }

    #[inline]
    pub(super) fn class_and_how(&self) -> (ClassId, How) {
        let how = How::from_bits(self.rest.load(Relaxed) as u8);
        (self.class(), how)
    }

    #[inline]
    pub(super) fn get(&self) -> Option<Held> {
        // Acquire: pairs with `push`, so that the other fields belong to this lock (for other
        // threads).
        let lock = self.lock.load(Acquire);
        if lock == 0 {
            return None;
        }
        let (class, how) = self.class_and_how();
        Some(Held {
            lock,
            class,
            how,
            site: Site::from_bits(self.site.load(Relaxed)),
        })
    }
}

/// One acquisition more, in [`Entry::rest`].
const AGAIN: u64 = 1 << 32;

impl Held {
    /// Whether the two are one lock: not if one has come to lie where the other lay.
    #[inline]
    pub(super) fn is_same(&self, other: &Held) -> bool {
        let [one, two] = [self, other].map(|held| held.class.number());
        self.lock == other.lock && (one == two || one == 0 || two == 0)
    }
}

/// A thread's wait.
pub(super) struct Wait {
    /// 0 for nothing. Written last.
    pub(super) lock: AtomicUsize,
    pub(super) site: AtomicUsize,
    pub(super) class: AtomicU64,
    pub(super) how: AtomicU8,
    /// When it began, in nanoseconds.
    pub(super) since: AtomicU64,
    /// Changes with every beginning and end.
    pub(super) number: AtomicU32,
    /// The number of the wait that a deadlock was told of last.
    pub(super) told: AtomicU32,
}

#[repr(align(128))]
pub(super) struct Thread {
    /// The kernel's name for the thread; 0 for a free record.
    id: AtomicU32,
    busy: AtomicBool,
    depth: AtomicU32,
    /// Its [life](super::lives); 0 before it has taken a lock while it held one.
    life: AtomicU32,
    /// The signals in whose handlers the thread is, as bits.
    signals: AtomicU64,
    /// The lock that the thread took last while it held no other. Its class is in the first entry,
    /// whether or not it is held still.
    last: AtomicUsize,
    pub(super) wait: Wait,
    held: [Entry; DEPTH],
}

impl Thread {
    #[allow(clippy::declare_interior_mutable_const)] // each use is a new record, as intended
    const INIT: Thread = Thread {
        id: AtomicU32::new(0),
        busy: AtomicBool::new(false),
        depth: AtomicU32::new(0),
        life: AtomicU32::new(0),
        signals: AtomicU64::new(0),
        last: AtomicUsize::new(0),
        wait: Wait {
            lock: AtomicUsize::new(0),
            site: AtomicUsize::new(0),
            class: AtomicU64::new(0),
            how: AtomicU8::new(0),
            since: AtomicU64::new(0),
            number: AtomicU32::new(0),
            told: AtomicU32::new(0),
        },
        held: [const {
            Entry {
                lock: AtomicUsize::new(0),
                class: AtomicU64::new(0),
                site: AtomicUsize::new(0),
                rest: AtomicU64::new(0),
            }
        }; DEPTH],
    };

    pub(super) fn id(&self) -> u32 {
        self.id.load(Relaxed)
    }

    /// Returns the life of the calling thread, whose record this is.
    #[inline]
    pub(super) fn life(&self) -> u32 {
        match self.life.load(Relaxed) {
            0 => self.begin(),
            life => life,
        }
    }

    #[cold]
    fn begin(&self) -> u32 {
        let life = match settings::tells_threads_apart() {
            true => lives::begin(),
            false => lives::ANY,
        };
        self.life.store(life, Relaxed);
        life
    }

    /// Whether it is the calling thread's own for the kernel too.
    pub(super) fn is_this(&self) -> bool {
        self.id() == thread_id()
    }

    #[inline]
    pub(super) fn depth(&self) -> usize {
        (self.depth.load(Relaxed) as usize).min(DEPTH)
    }

    #[inline]
    pub(super) fn signals(&self) -> &AtomicU64 {
        &self.signals
    }

    /// Returns the entries of held locks, oldest first, holes included.
    #[inline]
    pub(super) fn entries(&self) -> &[Entry] {
        &self.held[..self.depth()]
    }

    /// Returns the held locks, oldest first.
    pub(super) fn held(&self) -> impl Iterator<Item = Held> {
        self.entries().iter().filter_map(Entry::get)
    }

    /// As [`held`](Self::held), for other threads: the depth that they see may be stale.
    pub(super) fn held_by_other(&self) -> impl Iterator<Item = Held> {
        self.held.iter().filter_map(Entry::get)
    }

    #[inline]
    fn find(&self, lock: usize) -> Option<usize> {
        self.entries()
            .iter()
            .rposition(|entry| entry.lock() == lock)
    }

    /// Whether the thread holds nothing and is not in a handler, and so has nothing to check.
    #[inline]
    fn is_idle(&self) -> bool {
        self.depth() == 0 && self.signals.load(Relaxed) == 0
    }

    /// The class of the lock with this mark, if the thread is idle and has taken that lock last.
    #[inline]
    fn last_class(&self, lock: usize, mark: u32) -> Option<ClassId> {
        let class = self.held[0].class();
        let is_it = self.is_idle() && self.last.load(Relaxed) == lock;
        // The mark tells it from another lock that has come to lie there.
        (is_it && mark != 0 && class.number() as u32 == mark).then_some(class)
    }

    /// Records an acquisition. Returns false if there is no room.
    #[inline]
    pub(super) fn push(&self, held: &Held) -> bool {
        let depth = self.depth();
        let index = if depth == 0 {
            None
        } else {
            self.find(held.lock)
        };
        if let Some(index) = index {
            let entry = &self.held[index];
            if entry.get().is_some_and(|before| before.is_same(held)) {
                entry.rest.fetch_add(AGAIN, Relaxed);
                return true;
            }
            self.drop_all(held.lock);
        }
        let depth = self.depth();
        let Some(entry) = self.held.get(depth) else {
            self.trim(); // for the next: other threads may have released the entries on top
            return false;
        };
        entry.class.store(held.class.to_bits(), Relaxed);
        entry.site.store(held.site.to_bits(), Relaxed);
        entry.rest.store(held.how.to_bits().into(), Relaxed);
        if depth == 0 {
            self.last.store(held.lock, Relaxed);
        }
        // Release: pairs with `Entry::get` in other threads.
        entry.lock.store(held.lock, Release);
        self.depth.store(depth as u32 + 1, Relaxed);
        true
    }

    /// Removes an acquisition. Returns it, unless there are more of the same lock, or it was not
    /// seen.
    #[inline]
    pub(super) fn pop(&self, lock: usize) -> Option<Held> {
        let index = self.find(lock)?;
        self.take_back(index)
    }

    /// As [`pop`](Self::pop). Returns whether it was seen.
    #[inline]
    pub(super) fn release(&self, lock: usize) -> bool {
        let [first, ..] = &self.held;
        if self.depth.load(Relaxed) == 1 && first.lock() == lock && first.rest.load(Relaxed) < AGAIN
        {
            first.lock.store(0, Relaxed);
            self.depth.store(0, Relaxed);
            return true;
        }
        match self.find(lock) {
            Some(index) => {
                self.take_back(index);
                true
            }
            None => false,
        }
    }

    #[inline]
    fn take_back(&self, index: usize) -> Option<Held> {
        let entry = &self.held[index];
        let rest = entry.rest.load(Relaxed);
        if rest >= AGAIN {
            entry.rest.store(rest - AGAIN, Relaxed);
            return None;
        }
        let held = entry.get();
        entry.lock.store(0, Relaxed);
        if index + 1 == self.depth() {
            self.trim();
        }
        held
    }

    /// The lock at this address is gone, however often it was acquired.
    #[cold]
    pub(super) fn drop_all(&self, lock: usize) {
        if let Some(index) = self.find(lock) {
            self.held[index].lock.store(0, Relaxed);
            self.trim();
        }
    }

    /// Removes the holes on top.
    #[inline]
    fn trim(&self) {
        let mut depth = self.depth();
        while depth != 0 && self.held[depth - 1].lock() == 0 {
            depth -= 1;
        }
        self.depth.store(depth as u32, Relaxed);
    }

    /// For another thread, which is about to release a lock that this one holds exclusively:
    /// removes the acquisition, and returns it if it was seen.
    fn lose(&self, lock: usize) -> Option<Held> {
        let is_it = |entry: &&Entry| entry.lock() == lock;
        let entry = self.held.iter().find(is_it)?;
        let held = entry.get()?;
        if held.lock != lock || held.how.is_shared() {
            return None;
        }
        // Relaxed: it is only removed, and fails if the thread itself has done so.
        let lost = entry.lock.compare_exchange(lock, 0, Relaxed, Relaxed);
        lost.is_ok().then_some(held)
    }

    /// Changes how a lock is held.
    pub(super) fn change(&self, lock: usize, how: How) {
        if let Some(index) = self.find(lock) {
            let entry = &self.held[index];
            let again = entry.rest.load(Relaxed) / AGAIN * AGAIN;
            entry.rest.store(u64::from(how.to_bits()) | again, Relaxed);
        }
    }

    fn clear(&self) {
        for entry in &self.held {
            entry.lock.store(0, Relaxed);
        }
        self.depth.store(0, Relaxed);
        self.life.store(0, Relaxed);
        self.signals.store(0, Relaxed);
        self.wait.lock.store(0, Relaxed);
    }
}

mod table;

#[cfg(test)]
mod tests;
