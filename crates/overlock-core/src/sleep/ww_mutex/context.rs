//! Contexts, through which a thread takes several locks.

use core::cell::{Cell, OnceCell};
use core::sync::atomic::Ordering::Relaxed;
use core::{fmt, ptr};

use super::class::Class;
use super::wait::Party;
use super::{LOCKED, NAME, WwMutex};
use crate::links::backoff_sleep;
use crate::platform::{Atomic, Platform};
use crate::raw::RawLock;
use crate::sleep::wait_list::Waiter;
use crate::stat::{self, Event};

/// The name of a context without a node, in a lock's word.
const NO_NODE: u32 = 1;

/// Why a context did not get a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The context must release all that it holds. Return this from the closure given to
    /// [`acquire`], which then runs it again. A closure that goes on gets the same error for every
    /// lock.
    Aborted,
    /// The context holds this very lock.
    AlreadyHeld,
    /// The lock is of another class, or of none.
    OtherClass,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Error::Aborted => "an older context needs what this one holds",
            Error::AlreadyHeld => "the context holds this lock already",
            Error::OtherClass => "the lock is not of the context's class",
        })
    }
}

impl core::error::Error for Error {}

/// Runs `attempt`, which takes locks through the context that it is given, until it is not aborted,
/// and returns what it returns.
///
/// An attempt that ends with [`Error::Aborted`] has released its locks (guards do not outlive it).
/// Before the next attempt, the context acquires the lock that the last one could not have. The
/// next attempt then gets that lock without waiting, in whatever order it takes its locks. Each
/// attempt of a context has the same stamp, and ever fewer contexts are older, so it succeeds in
/// the end.
///
/// Changes of data by an aborted attempt stay: better change nothing before all locks are held.
/// `attempt` returns its own errors within `Ok`.
///
/// # Errors
///
/// [`Error::AlreadyHeld`] and [`Error::OtherClass`] as `attempt` returns them. Never
/// [`Error::Aborted`].
pub fn acquire<'env, P: Platform, R>(
    class: &'static Class<P>,
    mut attempt: impl FnMut(&Context<'env, P>) -> Result<R, Error>,
) -> Result<R, Error> {
    // It begins where it stays: a copy of what was just written costs more than all the rest.
    let mut context = Context::new(class);
    context.begin();
    loop {
        match attempt(&context) {
            Err(Error::Aborted) => context.start_over(),
            end => return end,
        }
    }
}

/// A thread that takes several locks. [`acquire`] makes it. The locks live at least for `'env`.
pub struct Context<'env, P: Platform> {
    state: State<P>,
    /// The lock for which the attempt was aborted.
    wanted: Cell<Option<&'env WwMutex<P>>>,
    /// The wanted lock of the attempt before: held, and not taken by this attempt yet.
    first: Cell<Option<&'env WwMutex<P>>>,
}

/// In `State::watched`: the context holds that lock.
const HELD: usize = 1;

/// The part of a context that its guards refer to. Its fields that are 0 at first are words. With
/// bytes among them the two wide stores that clear them overlapped, and a load of what both had
/// written waited for the cache.
struct State<P: Platform> {
    class: &'static Class<P>,
    /// Empty where the thread has no node left, or the context has not asked for one. Then the
    /// context never waits while it holds a lock, and is aborted instead.
    waiter: OnceCell<Waiter<P>>,
    /// 0 until it has asked for a node.
    stamp: Cell<usize>,
    acquired: Cell<usize>,
    /// The lock (its address) for which this attempt was aborted; 0 where it was not.
    aborted: Cell<usize>,
    /// Without a node: the lock (its address) for which it was last aborted, and HELD. All such
    /// contexts have the same name, and by this one recognises its own lock.
    watched: Cell<usize>,
}

/// A lock that is held, until dropped.
#[must_use = "the lock is released as soon as this is dropped"]
pub struct Held<'a, P: Platform> {
    lock: &'a WwMutex<P>,
    state: Option<&'a State<P>>,
}

impl<'env, P: Platform> Context<'env, P> {
    #[inline]
    pub(super) fn new(class: &'static Class<P>) -> Self {
        Context {
            state: State::new(class),
            wanted: Cell::new(None),
            first: Cell::new(None),
        }
    }

    #[inline]
    pub(super) fn begin(&self) {
        if !self.state.class.is_optimistic() {
            self.state.enrol();
        }
    }

    /// Acquires `lock`, waiting for as long as it takes, unless the context has to be aborted.
    ///
    /// # Errors
    ///
    /// See [`Error`].
    #[inline]
    pub fn lock<'a>(&'a self, lock: &'env WwMutex<P>) -> Result<Held<'a, P>, Error> {
        let before = self.state.is_aborted();
        let held = self.lock_found(lock);
        if self.state.is_aborted() && !before {
            self.wanted.set(Some(lock));
        }
        held
    }

    /// Acquires a lock that may be freed when the next attempt begins, such as one that was found
    /// in the data of another lock. If the context is aborted for it, the next attempt begins after
    /// a back-off instead of with this lock.
    ///
    /// # Errors
    ///
    /// See [`Error`].
    #[inline]
    pub fn lock_found<'a>(&'a self, lock: &'a WwMutex<P>) -> Result<Held<'a, P>, Error> {
        if !self.was_first(lock) {
            self.state.lock(lock)?;
        }
        Ok(Held {
            lock,
            state: Some(&self.state),
        })
    }

    /// Acquires `lock` if that needs no waiting.
    ///
    /// # Errors
    ///
    /// See [`Error`]; [`Error::Aborted`] only where the context is aborted already, or where its
    /// class is optimistic and this may be a lock of its own.
    pub fn try_lock<'a>(&'a self, lock: &'a WwMutex<P>) -> Result<Option<Held<'a, P>>, Error> {
        let got = self.was_first(lock) || self.state.try_lock(lock)?;
        Ok(got.then(|| Held {
            lock,
            state: Some(&self.state),
        }))
    }

    /// The number of locks that the context holds.
    pub fn holds(&self) -> usize {
        self.state.acquired.get()
    }

    /// Whether `lock` was acquired before the attempt, which takes it now.
    fn was_first(&self, lock: &WwMutex<P>) -> bool {
        let is_first = self.first.get().is_some_and(|first| ptr::eq(first, lock));
        if is_first {
            self.first.set(None);
        }
        is_first
    }

    fn release_first(&self) {
        if let Some(first) = self.first.take() {
            self.state.release(first);
        }
    }

    #[cold]
    fn start_over(&mut self) {
        self.release_first();
        if self.state.acquired.get() != 0 {
            crate::check!(
                false,
                "a guard of a ww_mutex was leaked in an attempt that was aborted"
            );
            // This context's state is leaked, as the lock is, and a new one goes on.
            self.state = State::new(self.state.class);
        }
        self.state.aborted.set(0);
        self.state.enrol();
        match self.wanted.take() {
            Some(lock) => {
                // It holds nothing, so it is not aborted; and the class is the right one.
                if self.state.lock(lock).is_ok() {
                    self.first.set(Some(lock));
                }
            }
            None => {
                backoff_sleep::<P>();
            }
        }
    }
}

impl<P: Platform> Drop for Context<'_, P> {
    #[inline]
    fn drop(&mut self) {
        self.release_first();
    }
}

/// Even, and not 0.
fn address<P: Platform>(lock: &WwMutex<P>) -> usize {
    ptr::from_ref(lock).addr()
}

impl<P: Platform> State<P> {
    #[inline]
    fn new(class: &'static Class<P>) -> Self {
        State {
            class,
            waiter: OnceCell::new(),
            stamp: Cell::new(0),
            acquired: Cell::new(0),
            aborted: Cell::new(0),
            watched: Cell::new(0),
        }
    }

    fn is_enrolled(&self) -> bool {
        self.stamp.get() != 0
    }

    fn is_aborted(&self) -> bool {
        self.aborted.get() != 0
    }

    /// Gets a stamp and, if there is one, a node, unless it has asked for them before. It holds no
    /// lock, which would have its old name.
    fn enrol(&self) {
        if self.is_enrolled() {
            return;
        }
        // A number that no other living context has.
        let stamp = self.class.stamp();
        self.stamp.set(stamp);
        if let Some(waiter) = Waiter::<P>::in_word(&()) {
            // Relaxed: nobody loads it before the node's name is in a lock, which WA or the wait
            // lock orders.
            waiter.node().lock.store(stamp, Relaxed);
            waiter.node().info.store(0, Relaxed);
            self.waiter.get_or_init(|| waiter);
        }
    }

    fn name(&self) -> u32 {
        match self.waiter.get() {
            Some(waiter) => waiter.id().bits().into(),
            None => NO_NODE,
        }
    }

    fn party(&self) -> Party {
        Party {
            name: self.name(),
            stamp: self.waiter.get().map_or(0, |_| self.stamp.get()),
            rule: self.class.rule(),
            holds: self.acquired.get() != 0,
        }
    }

    /// Whether the context may have `lock`, and is not aborted.
    #[inline]
    fn may_have(&self, lock: &WwMutex<P>) -> Result<(), Error> {
        if !lock.class.is_some_and(|class| ptr::eq(class, self.class)) {
            return Err(Error::OtherClass);
        }
        if self.is_aborted() {
            return Err(Error::Aborted);
        }
        if self.acquired.get() == 0 {
            self.forget_wounds();
        }
        Ok(())
    }

    // Apart, so that the rest of `lock` is small enough for its callers.
    #[inline(never)]
    fn forget_wounds(&self) {
        if let Some(waiter) = self.waiter.get() {
            // Wounds were for locks that it has released (I2). Relaxed: they were set under
            // wait locks, under which those locks were released later.
            waiter.node().info.store(0, Relaxed);
        }
    }

    #[inline]
    fn lock(&self, lock: &WwMutex<P>) -> Result<(), Error> {
        self.may_have(lock)?;
        if !lock.take(self.name()) {
            self.lock_contended(lock)?;
        }
        self.got(lock);
        Ok(())
    }

    fn try_lock(&self, lock: &WwMutex<P>) -> Result<bool, Error> {
        self.may_have(lock)?;
        let got = lock.try_take(self.party());
        if got {
            self.got(lock);
        } else if self.is_own(lock) {
            return Err(Error::AlreadyHeld);
        } else if self.may_be_own(lock) {
            self.aborted.set(address(lock));
            return Err(Error::Aborted);
        }
        Ok(got)
    }

    #[cold]
    fn lock_contended(&self, lock: &WwMutex<P>) -> Result<(), Error> {
        if self.is_own(lock) {
            return Err(Error::AlreadyHeld);
        }
        stat::count::<P>(Event::LockSlowpath);
        if self.acquired.get() == 0 {
            self.enrol();
        }
        let got = match self.waiter.get() {
            Some(waiter) => lock.lock_slow(waiter, self.party()),
            None if self.acquired.get() == 0 => {
                lock.poll(self.party());
                true
            }
            None => lock.try_take(self.party()),
        };
        if got {
            return Ok(());
        }
        self.aborted.set(address(lock));
        self.watched.set(address(lock));
        Err(Error::Aborted)
    }

    /// Whether this context knows that it holds `lock`.
    fn is_own(&self, lock: &WwMutex<P>) -> bool {
        self.is_named(lock)
            && (self.waiter.get().is_some() || self.watched.get() == address(lock) | HELD)
    }

    /// Whether this context cannot tell if it holds `lock`, and can in its next attempt.
    fn may_be_own(&self, lock: &WwMutex<P>) -> bool {
        !self.is_enrolled() && self.acquired.get() != 0 && self.is_named(lock)
    }

    /// Whether the name in `lock` is this context's, or one that it shares.
    fn is_named(&self, lock: &WwMutex<P>) -> bool {
        // Relaxed: its own name was written by itself, or read under the wait lock.
        lock.word.load(Relaxed) & (LOCKED | NAME) == LOCKED | self.name()
    }

    #[inline]
    fn got(&self, lock: &WwMutex<P>) {
        self.acquired.set(self.acquired.get() + 1);
        if self.watched.get() == address(lock) {
            self.watched.set(address(lock) | HELD);
        }
    }

    #[inline]
    fn release(&self, lock: &WwMutex<P>) {
        if self.watched.get() == address(lock) | HELD {
            self.watched.set(address(lock));
        }
        lock.release(self.name());
        self.acquired.set(self.acquired.get() - 1);
    }
}

impl<P: Platform> Drop for State<P> {
    #[inline]
    fn drop(&mut self) {
        if self.acquired.get() != 0 {
            // A guard was leaked: a lock names the node for ever, so nobody may use it again.
            core::mem::forget(self.waiter.take());
        }
    }
}

impl<'a, P: Platform> Held<'a, P> {
    /// Makes the guard of a lock that the caller has acquired without a context.
    pub(super) fn without_context(lock: &'a WwMutex<P>) -> Self {
        Held { lock, state: None }
    }
}

impl<P: Platform> Drop for Held<'_, P> {
    #[inline]
    fn drop(&mut self) {
        match self.state {
            Some(state) => state.release(self.lock),
            // SAFETY: acquired without a context, on this thread: the result of `hold` is not
            // `Send`.
            None => unsafe { self.lock.unlock(()) },
        }
    }
}

impl<P: Platform> fmt::Debug for Context<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("stamp", &self.state.stamp.get())
            .field("holds", &self.holds())
            .field("aborted", &self.state.is_aborted())
            .finish_non_exhaustive()
    }
}

impl<P: Platform> fmt::Debug for Held<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Held").field(self.lock).finish()
    }
}
