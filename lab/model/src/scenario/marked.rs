//! Scenarios for the recommended mutex when it is marked: its fast path fails, and
//! `try_lock_marked` stands in for `try_lock`.

use overlock_core::raw::RawLock;
use overlock_core::sleep::Overlock;

use super::workers::{change, workers};
use super::{Scenario, Setting};
use crate::world::{Data, World};

/// A lock, and its data.
struct Marked<W: World> {
    lock: Overlock<W>,
    guarded: W::Data,
}

impl<W: World> Marked<W> {
    fn new() -> Self {
        Marked {
            lock: Overlock::new(),
            guarded: W::Data::new(),
        }
    }

    fn change_and_unlock(&'static self) {
        change::<W>(&self.guarded);
        // SAFETY: acquired by this thread.
        unsafe { self.lock.unlock(()) };
    }

    fn lock(&'static self) {
        self.lock.lock();
        self.change_and_unlock();
    }

    fn attempt(&'static self) {
        self.lock.mark();
        for _ in 0..2 {
            if self.lock.try_lock_marked() {
                self.change_and_unlock();
            }
        }
    }

    fn check(&self) {
        assert!(self.lock.is_marked() && !self.lock.is_locked());
    }
}

/// The scenarios.
pub fn marked<W: World>() -> Vec<Scenario> {
    let make: fn() -> Marked<W> = Marked::new;
    let check: fn(&Marked<W>) = Marked::check;
    let bodies = [Marked::attempt, Marked::lock, Marked::lock];
    vec![workers::<W, _, _>(
        "marked",
        Setting::PLAIN,
        make,
        bodies,
        check,
    )]
}
