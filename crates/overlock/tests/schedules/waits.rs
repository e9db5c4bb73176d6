//! Waits other than those for one lock.

use std::cell::Cell;
use std::panic;
use std::thread;

use overlock::ww_mutex::{Class, Rule, WwMutex, acquire};
use overlock::{CancelToken, Linux};
use overlock_core::Spin;
use overlock_core::raw::RawLock;
use overlock_core::sleep::{Barrier, Condvar, Once, Semaphore};
use overlock_family::sleep::Osq;

use crate::{Guarded, SECTIONS, THREADS, far, on_threads, soon};

/// A holder of both permits writes, a holder of one reads.
#[test]
fn semaphore() {
    let semaphore = &Semaphore::<Linux>::new(2);
    let cancel = &CancelToken::new();
    let data = &Guarded::new();
    let writes = on_threads(THREADS, |number| {
        let mut writes = 0;
        for iteration in number..number + SECTIONS {
            let alone = match iteration % 4 {
                0 => semaphore.acquire_many_limited(2, Some(soon().into()), None),
                1 => semaphore.try_acquire_many(2),
                2 => semaphore.acquire_many_limited(2, Some(far().into()), Some(cancel)),
                _ => {
                    semaphore.acquire_many(2);
                    true
                }
            };
            if alone {
                data.add_one();
                semaphore.release_many(2);
                writes += 1;
            }
            semaphore.acquire();
            assert!(data.get() >= writes);
            semaphore.release();
            if iteration == 0 {
                cancel.cancel();
            }
        }
        writes
    });
    assert_eq!(data.get(), writes);
    assert_eq!(
        (semaphore.available(), semaphore.is_contended()),
        (2, false)
    );
}

/// Threads alternate, and each notifies all; then the first adds items, and notifies one for each.
fn notifies<L: RawLock>() {
    let lock = &L::create().unwrap();
    let [turned, things] = &[const { Condvar::<Linux>::new() }; 2];
    let [turn, put, taken] = &[const { Guarded::new() }; 3];
    let cancel = &CancelToken::new();
    on_threads(THREADS, |number| {
        let mut token = lock.lock();
        let mut waits = number;
        while turn.get() != number {
            let (deadline, cancel) = match waits % 3 {
                0 => (Some(soon().into()), None),
                1 => (None, None),
                _ => (Some(far().into()), Some(cancel)),
            };
            // SAFETY: the token is of this lock and this thread, here and below.
            token = unsafe { turned.wait_limited(lock, token, deadline, cancel) }.0;
            waits += 1;
        }
        turn.add_one();
        turned.notify_all();
        if number == 0 {
            cancel.cancel();
            for _ in 1..THREADS {
                put.add_one();
                // SAFETY: as above.
                unsafe { lock.unlock(token) };
                things.notify_one();
                token = lock.lock();
            }
        } else {
            while put.get() == taken.get() {
                // SAFETY: as above.
                token = unsafe { things.wait(lock, token) };
            }
            taken.add_one();
        }
        // SAFETY: as above.
        unsafe { lock.unlock(token) };
        0
    });
    assert_eq!([turn, put, taken].map(Guarded::get), [3, 2, 2]);
    assert!(!turned.is_in_use() && !things.is_in_use() && !lock.is_locked());
}

#[test]
fn condvar() {
    notifies::<overlock::sleep::Overlock>();
}

#[test]
fn condvar_mutex() {
    notifies::<overlock::sleep::KernelMutex>();
}

/// The first thread's attempt fails, if it is the first; another one's does not.
#[test]
fn once() {
    let once = &Once::<Linux>::new();
    let data = &Guarded::new();
    let attempts = on_threads(THREADS, |number| {
        let fails = || once.call_once(|| panic::resume_unwind(Box::new("as it should")));
        if number == 0 {
            let failed = panic::catch_unwind(panic::AssertUnwindSafe(fails)).is_err();
            once.wait_force();
            assert_eq!(data.get(), 1);
            return usize::from(failed);
        }
        let mut after = 0;
        once.call_once_force(|before| {
            after = usize::from(before.is_poisoned());
            data.add_one();
        });
        assert_eq!(data.get(), 1);
        once.wait();
        after
    });
    // The thread that succeeded learnt of the failure, if there was one.
    assert!(attempts % 2 == 0 && once.is_done());
}

/// Each thread reads after a barrier what the others wrote before it.
#[test]
fn barrier() {
    let barrier = &Barrier::<Linux>::new(THREADS as u32);
    let data = &[const { Guarded::new() }; THREADS];
    let leaders = on_threads(THREADS, |number| {
        let mut leads = 0;
        for round in 1..=SECTIONS {
            data[number].add_one();
            leads += usize::from(barrier.wait());
            assert_eq!(data.each_ref().map(Guarded::get), [round; THREADS]);
            leads += usize::from(barrier.wait());
        }
        leads
    });
    assert_eq!(leaders, 2 * SECTIONS);
}

/// Two locks, taken in both orders, and one of them alone.
fn crosses(class: &'static Class) {
    let locks = &[(); 2].map(|()| WwMutex::new(class, 0));
    on_threads(THREADS, |number| {
        for iteration in 0..2 {
            let [first, second] = [&locks[number % 2], &locks[(number + 1) % 2]];
            if number == 2 {
                match first.try_lock().filter(|_| iteration == 0) {
                    Some(mut held) => *held += 1,
                    None => *first.lock() += 1,
                }
                continue;
            }
            let both = acquire(class, |ctx| {
                let mut first = match iteration {
                    0 => ctx.lock(first)?,
                    _ => ctx.lock_found(first)?,
                };
                let mut second = match ctx.try_lock(second)? {
                    Some(held) => held,
                    None => ctx.lock(second)?,
                };
                (*first, *second) = (*first + 1, *second + 1);
                Ok(())
            });
            assert_eq!(both, Ok(()));
        }
        0
    });
    assert_eq!(locks.each_ref().map(|lock| *lock.lock()), [6, 4]);
    assert!(!locks.iter().any(WwMutex::is_contended));
}

#[test]
fn ww_mutex() {
    static CLASS: Class = Class::new();
    crosses(&CLASS);
}

#[test]
fn ww_mutex_wait_die() {
    static CLASS: Class = Class::with_rule(Rule::WaitDie);
    crosses(&CLASS);
}

#[test]
fn ww_mutex_optimistic() {
    static CLASS: Class = Class::optimistic();
    crosses(&CLASS);
}

/// Threads become the head, or leave: at once, by themselves, or after so many polls.
#[test]
fn osq() {
    let queue = &Osq::<Linux>::new();
    let data = &Guarded::new();
    let heads = on_threads(THREADS, |number| {
        let ways = [
            (Spin::Polls(8), 64),
            (Spin::Forever, 4),
            (Spin::Forever, 64),
        ];
        let mut heads = 0;
        for iteration in 0..SECTIONS {
            let (limit, polls) = ways[(number + iteration) % 3];
            let left = Cell::new(polls);
            let stop = || {
                left.set(left.get() - 1);
                left.get() <= 0
            };
            if let Some(_head) = queue.lock(limit, stop) {
                data.add_one();
                thread::yield_now();
                heads += 1;
            }
        }
        heads
    });
    assert_eq!(data.get(), heads);
    assert!(heads > 0 && !queue.is_locked());
}
