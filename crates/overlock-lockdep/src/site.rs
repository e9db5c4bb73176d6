//! Places in the program, and ways to hold a lock: the vocabulary of the interface.

use std::fmt;
use std::panic::Location;
use std::ptr;

use super::symbol;
use super::trace::Trace;

/// A place in the program: a code address, or a line of a Rust source file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Site(usize);

/// Distinguishes a `Location`'s address from a code address. No address of a process has it.
const LOCATION: usize = 1 << (usize::BITS - 1);

impl Site {
    /// Unknown.
    pub const NONE: Site = Site(0);

    /// A code address, such as the return address of a replaced function. 0 is [`Site::NONE`].
    pub const fn code(address: usize) -> Site {
        Site(address & !LOCATION)
    }

    /// Returns a line of a source file.
    pub fn location(location: &'static Location<'static>) -> Site {
        Site(ptr::from_ref(location).expose_provenance() | LOCATION)
    }

    /// Returns the line of the caller.
    #[inline]
    #[track_caller]
    pub fn here() -> Site {
        Site::location(Location::caller())
    }

    /// Returns the place, or if unknown the caller of the object with this code, as far as a
    /// backtrace shows.
    pub(super) fn or_caller(self) -> Site {
        match self {
            Site::NONE => Trace::here(Site::NONE).caller(),
            site => site,
        }
    }

    pub(super) const fn to_bits(self) -> usize {
        self.0
    }

    /// Inverse of [`to_bits`](Self::to_bits).
    pub(super) const fn from_bits(bits: usize) -> Site {
        Site(bits)
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 & LOCATION != 0 {
            let location = ptr::with_exposed_provenance::<Location<'static>>(self.0 & !LOCATION);
            // SAFETY: the bit is only set by `location`, on the address of a Location that lives
            // for ever.
            return unsafe { &*location }.fmt(f);
        }
        match self.0 {
            0 => f.write_str("(unknown)"),
            address => symbol::Code(address).fmt(f),
        }
    }
}

impl fmt::Debug for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Site({self})")
    }
}

/// How a lock is acquired.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct How(u8);

const SHARED: u8 = 1;
const RECURSIVE: u8 = 2;
const TRYING: u8 = 4;
const REENTRANT: u8 = 8;
const UPGRADABLE: u8 = 16;

impl How {
    /// Exclusively: mutexes and writers.
    pub const EXCLUSIVE: How = How(0);
    /// Together with other readers; waits behind a waiting writer. So a thread that reads already
    /// must not read again.
    pub const SHARED: How = How(SHARED);
    /// Together with other readers; waits only for a writer that holds the lock, as with glibc's
    /// default rwlocks.
    pub const SHARED_RECURSIVE: How = How(SHARED | RECURSIVE);

    /// Together with readers, but with no other of its kind; waits behind a waiting writer. It may
    /// become the writer. In the order of locks it counts as one that is alone.
    pub const UPGRADABLE: How = How(UPGRADABLE);

    /// Without waiting, or with a limit. Such an acquisition ends by itself, so its place in the
    /// order is harmless. Acquisitions while it is held still count.
    pub const fn trying(self) -> How {
        How(self.0 | TRYING)
    }

    /// Of a recursive lock: its holder may acquire it again.
    pub const fn reentrant(self) -> How {
        How(self.0 | REENTRANT)
    }

    pub(super) const fn is_shared(self) -> bool {
        self.0 & SHARED != 0
    }

    pub(super) const fn is_upgradable(self) -> bool {
        self.0 & UPGRADABLE != 0
    }

    /// Whether a thread that holds the lock so keeps out one that wants it as `wanted` says.
    pub(super) const fn excludes(self, wanted: How) -> bool {
        match (self.is_shared(), wanted.is_shared()) {
            (true, true) => false,
            (true, false) => !wanted.is_upgradable(),
            (false, true) => !self.is_upgradable(),
            (false, false) => true,
        }
    }

    /// Not blocked by writers that only wait.
    pub(super) const fn is_recursive(self) -> bool {
        self.0 & RECURSIVE != 0
    }

    pub(super) const fn is_reentrant(self) -> bool {
        self.0 & REENTRANT != 0
    }

    pub(super) const fn is_trying(self) -> bool {
        self.0 & TRYING != 0
    }

    /// Whether a thread that holds the same lock as `held` says may acquire it as `self` says.
    pub(super) const fn may_follow(self, held: How) -> bool {
        self.is_reentrant() || self.is_trying() || self.is_recursive() && !held.excludes(self)
    }

    pub(super) const fn to_bits(self) -> u8 {
        self.0
    }

    pub(super) const fn from_bits(bits: u8) -> How {
        How(bits)
    }
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.is_shared(), self.is_recursive()) {
            (false, _) if self.is_upgradable() => "upgradable",
            (false, _) => "exclusive",
            (true, false) => "shared",
            (true, true) => "recursive shared",
        })
    }
}
