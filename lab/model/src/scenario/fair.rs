//! A scenario for the fair mutex: a thread that has released it to a sleeper does not get it back
//! before that one had it.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use overlock_core::platform::Atomic;
use overlock_core::raw::RawLock;
use overlock_core::sleep::FairOverlock;

use super::workers::{change, rest, workers};
use super::{Scenario, Setting};
use crate::world::{Data, World};

const HELD: u64 = 1_000_000;

/// A lock, and its data.
struct Turns<W: World> {
    lock: FairOverlock<W>,
    guarded: W::Data,
    /// The thread that has released it to a sleeper, if that was the last one's release; 0
    /// otherwise. Guarded.
    giver: AtomicUsize,
    nobody: W::U32,
}

impl<W: World> Turns<W> {
    fn new() -> Self {
        Turns {
            lock: FairOverlock::new(),
            guarded: W::Data::new(),
            giver: AtomicUsize::new(0),
            nobody: Atomic::ZERO,
        }
    }

    /// Returns whether somebody sleeps. Nobody gives up, so that is still so when it is released.
    fn change_and_unlock(&'static self, me: usize) -> bool {
        change::<W>(&self.guarded);
        // The others go to sleep meanwhile.
        rest::<W>(&self.nobody, HELD);
        let gives = self.lock.is_contended();
        self.giver.store(if gives { me } else { 0 }, Relaxed);
        // SAFETY: acquired by this thread, in `turn`.
        unsafe { self.lock.unlock(()) };
        gives
    }

    fn turn(&'static self) {
        let me = W::slot().map_or(1, |slot| slot + 2);
        self.lock.lock();
        // An attempt does not wait, so it does not come to the end of a newcomer's patience.
        if self.change_and_unlock(me) && self.lock.try_lock().is_some() {
            assert_ne!(self.giver.load(Relaxed), me, "the sleeper did not get it");
            self.change_and_unlock(me);
        }
    }

    fn check(&self) {
        assert!(!self.lock.is_locked() && !self.lock.is_contended());
    }
}

/// The scenarios.
pub fn fair<W: World>() -> Vec<Scenario> {
    let make: fn() -> Turns<W> = Turns::new;
    let check: fn(&Turns<W>) = Turns::check;
    vec![workers::<W, _, _>(
        "turns",
        Setting::TIMED,
        make,
        [Turns::turn; 3],
        check,
    )]
}
