//! The contention table that a program under `overlock run --stat` shares with its reader: a file
//! that both map into memory.
//!
//! The program's threads only count, with atomic additions. The reader looks up names and formats
//! sums; it still has the table when the program was killed. All zero bytes are an empty table.
//!
//! # Memory order
//!
//! All accesses are Relaxed except for three words that are stored last (release): `magic`, `ready`
//! of an entry, and the number of modules. A reader that has seen them (acquire) sees the data that
//! they announce. Counts are read while they change: a sum and its number of samples may be some
//! events apart.
#![no_std]

mod hash;
mod text;
mod waits;

use core::sync::atomic::Ordering::{Acquire, Relaxed};
use core::sync::atomic::{AtomicU32, AtomicU64};

pub use hash::{Keyed, Place, place};
pub use text::Path;
pub use waits::{
    GAVE_UP, IS_LOCK, LIVE, Live, NOT_MEASURED, OUR_OWNER, OWNERS, Owned, Owner, RECORDS, Record,
    SPUN, SUMMED, THEIR_OWNER, THREADS, Thread, UNCOUNTED, WAITS_MAGIC, WAITS_PREFIX,
    WAITS_VERSION, Waits, WaitsHeader,
};

/// The first bytes of the file.
pub const MAGIC: u64 = u64::from_le_bytes(*b"ovlkstat");

/// The version of the layout, which any change of the types below increments.
pub const VERSION: u32 = 10;

/// The number of entries: pairs of where a lock is initialised and where it is acquired.
pub const ENTRIES: usize = 8192;
/// The number of holders: pairs of a waiter's entry and a holder's stack or call site.
pub const HOLDERS: usize = 8192;
/// The number of pairs of an entry and a lock that threads waited for there.
pub const OBJECTS: usize = 8192;
/// The number of frames of all stacks together. Stacks whose threads have begun alike share them.
pub const FRAMES: usize = 32768;
/// The most frames of a stack, from the call site outwards.
pub const DEPTH: usize = 64;
/// The number of names that a program gives its locks.
pub const NAMES: usize = 1024;
/// The number of modules: files whose code was mapped at any time.
pub const MODULES: usize = 256;

/// Of a lock's acquisitions without a wait, one in this many is sampled, on average. Counts are
/// scaled to all acquisitions.
pub const SAMPLE: u64 = 512;

/// The same from the [`MANY`]th acquisition of a lock on: a sampled acquisition takes a hundred
/// times as long as another.
pub const SPARSE: u64 = 4096;

/// See [`SPARSE`].
pub const MANY: u32 = 1 << 16;

/// The number of classes into which waits of an entry are counted by their length.
pub const LENGTHS: usize = 16;

/// Prefix of the files' names. The process's id follows, then a point and a number if there is such
/// a file already.
pub const PREFIX: &str = "overlock-stat.";

/// Prefix of the names of empty files for tables that could not be made, for lack of space. The
/// process's id follows.
pub const FAILED: &str = "overlock-stat-failed.";

/// The kind of object of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
pub enum ObjectKind {
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
    Sem = 6,
    /// A `pthread_barrier_t`.
    Barrier = 7,
    /// A word that threads wait for by the function `syscall`.
    Futex = 8,
    /// An epoll object, or the files of a poll or a select.
    Poll = 9,
    /// Locks that stay the C library's, as they are shared between processes. They are not counted,
    /// but for their number.
    KeptShared = 10,
    /// The same, as they are robust.
    KeptRobust = 11,
    /// The same, as they are bound to priorities.
    KeptPriority = 12,
}

impl ObjectKind {
    /// All kinds.
    pub const ALL: [ObjectKind; 12] = [
        ObjectKind::Mutex,
        ObjectKind::Read,
        ObjectKind::Write,
        ObjectKind::Spin,
        ObjectKind::Cond,
        ObjectKind::Sem,
        ObjectKind::Barrier,
        ObjectKind::Futex,
        ObjectKind::Poll,
        ObjectKind::KeptShared,
        ObjectKind::KeptRobust,
        ObjectKind::KeptPriority,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            ObjectKind::Mutex => "mutex",
            ObjectKind::Read => "read",
            ObjectKind::Write => "write",
            ObjectKind::Spin => "spin",
            ObjectKind::Cond => "cond",
            ObjectKind::Sem => "sem",
            ObjectKind::Barrier => "barrier",
            ObjectKind::Futex => "futex",
            ObjectKind::Poll => "poll",
            ObjectKind::KeptShared => "shared",
            ObjectKind::KeptRobust => "robust",
            ObjectKind::KeptPriority => "priority",
        }
    }

    /// Whether its waiters wait for an event, and not for another thread to leave a critical
    /// section, which would be contention.
    pub const fn is_event(self) -> bool {
        matches!(
            self,
            ObjectKind::Cond
                | ObjectKind::Sem
                | ObjectKind::Barrier
                | ObjectKind::Futex
                | ObjectKind::Poll
        )
    }

    /// Whether it stays the C library's and is not counted, but for the number of objects: in
    /// `acquisitions`, at the site of the initialisation.
    pub const fn is_kept(self) -> bool {
        matches!(
            self,
            ObjectKind::KeptShared | ObjectKind::KeptRobust | ObjectKind::KeptPriority
        )
    }

    /// Whether acquisitions without a wait are counted, too.
    pub const fn is_sampled(self) -> bool {
        matches!(
            self,
            ObjectKind::Mutex | ObjectKind::Read | ObjectKind::Write
        )
    }

    /// Returns the kind with this number, as stored in an entry; `None` if there is none.
    pub fn of(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u32 == number)
    }
}

/// The whole file.
#[derive(Debug)]
#[repr(C)]
pub struct Table {
    /// Identification and sizes.
    pub header: Header,
    /// Files whose code was mapped.
    pub modules: [Module; MODULES],
    /// Counts by initialisation and call site: a hash table.
    pub entries: [Entry; ENTRIES],
    /// Waits by the holder that caused them: a hash table.
    pub holders: [Holder; HOLDERS],
    /// Waits by object: a hash table.
    pub objects: [Object; OBJECTS],
    /// Stacks of call sites, as a tree: a hash table.
    pub frames: [Frame; FRAMES],
    /// Names of locks: a hash table.
    pub names: [Name; NAMES],
}

/// Identification of the table and of its process.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Header {
    /// [`MAGIC`], written last.
    pub magic: AtomicU64,
    /// [`VERSION`]
    pub version: AtomicU32,
    /// The process's id.
    pub pid: AtomicU32,
    /// The size of the file in bytes.
    pub size: AtomicU64,
    /// The start of counting, in nanoseconds of the monotonic clock.
    pub began_ns: AtomicU64,
    /// The end of the process, by the same clock; 0 before, and of one that was killed.
    pub ended_ns: AtomicU64,
    /// Threads that have used a lock, or waited.
    pub threads: AtomicU32,
    /// Those of them that have not ended.
    pub alive: AtomicU32,
    /// The sum of the times at which they began, modulo 2^64.
    pub thread_begins: AtomicU64,
    /// The sum of the times at which the others ended, modulo 2^64.
    pub thread_ends: AtomicU64,
    pub modules: AtomicU32,
    /// Modules for which there was no room.
    pub lost_modules: AtomicU32,
    /// 1 once the process has taken a mutex or a reader-writer lock that is counted.
    pub used: AtomicU32,
    /// Acquisitions and waits that were not counted, because all entries in reach were taken.
    pub lost_entries: AtomicU64,
    /// Waits whose holder was not counted, because all holders in reach were taken.
    pub lost_holders: AtomicU64,
    /// Waits whose object was not counted, because all objects in reach were taken.
    pub lost_objects: AtomicU64,
    /// Walks through the callers of a call.
    pub walks: AtomicU64,
    /// The program's name: the first of its arguments.
    pub program: Path,
}

/// A mapping of code.
#[derive(Debug)]
#[repr(C)]
pub struct Module {
    /// The first address.
    pub start: AtomicU64,
    /// The address after the last.
    pub end: AtomicU64,
    /// The offset of the first address in the file.
    pub offset: AtomicU64,
    /// The file's path.
    pub path: Path,
}

/// Counts of the locks that were initialised at one place, or of other objects that threads wait
/// for, at one call site.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Entry {
    /// Hash of the address if that is of a variable, and of the next five fields; 0 for a free
    /// entry.
    pub key: AtomicU64,
    /// The call site of the acquisition: a return address.
    pub site: AtomicU64,
    /// The call site of the initialisation: a return address, or 0 without such a call. [`NAMED`]
    /// of a lock with a name, whose number is in `init_stack`.
    pub init: AtomicU64,
    /// The number of the stack of `site`, from 1 on; 0 where that is not known.
    pub stack: AtomicU32,
    /// The same of `init`.
    pub init_stack: AtomicU32,
    pub kind: AtomicU32,
    /// 1 once the fields above and `object` can be read.
    pub ready: AtomicU32,
    /// The address of the lock, or of the first of several.
    pub object: AtomicU64,
    /// Waits for a condition or a semaphore that was used as a lock.
    pub as_lock: AtomicU64,
    /// Acquisitions, those without a wait scaled from samples; 0 for kinds that are not
    /// [sampled](ObjectKind::is_sampled).
    pub acquisitions: AtomicU64,
    /// Waits: acquisitions that found the lock not free.
    pub contentions: AtomicU64,
    /// Acquisitions that bypassed waiters, scaled from samples.
    pub unfair: AtomicU64,
    /// Waits that ended without the lock.
    pub gave_up: AtomicU64,
    /// The sum of the wait times, in nanoseconds.
    pub wait_ns: AtomicU64,
    /// The longest wait, in nanoseconds.
    pub wait_max_ns: AtomicU64,
    /// How often others acquired the lock during waits, if the lock counts acquisitions.
    pub passed: AtomicU64,
    /// The largest such number of one wait.
    pub passed_max: AtomicU64,
    /// Acquisitions, as above, whose hold time is not known.
    pub lost_holds: AtomicU64,
    /// The sum of the other hold times, in nanoseconds, scaled from samples.
    pub hold_ns: AtomicU64,
    /// The longest hold time that was sampled, in nanoseconds.
    pub hold_max_ns: AtomicU64,
    /// Spins before sleeps.
    pub spins: AtomicU64,
    /// Those within which the event came.
    pub spins_in_time: AtomicU64,
    /// The sum of their times, in nanoseconds.
    pub spin_ns: AtomicU64,
    /// The wake-ups that those in time have saved, in nanoseconds.
    pub saved_ns: AtomicU64,
    /// Sleeps of which the latency of the wake-up is known.
    pub wakes: AtomicU64,
    /// The sum of those latencies, in nanoseconds.
    pub wake_ns: AtomicU64,
    /// Waits by their [`length`]. Of short waits that were summed each has their mean.
    pub lengths: [AtomicU64; LENGTHS],
}

/// The class of a wait of so many nanoseconds.
pub const fn length(ns: u64) -> usize {
    // The power of two that it does not exceed.
    let power = u64::BITS - ns.saturating_sub(1).leading_zeros();
    let class = (power.saturating_sub(LEAST_POWER)).div_ceil(2) as usize;
    if class < LENGTHS { class } else { LENGTHS - 1 }
}

/// The longest wait of a class, in nanoseconds; `None` of the last one, which has no end. Each
/// class goes four times as far as the one before.
pub const fn longest(class: usize) -> Option<u64> {
    if class + 1 < LENGTHS {
        Some(1 << (LEAST_POWER as usize + 2 * class))
    } else {
        None
    }
}

/// The first class goes up to 2^10 ns.
const LEAST_POWER: u32 = 10;

/// See [`Entry::init`]. No code is there.
pub const NAMED: u64 = 1;

/// A name that a program gives to its locks.
#[derive(Debug)]
#[repr(C)]
pub struct Name {
    /// Hash of the text; 0 for a free item.
    pub key: AtomicU64,
    /// 1 once the text can be read.
    pub ready: AtomicU32,
    pub unused: AtomicU32,
    pub text: Path,
}

/// Waits of one entry that one call site's acquisitions caused.
#[derive(Debug)]
#[repr(C)]
pub struct Holder {
    /// Hash of the three fields that follow; 0 for a free item.
    pub key: AtomicU64,
    /// The index of the waiters' entry.
    pub entry: AtomicU32,
    /// The lower half of the holder's return address; 0 if that is not known.
    pub site: AtomicU32,
    /// The number of its stack, from 1 on; 0 where that is not known.
    pub stack: AtomicU32,
    /// 1 once the three fields can be read.
    pub ready: AtomicU32,
    /// Waits that began while the lock was held from there.
    pub waits: AtomicU64,
    /// The sum of their wait times, in nanoseconds.
    pub wait_ns: AtomicU64,
}

/// Waits of one entry for one object.
#[derive(Debug)]
#[repr(C)]
pub struct Object {
    /// Hash of the two fields that follow; 0 for a free item.
    pub key: AtomicU64,
    /// The object's address.
    pub address: AtomicU64,
    /// The index of the entry.
    pub entry: AtomicU32,
    /// 1 once the two fields can be read.
    pub ready: AtomicU32,
    pub waits: AtomicU64,
    /// The sum of their times, in nanoseconds.
    pub wait_ns: AtomicU64,
}

/// A frame of stacks. A stack has the number of its call site, from 1 on; it goes outwards from
/// there. Stacks whose threads have begun alike share these frames.
#[derive(Debug)]
#[repr(C)]
pub struct Frame {
    /// Hash of the two fields that follow; 0 for a free item.
    pub key: AtomicU64,
    /// A return address.
    pub address: AtomicU64,
    /// The number of the frame that has called it; 0 of the outermost.
    pub caller: AtomicU32,
    /// 1 once the two fields can be read.
    pub ready: AtomicU32,
}

impl Table {
    /// The return addresses of the stack with this number, from the call site outwards, into
    /// `addresses`. Returns their number, which is 0 for a stack that is not there, or not whole
    /// yet.
    pub fn stack(&self, number: u32, addresses: &mut [u64; DEPTH]) -> usize {
        let (mut number, mut count) = (number, 0);
        while number != 0 && count < DEPTH {
            let frame = self.frames.get(number as usize - 1);
            // Acquire: pairs with the store after the frame was written.
            let Some(frame) = frame.filter(|frame| frame.ready.load(Acquire) != 0) else {
                return 0;
            };
            addresses[count] = frame.address.load(Relaxed);
            number = frame.caller.load(Relaxed);
            count += 1;
        }
        count
    }
}

impl Entry {
    /// The number of the name of its locks, from 1 on; `None` where they have none.
    pub fn name(&self) -> Option<u32> {
        (self.init.load(Relaxed) == NAMED).then(|| self.init_stack.load(Relaxed))
    }
}

impl Name {
    /// Its text, into `buffer`; `None` while that is not written.
    pub fn get<'a>(&self, buffer: &'a mut [u8; Path::MAX]) -> Option<&'a [u8]> {
        // Acquire: pairs with the store after the text was written.
        (self.ready.load(Acquire) != 0).then(|| self.text.get(buffer))
    }
}

impl Keyed for Name {
    fn key(&self) -> &AtomicU64 {
        &self.key
    }
}

impl Keyed for Object {
    fn key(&self) -> &AtomicU64 {
        &self.key
    }
}

impl Keyed for Frame {
    fn key(&self) -> &AtomicU64 {
        &self.key
    }
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

/// The examples of the crate's page are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_in_the_first_class_that_reaches_so_far() {
        for ns in [
            0,
            1,
            1024,
            1025,
            4096,
            4097,
            1 << 38,
            (1 << 38) + 1,
            u64::MAX,
        ] {
            let class = length(ns);
            assert!(longest(class).is_none_or(|longest| ns <= longest), "{ns}");
            let before = class.checked_sub(1).and_then(longest);
            assert!(before.is_none_or(|before| ns > before), "{ns}");
        }
        assert_eq!((length(0), length(u64::MAX)), (0, LENGTHS - 1));
        assert!((0..LENGTHS - 1).all(|class| longest(class).is_some()));
    }
}
