//! The table of contention that a program under `overlock run --stat` shares with whoever reads it:
//! a file in memory, mapped by both.
//!
//! The program's threads count, with atomic additions, and do nothing else: names are looked up and
//! sums formatted by the reader, which also has the table when the program was killed. All zero
//! bytes are an empty table.
//!
//! # Who reads what when
//!
//! All accesses are Relaxed but those of three words: `magic`, `ready` of an entry, and the number
//! of modules are stored last (release); a reader that has seen them (acquire) sees what they stand
//! for. Counts are read while they change: a sum and the number that belongs to it may be
//! some events apart.
#![no_std]

mod hash;
mod text;

use core::sync::atomic::{AtomicU32, AtomicU64};

pub use hash::{Keyed, Place, place};
pub use text::Path;

/// What the file begins with.
pub const MAGIC: u64 = u64::from_le_bytes(*b"ovlkstat");

/// Of the layout: another one for each change of what is below.
pub const VERSION: u32 = 2;

/// The most call sites, of all locks.
pub const ENTRIES: usize = 8192;
/// The most pairs of a waiter's entry and a holder's call site.
pub const HOLDERS: usize = 8192;
/// The most files whose code was mapped, at any time.
pub const MODULES: usize = 256;

/// Of a lock's acquisitions that did not wait, one of so many is looked at, on average. The counts
/// are of all.
pub const SAMPLE: u64 = 512;

/// From the [`MANY`]th acquisition of a lock on, one of so many: what is looked at takes a hundred
/// times as long as what is not.
pub const SPARSE: u64 = 4096;

/// See [`SPARSE`].
pub const MANY: u32 = 1 << 16;

/// How the files' names begin; the process's id follows, and behind a point a number where there is
/// one already.
pub const PREFIX: &str = "overlock-stat.";

/// How the names of empty files begin that stand for tables which could not be made: there was no
/// room. The process's id follows.
pub const FAILED: &str = "overlock-stat-failed.";

/// What sort of object an entry is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Kind {
    /// A `pthread_mutex_t`.
    Mutex = 1,
    /// A `pthread_rwlock_t`, acquired by a reader.
    Read = 2,
    /// A `pthread_rwlock_t`, acquired by a writer.
    Write = 3,
    /// A `pthread_spinlock_t`.
    Spin = 4,
    /// A `pthread_cond_t`.
    Cond = 5,
    /// A `sem_t`.
    Sem = 6,
    /// A `pthread_barrier_t`.
    Barrier = 7,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 7] = [
        Kind::Mutex,
        Kind::Read,
        Kind::Write,
        Kind::Spin,
        Kind::Cond,
        Kind::Sem,
        Kind::Barrier,
    ];

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Mutex => "mutex",
            Kind::Read => "read",
            Kind::Write => "write",
            Kind::Spin => "spin",
            Kind::Cond => "cond",
            Kind::Sem => "sem",
            Kind::Barrier => "barrier",
        }
    }

    /// Whether who waits there waits for something to happen, and not for another thread to leave a
    /// section: that is no contention.
    pub const fn is_event(self) -> bool {
        matches!(self, Kind::Cond | Kind::Sem | Kind::Barrier)
    }

    /// Whether acquisitions that do not wait are counted too.
    pub const fn is_sampled(self) -> bool {
        matches!(self, Kind::Mutex | Kind::Read | Kind::Write)
    }

    /// The one that an entry holds.
    pub fn of(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u32 == number)
    }
}

/// The whole file.
#[derive(Debug)]
#[repr(C)]
pub struct Table {
    /// What it is.
    pub header: Header,
    /// Files of code.
    pub modules: [Module; MODULES],
    /// What is counted, by lock and call site: a hash table.
    pub entries: [Entry; ENTRIES],
    /// Who made them wait: a hash table.
    pub holders: [Holder; HOLDERS],
}

/// What the table is, and of whom.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Header {
    /// [`MAGIC`], written last.
    pub magic: AtomicU64,
    /// [`VERSION`]
    pub version: AtomicU32,
    /// The process.
    pub pid: AtomicU32,
    /// The size of the file.
    pub size: AtomicU64,
    /// When counting began, on the monotonic clock.
    pub began_ns: AtomicU64,
    /// How many modules there are.
    pub modules: AtomicU32,
    /// Modules for which there was no room.
    pub lost_modules: AtomicU32,
    /// Acquisitions and waits that were not counted, since all entries in reach were taken.
    pub lost_entries: AtomicU64,
    /// Waits whose holder was not counted.
    pub lost_holders: AtomicU64,
    /// 1 where mutexes count their acquisitions, so that it is known how often others acquired one
    /// during a wait.
    pub mutexes_count: AtomicU32,
}

/// A mapping of code.
#[derive(Debug)]
#[repr(C)]
pub struct Module {
    /// The first address.
    pub start: AtomicU64,
    /// The one behind the last.
    pub end: AtomicU64,
    /// Where in the file that is.
    pub offset: AtomicU64,
    /// The file.
    pub path: Path,
}

/// What happened to one lock at one call site, or to another object that threads wait for.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Entry {
    /// Of the four that follow; 0 for an entry that is free.
    pub key: AtomicU64,
    /// The lock's address.
    pub object: AtomicU64,
    /// Where it is acquired: a return address.
    pub site: AtomicU64,
    /// Where it was initialised: a return address, or 0 for one that was not by a call.
    pub init: AtomicU64,
    /// The [`Kind`].
    pub kind: AtomicU32,
    /// 1 as soon as the four can be read.
    pub ready: AtomicU32,
    /// Acquisitions, from samples where they did not wait; 0 for kinds that are not
    /// [sampled](Kind::is_sampled).
    pub acquisitions: AtomicU64,
    /// Waits: those that came to the lock when it was not free for them.
    pub contentions: AtomicU64,
    /// Acquisitions that took the lock past others that waited for it, from samples.
    pub unfair: AtomicU64,
    /// Waits that ended without the lock.
    pub gave_up: AtomicU64,
    /// The sum of the waits.
    pub wait_ns: AtomicU64,
    /// The longest.
    pub wait_max_ns: AtomicU64,
    /// How often others acquired it during waits, where the lock counts that.
    pub passed: AtomicU64,
    /// The same of one wait, at most.
    pub passed_max: AtomicU64,
    /// Acquisitions, as above, whose holding time is not known.
    pub lost_holds: AtomicU64,
    /// The sum of the others'.
    pub hold_ns: AtomicU64,
    /// The longest that was looked at.
    pub hold_max_ns: AtomicU64,
}

/// How often a call site's acquisition made others wait.
#[derive(Debug)]
#[repr(C)]
pub struct Holder {
    /// Of the two that follow; 0 for one that is free.
    pub key: AtomicU64,
    /// The waiters' entry, by its number.
    pub entry: AtomicU32,
    /// The lower half of the holder's return address; 0 where it is not known.
    pub site: AtomicU32,
    /// 1 as soon as the two can be read.
    pub ready: AtomicU32,
    /// So that the next is where C would put it.
    pub unused: AtomicU32,
    /// Waits that began while the lock was held from there.
    pub waits: AtomicU64,
    /// Their sum.
    pub wait_ns: AtomicU64,
}

impl Keyed for Entry {
    fn key(&self) -> &AtomicU64 {
        &self.key
    }
}

impl Keyed for Holder {
    fn key(&self) -> &AtomicU64 {
        &self.key
    }
}
