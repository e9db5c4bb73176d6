//! Cancellation points: `pthread_cond_wait`, `sem_wait` and their variants.
//!
//! glibc interrupts only threads that are in its own blocking calls. So our `pthread_cancel` calls
//! glibc's first, then ends the wait of the target thread, by a [`CancelToken`]. The thread itself
//! acts on the cancellation, in [`act`]: outside of all lock code and as the owner of its mutex
//! again, as POSIX demands. Its clean-up handlers run there.
//!
//! # Why no cancellation is lost
//!
//! A waiter writes its name into the entry of its slot (RA), then checks whether it was cancelled
//! (RB, by glibc), then waits. The canceller calls glibc's `pthread_cancel` (CA), then loads the
//! entries (CB). Between the two of each there is a sequentially consistent fence. So either the
//! waiter sees the cancellation, or the canceller sees the waiter and cancels its token.
//!
//! # Sleepers on other words
//!
//! A token ends waits in overlock-core's locks. A thread that [sleeps on another word](sleep_on)
//! stores that word in its entry (SW), then loads its token (ST), then sleeps. The canceller
//! cancels the token, then loads the entry's word. All four are sequentially consistent, so the
//! sleeper sees the cancellation, or the canceller sees the word and wakes all sleepers there.
//!
//! The word itself has not changed, so a sleeper between ST and its sleep misses that wake-up. So
//! the canceller wakes again, until the sleeper has checked its token again.
//!
//! # Entries
//!
//! Entries are never cleaned up. If an entry names a thread that no longer waits, or has exited,
//! the cancellation of its token has no effect: each wait begins with a fresh token.

use core::ffi::c_int;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::{AtomicU32, AtomicUsize, fence};

use overlock::Linux;
use overlock_core::Platform;
use overlock_core::links::backoff_sleep;
use overlock_core::node::MOST_SLOTS;
use overlock_core::sleep::cancel::CancelToken;
use overlock_linux::__private::{FIRST, Growing, RESERVED, Zeroed, variable};

use crate::{fork, futex, real};

/// How often a canceller wakes a sleeper that does not respond, with a backoff sleep in between:
/// for half a second. A thread that was killed in its sleep never responds; one that waits for a
/// CPU gets one within that time.
const ATTEMPTS: u32 = 10_000;

#[derive(Debug)]
struct Entry {
    thread: AtomicUsize,
    token: CancelToken<Linux>,
    /// The number of sleeps that the thread has begun plus those it has ended: odd while it may
    /// sleep.
    sleeps: AtomicU32,
    /// The address of the word that the thread sleeps on.
    word: AtomicUsize,
}

// SAFETY: zero bytes are a valid value of each field.
unsafe impl Zeroed for Entry {}

/// The entries that are mapped at a time: 96 KiB.
const CHUNK: usize = 4096;

/// The entries of the slots. All zero, so that they take no memory before their first use.
static ENTRIES: Growing<Entry, FIRST, CHUNK, { MOST_SLOTS / CHUNK }> = Growing::new(
    [const {
        Entry {
            thread: AtomicUsize::new(0),
            token: CancelToken::new(),
            sleeps: AtomicU32::new(0),
            word: AtomicUsize::new(0),
        }
    }; FIRST],
);

/// Maps memory for the entries of a process that is about to make no system calls for that.
pub(crate) fn reserve() {
    ENTRIES.reserve(RESERVED);
}

/// Runs before the locks restrict themselves at load.
#[used]
#[unsafe(link_section = ".init_array.00102")]
static BEFORE_LOAD: extern "C" fn() = {
    extern "C" fn before_load() {
        if variable(c"OVERLOCK_FUTEX_ALONE").is_some() {
            reserve();
        }
    }
    before_load
};

/// The calling thread's entry. `None` where it has no slot, or no memory for it.
fn mine() -> Option<&'static Entry> {
    ENTRIES.get(Linux::slot()?)
}

unsafe extern "C-unwind" {
    fn pthread_testcancel();
}

/// Acts on a cancellation of the calling thread, if there is one and it is not disabled. Then this
/// does not return, and the stack is unwound: no value of the caller may need to be dropped.
pub fn act() {
    // SAFETY: it has no preconditions.
    unsafe { pthread_testcancel() };
}

/// Prepares a wait of the calling thread at a cancellation point. Acts on a cancellation that has
/// come before; a later one ends the wait through the returned token. Returns `None` for a thread
/// without a slot, which has to call [`act`] from time to time.
pub fn enter() -> Option<&'static CancelToken<Linux>> {
    fork::check();
    let entry = mine();
    if let Some(entry) = entry {
        entry.token.reset();
        let sleeps = entry.sleeps.load(Relaxed);
        if sleeps & 1 != 0 {
            // Odd if the slot's previous owner was killed in its sleep, or does not exist after
            // fork().
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

/// Sleeps on `word` by `sleep`, after [`enter`]. Does not sleep if the thread's token is cancelled;
/// a cancellation also ends the sleep.
pub fn sleep_on(word: &AtomicU32, sleep: impl FnOnce() -> c_int) -> c_int {
    let Some(entry) = mine() else {
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
    // It has checked its token, or will before it sleeps again.
    entry.sleeps.store(sleeps.wrapping_add(3), SeqCst);
    result
}

impl Entry {
    /// Ends the sleep of a thread that has not seen the cancellation of its token.
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
            backoff_sleep::<Linux>();
        }
    }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn pthread_cancel(thread: libc::pthread_t) -> c_int {
    // CA
    // SAFETY: the caller's promise.
    let result = unsafe { real::pthread_cancel(thread) };
    fence(SeqCst);
    let entries = (0..Linux::slots_in_use()).filter_map(|slot| ENTRIES.get(slot));
    for entry in entries {
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

    /// Fails where the canceller wakes once only: a sleeper between ST and its sleep then sleeps
    /// for ever.
    #[test]
    fn a_thread_about_to_sleep_is_woken() {
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
            let entry = ENTRIES.get(slot.load(SeqCst)).unwrap();
            entry.token.cancel();
            entry.wake();
        });
    }

    /// Fails where `enter` leaves the sleep of the slot's previous owner as it is: then the
    /// canceller waits for it for a second.
    #[test]
    fn an_unfinished_sleep_of_the_slots_previous_owner_does_not_count() {
        let entry = mine().unwrap();
        entry.sleeps.store(7, Relaxed);
        assert!(enter().is_some());
        assert_eq!(entry.sleeps.load(Relaxed), 8);
    }

    /// Fails without ST.
    #[test]
    fn a_cancelled_thread_does_not_sleep() {
        let word = AtomicU32::new(0);
        let token = enter().unwrap();
        token.cancel();
        assert_eq!(sleep_on(&word, || unreachable!("it sleeps")), 0);
        let slept = enter().map(|_| sleep_on(&word, || 5));
        assert_eq!(slept, Some(5));
    }
}
