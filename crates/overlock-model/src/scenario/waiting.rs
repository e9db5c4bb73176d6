//! Scenarios for what threads wait with beside locks: semaphores, condition variables, barriers, things done once, and the queue of
//! optimistic spinners.

use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::Ordering::Relaxed;

use overlock_core::platform::{Atomic, Spin};
use overlock_core::raw::RawLock;
use overlock_core::sleep::cancel::CancelToken;
use overlock_core::sleep::{Barrier, Condvar, Once, Osq, Semaphore};

use super::crew::{Part, change, crew};
use super::{Scenario, Setting};
use crate::explore::exec;
use crate::failure::may_panic;
use crate::world::{Data, World};

const PLAIN: Setting = Setting::PLAIN;
const ONE_NODE: Setting = Setting { slots: 1, ..PLAIN };
const SIGNALS: Setting = Setting {
    signals: true,
    ..PLAIN
};

/// A semaphore, what its only permit guards, and how many are in where there are more.
struct Permits<W: World> {
    semaphore: Semaphore<W>,
    guarded: W::Data,
    inside: W::U32,
    cancel: CancelToken<W>,
}

impl<W: World> Permits<W> {
    fn new(permits: u32) -> Self {
        Permits {
            semaphore: Semaphore::create(permits),
            guarded: W::Data::new(),
            inside: W::U32::new(0),
            cancel: CancelToken::create(),
        }
    }

    fn alone(&'static self) {
        self.semaphore.acquire();
        change::<W>(&self.guarded);
        self.semaphore.release();
    }

    fn alone_if(&'static self, acquired: bool) {
        if acquired {
            change::<W>(&self.guarded);
            self.semaphore.release();
        }
    }

    fn within(&'static self) {
        let deadline = W::now().plus_nanos(1_000);
        self.alone_if(self.semaphore.acquire_until(deadline));
    }

    fn together(&'static self, permits: u32, most: u32) {
        self.semaphore.acquire_many(permits);
        let before = self.inside.fetch_add(permits, Relaxed);
        assert!(before + permits <= most, "more permits than there are");
        W::breathe();
        self.inside.fetch_sub(permits, Relaxed);
        self.semaphore.release_many(permits);
    }

    /// Takes the permit and gives it back; meanwhile, or never, a signal comes whose handler gives a new one.
    fn interrupted(&'static self) {
        exec::signal(Box::new(|| {
            self.inside.fetch_add(1, Relaxed);
            self.semaphore.release();
        }));
        self.semaphore.acquire();
        W::breathe();
        self.semaphore.release();
        exec::unsignal();
    }

    fn check(&self, permits: u32) {
        assert_eq!(self.semaphore.available(), permits, "permits were lost");
        assert!(!self.semaphore.is_contended());
    }
}

/// The scenarios for the semaphore.
pub fn semaphore<W: World>() -> Vec<Scenario> {
    let one: fn() -> Permits<W> = || Permits::new(1);
    let two: fn() -> Permits<W> = || Permits::new(2);
    let none: fn() -> Permits<W> = || Permits::new(0);
    let full: fn(&Permits<W>) = |shared| shared.check(1);
    vec![
        crew::<W, _, _>("two", PLAIN, one, [Permits::alone, Permits::alone], full),
        crew::<W, _, _>("three", PLAIN, one, [Permits::alone; 3], full),
        crew::<W, _, _>("one-node", ONE_NODE, one, [Permits::alone; 3], full),
        crew::<W, _, _>(
            "try",
            PLAIN,
            one,
            [
                Permits::alone,
                |shared| shared.alone_if(shared.semaphore.try_acquire()),
                Permits::alone,
            ],
            full,
        ),
        crew::<W, _, _>(
            "within",
            PLAIN,
            one,
            [Permits::alone, Permits::within, Permits::within],
            full,
        ),
        crew::<W, _, _>(
            "cancel",
            PLAIN,
            one,
            [
                |shared| {
                    shared.alone();
                    shared.cancel.cancel();
                },
                |shared| {
                    shared.alone_if(shared.semaphore.acquire_cancellable(&shared.cancel, None))
                },
                |shared| {
                    shared.alone_if(shared.semaphore.acquire_cancellable(&shared.cancel, None))
                },
            ],
            full,
        ),
        crew::<W, _, _>(
            "many",
            PLAIN,
            two,
            [
                |shared| shared.together(2, 2),
                |shared| shared.together(1, 2),
                |shared| shared.together(1, 2),
            ],
            |shared| shared.check(2),
        ),
        crew::<W, _, _>(
            "give-up",
            PLAIN,
            two,
            [
                |shared| shared.together(1, 2),
                |shared| {
                    let deadline = W::now().plus_nanos(1_000);
                    if shared
                        .semaphore
                        .acquire_many_limited(2, Some(deadline), None)
                    {
                        shared.semaphore.release_many(2);
                    }
                },
                |shared| shared.together(1, 2),
            ],
            |shared| shared.check(2),
        ),
        crew::<W, _, _>(
            "produce",
            PLAIN,
            none,
            [
                |shared| shared.semaphore.acquire(),
                |shared| shared.semaphore.acquire(),
                |shared| {
                    shared.semaphore.release();
                    shared.semaphore.release();
                },
            ],
            |shared| shared.check(0),
        ),
        crew::<W, _, _>(
            "interrupted",
            SIGNALS,
            one,
            [Permits::interrupted, Permits::interrupted],
            |shared| shared.check(1 + shared.inside.load(Relaxed)),
        ),
        crew::<W, _, _>(
            "interrupted-among-three",
            SIGNALS,
            one,
            [
                Permits::interrupted,
                |shared| {
                    shared.semaphore.acquire();
                    shared.semaphore.release();
                },
                |shared| {
                    let deadline = W::now().plus_nanos(1_000);
                    if shared.semaphore.acquire_until(deadline) {
                        shared.semaphore.release();
                    }
                },
            ],
            |shared| shared.check(1 + shared.inside.load(Relaxed)),
        ),
    ]
}

/// A store of goods under a lock, and a condition variable for those that wait for them.
struct Store<W: World, L> {
    lock: L,
    guarded: W::Data,
    goods: W::U32,
    condvar: Condvar<W>,
    cancel: CancelToken<W>,
}

impl<W: World, L: RawLock> Store<W, L> {
    fn new() -> Self {
        Store {
            lock: L::create().expect("room for a lock"),
            guarded: W::Data::new(),
            goods: W::U32::new(0),
            condvar: Condvar::create(),
            cancel: CancelToken::create(),
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

    /// The same, unless the time is over, or it is cancelled, first. Then it takes nothing, and has not been notified.
    fn get_limited(&'static self, timed: bool) {
        self.locked(|mut token| {
            while self.goods.load(Relaxed) == 0 {
                let deadline = timed.then(|| W::now().plus_nanos(1_000));
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

    fn check(&self) {
        assert!(!self.lock.is_locked());
        assert!(
            !self.condvar.is_in_use(),
            "somebody waits when all threads have ended"
        );
    }
}

/// The scenarios for the condition variable in which an owner comes back from a broadcast, and owes the next sleeper a kick: for locks that keep it until they are
/// released.
pub fn kept_kicks<W: World, L: RawLock>() -> Vec<Scenario> {
    condvar::<W, L>()
        .into_iter()
        .filter(|scenario| scenario.name.starts_with("all"))
        .map(|scenario| scenario.with("condvar"))
        .collect()
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
    let one_there: fn() -> Store<W, L> = || {
        let store = Store::<W, L>::new();
        store.goods.store(1, Relaxed);
        store
    };
    vec![
        crew::<W, _, _>("one", PLAIN, make, [Store::get, one], check),
        crew::<W, _, _>("twice", PLAIN, make, [Store::get, Store::get, twice], check),
        crew::<W, _, _>("all", PLAIN, make, [Store::get, Store::get, all], check),
        crew::<W, _, _>(
            "all-of-three",
            PLAIN,
            one_there,
            [Store::get, Store::get, Store::get, all],
            check,
        ),
        crew::<W, _, _>(
            "all-locked",
            PLAIN,
            make,
            [Store::get, Store::get, locked],
            check,
        ),
        crew::<W, _, _>("within", PLAIN, make, [timed, Store::get, twice], check),
        crew::<W, _, _>("within-all", PLAIN, make, [timed, Store::get, all], check),
        crew::<W, _, _>("cancel", PLAIN, make, [cancelled, cancel], check),
        crew::<W, _, _>(
            "one-node",
            ONE_NODE,
            make,
            [Store::get, Store::get, all],
            check,
        ),
    ]
}

/// Something that is done once.
struct Deed<W: World> {
    once: Once<W>,
    result: W::Data,
    times: W::U32,
}

/// How those panic that come after one that has, and do not insist.
const POISONED: &str = "an earlier call of this Once has panicked";

impl<W: World> Deed<W> {
    fn new() -> Self {
        Deed {
            once: Once::create(),
            result: W::Data::new(),
            times: W::U32::new(0),
        }
    }

    fn work(&self) {
        assert_eq!(self.times.fetch_add(1, Relaxed), 0, "done twice");
        change::<W>(&self.result);
    }

    fn call(&'static self) {
        self.once.call_once(|| self.work());
        self.result.read();
    }

    fn wait(&'static self) {
        self.once.wait();
        self.result.read();
    }

    fn force(&'static self) {
        self.once.call_once_force(|_| self.work());
        self.result.read();
    }

    fn wait_force(&'static self) {
        self.once.wait_force();
        self.result.read();
    }

    fn panic(&'static self) {
        let attempt = AssertUnwindSafe(|| {
            self.once.call_once(|| {
                W::breathe();
                panic::resume_unwind(Box::new(()));
            });
        });
        let _ = panic::catch_unwind(attempt);
    }

    fn call_unless_poisoned(&'static self) {
        may_panic(POISONED, || self.call());
    }

    fn wait_unless_poisoned(&'static self) {
        may_panic(POISONED, || self.wait());
    }

    fn check(&self) {
        assert!(self.once.is_done() && self.times.load(Relaxed) == 1);
    }
}

/// The scenarios for what is done once.
pub fn once<W: World>() -> Vec<Scenario> {
    let make: fn() -> Deed<W> = Deed::new;
    let check: fn(&Deed<W>) = Deed::check;
    vec![
        crew::<W, _, _>("two", PLAIN, make, [Deed::call, Deed::call], check),
        crew::<W, _, _>(
            "three",
            PLAIN,
            make,
            [Deed::call, Deed::call, Deed::wait],
            check,
        ),
        crew::<W, _, _>(
            "panic",
            PLAIN,
            make,
            [Deed::panic, Deed::force, Deed::wait_force],
            check,
        ),
        crew::<W, _, _>(
            "poisoned",
            PLAIN,
            make,
            [Deed::panic, Deed::force, Deed::call_unless_poisoned],
            check,
        ),
        crew::<W, _, _>(
            "poisoned-wait",
            PLAIN,
            make,
            [Deed::panic, Deed::wait_unless_poisoned, Deed::force],
            check,
        ),
        crew::<W, _, _>(
            "one-node",
            ONE_NODE,
            make,
            [Deed::call, Deed::call, Deed::wait],
            check,
        ),
    ]
}

/// A barrier, with data that the threads write before it, in turn, and read after it.
struct Meeting<W: World> {
    barrier: Barrier<W>,
    data: [W::Data; 3],
    leaders: W::U32,
}

impl<W: World> Meeting<W> {
    fn new(threads: u32) -> Self {
        Meeting {
            barrier: Barrier::create(threads),
            data: std::array::from_fn(|_| W::Data::new()),
            leaders: W::U32::new(0),
        }
    }

    fn meet(&'static self, own: usize, threads: usize) {
        for round in 0..2 {
            self.data[(own + round) % threads].write();
            if self.barrier.wait() {
                self.leaders.fetch_add(1, Relaxed);
            }
            self.data.iter().take(threads).for_each(Data::read);
            if self.barrier.wait() {
                self.leaders.fetch_add(1, Relaxed);
            }
        }
    }

    fn check(&self) {
        assert_eq!(self.leaders.load(Relaxed), 4, "each round has one leader");
    }
}

/// The scenarios for the barrier.
pub fn barrier<W: World>() -> Vec<Scenario> {
    let check: fn(&Meeting<W>) = Meeting::check;
    vec![
        crew::<W, _, _>(
            "two",
            PLAIN,
            || Meeting::<W>::new(2),
            [
                |shared: &'static Meeting<W>| shared.meet(0, 2),
                |shared| shared.meet(1, 2),
            ],
            check,
        ),
        crew::<W, _, _>(
            "three",
            PLAIN,
            || Meeting::<W>::new(3),
            [
                |shared: &'static Meeting<W>| shared.meet(0, 3),
                |shared| shared.meet(1, 3),
                |shared| shared.meet(2, 3),
            ],
            check,
        ),
        crew::<W, _, _>(
            "one-node",
            ONE_NODE,
            || Meeting::<W>::new(2),
            [
                |shared: &'static Meeting<W>| shared.meet(0, 2),
                |shared| shared.meet(1, 2),
            ],
            check,
        ),
    ]
}

/// The queue of optimistic spinners, and data for its head.
struct Line<W: World> {
    queue: Osq<W>,
    guarded: W::Data,
    stop: W::U32,
}

impl<W: World> Line<W> {
    fn new() -> Self {
        Line {
            queue: Osq::create(),
            guarded: W::Data::new(),
            stop: W::U32::new(0),
        }
    }

    fn stay(&'static self, limit: Spin, stop: impl FnMut() -> bool) {
        if let Some(head) = self.queue.lock(limit, stop) {
            change::<W>(&self.guarded);
            drop(head);
        }
    }

    fn wait(&'static self) {
        self.stay(Spin::Forever, || false);
    }

    fn again(&'static self) {
        self.wait();
        self.wait();
    }

    fn briefly(&'static self) {
        self.stay(Spin::Turns(10), || false);
    }

    fn until_stopped(&'static self) {
        self.stay(Spin::Forever, || self.stop.load(Relaxed) != 0);
    }

    fn stop(&'static self) {
        self.wait();
        self.stop.store(1, Relaxed);
    }

    fn check(&self) {
        assert!(
            !self.queue.is_locked(),
            "somebody is in the queue when all threads have ended"
        );
    }
}

/// The scenarios for the queue of optimistic spinners.
pub fn osq<W: World>() -> Vec<Scenario> {
    let make: fn() -> Line<W> = Line::new;
    let check: fn(&Line<W>) = Line::check;
    vec![
        crew::<W, _, _>("two", PLAIN, make, [Line::wait, Line::wait], check),
        crew::<W, _, _>(
            "three",
            PLAIN,
            make,
            [Line::wait, Line::again, Line::wait],
            check,
        ),
        crew::<W, _, _>(
            "one-leaves",
            PLAIN,
            make,
            [Line::wait, Line::briefly, Line::again],
            check,
        ),
        crew::<W, _, _>(
            "two-leave",
            PLAIN,
            make,
            [Line::wait, Line::briefly, Line::briefly],
            check,
        ),
        crew::<W, _, _>(
            "three-leave",
            PLAIN,
            make,
            [Line::again, Line::briefly, Line::briefly, Line::briefly],
            check,
        ),
        crew::<W, _, _>(
            "stop",
            PLAIN,
            make,
            [Line::stop, Line::until_stopped, Line::until_stopped],
            check,
        ),
        crew::<W, _, _>(
            "one-node",
            ONE_NODE,
            make,
            [Line::wait, Line::briefly],
            check,
        ),
    ]
}
