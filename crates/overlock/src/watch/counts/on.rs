//! With statistics: see [`stat`](crate::stat).

use std::panic::Location;
use std::ptr;

use overlock_stat::ObjectKind;
use overlock_stat::lock::{Begun, Lock, Name, State, Waiting, here};
use overlock_stat::mode::is_on;

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

    /// The lock is about to be acquired.
    #[inline(always)]
    pub(crate) fn wanted<'a, R>(
        &'a self,
        raw: &'a R,
        how: How,
        queue: impl Fn() -> bool,
    ) -> Wanted<'a, R> {
        let mut wanted = Wanted {
            key: self,
            raw,
            how,
            stage: Stage::Off,
        };
        if is_on() {
            // The address of a variable says in which frame the caller is.
            let frame = ptr::from_ref(&wanted).addr();
            let lock = self.lock(raw, how);
            wanted.stage = Stage::Begun(lock.begins(queue(), frame, here()));
        }
        wanted
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
        let is_sent = self.state.is_sent();
        let site = match is_on() {
            true => self.lock(raw, How::Exclusive).pause(),
            false => None,
        };
        Paused(site, is_sent)
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

enum Stage {
    Off,
    Begun(Begun),
    Waiting(Waiting),
}

/// An acquisition that may wait.
pub(crate) struct Wanted<'a, R> {
    key: &'a Key,
    raw: &'a R,
    how: How,
    stage: Stage,
}

impl<R> Wanted<'_, R> {
    #[inline(always)]
    pub(crate) fn is_on(&self) -> bool {
        !matches!(self.stage, Stage::Off)
    }

    /// The lock is not free, and the caller waits for it.
    #[inline(always)]
    pub(crate) fn waits(&mut self) {
        if let Stage::Begun(begun) = std::mem::replace(&mut self.stage, Stage::Off) {
            let frame = ptr::from_ref(self).addr();
            let lock = self.key.lock(self.raw, self.how);
            self.stage = Stage::Waiting(lock.waits(begun, frame));
        }
    }

    /// The lock is acquired.
    #[inline(always)]
    pub(crate) fn acquired(self) {
        let lock = || self.key.lock(self.raw, self.how);
        match self.stage {
            Stage::Off => return,
            Stage::Begun(begun) => lock().taken(begun),
            Stage::Waiting(waiting) => lock().over(waiting),
        }
        if let How::Sent { shared: false } = self.how {
            self.key.state.is_anybodys();
        }
    }

    /// It is not.
    #[inline(always)]
    pub(crate) fn gave_up(self) {
        if let Stage::Waiting(waiting) = self.stage {
            self.key.lock(self.raw, self.how).gave_up(waiting);
        }
    }
}

/// Runs when the program is loaded.
// SAFETY: the section is an array of such functions, which the loader calls.
#[used]
#[cfg_attr(not(miri), unsafe(link_section = ".init_array"))]
static LOADED: extern "C" fn() = overlock_stat::mode::load;
