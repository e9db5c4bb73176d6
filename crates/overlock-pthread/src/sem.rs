//! `sem_t`, unnamed.
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
//! `shared` is not 0 in glibc's: those shared between processes, and named ones, which all are.
//!
//! # Why not the semaphore of overlock-core
//!
//! Its waiters sleep on words of their own, and so does not tell one that a signal handler has run;
//! and it counts to 2^30 - 1. Here `sem_wait` has to return `EINTR` then, and `sem_post` must do
//! for signal handlers and for values to 2^31 - 1. So this is a word and a futex in its low half.
//! (Nobody is served in order; nor does glibc.) There is no generation for children of fork either:
//! waiters that are gone cost a wake-up that wakes nobody.
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
//! # Who touches it last
//!
//! Each call's last change of the word is its last access, and wake-ups need its address only. So
//! whoever takes the last value may free the semaphore, whatever `sem_post` is at.
//!
//! # Orderings
//!
//! PO, the release in a post, pairs with TA, the acquire of who takes. All changes are
//! read-modify-writes, so release sequences never break.
//!
//! # Why no wake-up is lost
//!
//! A waiter counts itself, then sleeps if the value is 0. A post before that makes the kernel find
//! the value changed; one after it finds a waiter and wakes one. Who is woken takes the value, or
//! somebody else has; or it gives up, for a cancellation that came at the same time: then it wakes
//! another one in its place.

pub mod functions;

use core::ffi::{c_int, c_void};
use core::mem::offset_of;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};

use libc::{CLOCK_MONOTONIC, EINTR, EOVERFLOW, ETIMEDOUT, clockid_t, timespec};
use overlock::Linux;
use overlock_core::{Deadline, Platform};
use overlock_stat::Kind;

use crate::site::Site;
use crate::time::deadline;
use crate::{cancel, futex, stat};

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

/// How long a thread sleeps at a time that nobody can wake for its cancellation.
const SLICE_NS: u64 = 10_000_000;

const fn value(word: u64) -> u32 {
    word as u32
}

const fn waiters(word: u64) -> u32 {
    (word >> 32) as u32
}

/// A moment of a clock that [`deadline`] knows.
type Until<'a> = Option<(clockid_t, &'a timespec)>;

impl Sem {
    fn is_ours(&self) -> bool {
        // Relaxed: written before the semaphore is used.
        self.shared.load(Relaxed) == 0
    }

    fn as_glibcs(&self) -> *mut c_void {
        core::ptr::from_ref(self).cast_mut().cast()
    }

    /// The half that holds the value.
    fn value_word(&self) -> &AtomicU32 {
        let half = if cfg!(target_endian = "little") { 0 } else { 1 };
        let word: *const u32 = self.word.as_ptr().cast();
        // SAFETY: half of an aligned atomic word that lives as long as the result. It is only given
        // to the kernel, and nobody loads it.
        unsafe { AtomicU32::from_ptr(word.wrapping_add(half).cast_mut()) }
    }

    /// Takes `what`, which is one of the value and perhaps one of the waiters.
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

    /// 0 or an errno.
    fn post(&self) -> c_int {
        let address = self.value_word().as_ptr().addr();
        let mut seen = self.word.load(Relaxed);
        loop {
            if value(seen) >= MOST {
                return EOVERFLOW;
            }
            // PO: release, pairs with TA. From here on the semaphore may be gone.
            match self
                .word
                .compare_exchange_weak(seen, seen + 1, Release, Relaxed)
            {
                Ok(_) => break,
                Err(now) => seen = now,
            }
        }
        if waiters(seen) > 0 {
            futex::wake(address, 1);
        }
        0
    }

    /// 0 or an errno; at a cancellation point.
    #[inline]
    fn wait(&self, until: Until<'_>, site: Site) -> c_int {
        cancel::act();
        if self.take(1) {
            return 0;
        }
        self.wait_told(until, site)
    }

    #[cold]
    #[inline(never)]
    fn wait_told(&self, until: Until<'_>, site: Site) -> c_int {
        let address = core::ptr::from_ref(self).addr();
        let waits = stat::Event::begin();
        let result = self.wait_slowly(until);
        if let Some(waits) = waits {
            waits.over(address, Kind::Sem, site, result != 0);
        }
        result
    }

    fn wait_slowly(&self, until: Until<'_>) -> c_int {
        // It does not spin before it sleeps: who posts is often the next to run on this very CPU.
        // With 5 us of that, two threads that wake each other in turn got a third done, and
        // CPython's locks two thirds.
        loop {
            let token = cancel::enter();
            let is_cancelled = || token.is_some_and(|token| token.is_cancelled());
            if let Some(result) = self.wait_asleep(until, token.is_some(), is_cancelled) {
                return result;
            }
            // It does not return, unless cancellation is disabled.
            cancel::act();
        }
    }

    /// `None` where it was cancelled, or may have been.
    fn wait_asleep(
        &self,
        until: Until<'_>,
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

    /// One waiter less.
    fn give_up(&self) {
        let address = self.value_word().as_ptr().addr();
        let before = self.word.fetch_sub(WAITER, Relaxed);
        if value(before) > 0 && waiters(before) > 1 {
            futex::wake(address, 1);
        }
    }
}

/// For a thread that nobody can wake for its cancellation: sleeps for a while at most, and returns
/// 0.
fn wait_slice(word: &AtomicU32, until: Until<'_>) -> c_int {
    let until = until.and_then(|(clock, at)| deadline(clock, at).ok());
    if until.is_some_and(Deadline::is_over::<Linux>) {
        return ETIMEDOUT;
    }
    let end = Deadline::earlier::<Linux>(until, Linux::now().plus_nanos(SLICE_NS));
    let at = timespec {
        tv_sec: (end.as_nanos() / 1_000_000_000) as i64,
        tv_nsec: (end.as_nanos() % 1_000_000_000) as i64,
    };
    match futex::wait(word, 0, Some((CLOCK_MONOTONIC, &at))) {
        EINTR => EINTR,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails where a child counts on waiters to be there.
    #[test]
    fn waiters_that_are_gone_are_no_harm() {
        let sem = Sem {
            word: AtomicU64::new(3 * WAITER),
            shared: AtomicU32::new(0),
        };
        assert_eq!([sem.post(), sem.wait(None, 0)], [0, 0]);
        assert!(!sem.take(1));
        assert_eq!(sem.word.load(Relaxed), 3 * WAITER);
    }

    /// Fails where `give_up` wakes nobody: then the other one sleeps beside a value.
    #[test]
    fn who_gives_up_has_another_one_woken_in_its_place() {
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
            // A post whose wake-up has gone to the one that gives up.
            sem.word.fetch_add(1, Release);
            sem.give_up();
            assert_eq!(other.join().unwrap(), 0);
        });
        assert_eq!(sem.word.load(Relaxed), 0);
    }
}
