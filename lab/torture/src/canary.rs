//! The torn-write detector: data that show when two were inside that should not have been.
//!
//! A writer puts its name on the canary, changes the words one by one, with pauses between, and
//! takes its name off. The next one inside, writer or reader, must find all words the same and
//! nobody's name; a reader must still do so when it leaves. Readers are counted as well, so a
//! writer finds one that is inside even if neither has touched a word meanwhile.
//!
//! The words are plain memory on purpose. A lock that lets two in is a data race here, which is
//! what ThreadSanitizer and Miri find; the accesses are volatile, so that the compiler leaves
//! them one by one as they stand. The two counters are atomic and Relaxed, and order nothing.

use std::cell::UnsafeCell;
use std::fmt;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Words of a canary, spread over two cache lines.
pub const WORDS: usize = 8;

/// Data under a lock: see the [module's page](self).
#[derive(Debug, Default)]
pub struct Canary {
    near: Line,
    far: Line,
    counts: Counts,
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct Line {
    words: UnsafeCell<[u64; WORDS / 2]>,
    owner: UnsafeCell<u64>,
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct Counts {
    writes: AtomicU64,
    /// Sections of readers in the upper half, those inside in the lower.
    readers: AtomicU64,
}

const INSIDE: u64 = (1 << 32) - 1;
const READER: u64 = (1 << 32) + 1;

// SAFETY: the words are for those that hold the lock to whose name the canary goes: written by one
// that holds it alone. A lock that breaks this is what the canary is there to find; only tests have
// such locks.
unsafe impl Sync for Canary {}

/// Somebody was inside that should not have been.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Torn {
    /// A writer's name is on the canary, or (0) the writer's own is no longer.
    Owner(u64),
    Words([u64; WORDS]),
    /// The words have changed under somebody who holds the lock, from the first to the second.
    Changed(u64, u64),
    /// So many readers are inside beside a writer.
    Readers(u64),
    /// More readers are inside than the lock admits.
    Crowd(u64),
}

impl fmt::Display for Torn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Torn::Owner(0) => f.write_str("another one has been inside too"),
            Torn::Owner(owner) => write!(f, "{} is inside too", Name(*owner)),
            Torn::Words(words) => write!(f, "a write beside this one left {words:?}"),
            Torn::Changed(old, new) => write!(f, "somebody else wrote: {old} became {new}"),
            Torn::Readers(1) => f.write_str("a reader is inside beside a writer"),
            Torn::Readers(n) => write!(f, "{n} readers are inside beside a writer"),
            Torn::Crowd(n) => write!(f, "{n} are inside, more than there may be"),
        }
    }
}

/// Marks the name of a thread's signal handler.
pub const HANDLER: u64 = 1 << 32;

/// The name of a thread as a writer: its number, which may be 0, and perhaps [`HANDLER`].
struct Name(u64);

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let thread = (self.0 & !HANDLER).wrapping_sub(1);
        let what = if self.0 & HANDLER == 0 {
            "thread"
        } else {
            "a signal handler on thread"
        };
        write!(f, "{what} {thread}")
    }
}

impl Canary {
    /// A writer's section: `between(i)` runs before word `i` is written. Returns what the words
    /// hold then, which is how often there was one. The caller holds the lock alone; `who` is the
    /// number of its thread, and perhaps [`HANDLER`].
    ///
    /// # Errors
    ///
    /// If it was not alone.
    pub fn write(&self, who: u64, mut between: impl FnMut(usize)) -> Result<u64, Torn> {
        let name = who + 1;
        let old = self.intact()?;
        let new = old.wrapping_add(1);
        self.alone()?;
        self.set_owner(name);
        for word in 0..WORDS {
            between(word);
            self.set(word, new);
        }
        let owner = self.owner();
        if owner != name {
            return Err(Torn::Owner(owner));
        }
        self.alone()?;
        self.set_owner(0);
        if self.intact()? != new {
            return Err(Torn::Words(self.words()));
        }
        // A plain addition: only writers do it, one at a time.
        let writes = &self.counts.writes;
        writes.store(writes.load(Relaxed).wrapping_add(1), Relaxed);
        Ok(new)
    }

    /// Returns what a reader sees, before and after `inside`. The caller holds the lock, with other
    /// readers or alone.
    ///
    /// # Errors
    ///
    /// If somebody wrote meanwhile.
    pub fn read(&self, inside: impl FnOnce()) -> Result<u64, Torn> {
        let before = self.intact()?;
        inside();
        let after = self.intact()?;
        if before == after {
            Ok(after)
        } else {
            Err(Torn::Changed(before, after))
        }
    }

    /// A reader comes in: called between its acquisition and its [`leave`](Self::leave). With
    /// `most`, no more than so many may be inside.
    ///
    /// # Errors
    ///
    /// If there are more.
    pub fn enter(&self, most: u64) -> Result<(), Torn> {
        let inside = (self.counts.readers.fetch_add(READER, Relaxed) & INSIDE) + 1;
        if inside > most {
            return Err(Torn::Crowd(inside));
        }
        Ok(())
    }

    /// A reader leaves: called before its release.
    pub fn leave(&self) {
        self.counts.readers.fetch_sub(1, Relaxed);
    }

    /// How often somebody has been inside; for anybody.
    pub fn visits(&self) -> u64 {
        let writes = self.counts.writes.load(Relaxed);
        writes.wrapping_add(self.counts.readers.load(Relaxed) >> 32)
    }

    /// Returns what the words say, which is how often they were written, while nobody is inside.
    ///
    /// # Errors
    ///
    /// If somebody is, or was in vain.
    pub fn at_rest(&self) -> Result<u64, Torn> {
        self.alone()?;
        self.intact()
    }

    fn alone(&self) -> Result<(), Torn> {
        match self.counts.readers.load(Relaxed) & INSIDE {
            0 => Ok(()),
            readers => Err(Torn::Readers(readers)),
        }
    }

    /// All words, if they are the same and nobody's name is there.
    fn intact(&self) -> Result<u64, Torn> {
        let words = self.words();
        let owner = self.owner();
        if owner != 0 {
            Err(Torn::Owner(owner))
        } else if words.iter().any(|word| *word != words[0]) {
            Err(Torn::Words(words))
        } else {
            Ok(words[0])
        }
    }

    fn words(&self) -> [u64; WORDS] {
        // SAFETY: as in `Sync`; the pointer is valid.
        std::array::from_fn(|word| unsafe { ptr::read_volatile(self.word(word)) })
    }

    fn set(&self, word: usize, value: u64) {
        // SAFETY: as in `Sync`; the pointer is valid.
        unsafe { ptr::write_volatile(self.word(word), value) };
    }

    fn word(&self, word: usize) -> *mut u64 {
        let line = if word < WORDS / 2 {
            &self.near
        } else {
            &self.far
        };
        // SAFETY: the index is below the number of words in a line.
        unsafe { line.words.get().cast::<u64>().add(word % (WORDS / 2)) }
    }

    fn owner(&self) -> u64 {
        // SAFETY: as in `Sync`; the pointer is valid.
        unsafe { ptr::read_volatile(self.near.owner.get()) }
    }

    fn set_owner(&self, name: u64) {
        // SAFETY: as in `Sync`; the pointer is valid.
        unsafe { ptr::write_volatile(self.near.owner.get(), name) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CROWD: u64 = u64::MAX;

    #[test]
    fn sections_one_after_the_other_are_in_order() {
        let canary = Canary::default();
        for count in 1..=3 {
            assert_eq!(canary.write(7, |_| {}), Ok(count));
            canary.enter(2).unwrap();
            canary.enter(2).unwrap();
            assert_eq!(canary.read(|| {}), Ok(count));
            canary.leave();
            canary.leave();
        }
        assert_eq!(canary.at_rest(), Ok(3));
        assert_eq!(canary.visits(), 3 + 6);
    }

    /// A second writer comes at any point of the first one's section: it notices, or the first one
    /// does.
    #[test]
    fn a_writer_beside_a_writer_is_noticed() {
        for point in 0..WORDS {
            let canary = Canary::default();
            let mut second = Ok(0);
            let first = canary.write(1, |word| {
                if word == point {
                    second = canary.write(2, |_| {});
                }
            });
            assert_eq!(second, Err(Torn::Owner(2)), "at word {point}");
            assert!(first.is_ok());
        }
    }

    /// The same where the first one's name is not seen in time: the words tell, or the name does at
    /// its end.
    #[test]
    fn a_writer_that_has_not_seen_the_name_is_noticed() {
        for point in 0..WORDS {
            let canary = Canary::default();
            let mut second = Ok(0);
            let first = canary.write(1, |word| {
                if word == point {
                    canary.set_owner(0);
                    second = canary.write(2, |_| {});
                }
            });
            assert!(first.is_err() || second.is_err(), "at word {point}");
        }
    }

    #[test]
    fn a_reader_beside_a_writer_is_noticed_by_both() {
        for point in 0..WORDS {
            let canary = Canary::default();
            let mut reader = Ok(0);
            let writer = canary.write(1, |word| {
                if word == point {
                    canary.enter(CROWD).unwrap();
                    reader = canary.read(|| {});
                }
            });
            assert_eq!(reader, Err(Torn::Owner(2)));
            assert_eq!(writer, Err(Torn::Readers(1)));
        }
    }

    #[test]
    fn a_write_beside_a_reader_is_noticed_by_both() {
        let canary = Canary::default();
        canary.enter(CROWD).unwrap();
        let mut writer = Ok(0);
        assert_eq!(canary.read(|| writer = canary.write(1, |_| {})), Ok(0));
        assert_eq!(writer, Err(Torn::Readers(1)));
        canary.leave();
        // One that does not look for readers.
        let changed = canary.read(|| _ = canary.write(1, |_| {}));
        assert_eq!(changed, Err(Torn::Changed(0, 1)));
    }

    #[test]
    fn a_reader_too_many_is_noticed() {
        let canary = Canary::default();
        canary.enter(2).unwrap();
        canary.enter(2).unwrap();
        assert_eq!(canary.enter(2), Err(Torn::Crowd(3)));
    }

    #[test]
    fn half_a_write_is_noticed_by_whoever_comes_next() {
        let canary = Canary::default();
        canary.set(WORDS - 1, 1);
        let torn = Torn::Words([0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(canary.read(|| {}), Err(torn));
        assert_eq!(canary.write(1, |_| {}), Err(torn));
        assert_eq!(canary.at_rest(), Err(torn));
        assert!(torn.to_string().contains("0, 1]"));
    }

    #[test]
    fn names_are_those_of_threads_and_handlers() {
        assert_eq!(Torn::Owner(1).to_string(), "thread 0 is inside too");
        let handler = Torn::Owner(HANDLER + 3).to_string();
        assert_eq!(handler, "a signal handler on thread 2 is inside too");
    }
}
