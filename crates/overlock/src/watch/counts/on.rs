//! With statistics: see [`stat`](crate::stat).

use std::panic::Location;
use std::ptr;

use overlock_stat::lock::{Lock, Name, State, here};
pub(crate) use overlock_stat::mode::is_on;
use overlock_stat::{ObjectKind, Site};

use crate::watch::{How, Sort};

/// The part of a lock that counts.
pub(crate) struct Key {
    state: State,
    name: Name,
    sort: Sort,
}

impl Key {
    #[track_caller]
    pub(crate) const fn here(sort: Sort) -> Key {
        Key {
            state: State::new(),
            name: Name::Line(Location::caller()),
            sort,
        }
    }

    pub(crate) const fn named(name: &'static str, sort: Sort) -> Key {
        Key {
            state: State::new(),
            name: Name::Given(name),
            sort,
        }
    }

    fn lock<R>(&self, raw: &R, how: How) -> Lock<'_> {
        Lock {
            state: &self.state,
            object: ptr::from_ref(raw).addr(),
            kind: match (how, self.sort) {
                (How::Shared | How::Recursive | How::Sent { shared: true }, _) => ObjectKind::Read,
                (_, Sort::RwLock) => ObjectKind::Write,
                (_, Sort::Mutex) => ObjectKind::Mutex,
            },
            name: self.name,
        }
    }

    /// Acquires by `attempt`, which does not wait, or else by `wait`. `has` tells whether the
    /// result of that is an acquisition, and `queue` whether others wait.
    #[inline(always)]
    pub(crate) fn acquire<R, T>(
        &self,
        raw: &R,
        how: How,
        queue: impl Fn() -> bool,
        attempt: impl FnOnce() -> Option<T>,
        wait: impl FnOnce() -> T,
        has: impl Fn(&T) -> bool,
    ) -> T {
        let site = here();
        // The address of a variable says in which frame the caller is.
        let at = (ptr::from_ref(&site).addr(), site);
        self.acquire_at(raw, how, at, queue, attempt, wait, has)
    }

    /// A call, so that acquisitions which are not counted save no registers for it.
    #[allow(clippy::too_many_arguments)] // all of `acquire`
    #[inline(never)]
    fn acquire_at<R, T>(
        &self,
        raw: &R,
        how: How,
        (frame, site): (usize, Site),
        queue: impl Fn() -> bool,
        attempt: impl FnOnce() -> Option<T>,
        wait: impl FnOnce() -> T,
        has: impl Fn(&T) -> bool,
    ) -> T {
        let lock = self.lock(raw, how);
        let begun = lock.begins(queue(), frame, site);
        if let Some(token) = attempt() {
            lock.taken(begun);
            self.is_taken(how);
            return token;
        }
        let waiting = lock.waits(begun, frame);
        let token = wait();
        match has(&token) {
            true => {
                lock.over(waiting);
                self.is_taken(how);
            }
            false => lock.gave_up(waiting),
        }
        token
    }

    /// Acquires by `attempt`, which does not wait. `queue` as above.
    #[inline(always)]
    pub(crate) fn attempt<R, T>(
        &self,
        raw: &R,
        how: How,
        queue: impl Fn() -> bool,
        attempt: impl FnOnce() -> Option<T>,
    ) -> Option<T> {
        let site = here();
        // As above.
        let at = (ptr::from_ref(&site).addr(), site);
        self.attempt_at(raw, how, at, queue, attempt)
    }

    /// As above.
    #[inline(never)]
    fn attempt_at<R, T>(
        &self,
        raw: &R,
        how: How,
        (frame, site): (usize, Site),
        queue: impl Fn() -> bool,
        attempt: impl FnOnce() -> Option<T>,
    ) -> Option<T> {
        let lock = self.lock(raw, how);
        let begun = lock.begins(queue(), frame, site);
        let token = attempt()?;
        lock.taken(begun);
        self.is_taken(how);
        Some(token)
    }

    #[inline]
    fn is_taken(&self, how: How) {
        if let How::Sent { shared: false } = how {
            self.state.is_anybodys();
        }
    }

    /// Releases the lock by `release`.
    #[inline(always)]
    pub(crate) fn release<R, T>(&self, raw: &R, release: impl FnOnce() -> T) -> T {
        match is_on() {
            true => self.lock(raw, How::Exclusive).releases(release),
            false => release(),
        }
    }

    /// The lock is about to be held as a reader.
    #[inline(always)]
    pub(crate) fn downgrade<R>(&self, raw: &R) {
        self.release(raw, || ());
    }

    /// The lock is about to be released for a while.
    #[inline(always)]
    pub(crate) fn pause<R>(&self, raw: &R) -> Paused {
        if !is_on() {
            return Paused(None, false);
        }
        let is_sent = self.state.is_sent();
        Paused(self.lock(raw, How::Exclusive).pause(), is_sent)
    }

    /// It is acquired again.
    #[inline(always)]
    pub(crate) fn end(&self, paused: Paused) {
        if let Some(site) = paused.0 {
            self.state.owns_again(site);
            if paused.1 {
                self.state.is_anybodys();
            }
        }
    }
}

/// An acquisition that is released for a while, with its call site (`None` if it was not counted),
/// and whether it may be handed on.
pub(crate) struct Paused(Option<u32>, bool);

/// Runs when the program is loaded.
// SAFETY: the section is an array of such functions, which the loader calls.
#[used]
#[cfg_attr(not(miri), unsafe(link_section = ".init_array"))]
static LOADED: extern "C" fn() = overlock_stat::mode::load;
