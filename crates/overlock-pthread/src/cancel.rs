//! Cancellation points: `pthread_cond_wait`, `sem_wait` and their kind.
//!
//! glibc interrupts only threads that are inside of its own blocking calls. So our `pthread_cancel`
//! tells glibc first, then ends the wait of the thread in question, by a [`CancelToken`]. The
//! thread itself acts on the cancellation, in [`act`]: outside of all locks' code and as the owner
//! of its mutex again, as POSIX wants it. Its clean-up handlers run there.
//!
//! # Why no cancellation is lost
//!
//! A waiter writes its name into the entry of its slot (RA), then looks whether it was cancelled
//! (RB, by glibc), then waits. The canceller tells glibc (CA), then looks through the entries (CB).
//! Between the two of each there is a sequentially consistent fence. So either the waiter sees the
//! cancellation, or the canceller sees the waiter and cancels its token.
//!
//! # Those that sleep on a word of their own
//!
//! A token ends the waits of overlock-core's locks. What [sleeps on another word](sleep_on) names
//! that word in its entry (SW), then looks at its token (ST), then sleeps. The canceller cancels
//! the token, then looks at the entry's word: all four are sequentially consistent, so the sleeper
//! sees the cancellation, or the canceller sees the word, and wakes all that sleep there. The word
//! itself has not changed, so a sleeper on its way from ST into its sleep misses that. So the
//! canceller wakes again, until the sleeper has looked again.
//!
//! # Entries
//!
//! Entries are never cleaned up: one that names a thread which does not wait any more, or is gone,
//! has its token cancelled for nothing. Each wait begins with a fresh one.

use core::ffi::c_int;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::{AtomicU32, AtomicUsize, fence};

use overlock::Linux;
use overlock_core::Platform;
use overlock_core::node::MAX_SLOTS;
use overlock_core::sleep::cancel::CancelToken;

use crate::{futex, real};

/// How often a canceller wakes a sleeper that does not look, and the nap in between. A thread that
/// was killed in its sleep never does; one that waits for a CPU will have it by then.
const ATTEMPTS: u32 = 10_000;
const BACKOFF_SLEEP_NS: u64 = 50_000;

#[derive(Debug)]
struct Entry {
    thread: AtomicUsize,
    token: CancelToken<Linux>,
    /// How often the thread has begun or ended a sleep on a word of its own: odd while it may
    /// sleep.
    sleeps: AtomicU32,
    /// The address of that word.
    word: AtomicUsize,
}

/// All zero, so that only what is used takes memory.
static ENTRIES: [Entry; MAX_SLOTS] = [const {
    Entry {
        thread: AtomicUsize::new(0),
        token: CancelToken::new(),
        sleeps: AtomicU32::new(0),
        word: AtomicUsize::new(0),
    }
}; MAX_SLOTS];

unsafe extern "C-unwind" {
    fn pthread_testcancel();
}

/// Acts on a cancellation of the calling thread, if there is one and it is not disabled: then this
/// does not return, and the stack is unwound. The caller has nothing on it that needs to be
/// dropped.
pub fn act() {
    // SAFETY: it has no preconditions.
    unsafe { pthread_testcancel() };
}

/// The calling thread is about to wait, at a cancellation point; acts on a cancellation that has
/// come before. The token ends the wait where one comes later. `None` for a thread without a slot,
/// which has to [look](act) now and then.
pub fn enter() -> Option<&'static CancelToken<Linux>> {
    let entry = Linux::slot().map(|slot| &ENTRIES[slot]);
    if let Some(entry) = entry {
        entry.token.reset();
        let sleeps = entry.sleeps.load(Relaxed);
        if sleeps & 1 != 0 {
            // Of a thread that had the slot before, and is gone: killed in its sleep, or on the
            // other side of a fork.
            entry.sleeps.store(sleeps.wrapping_add(1), Relaxed);
        }
        // SAFETY: it has no preconditions.
        let me = unsafe { libc::pthread_self() } as usize;
        // RA
        entry.thread.store(me, Relaxed);
        fence(SeqCst);
    }
    // RB
    act();
    entry.map(|entry| &entry.token)
}

/// After [`enter`]: sleeps on `word` by `sleep`, unless its token is cancelled; that ends the
/// sleep, too.
pub fn sleep_on(word: &AtomicU32, sleep: impl FnOnce() -> c_int) -> c_int {
    let Some(entry) = Linux::slot().map(|slot| &ENTRIES[slot]) else {
        return sleep();
    };
    let sleeps = entry.sleeps.load(Relaxed) | 1;
    entry.word.store(core::ptr::from_ref(word).addr(), Relaxed);
    // SW; release also for `word`.
    entry.sleeps.store(sleeps.wrapping_add(2), SeqCst);
    // ST
    let result = if entry.token.is_cancelled() {
        0
    } else {
        sleep()
    };
    // It has looked, or will before it sleeps again.
    entry.sleeps.store(sleeps.wrapping_add(3), SeqCst);
    result
}

impl Entry {
    /// The token has been cancelled: ends the sleep of a thread that has not seen it.
    fn wake(&self) {
        // Against SW and ST. Acquire: the word is the one of this sleep, or of a later one.
        let sleeps = self.sleeps.load(SeqCst);
        if sleeps & 1 == 0 {
            return;
        }
        for _ in 0..ATTEMPTS {
            futex::wake(self.word.load(Relaxed), futex::ALL);
            if self.sleeps.load(SeqCst) != sleeps {
                return;
            }
            Linux::backoff_sleep(BACKOFF_SLEEP_NS);
        }
    }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
/// `pthread_cancel`.
pub unsafe extern "C" fn pthread_cancel(thread: libc::pthread_t) -> c_int {
    // CA
    // SAFETY: the caller's promise.
    let result = unsafe { real::pthread_cancel(thread) };
    fence(SeqCst);
    for entry in &ENTRIES[..Linux::slots_in_use()] {
        // CB
        if entry.thread.load(Relaxed) == thread as usize {
            entry.token.cancel();
            entry.wake();
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;
    use std::time::Duration;

    /// Fails where the canceller wakes once: the sleeper was on its way then, and sleeps for ever.
    #[test]
    fn a_sleeper_on_its_way_is_woken() {
        let word = AtomicU32::new(0);
        let slot = AtomicUsize::new(usize::MAX);
        thread::scope(|s| {
            s.spawn(|| {
                assert!(enter().is_some());
                sleep_on(&word, || {
                    slot.store(Linux::slot().unwrap(), SeqCst);
                    thread::sleep(Duration::from_millis(20));
                    futex::wait(&word, 0, None)
                });
            });
            while slot.load(SeqCst) == usize::MAX {
                thread::yield_now();
            }
            let entry = &ENTRIES[slot.load(SeqCst)];
            entry.token.cancel();
            entry.wake();
        });
    }

    /// Fails where `enter` leaves the sleep of another one as it is: the canceller waits for it for
    /// a second.
    #[test]
    fn a_sleep_that_nobody_ended_does_not_count() {
        let entry = &ENTRIES[Linux::slot().unwrap()];
        entry.sleeps.store(7, Relaxed);
        assert!(enter().is_some());
        assert_eq!(entry.sleeps.load(Relaxed), 8);
    }

    /// Fails where ST is not there.
    #[test]
    fn who_was_cancelled_before_does_not_sleep() {
        let word = AtomicU32::new(0);
        let token = enter().unwrap();
        token.cancel();
        assert_eq!(sleep_on(&word, || unreachable!("it sleeps")), 0);
        let slept = enter().map(|_| sleep_on(&word, || 5));
        assert_eq!(slept, Some(5));
    }
}
