//! The mutex's promises beyond exclusion, and its spin queue, on real threads.

use std::cell::{Cell, UnsafeCell};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Barrier, OnceLock, mpsc};
use std::thread;
use std::time::Duration;

use crate::caller::{Caller, until};
use overlock::System;
use overlock::sleep::{
    KernelMutex as Mutex, KernelMutexInside, KernelMutexNone, RawCancelLock, RawFairLock, RawLock,
    RawTimedLock,
};
use overlock_core::sleep::cancel::CancelToken;
use overlock_core::{Platform, Spin};
use overlock_family::sleep::Osq;

trait Form: RawLock<Token = ()> + RawTimedLock + RawFairLock + RawCancelLock<System> {}
impl<L: RawLock<Token = ()> + RawTimedLock + RawFairLock + RawCancelLock<System>> Form for L {}

/// Sleepers leave by a token, and the one without a token gets the mutex.
fn cancels<L: Form>() {
    let lock = &L::create().unwrap();
    let token = &CancelToken::<System>::new();
    let callers = &[const { OnceLock::new() }; 6];
    lock.lock();
    let (asleep, left) = thread::scope(|scope| {
        let cancelled = callers.each_ref().map(|caller| {
            scope.spawn(move || {
                let _ = caller.set(Caller::here());
                lock.lock_cancellable(token, None).is_none()
            })
        });
        let asleep = callers
            .iter()
            .all(|caller| until(caller, Caller::is_asleep));
        let staying = scope.spawn(move || lock.lock());
        token.cancel();
        let left = cancelled.map(|waiter| waiter.join().unwrap());
        // SAFETY: this thread has locked it.
        unsafe { lock.unlock(()) };
        staying.join().unwrap();
        (asleep, left)
    });
    assert_eq!((asleep, left), (true, [true; 6]), "{}", L::NAME);
    assert!(lock.is_locked() && !lock.is_contended());
}

/// A fair unlock cannot be undone by the thread that made it.
fn hands_over<L: Form>() {
    let lock = &L::create().unwrap();
    let inside = &AtomicBool::new(false);
    let caller = &OnceLock::new();
    lock.lock();
    let (asleep, came_between) = thread::scope(|scope| {
        scope.spawn(move || {
            let _ = caller.set(Caller::here());
            lock.lock();
            inside.store(true, Ordering::Relaxed);
            // SAFETY: this thread has locked it.
            unsafe { lock.unlock(()) };
        });
        let asleep = until(caller, Caller::is_asleep);
        // SAFETY: this thread has locked it.
        unsafe { lock.unlock_fair(()) };
        lock.lock();
        let came_between = inside.load(Ordering::Relaxed);
        // SAFETY: this thread has locked it.
        unsafe { lock.unlock(()) };
        (asleep, came_between)
    });
    assert!(asleep, "{}", L::NAME);
    assert!(came_between, "{} was taken back", L::NAME);
}

/// Sleepers enter in the order of their arrival if nobody bypasses them.
fn first_come_first_served<L: Form>() {
    let lock = &L::create().unwrap();
    let (sender, receiver) = mpsc::channel();
    let callers = &[const { OnceLock::new() }; 4];
    lock.lock();
    let asleep = thread::scope(|scope| {
        let asleep = (0..4).all(|number| {
            let sender = sender.clone();
            scope.spawn(move || {
                let _ = callers[number].set(Caller::here());
                lock.lock();
                sender.send(number).unwrap();
                // SAFETY: this thread has locked it.
                unsafe { lock.unlock_fair(()) };
            });
            until(&callers[number], Caller::is_asleep)
        });
        // SAFETY: this thread has locked it.
        unsafe { lock.unlock_fair(()) };
        asleep
    });
    assert!(asleep, "{}", L::NAME);
    assert_eq!(
        receiver.try_iter().collect::<Vec<_>>(),
        [0, 1, 2, 3],
        "{}",
        L::NAME
    );
}

/// A mutex, and the number of threads that still use it, on pages of their own.
struct Shared<L> {
    lock: L,
    users: UnsafeCell<u32>,
}

const PAGE: usize = 4096;

fn map<L: Form>(users: u32) -> *mut Shared<L> {
    let (access, kind) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
    );
    // SAFETY: new pages, wherever there is room.
    let page = unsafe { libc::mmap(ptr::null_mut(), PAGE, access, kind, -1, 0) };
    assert_ne!(page, libc::MAP_FAILED);
    assert!(size_of::<Shared<L>>() <= PAGE);
    let shared = page.cast::<Shared<L>>();
    let lock = L::create().unwrap();
    let users = UnsafeCell::new(users);
    // SAFETY: the page is ours, large enough and aligned.
    unsafe { shared.write(Shared { lock, users }) };
    shared
}

/// The last user unmaps the mutex as soon as its own unlock has returned, as C programs may: a load
/// after the kick in an earlier unlock is a segmentation fault here. Core's tests cover the code
/// closer to the release.
fn may_be_freed_by_the_last_user<L: Form>() {
    const USERS: usize = 3;
    const ROUNDS: usize = 2_000;
    let current = &AtomicPtr::<Shared<L>>::new(ptr::null_mut());
    let [start, end] = &[Barrier::new(USERS), Barrier::new(USERS)];
    let freed = &AtomicUsize::new(0);
    let play = move |user: usize| {
        for round in 0..ROUNDS {
            if user == 0 {
                current.store(map::<L>(USERS as u32), Ordering::Relaxed);
            }
            start.wait();
            let page = current.load(Ordering::Relaxed);
            // SAFETY: mapped until the last user has unlocked, and this one has not yet.
            let Shared { lock, users } = unsafe { &*page };
            lock.lock();
            // SAFETY: the lock is held.
            let users = unsafe { &mut *users.get() };
            *users -= 1;
            let last = *users == 0;
            if (round + user) % 4 == 0 {
                thread::sleep(Duration::from_micros(30)); // the others go to sleep
            }
            // SAFETY: this thread has locked it.
            unsafe { lock.unlock(()) };
            if last {
                freed.fetch_add(1, Ordering::Relaxed);
                // SAFETY: nobody calls the lock any more, and nobody else unmaps it.
                unsafe { libc::munmap(page.cast(), PAGE) };
            }
            end.wait();
        }
    };
    thread::scope(|scope| {
        for user in 0..USERS {
            scope.spawn(move || play(user));
        }
    });
    assert_eq!(freed.load(Ordering::Relaxed), ROUNDS);
}

macro_rules! tests {
    ($($name:ident: $lock:ident),*) => {$(
        mod $name {
            use super::*;

            #[test]
            fn cancels() {
                super::cancels::<$lock>();
            }

            #[test]
            fn hands_over() {
                super::hands_over::<$lock>();
            }

            #[test]
            fn first_come_first_served() {
                super::first_come_first_served::<$lock>();
            }

            #[test]
            fn may_be_freed_by_the_last_user() {
                super::may_be_freed_by_the_last_user::<$lock>();
            }
        }
    )*};
}

tests!(outside: Mutex, inside: KernelMutexInside, none: KernelMutexNone);

/// Threads enter the spin queue and leave at once, after some time, or as its head, all at the same
/// time. There is one head at a time, and at the end the queue is empty.
#[test]
fn spinners_leave_the_queue_in_crowds() {
    const THREADS: u64 = 6;
    let queue = &Osq::<System>::new();
    let [heads, inside] = [(); 2].map(|()| AtomicUsize::new(0));
    let [heads, inside] = [&heads, &inside];
    thread::scope(|scope| {
        for thread in 1..=THREADS {
            scope.spawn(move || {
                let mut random = thread;
                for turn in 0..10_000 {
                    random = random
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    let patience = random >> 33 & 0x3f;
                    let limit = match turn % 3 {
                        0 => Spin::Polls(patience as u32),
                        1 => Spin::Until(System::now().plus_nanos(patience * 32)),
                        _ => Spin::Forever,
                    };
                    let polls = Cell::new(0);
                    let head = queue.lock(limit, || {
                        polls.set(polls.get() + 1);
                        polls.get() > 2 * patience
                    });
                    if head.is_some() {
                        heads.fetch_add(1, Ordering::Relaxed);
                        assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0, "two heads");
                        if turn % 16 == 0 {
                            thread::yield_now();
                        }
                        inside.fetch_sub(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    assert!(heads.load(Ordering::Relaxed) > 0);
    assert!(!queue.is_locked());
}
