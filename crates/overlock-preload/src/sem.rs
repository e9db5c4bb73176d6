//! `sem_t`, unnamed: a counting semaphore in glibc's objects.
//!
//! # Layout
//!
//! 32 bytes, of which 12 are used, as glibc uses them:
//!
//! ```text
//!  63       32 31      0     offset 8
//! +-----------+---------+   +--------+
//! |  waiters  |  value  |   | shared |
//! +-----------+---------+   +--------+
//! ```
//!
//! `shared` is not 0 in glibc's objects: process-shared and named semaphores.
//!
//! # Why not the semaphore of overlock-core
//!
//! Waiters of that one sleep on words of their own, so they do not notice that a signal handler has
//! run, and it counts to 2^30 - 1. Here `sem_wait` has to return `EINTR` then, and `sem_post` has
//! to work in signal handlers and for values to 2^31 - 1. So this is a word and a futex in its low
//! half. (It does not serve waiters in order; nor does glibc.) There is no generation for children
//! of fork() either: waiters that do not exist in the child cost one futile wake-up.
//!
//! # States
//!
//! ```text
//! (v, w)  --post-->              (v + 1, w)       0 < w: wakes one
//! (v, w)  --take, 0 < v-->       (v - 1, w)
//! (0, w)  --wait-->              (0, w + 1)       sleeps while v is 0
//! (v, w)  --a waiter, 0 < v-->   (v - 1, w - 1)
//! (v, w)  --gives up-->          (v, w - 1)       0 < v, 0 < w - 1: wakes one
//! ```
//!
//! # The last access
//!
//! Each call's last change of the word is its last access, and wake-ups need its address only. So
//! the thread that takes the last value may free the semaphore, even if `sem_post` has not
//! returned.
//!
//! # Orderings
//!
//! PO, the release in a post, pairs with TA, the acquire of a thread that takes. All changes are
//! read-modify-writes, so release sequences never break.
//!
//! # Why no wake-up is lost
//!
//! A waiter counts itself, then sleeps if the value is 0. A post before that makes the kernel find
//! the value changed; one after it finds a waiter and wakes one. The woken thread takes the value,
//! or another thread has taken it. If the woken thread gives up instead, for a concurrent
//! cancellation, it wakes another one in its place.

pub mod functions;

use core::ffi::{c_int, c_void};
use core::mem::offset_of;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};

use libc::{EINTR, EOVERFLOW, ETIMEDOUT};
use overlock::Linux;
use overlock_core::{Deadline, Platform};
use overlock_linux::__private::spin::Spun;
use overlock_shared::ObjectKind;

use crate::site::Site;
use crate::{cancel, config, futex, stat, waits};

/// The program's object: see the [module's page](self).
#[derive(Debug)]
#[repr(C)]
pub struct Sem {
    word: AtomicU64,
    shared: AtomicU32,
}

const _: () = assert!(size_of::<Sem>() <= size_of::<libc::sem_t>());
const _: () = assert!(offset_of!(Sem, shared) == 8);

/// `SEM_VALUE_MAX`
const MOST: u32 = i32::MAX as u32;

const WAITER: u64 = 1 << 32;

/// Length of one sleep of a thread that a cancellation cannot wake.
const SLICE_NS: u64 = 10_000_000;

const fn value(word: u64) -> u32 {
    word as u32
}

const fn waiters(word: u64) -> u32 {
    (word >> 32) as u32
}

impl Sem {
    fn is_ours(&self) -> bool {
        // Relaxed: written before the semaphore is used.
        self.shared.load(Relaxed) == 0 && !config::leaves_others()
    }

    fn as_glibcs(&self) -> *mut c_void {
        core::ptr::from_ref(self).cast_mut().cast()
    }

    /// The half that holds the value.
    fn value_word(&self) -> &AtomicU32 {
        let half = if cfg!(target_endian = "little") { 0 } else { 1 };
        let word: *const u32 = self.word.as_ptr().cast();
        // SAFETY: half of an aligned atomic word that lives as long as the result. It is passed to
        // the kernel, and to the instructions of a spin, which is no access by Rust's rules.
        unsafe { AtomicU32::from_ptr(word.wrapping_add(half).cast_mut()) }
    }

    /// Subtracts `what` if the value is not 0: one of the value and, for a waiter, one of the
    /// waiters. Returns whether it did.
    fn take(&self, what: u64) -> bool {
        let mut seen = self.word.load(Relaxed);
        while value(seen) > 0 {
            // TA: acquire, pairs with PO.
            match self
                .word
                .compare_exchange_weak(seen, seen - what, Acquire, Relaxed)
            {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    /// Returns 0 or an errno.
    fn post(&self) -> c_int {
        let address = self.value_word().as_ptr().addr();
        let mut seen = self.word.load(Relaxed);
        loop {
            if value(seen) >= MOST {
                return EOVERFLOW;
            }
            // PO: release, pairs with TA. After this the semaphore may have been freed.
            match self
                .word
                .compare_exchange_weak(seen, seen + 1, Release, Relaxed)
            {
                Ok(_) => break,
                Err(now) => seen = now,
            }
        }
        if waiters(seen) > 0 {
            stat::usage::has_posted(core::ptr::from_ref(self).addr());
            futex::wake(address, 1);
        }
        0
    }

    /// Waits for the semaphore, and is a cancellation point. Returns 0 or an errno.
    #[inline]
    fn wait(&self, until: Option<Deadline>, site: Site) -> c_int {
        cancel::act();
        if self.take(1) {
            stat::usage::is_taken(core::ptr::from_ref(self).addr(), site);
            return 0;
        }
        let result = self.wait_counted(until, site);
        if result != 0 {
            // From glibc 2.41 on a cancellation sends its signal to threads in our waits, too, and
            // EINTR may come before the token is cancelled.
            cancel::act();
        }
        result
    }

    #[cold]
    #[inline(never)]
    fn wait_counted(&self, until: Option<Deadline>, site: Site) -> c_int {
        let address = core::ptr::from_ref(self).addr();
        let waits = stat::Event::begin_held(address, ObjectKind::Sem, site);
        let result = self.wait_slowly(until);
        if let Some(waits) = waits {
            let as_lock = stat::usage::is_lock(address);
            waits.over_as(address, ObjectKind::Sem, site, result != 0, as_lock);
        }
        if result == 0 {
            stat::usage::is_taken(address, site);
        }
        result
    }

    fn wait_slowly(&self, until: Option<Deadline>) -> c_int {
        if until.is_none_or(Deadline::is_far::<Linux>) {
            match waits::spin_interruptibly(self.value_word(), 0, until.is_some()) {
                Spun::Ready if self.take(1) => return 0,
                Spun::Interrupted => return EINTR,
                _ => {}
            }
        }
        loop {
            let token = cancel::enter();
            let is_cancelled = || token.is_some_and(|token| token.is_cancelled());
            if let Some(result) = self.wait_asleep(until, token.is_some(), is_cancelled) {
                return result;
            }
            // Returns only if cancellation is disabled.
            cancel::act();
        }
    }

    /// Waits as a counted waiter. Returns `None` where it was cancelled, or may have been.
    fn wait_asleep(
        &self,
        until: Option<Deadline>,
        has_token: bool,
        is_cancelled: impl Fn() -> bool,
    ) -> Option<c_int> {
        self.word.fetch_add(WAITER, Relaxed);
        loop {
            if self.take(1 + WAITER) {
                return Some(0);
            }
            if is_cancelled() {
                self.give_up();
                return None;
            }
            let word = self.value_word();
            let result = if has_token {
                cancel::sleep_on(word, || futex::wait(word, 0, until))
            } else {
                wait_slice(word, until)
            };
            match result {
                0 if has_token => {}
                0 => {
                    self.give_up();
                    return None;
                }
                error => {
                    self.give_up();
                    return Some(error);
                }
            }
        }
    }

    /// Removes a waiter from the count, and wakes another one if the wake-up may have been its own.
    fn give_up(&self) {
        let address = self.value_word().as_ptr().addr();
        let before = self.word.fetch_sub(WAITER, Relaxed);
        if value(before) > 0 && waiters(before) > 1 {
            futex::wake(address, 1);
        }
    }
}

/// Sleeps for at most [`SLICE_NS`], for a thread that a cancellation cannot wake. Returns 0 after
/// that.
fn wait_slice(word: &AtomicU32, until: Option<Deadline>) -> c_int {
    if until.is_some_and(Deadline::is_over::<Linux>) {
        return ETIMEDOUT;
    }
    let end = Deadline::earlier::<Linux>(until, Linux::now().plus_nanos(SLICE_NS));
    match futex::wait(word, 0, Some(end.into())) {
        EINTR => EINTR,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails where a child depends on waiters that exist in the parent only.
    #[test]
    fn waiters_that_do_not_exist_do_no_harm() {
        let sem = Sem {
            word: AtomicU64::new(3 * WAITER),
            shared: AtomicU32::new(0),
        };
        assert_eq!([sem.post(), sem.wait(None, 0)], [0, 0]);
        assert!(!sem.take(1));
        assert_eq!(sem.word.load(Relaxed), 3 * WAITER);
    }

    /// Fails where `give_up` wakes no thread: then the other one sleeps although the value is not
    /// 0.
    #[test]
    fn a_waiter_that_gives_up_wakes_another_one() {
        let sem = Sem {
            word: AtomicU64::new(0),
            shared: AtomicU32::new(0),
        };
        std::thread::scope(|s| {
            let other = s.spawn(|| sem.wait(None, 0));
            while waiters(sem.word.load(Relaxed)) == 0 {
                std::thread::yield_now();
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
            sem.word.fetch_add(WAITER, Relaxed);
            // A post whose wake-up has gone to the waiter that gives up.
            sem.word.fetch_add(1, Release);
            sem.give_up();
            assert_eq!(other.join().unwrap(), 0);
        });
        assert_eq!(sem.word.load(Relaxed), 0);
    }
}
