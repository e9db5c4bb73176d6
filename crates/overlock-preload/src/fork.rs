//! Children of fork(): makes every object usable in the child.
//!
//! The child is a copy of one thread and of all memory, so the lists of its locks name waiters that
//! do not exist in it. So the child begins a new *generation*. Each object carries the generation
//! in which it was made or last used. The first user of an object of an earlier generation makes it
//! forget its waiters. (An object that the forking thread owns stays owned: POSIX has a handler of
//! `pthread_atfork` unlock it in the child.)

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use overlock::Linux;
use overlock_core::links::backoff_sleep;
use overlock_core::{Platform, Spin};

use crate::{cond, config, order, stat};

static GENERATION: AtomicU32 = AtomicU32::new(0);

/// Stands in for a generation while a thread updates the object to the new one.
const UPDATING: u32 = u32::MAX;

/// Returns the process's generation: the number of forks between the program's start and it.
#[inline]
pub fn generation() -> u32 {
    // Relaxed: written before the child's first other thread is created.
    GENERATION.load(Relaxed)
}

/// Registers the handler that runs after fork() in the child.
pub fn register() {
    unsafe extern "C" fn child() {
        GENERATION.store(generation().wrapping_add(1) % (UPDATING - 1), Relaxed);
        // SAFETY: this is the child's only thread.
        unsafe { Linux::after_fork() };
        cond::after_fork();
        stat::after_fork();
        order::after_fork();
        config::generation_changed();
    }
    // SAFETY: the handler has the type that is asked for. Registration fails only without memory;
    // then children keep the state of their parent.
    unsafe { libc::pthread_atfork(None, None, Some(child)) };
}

/// Polls of an object that another thread is updating, before the thread backs off. The update
/// takes a few stores.
const POLLS: u32 = 1000;

/// Updates an object to the process's generation, by `forget` if it is of another.
#[inline(always)]
pub fn update(of: &AtomicU32, forget: impl FnOnce()) {
    // Acquire, as in the loop below.
    if of.load(Acquire) != generation() {
        update_slowly(of, forget);
    }
}

#[cold]
fn update_slowly(of: &AtomicU32, forget: impl FnOnce()) {
    let now = generation();
    loop {
        let limit = Spin::Polls(POLLS);
        let Ok(seen) = Linux::wait_until(of, Acquire, limit, |seen: u32| seen != UPDATING) else {
            backoff_sleep::<Linux>();
            continue;
        };
        if seen == now {
            return;
        }
        // Acquire, as the load above: pairs with the store below.
        if of
            .compare_exchange(seen, UPDATING, Acquire, Relaxed)
            .is_ok()
        {
            forget();
            // Release: a thread that sees the generation sees what `forget` has stored.
            of.store(now, Release);
            return;
        }
    }
}
