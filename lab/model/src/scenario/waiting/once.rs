//! Scenarios for things done once.

use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::Ordering::Relaxed;

use overlock_core::platform::Atomic;
use overlock_core::sleep::Once;

use super::{ONE_NODE, PLAIN};
use crate::failure::may_panic;
use crate::scenario::Scenario;
use crate::scenario::workers::{change, workers};
use crate::world::{Data, World};

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
            once: Once::new(),
            result: W::Data::new(),
            times: W::U32::ZERO,
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
        workers::<W, _, _>("two", PLAIN, make, [Deed::call, Deed::call], check),
        workers::<W, _, _>(
            "three",
            PLAIN,
            make,
            [Deed::call, Deed::call, Deed::wait],
            check,
        ),
        workers::<W, _, _>(
            "panic",
            PLAIN,
            make,
            [Deed::panic, Deed::force, Deed::wait_force],
            check,
        ),
        workers::<W, _, _>(
            "poisoned",
            PLAIN,
            make,
            [Deed::panic, Deed::force, Deed::call_unless_poisoned],
            check,
        ),
        workers::<W, _, _>(
            "poisoned-wait",
            PLAIN,
            make,
            [Deed::panic, Deed::wait_unless_poisoned, Deed::force],
            check,
        ),
        workers::<W, _, _>(
            "one-node",
            ONE_NODE,
            make,
            [Deed::call, Deed::call, Deed::wait],
            check,
        ),
    ]
}
