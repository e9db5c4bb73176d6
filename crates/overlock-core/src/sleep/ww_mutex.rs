//! Mutexes of which a thread can hold several, taken in any order, without deadlock.
//!
//! A thread that wants more than one lock opens a *context* ([`acquire`]) and takes them through
//! it. Each context has a stamp; one that began earlier is *older*. If two contexts could come to
//! wait for each other, the younger one is *aborted*: it releases all that it holds, waits for
//! the lock that it could not have, and begins again. It keeps its stamp, so that in the end it is
//! the oldest. The [class](Class)'s [rule](Rule) says which of the two detects the conflict:
//!
//! - *wound-wait*, the usual one: an older context that comes to a lock wounds the younger one that
//!   holds it. A wounded context is aborted when it next has to wait, and not before.
//! - *wait-die*: a younger context that comes to a lock which an older one holds, or waits for,
//!   dies: it is aborted at once, if it holds anything.
//!
//! A context of an [optimistic](Class::optimistic) class has no stamp and no node at first, and
//! takes what is free. Like one that finds no node left, it does not wait while it holds a lock: it
//! is aborted instead, and the next attempt has both.
//!
//! The scheme is that of database transactions (Rosenkrantz, Stearns, Lewis, 1978); the lock
//! follows the kernel's ww_mutex. Outside of contexts the lock is a plain mutex ([`RawLock`],
//! [`WwMutex::hold`]).
//!
//! # Layout
//!
//! | field | who writes it |
//! |---|---|
//! | `word`, bits 0 to 15 | the holder's name: its context's node; 0 where it holds without a context, 1 where its context has no node |
//! | `word`, bit 16 | LOCKED |
//! | `word`, bit 17 | WAITERS, under the wait lock: the list is not empty, or a thread is about to change that |
//! | `waiters` | under its wait lock: contexts in the order of their stamps, and waiters without a context between them, in the order of their arrival |
//! | `class` | nobody; a context of another class is refused |
//!
//! A context owns one queue node while it lives. Nodes are immortal, so a name in a lock can be
//! resolved even after its context has ended. In the node:
//!
//! | field | who writes it |
//! |---|---|
//! | `lock` | the context as it begins: its stamp. A waiter without a context, before it enters the list: 0 |
//! | `info`: WOUNDED | set by an older context, under the wait lock of a lock that this one holds; cleared by the context while it holds none |
//! | `info`: HOLDS | the context before it enters a list: it holds other locks |
//! | `info`: BYPASSED | the waiter, under the wait lock: it was woken, and another thread was quicker |
//! | `state` | under the wait lock: WAITING; WOKEN: it must check again; GRANTED: it is out of the list, and the holder |
//! | `next`, `wait`, `kicks` | the list's links, and the count of kicks: see `sleep/wait_list.rs` |
//!
//! # States
//!
//! As (name, LOCKED, WAITERS), name being `-` where nothing is locked:
//!
//! ```text
//! (-, 0, 0)  --lock-->      (n, 1, 0)    one exchange, without the wait lock
//! (n, 1, 0)  --unlock-->    (-, 0, 0)    the same; or after a check of the list that has just become empty
//! (n, 1, *)  --wait-->      (n, 1, 1)    enters the list, before younger contexts, and sleeps; or leaves it at once
//! (-, 0, *)  --wait-->      (m, 1, *)    it is free by now: taken under the wait lock
//! (n, 1, 1)  --unlock-->    (-, 0, 1)    the first waiter is woken; a newcomer may be quicker
//! (-, 0, 1)  --lock-->      (m, 1, *)    a newcomer that tries, or a woken waiter. A bypassed one waits again
//! (n, 1, 1)  --unlock-->    (f, 1, *)    the first waiter was bypassed before: the lock is handed off to it
//! (n, 1, 1)  --give up-->   (n, 1, *)    a waiter that was wounded, or has to die, leaves the list
//!
//! a thread that comes to a lock, by the rules:
//! wound-wait: an older waiter wounds a younger holder; a newcomer that takes a lock past an older waiter wounds itself
//! wait-die: a waiter that enters wakes the next behind it, and a thread that takes the lock the first in the list: to die
//!
//! an attempt of a context:  aborted --> waits for the lock that it wanted, holds it --> the next attempt
//!                                   --> backs off, where that lock may be freed     --> the next attempt
//!                           aborted at once by a lock that it cannot have without a node, where it holds something
//! without a node: backs off until the lock is free
//! ```
//!
//! # Invariants
//!
//! - I1: while WAITERS is set, the word changes only under the wait lock: both exchanges expect it
//!   clear.
//! - I2: a context that holds a lock whose WAITERS is set cannot end, nor release this lock,
//!   without the lock's wait lock. So the holder of the wait lock may set WOUNDED in the node that
//!   the lock names: it is still that context's.
//! - I3: while the lock is free and has waiters, the first in the list is WOKEN: on its way to
//!   check. A waiter leaves without the lock only while another thread holds it.
//! - I4 (wound-wait): whenever the wait lock is free, if a context that HOLDS waits for a younger
//!   one's lock, that one is WOUNDED.
//! - I5 (wait-die): whenever the wait lock is free, if a context that HOLDS waits, and the holder
//!   is older or a context stands before it in the list, it is WOKEN. So of the contexts in the
//!   list only the first can HOLD and sleep on.
//!
//! # Why there is no deadlock
//!
//! In a cycle of contexts, each holding a lock that the one before waits for, all HOLD. Somewhere
//! in it an older one waits for a younger one: by I4 that one is wounded, does not sleep on, and
//! leaves. And somewhere a younger one waits for an older: by I5 that one is woken, checks, and
//! leaves. A context behind another waiter waits for the holder like that one. An aborted context
//! keeps its stamp, and the oldest of all is never aborted, so each succeeds in the end.
//!
//! This does not cover holders without a context: a context that waits for them must not hold what
//! they wait for. Nor does it cover contexts within contexts of the same thread.
//!
//! # Orderings
//!
//! - WU, the release exchange that frees the lock, pairs with WA, the acquire exchange that takes
//!   it. It also pairs with WE, the acquire read-modify-write by which a waiter sets WAITERS and
//!   may find the lock free.
//! - WA also releases, and WE acquires it: the newcomer that reads a holder's name reads its stamp.
//! - The wait lock's own acquire and release order everything under it, which is Relaxed. They also
//!   order successive holders that hand off under it.
//!
//! # Why no wake-up is lost
//!
//! A waiter enters the list before it sleeps, with WAITERS set, so every unlock from then on takes
//! the wait lock, and wakes the first. The waiter sleeps until its state has changed or it is
//! wounded. Both are written before the kick, and the kick counts even before the sleep
//! (`sleep/wait_list.rs`). A context that is wounded on its way to a list finds that out there.
//!
//! # How long a waiter can wait
//!
//! An older context enters the list before younger ones, also before the first. Newcomers may take
//! the lock while the first is on its way. When it finds itself bypassed it says so, and the next
//! unlock hands off to it. So only two kinds bypass the first: those that come while it wakes up
//! once, and older contexts, of which there are finitely many.
//!
//! # Lifetime
//!
//! An unlock's last access to the lock is the exchange, or the release of its wait lock. A thread
//! that gets the lock from it meanwhile has to take that wait lock first.
//!
//! # Where this deviates from the published form
//!
//! - Lock and context are named in one word, so that one exchange takes the lock and names the
//!   context. The kernel has two words, and a fence and a second check between them.
//! - A context is its node's name, not a pointer to its owner's stack.
//! - The caller does not retry: [`acquire`] does, and waits for the contended lock first.
//! - A class may be optimistic.
//! - Waiters do not spin.

mod class;
mod context;
#[cfg(test)]
mod tests;
mod wait;

use core::sync::atomic::Ordering::{AcqRel, Relaxed, Release};

pub use class::{Class, Rule};
pub use context::{Context, Error, Held, acquire};

use crate::platform::{Atomic, Platform};
use crate::raw::{ConstLock, RawLock};
use crate::sleep::wait_list::{Limit, WaitList, Waiter};
use crate::stat::{self, Event};
use wait::Party;

const NAME: u32 = 0xffff;
const LOCKED: u32 = 1 << 16;
const WAITERS: u32 = 1 << 17;

/// A mutex of which contexts can hold several: see the [module's page](self). 24 bytes on 64-bit
/// machines.
#[derive(Debug)]
pub struct WwMutex<P: Platform> {
    word: P::U32,
    waiters: WaitList<P>,
    class: Option<&'static Class<P>>,
}

/// A lock of no class: for use without contexts.
impl<P: Platform> ConstLock for WwMutex<P> {
    const INIT: Self = WwMutex {
        word: Atomic::ZERO,
        waiters: WaitList::INIT,
        class: None,
    };
}

impl<P: Platform> WwMutex<P> {
    /// A new, unlocked lock for contexts of `class`.
    pub const fn new(class: &'static Class<P>) -> Self {
        WwMutex {
            word: Atomic::ZERO,
            waiters: WaitList::INIT,
            class: Some(class),
        }
    }

    /// Acquires the lock without a context, until the result is dropped.
    #[inline]
    pub fn hold(&self) -> Held<'_, P> {
        self.lock();
        Held::without_context(self)
    }

    /// As [`hold`](Self::hold), if that needs no waiting.
    #[inline]
    pub fn try_hold(&self) -> Option<Held<'_, P>> {
        self.try_lock().map(|()| Held::without_context(self))
    }

    #[inline(always)]
    fn take(&self, name: u32) -> bool {
        // (-, 0, 0) -> (name, 1, 0). WA: acquire, pairs with WU; release, pairs with WE.
        self.word
            .compare_exchange(0, LOCKED | name, AcqRel, Relaxed)
            .is_ok()
    }

    /// Takes the lock if it is free, past waiters.
    fn try_take(&self, party: Party) -> bool {
        match self.word.load(Relaxed) {
            word if word & LOCKED != 0 => false,
            0 => self.take(party.name),
            _ => self.steal(party),
        }
    }

    #[cold]
    fn lock_without_context(&self) {
        stat::count::<P>(Event::LockSlowpath);
        match Waiter::in_word(self) {
            Some(waiter) => {
                // Returns true: without a context it is never aborted.
                self.lock_slow(&waiter, Party::WITHOUT_CONTEXT);
            }
            None => self.poll(Party::WITHOUT_CONTEXT),
        }
    }

    /// Takes the lock without a node to wait in: tries and backs off, and may starve.
    #[cold]
    fn poll(&self, party: Party) {
        Limit::<P>::NONE.wait_without_node(|| self.try_take(party));
    }

    /// Releases the lock, which `name` holds.
    #[inline]
    fn release(&self, name: u32) {
        // (name, 1, 0) -> (-, 0, 0). WU: release, pairs with WA and WE.
        let released = self
            .word
            .compare_exchange(LOCKED | name, 0, Release, Relaxed);
        if released.is_err() {
            self.release_slow(name);
        }
    }
}

// SAFETY: the word goes to LOCKED by an exchange of 0 (I1), or under the wait lock, where it was
// not LOCKED. Or it stays LOCKED while an unlock under the wait lock changes the name from its own
// to that of the one waiter that it signals. Only the holder's unlock does that, or frees the lock.
unsafe impl<P: Platform> RawLock for WwMutex<P> {
    type Token = ();

    const NAME: &'static str = "ww_mutex";

    #[inline]
    fn lock(&self) {
        if !self.take(Party::WITHOUT_CONTEXT.name) {
            self.lock_without_context();
        }
    }

    #[inline]
    fn try_lock(&self) -> Option<()> {
        self.try_take(Party::WITHOUT_CONTEXT).then_some(())
    }

    #[inline]
    unsafe fn unlock(&self, (): ()) {
        self.release(Party::WITHOUT_CONTEXT.name);
    }

    fn is_locked(&self) -> bool {
        self.word.load(Relaxed) & LOCKED != 0
    }

    fn is_contended(&self) -> bool {
        self.word.load(Relaxed) & WAITERS != 0
    }
}
