//! Figures of locks by name, in the memory of the program: what [`report`](crate::report()) reads.
//!
//! Locks of one name and one kind are one class. A class never goes, so that what is known of a
//! lock stays when the lock is gone. All accesses are Relaxed, since no other data depends on them,
//! but for `ready`, which is stored (release) once the name is written.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};

use overlock_linux::__private::{Mapped, Zeroed};
use overlock_shared::{Keyed, ObjectKind, Path, Place, place};

use crate::spot::words;

/// The number of classes.
const CLASSES: usize = 1024;

/// Threads count acquisitions in so many places, by their ids.
const SHARDS: usize = 16;

/// Lengths of waits: eight for each power of two, up to 2^42 ns (73 minutes).
const BUCKETS: usize = 320;

#[derive(Debug)]
#[repr(align(64))]
struct Line(AtomicU64);

/// The locks of one name and kind.
#[derive(Debug)]
pub struct Class {
    key: AtomicU64,
    ready: AtomicU32,
    kind: AtomicU32,
    name: Path,
    acquisitions: [Line; SHARDS],
    gave_up: AtomicU64,
    wait_ns: AtomicU64,
    wait_max_ns: AtomicU64,
    holds: AtomicU64,
    hold_ns: AtomicU64,
    hold_max_ns: AtomicU64,
    lengths: [AtomicU64; BUCKETS],
}

// SAFETY: it is made of atomics, of which zero bytes are a valid value.
unsafe impl Zeroed for Class {}

impl Keyed for Class {
    fn key(&self) -> &AtomicU64 {
        &self.key
    }
}

static ALL: Mapped<[Class; CLASSES]> = Mapped::new();

/// Locks for whose class there was no room.
static LOST: AtomicU64 = AtomicU64::new(0);

/// The number of the class of this name, from 1 on; 0 where there is no room.
#[cold]
pub(crate) fn number(name: &[u8], kind: ObjectKind) -> u32 {
    let found = ALL.get().and_then(|all| {
        let mut key = [0; Path::MAX / 8 + 1];
        key[0] = kind as u64;
        key[1..].copy_from_slice(&words(name));
        match place(all, &key)? {
            Place::Known(index, _) => Some(index),
            Place::New(index, class) => {
                class.kind.store(kind as u32, Relaxed);
                class.name.set(name);
                // Release: pairs with the acquire in `text`.
                class.ready.store(1, Release);
                Some(index)
            }
        }
    });
    match found {
        Some(index) => index as u32 + 1,
        None => {
            LOST.fetch_add(1, Relaxed);
            0
        }
    }
}

/// The class of this number.
#[inline]
pub(crate) fn class(number: u32) -> Option<&'static Class> {
    ALL.mapped()?.get((number as usize).wrapping_sub(1))
}

/// All classes whose names are written.
pub(crate) fn all() -> impl Iterator<Item = &'static Class> {
    let all = ALL.mapped().into_iter().flatten();
    all.filter(|class| class.ready.load(Acquire) != 0)
}

/// See [`Report::lost`](crate::report::Report::lost).
pub(crate) fn lost() -> u64 {
    LOST.load(Relaxed)
}

fn bucket(ns: u64) -> usize {
    if ns < 8 {
        return ns as usize;
    }
    let power = ns.ilog2() as usize;
    let eighth = (ns >> (power - 3)) as usize & 7;
    ((power - 2) * 8 + eighth).min(BUCKETS - 1)
}

/// The longest time of a bucket.
fn longest(bucket: usize) -> u64 {
    match bucket {
        0..8 => bucket as u64,
        _ => ((bucket as u64 % 8 + 9) << (bucket / 8 - 1)) - 1,
    }
}

/// A sum and the longest of what it is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sum {
    pub(crate) count: u64,
    pub(crate) ns: u64,
    pub(crate) max_ns: u64,
}

impl Class {
    /// The name, into `buffer`; empty while it is not written.
    pub(crate) fn text<'a>(&self, buffer: &'a mut [u8; Path::MAX]) -> &'a [u8] {
        // Acquire: pairs with the release in `number`.
        match self.ready.load(Acquire) {
            0 => &[],
            _ => self.name.get(buffer),
        }
    }

    pub(crate) fn kind(&self) -> Option<ObjectKind> {
        ObjectKind::of(self.kind.load(Relaxed))
    }

    fn shard(&self, thread: u32) -> &AtomicU64 {
        &self.acquisitions[thread as usize % SHARDS].0
    }

    /// A number that differs from acquisition to acquisition.
    #[inline]
    pub(crate) fn count(&self, thread: u32) -> u32 {
        self.shard(thread).load(Relaxed) as u32
    }

    /// The thread has acquired one of the locks.
    #[inline]
    pub(crate) fn acquired(&self, thread: u32) {
        self.shard(thread).fetch_add(1, Relaxed);
    }

    /// A thread has waited.
    pub(crate) fn waited(&self, ns: u64) {
        self.wait_ns.fetch_add(ns, Relaxed);
        self.wait_max_ns.fetch_max(ns, Relaxed);
        self.lengths[bucket(ns)].fetch_add(1, Relaxed);
    }

    /// The wait was in vain.
    pub(crate) fn gives_up(&self) {
        self.gave_up.fetch_add(1, Relaxed);
    }

    pub(crate) fn gave_up(&self) -> u64 {
        self.gave_up.load(Relaxed)
    }

    /// A thread has held one of the locks.
    pub(crate) fn held(&self, ns: u64) {
        self.holds.fetch_add(1, Relaxed);
        self.hold_ns.fetch_add(ns, Relaxed);
        self.hold_max_ns.fetch_max(ns, Relaxed);
    }

    pub(crate) fn acquisitions(&self) -> u64 {
        self.acquisitions
            .iter()
            .map(|line| line.0.load(Relaxed))
            .sum()
    }

    pub(crate) fn waits(&self) -> Sum {
        Sum {
            count: self.lengths.iter().map(|count| count.load(Relaxed)).sum(),
            ns: self.wait_ns.load(Relaxed),
            max_ns: self.wait_max_ns.load(Relaxed),
        }
    }

    pub(crate) fn holds(&self) -> Sum {
        Sum {
            count: self.holds.load(Relaxed),
            ns: self.hold_ns.load(Relaxed),
            max_ns: self.hold_max_ns.load(Relaxed),
        }
    }

    /// The waits that were no longer than this are `permille` of all, or just more.
    pub(crate) fn quantile_ns(&self, permille: u64) -> u64 {
        let sum = self.waits();
        let wanted = (sum.count * permille).div_ceil(1000).max(1);
        let mut seen = 0;
        for (index, count) in self.lengths.iter().enumerate() {
            seen += count.load(Relaxed);
            if seen >= wanted {
                return longest(index).min(sum.max_ns);
            }
        }
        sum.max_ns
    }

    /// Forgets what was counted.
    pub(crate) fn reset(&self) {
        let lines = self.acquisitions.iter().map(|line| &line.0);
        let sums = [
            &self.gave_up,
            &self.wait_ns,
            &self.wait_max_ns,
            &self.holds,
            &self.hold_ns,
            &self.hold_max_ns,
        ];
        for count in lines.chain(sums).chain(&self.lengths) {
            count.store(0, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_has_its_times_within_an_eighth() {
        let mut last = 0;
        for ns in (0..64).chain((6..42).flat_map(|power| {
            let start = 1_u64 << power;
            [start - 1, start, start + start / 3, start + start / 2]
        })) {
            let index = bucket(ns);
            assert!(longest(index) >= ns, "{ns}");
            assert!(longest(index) <= ns + ns / 8, "{ns}");
            assert!(index >= last || ns < 64);
            last = index;
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_are_those_of_the_waits() {
        let class = class(number(b"quantiles", ObjectKind::Mutex)).unwrap();
        assert_eq!(
            number(b"quantiles", ObjectKind::Mutex),
            number(b"quantiles", ObjectKind::Mutex)
        );
        assert_ne!(
            number(b"quantiles", ObjectKind::Mutex),
            number(b"quantiles", ObjectKind::Read)
        );
        for ns in 1..=1000 {
            class.waited(ns * 1000);
        }
        let near = |found: u64, ns: u64| (ns..=ns + ns / 8).contains(&found);
        assert!(near(class.quantile_ns(500), 500_000));
        assert!(near(class.quantile_ns(900), 900_000));
        assert_eq!(class.quantile_ns(999), 1_000_000);
        assert_eq!(class.waits().count, 1000);
        class.reset();
        assert_eq!((class.waits().count, class.quantile_ns(500)), (0, 0));
    }
}
