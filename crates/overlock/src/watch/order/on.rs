//! With the validator: see [`lockdep`].

use std::panic::Location;
use std::ptr;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use overlock_lockdep::__private::{self as lockdep_types, Held};
use overlock_lockdep::{self as lockdep, ClassId, Site};

use crate::watch::How;

/// Whether attempts come before waits.
pub(crate) const TRIES: bool = true;

impl From<How> for lockdep::How {
    #[inline]
    fn from(how: How) -> lockdep::How {
        match how {
            How::Exclusive => lockdep::How::EXCLUSIVE,
            How::Shared => lockdep::How::SHARED,
            How::Recursive => lockdep::How::SHARED_RECURSIVE,
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
        let mut held = self.held(raw, how.into());
        if level != 0 {
            held.class = lockdep::level(held.class, level);
        }
        lockdep_types::wanted(&held);
        Wanted { held, waits: false }
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
        acquired(&self.held(raw, lockdep::How::from(how).trying()));
        Some(token)
    }
}

/// An acquisition that may wait.
pub(crate) struct Wanted {
    held: Held,
    /// Whether the caller waits.
    waits: bool,
}

impl Wanted {
    /// The lock is not free, and the caller waits for it.
    #[inline]
    pub(crate) fn waits(&mut self) {
        self.waits = true;
        lockdep_types::waits(&self.held);
    }

    /// The lock is acquired.
    #[inline]
    pub(crate) fn acquired(self) {
        if self.waits {
            lockdep::end_wait(self.held.lock);
        }
        acquired(&self.held);
    }
}

#[cold]
fn wait<T>(held: &Held, lock: impl FnOnce() -> T) -> T {
    lockdep_types::waits(held);
    let token = lock();
    lockdep::end_wait(held.lock);
    token
}

#[inline]
fn acquired(held: &Held) {
    lockdep_types::holds(held);
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
pub(crate) fn asleep<R, T>(here: Site, raw: &R, f: impl FnOnce() -> T) -> T {
    lockdep::sleeps(ptr::from_ref(raw).addr(), here);
    let Paused(Some(held)) = pause(raw) else {
        return f();
    };
    lockdep_types::wanted(&held);
    let value = f();
    lockdep_types::holds(&held);
    value
}
