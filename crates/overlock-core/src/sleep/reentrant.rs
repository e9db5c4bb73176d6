//! A mutex that its owner may lock again.
//!
//! Around any lock there is the number of its owner, and how often that has locked it again. The
//! owner alone writes its number, before and after it holds the lock. So a thread that reads its
//! own number holds the lock, and one that reads another, however old, does not (R1). Nothing else
//! depends on that load, and all accesses are Relaxed. The count of further acquisitions belongs to
//! the owner (R2). It is 0 whenever there is none, so the first acquisition does not write it.
//!
//! A signal handler must not lock it: it may have interrupted its thread between the two writes.

use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;
use core::sync::atomic::Ordering::Relaxed;

use crate::platform::{Atomic, Atomics, Deadline};
use crate::raw::{ConstLock, RawFairLock, RawLock, RawTimedLock, ThreadId};

/// A lock `L` that its owner may lock again; see the [module's page](self). `I` tells the threads
/// apart.
///
/// It is no [`RawLock`], whose holder is alone with the data.
pub struct Reentrant<L, I, P: Atomics> {
    lock: L,
    /// The owner's acquisitions but the first.
    again: Cell<u32>,
    owner: P::Usize,
    ids: PhantomData<I>,
}

// SAFETY: only the thread that holds `lock` uses `again` (R2).
unsafe impl<L: Sync, I: Sync, P: Atomics> Sync for Reentrant<L, I, P> {}

impl<L: ConstLock, I, P: Atomics> Reentrant<L, I, P> {
    /// A new, unlocked lock.
    pub const fn new() -> Self {
        Self::around(L::INIT)
    }
}

impl<L: ConstLock, I, P: Atomics> Default for Reentrant<L, I, P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<L: ConstLock, I, P: Atomics> ConstLock for Reentrant<L, I, P> {
    const INIT: Self = Self::new();
}

impl<L, I, P: Atomics> Reentrant<L, I, P> {
    /// Around `lock`, which is free.
    pub const fn around(lock: L) -> Self {
        Reentrant {
            lock,
            again: Cell::new(0),
            owner: Atomic::ZERO,
            ids: PhantomData,
        }
    }

    /// The lock inside.
    #[inline]
    pub const fn inner(&self) -> &L {
        &self.lock
    }

    /// The lock inside.
    pub fn into_inner(self) -> L {
        self.lock
    }
}

impl<L: RawLock<Token = ()>, I: ThreadId, P: Atomics> Reentrant<L, I, P> {
    /// Whether the calling thread holds it.
    #[inline]
    pub fn is_owned_by_current_thread(&self) -> bool {
        self.owner.load(Relaxed) == I::current().get()
    }

    /// Whether a thread holds it. A snapshot.
    #[inline]
    pub fn is_locked(&self) -> bool {
        self.lock.is_locked()
    }

    /// Whether a thread waits for it. A snapshot.
    #[inline]
    pub fn is_contended(&self) -> bool {
        self.lock.is_contended()
    }

    /// Locks it once more, if the calling thread holds it.
    ///
    /// # Panics
    ///
    /// If it holds it 2^32 times.
    #[inline]
    pub fn lock_again(&self) -> bool {
        let is_mine = self.is_owned_by_current_thread();
        if is_mine {
            let again = self.again.get().checked_add(1); // R2
            self.again
                .set(again.expect("a reentrant lock is locked too often"));
        }
        is_mine
    }

    /// The calling thread holds the lock inside, and is the owner from now on.
    #[inline]
    fn own(&self) {
        self.owner.store(I::current().get(), Relaxed);
    }

    /// Acquires it for a thread that does not hold it, and waits for as long as it takes.
    #[inline]
    pub fn lock_first(&self) {
        self.lock.lock();
        self.own();
    }

    /// The same if that needs no waiting.
    #[inline]
    pub fn try_lock_first(&self) -> Option<()> {
        self.lock.try_lock()?;
        self.own();
        Some(())
    }

    /// Acquires it, and waits for as long as it takes.
    #[inline]
    pub fn lock(&self) {
        if !self.lock_again() {
            self.lock_first();
        }
    }

    /// Acquires it if that needs no waiting.
    #[inline]
    pub fn try_lock(&self) -> Option<()> {
        match self.lock_again() {
            true => Some(()),
            false => self.try_lock_first(),
        }
    }

    /// Whether the calling thread, which holds it, has locked it once.
    ///
    /// # Safety
    ///
    /// The calling thread holds it.
    #[inline]
    pub unsafe fn is_held_once(&self) -> bool {
        self.again.get() == 0 // R2
    }

    /// Undoes one acquisition. Returns whether it was the last, whose lock inside is to be
    /// released.
    ///
    /// # Safety
    ///
    /// The acquisition is by the calling thread, and undone once.
    #[inline]
    unsafe fn undo(&self) -> bool {
        crate::check!(
            @ self.is_owned_by_current_thread(),
            "unlock of a reentrant lock that the thread does not hold"
        );
        let again = self.again.get(); // R2
        match again {
            0 => self.owner.store(0, Relaxed),
            _ => self.again.set(again - 1),
        }
        again == 0
    }

    /// Undoes one acquisition.
    ///
    /// # Safety
    ///
    /// It is by the calling thread, and undone once.
    #[inline]
    pub unsafe fn unlock(&self) {
        // SAFETY: the caller's promise.
        if unsafe { self.undo() } {
            // SAFETY: the thread holds the lock inside, since the first acquisition.
            unsafe { self.lock.unlock(()) }
        }
    }
}

impl<L: RawTimedLock<Token = ()>, I: ThreadId, P: Atomics> Reentrant<L, I, P> {
    /// As [`lock_first`](Self::lock_first), unless `deadline` passes first. Tries at least once.
    pub fn lock_first_until(&self, deadline: impl Into<Deadline>) -> Option<()> {
        self.lock.lock_until(deadline)?;
        self.own();
        Some(())
    }

    /// Acquires it unless `deadline` passes first. Tries at least once.
    pub fn lock_until(&self, deadline: impl Into<Deadline>) -> Option<()> {
        match self.lock_again() {
            true => Some(()),
            false => self.lock_first_until(deadline),
        }
    }
}

impl<L: RawFairLock<Token = ()>, I: ThreadId, P: Atomics> Reentrant<L, I, P> {
    /// As [`unlock`](Self::unlock); the last one hands the lock off to a waiter, if one sleeps.
    ///
    /// # Safety
    ///
    /// As there.
    #[inline]
    pub unsafe fn unlock_fair(&self) {
        // SAFETY: the caller's promise.
        if unsafe { self.undo() } {
            // SAFETY: the thread holds the lock inside, since the first acquisition.
            unsafe { self.lock.unlock_fair(()) }
        }
    }

    /// Hands the lock off to a waiter and acquires it again, if the thread has locked it once and
    /// somebody waits.
    ///
    /// # Safety
    ///
    /// As for [`unlock`](Self::unlock).
    pub unsafe fn bump(&self) {
        if self.again.get() == 0 && self.is_contended() {
            // SAFETY: the caller's promise.
            unsafe { self.unlock_fair() };
            self.lock();
        }
    }
}

impl<L: fmt::Debug, I, P: Atomics> fmt::Debug for Reentrant<L, I, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reentrant").field(&self.lock).finish()
    }
}
