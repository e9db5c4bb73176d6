//! Cancellation points: `pthread_cond_wait`, `sem_wait` and their kind.
//!
//! glibc interrupts only threads that are inside of its own blocking calls. So our `pthread_cancel` tells glibc first, then ends the wait of
//! the thread in question, by a [`CancelToken`]. The thread itself acts on the cancellation, in [`act`]: outside of all locks' code
//! and as the owner of its mutex again, as POSIX wants it. Its clean-up handlers run there.
//!
//! # Why no cancellation is lost
//!
//! A waiter writes its name into the entry of its slot (RA), then looks whether it was cancelled (RB, by glibc), then waits. The canceller
//! tells glibc (CA), then looks through the entries (CB). Between the two of each there is a sequentially consistent fence. So
//! either the waiter sees the cancellation, or the canceller sees the waiter and cancels its token.
//!
//! Entries are never cleaned up: one that names a thread which does not wait any more, or is gone, has its token cancelled for nothing. Each wait
//! begins with a fresh one.

use core::ffi::c_int;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::{AtomicUsize, fence};

use overlock::Linux;
use overlock::core::Platform;
use overlock::core::node::MAX_SLOTS;
use overlock::core::sleep::cancel::CancelToken;

use crate::real;

#[derive(Debug)]
struct Entry {
    thread: AtomicUsize,
    token: CancelToken<Linux>,
}

/// All zero, so that only what is used takes memory.
static ENTRIES: [Entry; MAX_SLOTS] = [const {
    Entry {
        thread: AtomicUsize::new(0),
        token: CancelToken::new(),
    }
}; MAX_SLOTS];

unsafe extern "C-unwind" {
    fn pthread_testcancel();
}

/// Acts on a cancellation of the calling thread, if there is one and it is not disabled: then this does not return, and the stack is unwound.
/// The caller has nothing on it that needs to be dropped.
pub fn act() {
    // SAFETY: it has no preconditions.
    unsafe { pthread_testcancel() };
}

/// The calling thread is about to wait, at a cancellation point; acts on a cancellation that has come before. The token ends the wait
/// where one comes later. `None` for a thread without a slot, which has to [look](act) now and then.
pub fn enter() -> Option<&'static CancelToken<Linux>> {
    let entry = Linux::slot().map(|slot| &ENTRIES[slot]);
    if let Some(entry) = entry {
        entry.token.reset();
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
        }
    }
    result
}
