//! Children of fork.
//!
//! The child is a copy of one thread, and of everything that the others were in the middle of:
//! lists name waiters that are not there. So the child begins a new *generation*. Each object
//! carries the generation in which it was made or last used; whoever meets one of an older
//! generation makes it forget its waiters first. (An object that the forking thread owns stays
//! owned: POSIX has a handler of `pthread_atfork` unlock it in the child.)

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use overlock::Linux;
use overlock_core::{Platform, Spin};

use crate::{cond, config, order, stat};

static GENERATION: AtomicU32 = AtomicU32::new(0);

/// In place of a generation while the object is being settled in the new one.
const SETTLING: u32 = u32::MAX;

/// The process's generation: how many forks lie between it and the program's start.
#[inline]
pub fn generation() -> u32 {
    // Relaxed: written before the child's first other thread is created.
    GENERATION.load(Relaxed)
}

/// Has the C library tell us of forks.
pub fn register() {
    unsafe extern "C" fn child() {
        GENERATION.store(generation().wrapping_add(1) % (SETTLING - 1), Relaxed);
        // SAFETY: this is the child's only thread.
        unsafe { Linux::after_fork() };
        cond::after_fork();
        stat::after_fork();
        order::after_fork();
        config::generation_changed();
    }
    // SAFETY: the handler has the type that is asked for. It fails only without memory, and then
    // children are as they would be without it.
    unsafe { libc::pthread_atfork(None, None, Some(child)) };
}

/// Looks at an object that another thread is settling, and the naps after that: it forgets a few
/// words.
const TURNS: u32 = 1000;
const BACKOFF_SLEEP_NS: u64 = 50_000;

/// Brings an object to the process's generation, by `forget` if it is from another.
#[inline(always)]
pub fn settle(of: &AtomicU32, forget: impl FnOnce()) {
    // Acquire, as in the loop below.
    if of.load(Acquire) != generation() {
        settle_slowly(of, forget);
    }
}

#[cold]
fn settle_slowly(of: &AtomicU32, forget: impl FnOnce()) {
    let now = generation();
    loop {
        let turns = Spin::Polls(TURNS);
        let Ok(seen) = Linux::wait_until(of, Acquire, turns, |seen: u32| seen != SETTLING) else {
            Linux::backoff_sleep(BACKOFF_SLEEP_NS);
            continue;
        };
        if seen == now {
            return;
        }
        // Acquire, as the look above: pairs with the store below.
        if of
            .compare_exchange(seen, SETTLING, Acquire, Relaxed)
            .is_ok()
        {
            forget();
            // Release: who sees the generation sees what was forgotten.
            of.store(now, Release);
            return;
        }
    }
}
