//! Scenarios for the semaphore.

use std::sync::atomic::Ordering::Relaxed;

use overlock_core::platform::Atomic;
use overlock_core::sleep::Semaphore;
use overlock_core::sleep::cancel::CancelToken;

use super::{ONE_NODE, PLAIN, SIGNALS};
use crate::explore::exec::step;
use crate::scenario::Scenario;
use crate::scenario::workers::{change, workers};
use crate::world::{Data, World};

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
            semaphore: Semaphore::new(permits),
            guarded: W::Data::new(),
            inside: W::U32::ZERO,
            cancel: CancelToken::new(),
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

    /// Takes the permit and gives it back; meanwhile, or never, a signal comes whose handler gives
    /// a new one.
    fn interrupted(&'static self) {
        step::signal(Box::new(|| {
            self.inside.fetch_add(1, Relaxed);
            self.semaphore.release();
        }));
        self.semaphore.acquire();
        W::breathe();
        self.semaphore.release();
        step::unsignal();
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
        workers::<W, _, _>("two", PLAIN, one, [Permits::alone, Permits::alone], full),
        workers::<W, _, _>("three", PLAIN, one, [Permits::alone; 3], full),
        workers::<W, _, _>("one-node", ONE_NODE, one, [Permits::alone; 3], full),
        workers::<W, _, _>(
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
        workers::<W, _, _>(
            "within",
            PLAIN,
            one,
            [Permits::alone, Permits::within, Permits::within],
            full,
        ),
        workers::<W, _, _>(
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
        workers::<W, _, _>(
            "cancel-all",
            PLAIN,
            none,
            [
                |shared| shared.cancel.cancel(),
                |shared| assert!(!shared.semaphore.acquire_cancellable(&shared.cancel, None)),
            ],
            |shared| shared.check(0),
        ),
        workers::<W, _, _>(
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
        workers::<W, _, _>(
            "give-up",
            PLAIN,
            two,
            [
                |shared| shared.together(1, 2),
                |shared| {
                    let deadline = W::now().plus_nanos(1_000);
                    if shared
                        .semaphore
                        .acquire_many_limited(2, Some(deadline.into()), None)
                    {
                        shared.semaphore.release_many(2);
                    }
                },
                |shared| shared.together(1, 2),
            ],
            |shared| shared.check(2),
        ),
        workers::<W, _, _>(
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
        workers::<W, _, _>(
            "interrupted",
            SIGNALS,
            one,
            [Permits::interrupted, Permits::interrupted],
            |shared| shared.check(1 + shared.inside.load(Relaxed)),
        ),
        workers::<W, _, _>(
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
