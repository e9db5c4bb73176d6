//! The core condition variable on real threads, with every mutual-exclusion lock.

use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use overlock::System;
use overlock::sleep::Overlock;
use overlock::spin::{HybridShort, RawLock};
use overlock_core::Instant;
use overlock_core::Platform;
use overlock_core::platform::Pause;
use overlock_core::raw::ConstLock;
use overlock_core::sleep::Condvar;
use overlock_core::sleep::cancel::CancelToken;

use crate::serial;
use crate::workers::workers;

const HERD: usize = 1000;

/// A lock to which sleepers can be requeued.
type Requeues = overlock_core::sleep::Overlock<System>;

/// For threads that are not scoped: see `workers`.
fn leak<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

/// Data behind a lock: the part of a mutex that these tests need.
struct Guarded<T, L> {
    lock: L,
    data: UnsafeCell<T>,
}

// SAFETY: only the lock's holder touches the data.
unsafe impl<T: Send, L: RawLock> Sync for Guarded<T, L> {}

struct Guard<'a, T, L: RawLock> {
    of: &'a Guarded<T, L>,
    token: Option<L::Token>,
    not_send: PhantomData<*mut ()>,
}

impl<T, L: RawLock> Guarded<T, L> {
    fn new(data: T) -> Self {
        Guarded {
            lock: L::create().unwrap(),
            data: UnsafeCell::new(data),
        }
    }

    fn lock(&self) -> Guard<'_, T, L> {
        Guard {
            of: self,
            token: Some(self.lock.lock()),
            not_send: PhantomData,
        }
    }
}

impl<T, L: RawLock> Guard<'_, T, L> {
    fn wait(&mut self, condvar: &Condvar<System>) {
        let token = self.token.take().unwrap();
        // SAFETY: the token is of this lock and this thread.
        self.token = Some(unsafe { condvar.wait(&self.of.lock, token) });
    }

    fn wait_limited(
        &mut self,
        condvar: &Condvar<System>,
        deadline: Option<Instant>,
        cancel: Option<&CancelToken<System>>,
    ) -> bool {
        let token = self.token.take().unwrap();
        // SAFETY: the token is of this lock and this thread.
        let (token, notified) =
            unsafe { condvar.wait_limited(&self.of.lock, token, deadline.map(Into::into), cancel) };
        self.token = Some(token);
        notified
    }
}

impl<T, L: RawLock> Deref for Guard<'_, T, L> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the lock is held.
        unsafe { &*self.of.data.get() }
    }
}

impl<T, L: RawLock> DerefMut for Guard<'_, T, L> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the lock is held.
        unsafe { &mut *self.of.data.get() }
    }
}

impl<T, L: RawLock> Drop for Guard<'_, T, L> {
    fn drop(&mut self) {
        // SAFETY: the token is of this lock and this thread.
        unsafe { self.of.lock.unlock(self.token.take().unwrap()) }
    }
}

/// Two threads alternate, each waking the other and then waiting for it.
fn ping_pong<L: RawLock>() {
    const ROUNDS: usize = 100;
    let _serial = serial();
    let count = leak(Guarded::<_, L>::new(0));
    let changed = leak(Condvar::<System>::new());
    workers(L::NAME, 2, |parity, state| {
        let mut count = count.lock();
        while *count < ROUNDS {
            if *count % 2 == parity {
                *count += 1;
                changed.notify_one();
                state.is_outside();
            } else {
                state.waits(false);
                count.wait(changed);
                state.is_inside();
            }
        }
    });
    assert_eq!(*count.lock(), ROUNDS);
    assert!(!changed.is_in_use());
}

mod ping_pongs {
    mod spin {
        macro_rules! tests {
            ($($name:ident: $lock:ident, $kind:ident, $can:ident;)*) => {$(
                #[test]
                fn $name() {
                    crate::condvar::ping_pong::<overlock::spin::$lock>();
                }
            )*};
        }

        overlock_family::spin_locks!(tests);
    }

    mod sleep {
        macro_rules! tests {
            ($($name:ident: $lock:ident, $kind:ident, $can:ident;)*) => {$(
                #[test]
                fn $name() {
                    crate::condvar::ping_pong::<overlock_family::sleep::$lock<overlock::System>>();
                }
            )*};
        }

        overlock_family::sleep_locks!(tests);
    }
}

/// Four producers and four consumers, each item once.
fn bounded_queue<L: RawLock>() {
    const ITEMS: u64 = 2000;
    const PRODUCERS: u64 = 4;
    let _serial = serial();
    let queue = leak(Guarded::<_, L>::new(VecDeque::with_capacity(4)));
    let [not_full, not_empty] = leak([const { Condvar::<System>::new() }; 2]);
    let sum = leak(AtomicU64::new(0));
    let produce = |producer: u64, item: u64| {
        let mut queue = queue.lock();
        while queue.len() == 4 {
            queue.wait(not_full);
        }
        queue.push_back(producer * ITEMS + item);
        // With the lock, and without it.
        if item % 2 == 0 {
            not_empty.notify_one();
        } else {
            drop(queue);
            not_empty.notify_one();
        }
    };
    let consume = || {
        let mut queue = queue.lock();
        let item = loop {
            match queue.pop_front() {
                Some(item) => break item,
                None => queue.wait(not_empty),
            }
        };
        drop(queue);
        not_full.notify_one();
        sum.fetch_add(item, Relaxed);
    };
    workers(L::NAME, 2 * PRODUCERS as usize, move |number, state| {
        let number = number as u64;
        for item in 0..ITEMS {
            state.waits(false);
            if number < PRODUCERS {
                produce(number, item);
            } else {
                consume();
            }
            state.is_outside();
        }
    });
    let all = PRODUCERS * ITEMS;
    assert_eq!(sum.load(Relaxed), all * (all - 1) / 2);
    assert!(!not_full.is_in_use() && !not_empty.is_in_use());
}

#[test]
fn a_queue_passes_each_item_once() {
    bounded_queue::<Overlock>();
    bounded_queue::<HybridShort>();
    bounded_queue::<Requeues>();
}

/// Counts the threads in its `lock`, and keeps the maximum.
struct Counting {
    lock: Overlock,
    now: AtomicUsize,
    most: AtomicUsize,
}

impl ConstLock for Counting {
    const INIT: Self = Counting {
        lock: Overlock::new(),
        now: AtomicUsize::new(0),
        most: AtomicUsize::new(0),
    };
}

// SAFETY: as `Overlock`.
unsafe impl RawLock for Counting {
    type Token = ();
    const NAME: &'static str = "counting";

    fn lock(&self) {
        self.most
            .fetch_max(self.now.fetch_add(1, Relaxed) + 1, Relaxed);
        RawLock::lock(&self.lock);
        self.now.fetch_sub(1, Relaxed);
    }
    fn try_lock(&self) -> Option<()> {
        RawLock::try_lock(&self.lock)
    }
    unsafe fn unlock(&self, (): ()) {
        // SAFETY: the caller's promise.
        unsafe { RawLock::unlock(&self.lock, ()) }
    }
    fn is_locked(&self) -> bool {
        RawLock::is_locked(&self.lock)
    }
    fn is_contended(&self) -> bool {
        RawLock::is_contended(&self.lock)
    }
}

/// Fails where a notified thread wakes more than one other, or before it has the lock.
#[test]
fn a_broadcast_to_a_thousand_sets_two_at_a_time_on_the_lock() {
    let _serial = serial();
    let herd = leak(Guarded::<_, Counting>::new((0, false)));
    let go = leak(Condvar::<System>::new());
    workers("a broadcast", HERD + 1, |number, state| {
        if number < HERD {
            let mut seen = herd.lock();
            seen.0 += 1;
            state.waits(false);
            while !seen.1 {
                seen.wait(go);
            }
            seen.0 -= 1;
            state.is_outside();
            return;
        }
        // A waiter that has counted itself has joined by the time that the lock is free.
        while herd.lock().0 < HERD {
            thread::sleep(Duration::from_millis(1));
        }
        let mut held = herd.lock();
        herd.lock.most.store(0, Relaxed);
        held.1 = true;
        assert_eq!(go.notify_all(), HERD);
        assert_eq!(go.notify_all(), 0);
    });
    // One for each chain, and one that has the lock and has woken the next.
    assert!(herd.lock.most.load(Relaxed) <= 3);
    assert_eq!(herd.lock().0, 0);
    assert!(!go.is_in_use());
}

/// Xorshift.
fn random(seed: &mut u64, below: u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    (*seed >> 16) % below
}

/// Waiters with deadlines that pass while they are being notified. Fails where a notification is
/// lost to a waiter that gives up, or one waiter reports another's.
#[test]
fn every_notification_is_one_waiters() {
    notifications::<Overlock>();
    notifications::<Requeues>();
}

fn notifications<L: RawLock>() {
    const NOTIFIERS: usize = 2;
    const ROUNDS: u64 = 3000;
    let _serial = serial();
    let ended = leak(Guarded::<_, L>::new(0));
    let condvar = leak(Condvar::<System>::new());
    let [sent, received] = leak([const { AtomicUsize::new(0) }; 2]);
    let wait = |seed: &mut u64| {
        let mut ended = ended.lock();
        let deadline = System::now().plus_nanos(random(seed, 60_000));
        if ended.wait_limited(condvar, Some(deadline), None) {
            received.fetch_add(1, Relaxed);
        } else {
            assert!(System::now() >= deadline, "it gave up early");
        }
        *ended < NOTIFIERS
    };
    let notify = |seed: &mut u64| {
        let held = (random(seed, 2) == 0).then(|| ended.lock());
        let told = match random(seed, 8) {
            0 => condvar.notify_all(),
            _ => condvar.notify_one().into(),
        };
        sent.fetch_add(told, Relaxed);
        drop(held);
        System::pause(Pause::Iterations(random(seed, 500) as u32));
    };
    workers(
        "a wait with a deadline",
        6 + NOTIFIERS,
        move |number, state| {
            let mut seed = number as u64 * 2 + 1;
            if number < NOTIFIERS {
                for _ in 0..ROUNDS {
                    notify(&mut seed);
                    state.is_outside();
                }
                *ended.lock() += 1;
            } else {
                state.waits(true);
                while wait(&mut seed) {
                    state.is_outside();
                    state.waits(true);
                }
            }
        },
    );
    assert!(!condvar.is_in_use());
    assert_eq!(sent.load(Relaxed), received.load(Relaxed));
}

#[test]
fn a_token_ends_all_waits() {
    let _serial = serial();
    let waiting = &Guarded::<_, Overlock>::new(0);
    let condvar = &Condvar::<System>::new();
    let token = &CancelToken::<System>::new();
    let cancelled = &AtomicU32::new(0);
    thread::scope(|scope| {
        for number in 0..8 {
            scope.spawn(move || {
                let mut waiting = waiting.lock();
                *waiting += 1;
                let far = System::now().plus(Duration::from_secs(100));
                let deadline = (number % 2 == 0).then_some(far);
                if !waiting.wait_limited(condvar, deadline, Some(token)) {
                    cancelled.fetch_add(1, Relaxed);
                }
            });
        }
        while *waiting.lock() < 8 {
            thread::sleep(Duration::from_millis(1));
        }
        assert!(condvar.notify_one());
        token.cancel();
    });
    assert_eq!(cancelled.load(Relaxed), 7);
    assert!(!condvar.is_in_use());
}

#[test]
fn a_deadline_is_kept() {
    let lock = Guarded::<_, Overlock>::new(());
    let condvar = Condvar::<System>::new();
    let mut held = lock.lock();
    for wait_ns in [0, 1000, 3_000_000] {
        let deadline = System::now().plus_nanos(wait_ns);
        assert!(!held.wait_limited(&condvar, Some(deadline), None));
        assert!(System::now() >= deadline);
    }
}
