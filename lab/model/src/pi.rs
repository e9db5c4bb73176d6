//! The kernel's part of a PI futex, for checkers: the lock is handed off to the first waiter.
//! (Nobody lends priorities: checkers have none.)

use std::collections::VecDeque;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use overlock_core::platform::{Atomic, Deadline, Kick, Platform};
use overlock_core::sleep::rt_mutex::{PiError, THREAD_ID, WAITERS};

/// The sleepers, first come first: the word's address, and the number of the thread.
#[derive(Debug, Default)]
pub struct Sleepers(VecDeque<(usize, usize)>);

impl Sleepers {
    fn first(&mut self, word: usize) -> Option<usize> {
        let index = self
            .0
            .iter()
            .position(|(sleeps_on, _)| *sleeps_on == word)?;
        self.0.remove(index).map(|(_, thread)| thread)
    }

    fn leave(&mut self, thread: usize) -> bool {
        let before = self.0.len();
        self.0.retain(|(_, sleeper)| *sleeper != thread);
        self.0.len() < before
    }
}

/// A platform with such a kernel.
pub trait Kernel: Platform {
    /// The calling thread's number, from 0.
    fn number() -> usize;

    /// Works on the list of sleepers; no other thread runs meanwhile.
    fn sleepers<R>(work: impl FnOnce(&mut Sleepers) -> R) -> R;

    /// Whether the kernel cannot help now.
    fn refuses() -> bool;

    /// A count for each thread by its number, that it alone sleeps on: how often it was made an
    /// owner.
    fn granted(thread: usize) -> &'static Self::U32;
}

/// The id of a thread in a word.
pub fn id(thread: usize) -> u32 {
    thread as u32 + 1
}

/// See [`PiPlatform::lock_pi`](overlock_core::sleep::rt_mutex::PiPlatform::lock_pi).
pub fn lock<K: Kernel>(word: &K::U32, until: Option<Deadline>) -> Result<(), PiError> {
    let (me, address) = (K::number(), std::ptr::from_ref(word).addr());
    let granted = K::granted(me);
    // A count, which a late store of ours could not set back.
    let before = granted.load(Relaxed);
    if K::refuses() {
        return Err(PiError::Unavailable);
    }
    let mut seen = word.load(Relaxed);
    loop {
        let owner = seen & THREAD_ID;
        if owner == id(me) {
            return Err(PiError::Deadlock);
        }
        let new = if owner == 0 {
            id(me) | seen & WAITERS
        } else {
            seen | WAITERS
        };
        // Acquire, for where it makes us the owner: pairs with the last one's release, in `unlock`
        // or in the lock's fast path.
        match word.compare_exchange(seen, new, Acquire, Relaxed) {
            Ok(_) if owner == 0 => return Ok(()),
            Ok(_) => break,
            Err(now) => seen = now,
        }
    }
    // Nobody has run since the exchange.
    K::sleepers(|sleepers| sleepers.0.push_back((address, me)));
    loop {
        // Acquire: pairs with the grant in `unlock`.
        if granted.load(Acquire) != before {
            return Ok(());
        }
        let over = until.is_some_and(Deadline::is_over::<K>);
        if over && K::sleepers(|sleepers| sleepers.leave(me)) {
            return Err(PiError::Deadline);
        }
        // A thread that is not on the list any more has the lock, and is about to be signalled.
        let until = until.filter(|_| !over);
        K::halt(granted, before, until);
    }
}

/// See [`PiPlatform::unlock_pi`](overlock_core::sleep::rt_mutex::PiPlatform::unlock_pi).
pub fn unlock<K: Kernel>(word: &K::U32) {
    let address = std::ptr::from_ref(word).addr();
    let mut owned = true;
    loop {
        if let Some(next) = K::sleepers(|sleepers| sleepers.first(address)) {
            // Whether others sleep is not checked: an unlock that finds nobody does no harm.
            if owned {
                word.store(id(next) | WAITERS, Release);
            } else if !grant_free::<K>(word, next) {
                // Somebody has taken the free lock past the sleeper: its unlock finds the sleeper.
                // Nobody has run since the exchange that told it.
                K::sleepers(|sleepers| sleepers.0.push_front((address, next)));
                return;
            }
            // Release: pairs with the load in `lock`.
            K::granted(next).fetch_add(1, Release);
            K::kick(K::granted(next), Kick::One);
            return;
        }
        if !owned {
            return;
        }
        word.store(0, Release);
        // One that has come since saw the owner's name, and sleeps.
        owned = false;
    }
}

/// Makes `next` the owner of a lock that was free; or tells its owner, where it has one, that
/// somebody sleeps, and returns false.
fn grant_free<K: Kernel>(word: &K::U32, next: usize) -> bool {
    let mut seen = 0;
    loop {
        let free = seen & THREAD_ID == 0;
        let owner = if free { id(next) } else { seen };
        // Acquire and release, as an unlock and a lock in one.
        match word.compare_exchange(seen, owner | WAITERS, AcqRel, Relaxed) {
            Ok(_) => return free,
            Err(now) => seen = now,
        }
    }
}
