//! Thread 0 holds the lock at first. A few lines here stand for the kernel: it has no priorities,
//! and hands off to the thread that came first.

use std::boxed::Box;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::AtomicU32;
use std::vec::Vec;

use super::*;
use crate::platform::{Instant, Kick};
use crate::raw::CHECKED;
use crate::toy::stage::actor;
use crate::toy::{Point, Toy, as_thread, at, halts, kicks, left};

/// The threads that sleep, with the word that they sleep for.
static SLEEPERS: Mutex<BTreeMap<usize, Vec<u32>>> = Mutex::new(BTreeMap::new());
/// The words for which this kernel is [`PiError::Unavailable`].
static NO_PI: Mutex<Vec<usize>> = Mutex::new(Vec::new());
/// The former id of each toy thread is this much higher.
const BEFORE_FORK: u32 = 100;

fn sleepers<R>(word: &AtomicU32, work: impl FnOnce(&mut Vec<u32>) -> R) -> R {
    let mut all = SLEEPERS.lock().unwrap();
    work(all.entry(address(word)).or_default())
}

fn address(word: &AtomicU32) -> usize {
    core::ptr::from_ref(word).addr()
}

/// Hands off `word` to its first sleeper, with `mark`.
fn hand_off(word: &AtomicU32, mark: u32) {
    let next = sleepers(word, |waiting| {
        (!waiting.is_empty()).then(|| waiting.remove(0))
    });
    word.store(next.map_or(0, |id| id | WAITERS | mark), Release);
    Toy::kick(word, Kick::One);
}

impl PiPlatform for Toy {
    fn thread_id() -> u32 {
        Toy::slot().map_or(99, |slot| slot as u32 + 1)
    }

    fn lock_pi(word: &AtomicU32, until: Option<Deadline>) -> Result<(), PiError> {
        if NO_PI.lock().unwrap().contains(&address(word)) {
            return Err(PiError::Unavailable);
        }
        let id = Self::thread_id();
        let seen = word.load(Acquire);
        match seen & THREAD_ID {
            0 => {
                word.store(id, Relaxed);
                return Ok(());
            }
            owner if owner == id => return Err(PiError::Deadlock),
            owner if owner > 2 * BEFORE_FORK => return Err(PiError::OwnerDied),
            _ => {}
        }
        word.store(seen | WAITERS, Relaxed);
        sleepers(word, |waiting| waiting.push(id));
        loop {
            Toy::halt(word, word.load(Relaxed), until);
            if word.load(Acquire) & THREAD_ID == id {
                return Ok(());
            }
            if until.is_some_and(Deadline::is_over::<Toy>) {
                sleepers(word, |waiting| waiting.retain(|&waiter| waiter != id));
                return Err(PiError::Deadline);
            }
        }
    }

    fn unlock_pi(word: &AtomicU32) {
        assert_eq!(word.load(Relaxed) & THREAD_ID, Self::thread_id(), "EPERM");
        hand_off(word, 0);
    }

    fn was_before_fork(id: u32) -> bool {
        id == Self::thread_id() + BEFORE_FORK
    }
}

type Lock = &'static RtMutex<Toy>;

fn leak() -> Lock {
    Box::leak(Box::new(RtMutex::new()))
}

fn unlock(lock: Lock) {
    // SAFETY: each test unlocks what it has locked, but for those of misuse, whose locks protect
    // nothing.
    unsafe { lock.unlock(()) }
}

fn word(lock: Lock) -> u32 {
    lock.word.load(Relaxed)
}

/// Runs `work` where misuse is checked, and returns its panic message.
fn complaint(work: impl FnOnce()) -> std::string::String {
    let panic = catch_unwind(AssertUnwindSafe(work)).unwrap_err();
    std::string::String::from(*panic.downcast_ref::<&str>().unwrap())
}

#[test]
fn four_bytes_and_no_kernel_without_waiters() {
    assert_eq!(size_of::<RtMutex<Toy>>(), 4);
    let lock = leak();
    NO_PI.lock().unwrap().push(address(&lock.word));
    for _ in 0..2 {
        lock.lock();
        assert_eq!(word(lock), 1);
        assert!(lock.is_locked() && !lock.is_contended() && lock.try_lock().is_none());
        unlock(lock);
        assert!(!lock.is_locked());
    }
    assert!(lock.try_lock().is_some());
    unlock(lock);
    assert_eq!((kicks(), halts()), (0, 0));
}

/// The exchange in `unlock` compares the whole word: were WAITERS masked, the sleepers would never
/// be woken.
#[test]
fn an_unlock_with_waiters_goes_to_the_kernel_and_the_first_owns_the_lock_at_once() {
    let lock = leak();
    lock.lock();
    let [one, two] = [1, 2].map(|thread| {
        actor(thread, move || {
            lock.lock();
            unlock(lock);
        })
    });
    one.sleep();
    two.sleep();
    assert!(lock.is_contended());
    unlock(lock);
    assert_eq!(word(lock), 2 | WAITERS);
    assert!(lock.try_lock().is_none(), "handed off, asleep or not");
    one.end();
    assert_eq!(word(lock), 3 | WAITERS);
    two.end();
    assert_eq!((word(lock), kicks()), (0, 1));
}

#[test]
fn a_waiter_gives_up_at_its_deadline_and_its_mark_is_taken_back_by_the_unlock() {
    let lock = leak();
    lock.lock();
    as_thread(1, || {
        let deadline = Toy::now().plus_nanos(1000);
        assert!(lock.lock_until(deadline).is_none());
        assert!(Toy::now() >= deadline);
    });
    assert_eq!(word(lock), 1 | WAITERS);
    unlock(lock);
    assert_eq!(word(lock), 0);
    let past = Instant::from_nanos(0);
    assert!(lock.lock_until(past).is_some(), "tries once");
}

/// The kernel decides: if it handed off before the deadline, the waiter owns the lock.
#[test]
fn a_waiter_accepts_a_handoff_just_before_its_deadline() {
    let lock = leak();
    lock.lock();
    at(Point::Halt, || as_thread(0, || unlock(lock)));
    as_thread(1, || {
        assert!(lock.lock_until(Toy::now().plus_nanos(1000)).is_some());
        unlock(lock);
    });
    assert_eq!((word(lock), left()), (0, 0));
}

/// The back-off and the exchange after it in `lock_slow`.
#[test]
fn waiters_back_off_where_the_kernel_cannot_help() {
    let lock = leak();
    NO_PI.lock().unwrap().push(address(&lock.word));
    lock.lock();
    at(Point::Halt, || {});
    at(Point::Halt, || as_thread(0, || unlock(lock)));
    as_thread(1, || {
        lock.lock();
        assert_eq!((word(lock), left()), (2, 0));
        let deadline = Toy::now().plus_nanos(10 * BACKOFF_SLEEP_NS + 1);
        as_thread(2, || assert!(lock.lock_until(deadline).is_none()));
        assert!(Toy::now() >= deadline);
        unlock(lock);
    });
    assert_eq!(word(lock), 0);
}

/// I3: without the check of OWNER_DIED in `lock_slow` the waiter would enter.
#[test]
fn a_waiter_that_gets_the_lock_of_a_dead_owner_does_not_enter() {
    let lock = leak();
    lock.lock();
    at(Point::Halt, || hand_off(&lock.word, OWNER_DIED));
    as_thread(1, || {
        let deadline = Toy::now().plus_nanos(3 * BACKOFF_SLEEP_NS);
        assert!(lock.lock_until(deadline).is_none());
        assert!(Toy::now() >= deadline);
        assert_eq!(word(lock), 2 | WAITERS | OWNER_DIED);
        assert!(lock.lock_until(deadline).is_none(), "nor ever after");
    });
    assert!(lock.try_lock().is_none());
    assert_eq!(left(), 0);
}

#[test]
fn a_lock_whose_owner_is_unknown_to_the_kernel_stays_locked() {
    let lock = leak();
    lock.word.store(2 * BEFORE_FORK + 1, Relaxed);
    assert!(
        lock.lock_until(Toy::now().plus_nanos(BACKOFF_SLEEP_NS))
            .is_none()
    );
    if CHECKED {
        assert!(complaint(|| lock.lock()).contains("has ended"));
    }
}

/// A thread in the cycle had a deadline: the back-off of the thread that closed the cycle ends.
#[test]
fn a_cycle_that_is_broken_lets_the_waiter_in() {
    let lock = leak();
    lock.word.store(2, Relaxed); // thread 1 waits for itself, as a cycle of length one
    as_thread(1, || {
        at(Point::Halt, || lock.word.store(0, Relaxed));
        assert!(
            lock.lock_until(Toy::now().plus_nanos(BACKOFF_SLEEP_NS))
                .is_some()
        );
        unlock(lock);
    });
    assert_eq!(left(), 0);
}

#[test]
fn misuse_panics_where_it_is_checked_and_is_harmless_where_not() {
    let lock = leak();
    lock.lock();
    if CHECKED {
        assert!(complaint(|| lock.lock()).contains("that it holds"));
        let foreign = as_thread(1, || complaint(|| unlock(lock)));
        assert!(foreign.contains("another thread holds"));
    } else {
        as_thread(1, || unlock(lock));
    }
    assert_eq!(word(lock), 1);
    unlock(lock);
    if CHECKED {
        assert!(complaint(|| unlock(lock)).contains("nobody"));
    } else {
        unlock(lock);
    }
    assert_eq!(word(lock), 0);
}

/// `was_before_fork` in `unlock_slow`.
#[test]
fn a_lock_held_before_a_fork_is_unlocked_under_the_new_id() {
    let lock = leak();
    lock.word.store((1 + BEFORE_FORK) | WAITERS, Relaxed);
    unlock(lock);
    assert_eq!((word(lock), kicks()), (0, 0));
}
