//! Scenarios for the condition variable.

use std::sync::atomic::Ordering::Relaxed;

use overlock_core::node::{CONTEXTS, NodeId};
use overlock_core::platform::{Atomic, Pause};
use overlock_core::raw::RawLock;
use overlock_core::sleep::cancel::CancelToken;
use overlock_core::sleep::condvar::jump_out;
use overlock_core::sleep::{Condvar, Overlock};

use super::{ONE_NODE, PLAIN, SIGNALS};
use crate::arena::Placed;
use crate::explore::exec::step;
use crate::scenario::Scenario;
use crate::scenario::workers::{Part, workers};
use crate::world::{Data, World};

/// A store of goods under a lock, and a condition variable for those that wait for them. In a place
/// of its own, since it may be destroyed before the lock.
struct Store<W: World, L> {
    lock: L,
    guarded: W::Data,
    goods: W::U32,
    condvar: Placed<Condvar<W>>,
    cancel: CancelToken<W>,
}

impl<W: World, L: RawLock> Store<W, L> {
    fn new() -> Self {
        Store {
            lock: L::create().expect("room for a lock"),
            guarded: W::Data::new(),
            goods: W::U32::ZERO,
            condvar: Placed::new(Condvar::new()),
            cancel: CancelToken::new(),
        }
    }

    fn locked<R>(&self, work: impl FnOnce(L::Token) -> (L::Token, R)) -> R {
        let token = self.lock.lock();
        self.guarded.write();
        let (token, result) = work(token);
        self.guarded.write();
        // SAFETY: acquired by this thread, above or by the wait.
        unsafe { self.lock.unlock(token) };
        result
    }

    fn put(&self, goods: u32) {
        self.locked(|token| {
            self.goods.store(self.goods.load(Relaxed) + goods, Relaxed);
            (token, ())
        });
    }

    fn take_one(&self) {
        self.goods.store(self.goods.load(Relaxed) - 1, Relaxed);
    }

    /// Waits for goods, and takes one.
    fn get(&'static self) {
        self.locked(|mut token| {
            while self.goods.load(Relaxed) == 0 {
                // SAFETY: acquired by this thread.
                token = unsafe { self.condvar.wait(&self.lock, token) };
                self.guarded.write();
            }
            self.take_one();
            (token, ())
        });
    }

    /// The same, unless the time is over, or it is cancelled, first. Then it takes nothing, and has
    /// not been notified.
    fn get_limited(&'static self, timed: bool) {
        self.locked(|mut token| {
            while self.goods.load(Relaxed) == 0 {
                let deadline = timed.then(|| W::now().plus_nanos(1_000).into());
                let cancel = (!timed).then_some(&self.cancel);
                // SAFETY: acquired by this thread.
                let (again, notified) = unsafe {
                    self.condvar
                        .wait_limited(&self.lock, token, deadline, cancel)
                };
                token = again;
                self.guarded.write();
                if !notified {
                    return (token, ());
                }
            }
            self.take_one();
            (token, ())
        });
    }

    /// As [`get`](Self::get); meanwhile, or never, a signal comes whose handler jumps, but not out
    /// of the wait.
    fn get_interrupted(&'static self) {
        step::signal(Box::new(|| {
            let slot = W::slot().expect("a slot");
            for context in 0..CONTEXTS {
                jump_out::<W>(NodeId::new(slot, context));
            }
        }));
        self.get();
        step::unsignal();
    }

    /// Goods for everybody, of which the waiters learn while the lock is held, and nobody waits any
    /// more.
    fn close(&'static self) {
        self.locked(|token| {
            self.goods.store(2, Relaxed);
            self.condvar.notify_all();
            self.condvar.drain();
            // SAFETY: whoever has the lock next finds goods, and does not wait. Those that were
            // notified do not touch it any more, or the check fails: the memory itself is there
            // until the execution ends.
            unsafe { self.condvar.end() };
            (token, ())
        });
    }

    fn check(&self) {
        self.check_lock();
        assert!(
            !self.condvar.is_in_use(),
            "somebody waits when all threads have ended"
        );
        // SAFETY: all threads but this one have ended.
        unsafe { self.condvar.end() };
    }

    fn check_lock(&self) {
        assert!(!self.lock.is_locked() && !self.lock.is_contended());
    }
}

/// The scenarios for the condition variable, with one kind of lock.
pub fn condvar<W: World, L: RawLock>() -> Vec<Scenario> {
    let make: fn() -> Store<W, L> = Store::new;
    let check: fn(&Store<W, L>) = Store::check;
    let one: Part<Store<W, L>> = |shared| {
        shared.put(1);
        shared.condvar.notify_one();
    };
    let twice: Part<Store<W, L>> = |shared| {
        shared.put(1);
        shared.condvar.notify_one();
        shared.put(1);
        shared.condvar.notify_one();
    };
    let all: Part<Store<W, L>> = |shared| {
        shared.put(2);
        shared.condvar.notify_all();
    };
    let locked: Part<Store<W, L>> = |shared| {
        shared.locked(|token| {
            shared.goods.store(2, Relaxed);
            shared.condvar.notify_all();
            (token, ())
        });
    };
    let timed: Part<Store<W, L>> = |shared| shared.get_limited(true);
    let cancelled: Part<Store<W, L>> = |shared| shared.get_limited(false);
    let cancel: Part<Store<W, L>> = |shared| {
        shared.put(1);
        shared.condvar.notify_one();
        shared.cancel.cancel();
    };
    let locked_one: Part<Store<W, L>> = |shared| {
        shared.locked(|token| {
            shared.goods.store(1, Relaxed);
            shared.condvar.notify_one();
            (token, ())
        });
    };
    let last: Part<Store<W, L>> = |shared| {
        shared.locked(|token| {
            // SAFETY: acquired by this thread.
            let token = unsafe { shared.condvar.wait(&shared.lock, token) };
            (token, ())
        });
        // SAFETY: the only notifier has called this thread.
        unsafe { shared.condvar.end() };
    };
    let only: Part<Store<W, L>> = |shared| {
        while !shared.condvar.notify_one() {
            W::pause(Pause::Iterations(1));
        }
    };
    let check_lock: fn(&Store<W, L>) = Store::check_lock;
    let three: Part<Store<W, L>> = |shared| {
        shared.put(3);
        shared.condvar.notify_all();
    };
    vec![
        workers::<W, _, _>("one", PLAIN, make, [Store::get, one], check),
        workers::<W, _, _>("twice", PLAIN, make, [Store::get, Store::get, twice], check),
        workers::<W, _, _>("all", PLAIN, make, [Store::get, Store::get, all], check),
        workers::<W, _, _>(
            "all-of-three",
            PLAIN,
            make,
            [Store::get, Store::get, Store::get, three],
            check,
        ),
        workers::<W, _, _>(
            "all-locked",
            PLAIN,
            make,
            [Store::get, Store::get, locked],
            check,
        ),
        workers::<W, _, _>("within", PLAIN, make, [timed, Store::get, twice], check),
        workers::<W, _, _>("within-all", PLAIN, make, [timed, Store::get, all], check),
        workers::<W, _, _>("cancel", PLAIN, make, [cancelled, cancel], check),
        workers::<W, _, _>(
            "cancel-all",
            PLAIN,
            make,
            [|shared| shared.cancel.cancel(), cancelled],
            check,
        ),
        workers::<W, _, _>(
            "one-node",
            ONE_NODE,
            make,
            [Store::get, Store::get, all],
            check,
        ),
        workers::<W, _, _>("one-locked", PLAIN, make, [Store::get, locked_one], check),
        workers::<W, _, _>("within-locked", PLAIN, make, [timed, locked_one], check),
        workers::<W, _, _>(
            "within-all-locked",
            PLAIN,
            make,
            [timed, Store::get, locked],
            check,
        ),
        workers::<W, _, _>(
            "destroy",
            PLAIN,
            make,
            [Store::get, Store::get, Store::close],
            check_lock,
        ),
        workers::<W, _, _>(
            "destroy-within",
            PLAIN,
            make,
            [timed, Store::get, Store::close],
            check_lock,
        ),
        workers::<W, _, _>("destroy-last", PLAIN, make, [last, only], check_lock),
        workers::<W, _, _>(
            "jumped",
            SIGNALS,
            make,
            [Store::get_interrupted, Store::get, twice],
            check,
        ),
        workers::<W, _, _>(
            "jumped-locked",
            SIGNALS,
            make,
            [Store::get_interrupted, Store::get, locked],
            check,
        ),
        workers::<W, _, _>(
            "jumped-of-three",
            SIGNALS,
            make,
            [
                Store::get_interrupted,
                Store::get,
                Store::get_interrupted,
                three,
            ],
            check,
        ),
    ]
}

/// A condition variable, and a lock that its last owner frees.
struct Freed<W: World> {
    lock: Placed<Overlock<W>>,
    guarded: W::Data,
    /// How many have not owned the lock for the last time. Accessed under it.
    left: W::U32,
    condvar: Condvar<W>,
}

impl<W: World> Freed<W> {
    fn new() -> Self {
        Freed {
            lock: Placed::new(Overlock::new()),
            guarded: W::Data::new(),
            left: W::U32::new(2),
            condvar: Condvar::new(),
        }
    }

    /// Owns the lock for the last time, and frees it where the other one has done so.
    fn own_last(&self, waits: bool) {
        self.lock.lock();
        self.guarded.write();
        if waits {
            // SAFETY: acquired by this thread.
            unsafe { self.condvar.wait(&*self.lock, ()) };
            self.guarded.write();
        }
        // Relaxed: under the lock.
        let left = self.left.load(Relaxed) - 1;
        self.left.store(left, Relaxed);
        // SAFETY: acquired by this thread, above or by the wait.
        unsafe { self.lock.unlock(()) };
        if left == 0 {
            // SAFETY: nobody will own the lock again. A notifier whose waiter is back does not
            // touch it any more, or the check fails: the memory itself is there until the
            // execution ends.
            unsafe { self.lock.end() };
        }
    }

    fn notify(&self) {
        while !self.condvar.notify_one() {
            W::pause(Pause::Iterations(1));
        }
    }
}

/// A waiter is adopted by a lock that is freed, by that waiter or by another thread, as soon as the
/// waiter is back.
pub fn condvar_freed<W: World>() -> Scenario {
    workers::<W, _, _>(
        "freed",
        PLAIN,
        Freed::<W>::new,
        [
            |shared| shared.own_last(true),
            |shared| shared.own_last(false),
            |shared| shared.notify(),
        ],
        |shared| assert!(!shared.condvar.is_in_use()),
    )
}
