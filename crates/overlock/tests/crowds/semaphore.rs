//! The core semaphore on real threads.

use std::cell::UnsafeCell;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::mpsc::channel;
use std::sync::{Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use overlock::System;
use overlock_core::Platform;
use overlock_core::platform::Pause;
use overlock_core::sleep::cancel::CancelToken;

use crate::caller::{Caller, until};
use crate::serial;
use crate::workers::workers;

type Semaphore = overlock_core::sleep::Semaphore<System>;

/// For threads that are not scoped: see `workers`.
fn leak<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

/// Xorshift.
fn random(seed: &mut u64, below: u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    (*seed >> 16) % below
}

/// Data that one side of a pair of semaphores owns at a time.
struct Shared<T>(UnsafeCell<T>);

// SAFETY: each test alternates between the owners.
unsafe impl<T: Send> Sync for Shared<T> {}

/// SA and SR: under Miri this fails where one of them is Relaxed.
#[test]
fn two_threads_take_turns() {
    const ROUNDS: usize = if cfg!(miri) { 30 } else { 5000 };
    let _serial = serial();
    let turns = leak([Semaphore::new(1), Semaphore::new(0)]);
    let count = leak(Shared(UnsafeCell::new(0)));
    workers("two threads", 2, |side, state| {
        for round in 0..ROUNDS {
            state.waits(false);
            turns[side].acquire();
            state.is_inside();
            // SAFETY: there is one permit for both sides, and it is here.
            let count = unsafe { &mut *count.0.get() };
            assert_eq!(*count, 2 * round + side);
            *count += 1;
            turns[1 - side].release();
            state.is_outside();
        }
    });
    assert_eq!([turns[0].available(), turns[1].available()], [1, 0]);
}

/// Acquisitions of one and of several permits, with deadlines, a token, and attempts. Fails where
/// permits are lost or made, and where more are out than there are.
#[test]
fn permits_are_neither_lost_nor_made() {
    const PERMITS: u32 = 4;
    const THREADS: usize = if cfg!(miri) { 3 } else { 8 };
    const ROUNDS: u32 = if cfg!(miri) { 20 } else { 2000 };
    let _serial = serial();
    let semaphore = leak(Semaphore::new(PERMITS));
    let token = leak(CancelToken::<System>::new());
    let out = leak(AtomicU32::new(0));
    let acquire = |n: u32, seed: &mut u64| {
        let now = System::now();
        let deadline = now.plus_nanos(random(seed, 100_000));
        let far = now.plus(Duration::from_secs(100));
        let (acquired, may_fail) = match random(seed, 4) {
            0 => (semaphore.try_acquire_many(n), true),
            1 => {
                let acquired = semaphore.acquire_many_limited(n, Some(deadline.into()), None);
                (acquired, System::now() >= deadline)
            }
            2 => {
                let acquired = semaphore.acquire_many_limited(n, Some(far.into()), Some(token));
                (acquired, token.is_cancelled())
            }
            _ => {
                semaphore.acquire_many(n);
                (true, false)
            }
        };
        assert!(acquired || may_fail, "it gave up early");
        acquired
    };
    workers("a semaphore", THREADS, move |number, state| {
        let mut seed = number as u64 * 2 + 1;
        for round in 0..ROUNDS {
            let n = 1 + random(&mut seed, PERMITS.into()) as u32;
            state.waits(true);
            if acquire(n, &mut seed) {
                state.is_inside();
                assert!(out.fetch_add(n, Relaxed) + n <= PERMITS);
                System::pause(Pause::Iterations(random(&mut seed, 200) as u32));
                out.fetch_sub(n, Relaxed);
                semaphore.release_many(n);
            }
            state.is_outside();
            if number == 0 && round == ROUNDS / 2 {
                token.cancel();
            }
        }
    });
    assert_eq!(semaphore.available(), PERMITS);
    assert!(!semaphore.is_contended());
}

/// Fails where the waiters are served in another order than that of their arrival; those of one
/// permit do not bypass those of two.
#[test]
#[cfg_attr(miri, ignore = "it goes by the clock")]
fn first_come_first_served() {
    let _serial = serial();
    let semaphore = &Semaphore::new(0);
    let order = &Mutex::new(Vec::new());
    let callers = &[const { OnceLock::new() }; 4];
    let asleep = thread::scope(|scope| {
        let asleep = (0..4).all(|number| {
            scope.spawn(move || {
                let _ = callers[number].set(Caller::here());
                semaphore.acquire_many(1 + number as u32 % 2);
                order.lock().unwrap().push(number);
            });
            until(&callers[number], Caller::is_asleep)
        });
        // Number of waiters served after each permit.
        for served in [1, 1, 2, 3, 3, 4] {
            semaphore.release();
            let begin = Instant::now();
            while order.lock().unwrap().len() < served && begin.elapsed() < Duration::from_secs(120)
            {
                thread::yield_now();
            }
        }
        asleep
    });
    assert!(asleep);
    assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3]);
    assert_eq!(
        (semaphore.available(), semaphore.is_contended()),
        (0, false)
    );
}

/// A thread acquires and frees the semaphore while the release of its permit may still be under
/// way. Under Miri, and with an address sanitizer, this fails where the release touches the
/// semaphore after that.
#[test]
fn who_acquires_the_last_permit_may_free_the_semaphore() {
    const ROUNDS: usize = if cfg!(miri) { 20 } else { 2000 };
    struct Sent(*mut Semaphore);
    // SAFETY: the pointer is to a semaphore, which any thread may use.
    unsafe impl Send for Sent {}

    let _serial = serial();
    for round in 0..ROUNDS {
        let semaphore = Box::into_raw(Box::new(Semaphore::new(0)));
        let releaser = Sent(semaphore);
        let thread = thread::spawn(move || {
            let Sent(semaphore) = { releaser };
            // SAFETY: it lives until this has released.
            unsafe { (*semaphore).release() };
        });
        if round % 2 == 0 {
            thread::yield_now();
        }
        // SAFETY: it is freed below.
        unsafe { (*semaphore).acquire() };
        // SAFETY: made from a box above, and the only permit that there will ever be is ours.
        drop(unsafe { Box::from_raw(semaphore) });
        thread.join().unwrap();
    }
}

static SIGNALLED: Semaphore = Semaphore::new(0);
static HANDLED: AtomicU32 = AtomicU32::new(0);
static ENDED: AtomicBool = AtomicBool::new(false);

extern "C" fn release(_: libc::c_int) {
    SIGNALLED.release();
    HANDLED.fetch_add(1, Relaxed);
}

/// A handler releases the semaphore that the interrupted thread works on, the wait lock included.
/// Fails where a release waits for the wait lock.
#[test]
#[cfg_attr(miri, ignore = "Miri has no signals")]
fn a_handler_may_release() {
    const SIGNALS: u32 = 300;
    let _serial = serial();
    // SAFETY: an all-zero sigaction is valid.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = release as extern "C" fn(libc::c_int) as usize;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: `action` is valid, and the handler does no more than release.
    let installed = unsafe { libc::sigaction(libc::SIGUSR2, &action, ptr::null_mut()) };
    assert_eq!(installed, 0);
    let (sender, receiver) = channel();
    // Not scoped: a scope would wait for a stuck thread for ever.
    let worker = thread::spawn(move || {
        // SAFETY: no preconditions.
        sender
            .send(unsafe { libc::pthread_self() } as usize)
            .unwrap();
        let mut got = 0;
        // Enters and leaves the list all the time.
        while !ENDED.load(Relaxed) || SIGNALLED.available() > 0 {
            // Past by the time that it is checked.
            let deadline = System::now();
            got += u32::from(SIGNALLED.acquire_until(deadline));
        }
        got
    });
    let thread = receiver.recv().unwrap();
    for signal in 0..SIGNALS {
        let name = thread as libc::pthread_t;
        // SAFETY: the thread is alive: it ends when it is signalled.
        assert_eq!(unsafe { libc::pthread_kill(name, libc::SIGUSR2) }, 0);
        let begin = Instant::now();
        while HANDLED.load(Relaxed) == signal {
            assert!(
                begin.elapsed() < Duration::from_secs(120),
                "the handler is stuck"
            );
            thread::yield_now();
        }
    }
    ENDED.store(true, Relaxed);
    assert_eq!(worker.join().unwrap(), SIGNALS);
    assert!(!SIGNALLED.is_contended());
}
