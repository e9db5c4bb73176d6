//! A scenario for the reentrant lock: its owner locks it again, and the others do not take
//! themselves for its owner.

use std::marker::PhantomData;
use std::num::NonZeroUsize;

use overlock_core::raw::ThreadId;
use overlock_core::sleep::{Overlock, Reentrant};

use super::workers::{change, workers};
use super::{Scenario, Setting};
use crate::world::{Data, World};

/// A checker's threads.
struct Threads<W>(PhantomData<fn() -> W>);

// SAFETY: threads that run have slots of their own, and the one without a slot is alone in that.
unsafe impl<W: World> ThreadId for Threads<W> {
    fn current() -> NonZeroUsize {
        let slot = W::slot().map_or(1, |slot| slot + 2);
        NonZeroUsize::new(slot).expect("at least 1")
    }
}

/// A lock, and its data.
struct Nested<W: World> {
    lock: Reentrant<Overlock<W>, Threads<W>, W>,
    guarded: W::Data,
}

impl<W: World> Nested<W> {
    fn new() -> Self {
        Nested {
            lock: Reentrant::new(),
            guarded: W::Data::new(),
        }
    }

    fn change_and_unlock(&'static self) {
        change::<W>(&self.guarded);
        // SAFETY: acquired by this thread, once for each call.
        unsafe { self.lock.unlock() };
    }

    fn lock_twice(&'static self) {
        self.lock.lock();
        self.lock.lock();
        self.change_and_unlock();
        self.change_and_unlock();
    }

    fn attempt(&'static self) {
        for _ in 0..2 {
            if self.lock.try_lock().is_some() {
                assert!(self.lock.is_owned_by_current_thread());
                self.change_and_unlock();
            }
        }
    }

    fn check(&self) {
        assert!(!self.lock.is_locked() && !self.lock.is_owned_by_current_thread());
    }
}

/// The scenarios.
pub fn reentrant<W: World>() -> Vec<Scenario> {
    let make: fn() -> Nested<W> = Nested::new;
    let check: fn(&Nested<W>) = Nested::check;
    let bodies = [Nested::lock_twice, Nested::attempt, Nested::lock_twice];
    vec![workers::<W, _, _>(
        "reentrant",
        Setting::PLAIN,
        make,
        bodies,
        check,
    )]
}
