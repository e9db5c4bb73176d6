//! Single waits that a program under `overlock profile` shows to its reader: a second file, beside
//! the [table](crate::Table) and with the same number, mapped by both. The reader writes, too.
//!
//! # The ring of records
//!
//! A record is of a wait that has ended. Its `state` counts: 2 x laps while it is free for that lap
//! of the ring, and 1 more while it has a wait that the reader has not taken. W-full (release, by
//! the thread that has written it) pairs with the reader's acquire; W-free (release, by the reader)
//! pairs with the acquire of the thread that takes the record for the next lap. A thread that finds
//! its record not taken yet counts the wait as lost. One that finds it unwritten in an earlier lap
//! leaves it out.
//!
//! # What is going on
//!
//! `live` has the waits that have not ended, and `owners` the threads that hold, or have released,
//! locks with waiters. They are looked at while they change: a look that fits no record is dropped.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::ObjectKind;

/// The first bytes of the file.
pub const WAITS_MAGIC: u64 = u64::from_le_bytes(*b"ovlkwait");

/// The version of the layout, which any change of the types below increments.
pub const WAITS_VERSION: u32 = 6;

/// Prefix of the files' names, in place of that of the table.
pub const WAITS_PREFIX: &str = "overlock-waits.";

/// The number of waits that the reader has not taken yet, at most.
pub const RECORDS: usize = 1 << 14;
/// The number of threads whose waits are shown while they last.
pub const LIVE: usize = 2048;
/// The number of threads with figures of their own at a time.
pub const THREADS: usize = 4096;
/// The number of locks with waiters at a time, about.
pub const OWNERS: usize = 4096;

/// The whole file. All zero bytes are one without waits.
#[derive(Debug)]
#[repr(C)]
pub struct Waits {
    pub header: WaitsHeader,
    /// A bit for each of `live` that is in use.
    pub in_use: [AtomicU64; LIVE / 64],
    pub live: [Live; LIVE],
    /// By id of the thread, modulo their number.
    pub threads: [Thread; THREADS],
    /// By a hash of the lock's address.
    pub owners: [Owner; OWNERS],
    /// The last call sites at which locks of the C library were acquired, by the same hash: a part
    /// of the lock's address, and the lower half of the call site.
    pub sites: [AtomicU64; OWNERS],
    /// A ring.
    pub records: [Record; RECORDS],
}

#[derive(Debug)]
#[repr(C, align(64))]
pub struct WaitsHeader {
    /// [`WAITS_MAGIC`], written last.
    pub magic: AtomicU64,
    /// [`WAITS_VERSION`]
    pub version: AtomicU32,
    pub pid: AtomicU32,
    /// Shorter waits are not recorded.
    pub threshold_ns: AtomicU64,
    /// The number of the next record.
    pub next: Counter,
    /// Waits for which no record was free.
    pub lost: Counter,
    /// Waits that were shorter than the threshold.
    pub short: Counter,
}

/// A word that many threads write, apart from others.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Counter(pub AtomicU64);

/// A wait that has not ended.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Live {
    /// The thread that waits; 0 for none.
    pub tid: AtomicU32,
    /// The thread that held the lock when the wait began; 0 where that is not known.
    pub holder: AtomicU32,
    /// The kind of its object if that is one of pthread's; else 0.
    pub kind: AtomicU32,
    pub entry: AtomicU32,
    pub began_ns: AtomicU64,
    pub object: AtomicU64,
    /// The address of the thread's stack where the wait began.
    pub stack: AtomicU64,
    /// The number of the place of the wait around this one, from 1 on; 0 for none.
    pub outer: AtomicU32,
}

/// Figures of a thread. It writes them itself.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Thread {
    pub tid: AtomicU32,
    /// The number of the place of its innermost wait, from 1 on; 0 for none.
    pub innermost: AtomicU32,
    /// Its CPU time when it ended; 0 before.
    pub cpu_ns: AtomicU64,
    /// How long it has held locks, scaled from samples.
    pub held_ns: AtomicU64,
}

/// The owner of a lock that threads wait for.
#[derive(Debug)]
#[repr(C, align(32))]
pub struct Owner {
    /// See [`Owned`].
    pub word: AtomicU64,
    /// When it was released.
    pub released_ns: AtomicU64,
    /// The number of its acquisitions by then; [`UNCOUNTED`] where it does not count.
    pub count: AtomicU64,
    /// The number of acquisitions from which on its owners are noted again. Of a lock that threads
    /// take all the time, to note each takes longer than the section does.
    pub again: AtomicU32,
}

/// No number of acquisitions.
pub const UNCOUNTED: u64 = u64::MAX;

/// The place of the id of its owner in a mutex of ours, with statistics: the thread that has
/// acquired it last.
pub const OUR_OWNER: usize = 36;
/// The same in one of the C library's, on machines of 64 bits: 0 while nobody has it.
pub const THEIR_OWNER: usize = 8;

/// The word of an [`Owner`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Owned {
    /// A part of the lock's address.
    object: u32,
    /// The thread that has it, or has released it; 0 where that is not known.
    pub tid: u32,
    /// Whether it was released.
    pub is_released: bool,
}

const RELEASED: u32 = 1 << 31;

impl Owned {
    /// A lock with this owner.
    pub fn new(object: u64, tid: u32) -> Self {
        Self {
            object: (object >> 3) as u32,
            tid: tid & !RELEASED,
            is_released: false,
        }
    }

    /// The same once that has released it.
    pub fn released(self) -> Self {
        Self {
            is_released: true,
            ..self
        }
    }

    /// Whether it is of this lock.
    pub fn is_of(self, object: u64) -> bool {
        self != Self::default() && self.object == (object >> 3) as u32
    }

    /// As it is stored.
    pub fn word(self) -> u64 {
        let flag = if self.is_released { RELEASED } else { 0 };
        u64::from(self.object) << 32 | u64::from(self.tid | flag)
    }

    /// As it was stored.
    pub fn of(word: u64) -> Self {
        Self {
            object: (word >> 32) as u32,
            tid: word as u32 & !RELEASED,
            is_released: word as u32 & RELEASED != 0,
        }
    }
}

/// A wait that has ended.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Record {
    /// Twice the laps of the ring while it is free, and 1 more while it has a wait.
    pub state: AtomicU64,
    /// The index of the entry in the table.
    pub entry: AtomicU32,
    /// [`ObjectKind`]
    pub kind: AtomicU32,
    pub tid: AtomicU32,
    /// The thread that held the lock when the wait began; 0 where that is not known.
    pub holder: AtomicU32,
    /// The lower half of the holder's call site; 0 where that is not known.
    pub holder_site: AtomicU32,
    /// The number of its stack in the table, from 1 on; 0 where that is not known.
    pub holder_stack: AtomicU32,
    /// How often others acquired the lock meanwhile.
    pub passed: AtomicU32,
    /// [`GAVE_UP`], [`IS_LOCK`], [`SUMMED`] and [`SPUN`]
    pub flags: AtomicU32,
    pub object: AtomicU64,
    pub began_ns: AtomicU64,
    pub ended_ns: AtomicU64,
    /// When the lock was released to it; 0 where that is not known.
    pub released_ns: AtomicU64,
    /// The holder's CPU time since the wait began; [`NOT_MEASURED`] where that is not known.
    pub ran_ns: AtomicU64,
}

/// Of a record: the wait ended without the lock, or nothing happened.
pub const GAVE_UP: u32 = 1;
/// Of a record: a condition or a semaphore that is used as a lock.
pub const IS_LOCK: u32 = 2;

/// Of a record: short waits of a thread for one lock. The longest ended at the end. Their number is
/// in place of the CPU time, and the sum of their times in place of the release.
pub const SUMMED: u32 = 4;
/// Of a record: the waiter never slept. A spin ends soon, so in a long one it had no CPU.
pub const SPUN: u32 = 8;

/// No CPU time.
pub const NOT_MEASURED: u64 = u64::MAX;

fn index(object: u64) -> usize {
    let hash = (object >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (hash >> 40) as usize % OWNERS
}

/// The part of a lock's address that tells it from others.
fn part(object: u64) -> u64 {
    u64::from((object >> 3) as u32)
}

impl Waits {
    /// The owner of a lock, if threads wait for it. Another lock may have its place.
    pub fn owner(&self, object: u64) -> &Owner {
        &self.owners[index(object)]
    }

    /// Notes where a lock was acquired.
    pub fn set_site(&self, object: u64, site: u32) {
        self.sites[index(object)].store(part(object) << 32 | u64::from(site), Relaxed);
    }

    /// The lower half of the call site at which a lock was acquired last; 0 where another lock has
    /// its place.
    pub fn site(&self, object: u64) -> u32 {
        let word = self.sites[index(object)].load(Relaxed);
        if word >> 32 == part(object) {
            word as u32
        } else {
            0
        }
    }

    /// The figures of a thread, if they are that thread's.
    pub fn thread(&self, tid: u32) -> Option<&Thread> {
        let thread = &self.threads[tid as usize % THREADS];
        (thread.tid.load(Relaxed) == tid).then_some(thread)
    }
}

impl Record {
    /// The kind of its object.
    pub fn kind(&self) -> Option<ObjectKind> {
        ObjectKind::of(self.kind.load(Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_known_by_its_lock() {
        let owned = Owned::new(0x7fff_1234_5678, 4321);
        for owned in [owned, owned.released()] {
            assert_eq!(Owned::of(owned.word()), owned);
            assert!(owned.is_of(0x7fff_1234_5678));
            assert!(!owned.is_of(0x7fff_1234_5680));
        }
        assert!(!Owned::of(0).is_of(0));
    }
}
