//! With the validator: see [`lockdep`].

mod back;

use std::panic::Location;
use std::ptr;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use overlock_lockdep::__private::{self as lockdep_types, Held};
use overlock_lockdep::{self as lockdep, ClassId, Site};

#[cfg(feature = "deadlock_detection")]
use crate::deadlock as waits;
use crate::watch::How;
use back::RELEASED;

pub(crate) use back::Back;

/// Whether attempts come before waits.
pub(crate) const TRIES: bool = true;

/// Waits without backtraces.
#[cfg(not(feature = "deadlock_detection"))]
mod waits {
    pub(crate) use overlock_lockdep::__private::waits as begin;
    pub(crate) use overlock_lockdep::end_wait as end;
}

impl How {
    /// In the validator's terms, if it sees the acquisition.
    #[inline]
    fn seen(self) -> Option<lockdep::How> {
        match self {
            How::Exclusive => Some(lockdep::How::EXCLUSIVE),
            How::Shared => Some(lockdep::How::SHARED),
            How::Recursive => Some(lockdep::How::SHARED_RECURSIVE),
            How::Upgradable => Some(lockdep::How::UPGRADABLE),
            How::Sent { .. } => None,
        }
    }
}

enum Origin {
    Line(&'static Location<'static>),
    Name(&'static str),
}

/// Identifies a lock's class, and distinguishes the lock from others of the class, wherever it is
/// moved.
pub(crate) struct Key {
    origin: Origin,
    /// The class and the lock's number; 0 until the first acquisition.
    id: AtomicU64,
}

impl Drop for Key {
    #[inline]
    fn drop(&mut self) {
        match *self.id.get_mut() {
            0 => {}
            id => lockdep_types::ends(ClassId::from_bits(id)),
        }
    }
}

impl Key {
    #[track_caller]
    pub(crate) const fn here() -> Key {
        Key {
            origin: Origin::Line(Location::caller()),
            id: AtomicU64::new(0),
        }
    }

    pub(crate) const fn named(name: &'static str) -> Key {
        Key {
            origin: Origin::Name(name),
            id: AtomicU64::new(0),
        }
    }

    #[inline]
    fn id(&self) -> ClassId {
        // Relaxed: the classes' table has its own orderings.
        ClassId::from_bits(match self.id.load(Relaxed) {
            0 => self.find(),
            id => id,
        })
    }

    #[cold]
    #[inline(never)]
    fn find(&self) -> u64 {
        let class = match self.origin {
            Origin::Line(line) => lockdep::class_of_site(Site::location(line)),
            Origin::Name(name) => lockdep::class_named(name),
        };
        let id = lockdep_types::single(class).to_bits();
        match self.id.compare_exchange(0, id, Relaxed, Relaxed) {
            Ok(_) => id,
            Err(first) => first,
        }
    }

    #[track_caller]
    #[inline]
    fn held<R>(&self, raw: &R, how: lockdep::How) -> Held {
        Held {
            lock: ptr::from_ref(raw).addr(),
            class: self.id(),
            how,
            site: Site::here(),
        }
    }

    /// The lock is about to be acquired, however long that takes.
    #[track_caller]
    #[inline]
    pub(crate) fn wanted<R>(&self, raw: &R, how: How, level: u8) -> Wanted {
        let mut held = match how.seen() {
            Some(how) => self.held(raw, how),
            None => {
                return Wanted {
                    held: None,
                    waits: false,
                };
            }
        };
        if level != 0 {
            held.class = lockdep::level(held.class, level);
        }
        lockdep_types::wanted(&held);
        Wanted {
            held: Some(held),
            waits: false,
        }
    }

    /// Acquires by `attempt`, which ends by itself.
    #[track_caller]
    #[inline]
    pub(crate) fn attempt<R, T>(
        &self,
        raw: &R,
        how: How,
        attempt: impl FnOnce() -> Option<T>,
    ) -> Option<T> {
        let token = attempt()?;
        if let Some(how) = how.seen() {
            lockdep_types::holds(&self.held(raw, how.trying()));
        }
        Some(token)
    }
}

/// An acquisition that may wait.
pub(crate) struct Wanted {
    /// `None` if the validator does not see it.
    held: Option<Held>,
    /// Whether the caller waits.
    waits: bool,
}

impl Wanted {
    /// The lock is not free, and the caller waits for it.
    #[inline]
    pub(crate) fn waits(&mut self) {
        if let Some(held) = &self.held {
            self.waits = true;
            waits::begin(held);
        }
    }

    /// The lock is acquired.
    #[inline]
    pub(crate) fn acquired(self) {
        if let Some(held) = &self.held {
            if self.waits {
                waits::end(held.lock);
            }
            lockdep_types::holds(held);
        }
    }
}

#[cold]
fn wait<T>(held: &Held, lock: impl FnOnce() -> T) -> T {
    waits::begin(held);
    let token = lock();
    waits::end(held.lock);
    token
}

/// The lock is about to be released.
#[inline]
pub(crate) fn release<R>(raw: &R) {
    lockdep::release(ptr::from_ref(raw).addr());
}

/// The lock is about to be held as a reader.
#[inline]
pub(crate) fn downgrade<R>(raw: &R) {
    lockdep::downgrade(ptr::from_ref(raw).addr(), lockdep::How::SHARED);
}

/// The upgradable reader has become the writer, or the other way round.
#[inline]
pub(crate) fn change<R>(raw: &R, how: How) {
    if let Some(how) = how.seen() {
        lockdep::downgrade(ptr::from_ref(raw).addr(), how);
    }
}

/// Makes the upgradable reader the writer, by `upgrade`. Its acquisition is seen all the while:
/// others wait for it.
pub(crate) fn upgrade<R, T>(raw: &R, upgrade: impl FnOnce() -> T) -> T {
    let Paused(Some(held)) = pause(raw) else {
        return upgrade();
    };
    let how = lockdep::How::EXCLUSIVE;
    lockdep_types::wanted(&Held { how, ..held });
    lockdep_types::holds(&held);
    // It is no wait for itself.
    let how = how.reentrant();
    let token = wait(&Held { how, ..held }, upgrade);
    change(raw, How::Exclusive);
    token
}

/// An acquisition that is released for a while; `None` if the validator has not seen it.
pub(crate) struct Paused(Option<Held>);

pub(crate) fn pause<R>(raw: &R) -> Paused {
    Paused(lockdep_types::pause(ptr::from_ref(raw).addr()))
}

impl Paused {
    /// Acquires again by `lock`.
    pub(crate) fn end<T>(self, lock: impl FnOnce() -> T) -> T {
        let Some(held) = self.0 else { return lock() };
        lockdep_types::wanted(&held);
        let token = wait(&held, lock);
        lockdep_types::holds(&held);
        token
    }
}

/// A line of the caller's.
pub(crate) type Here = Site;

/// Returns the line of the caller.
#[track_caller]
pub(crate) fn here() -> Site {
    Site::here()
}

/// Releases, sleeps, and acquires again, by `f`.
pub(crate) fn asleep<R, T>(here: Site, raw: &R, f: impl FnOnce(&Back<R>) -> T) -> T {
    lockdep::sleeps(ptr::from_ref(raw).addr(), here);
    let Paused(Some(held)) = pause(raw) else {
        // Of a wait that ended by a panic.
        RELEASED.set(None);
        return f(Back::of(raw));
    };
    lockdep_types::wanted(&held);
    RELEASED.set(Some(held));
    let value = f(Back::of(raw));
    RELEASED.set(None);
    lockdep_types::holds(&held);
    value
}
