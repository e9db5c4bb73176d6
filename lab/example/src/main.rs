//! A lock of your own in `overlock-lab bench`, `sim`, `torture` and `model`: a test-and-set lock,
//! and the line in `main` that adds it. `docs/lab/own-lock.md` walks through this file.

use std::process::ExitCode;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use overlock_core::facts::{Facts, HasFacts};
use overlock_core::platform::{Atomic, Platform, Spin};
use overlock_core::raw::{ConstLock, RawLock};

/// The lock: 1 while a thread owns it.
#[derive(Debug)]
struct TestAndSet<P: Platform> {
    owned: P::U32,
}

impl<P: Platform> HasFacts for TestAndSet<P> {
    const FACTS: Facts = Facts {
        about: "test and test-and-set",
        ..Facts::SPINNING
    };
}

impl<P: Platform> ConstLock for TestAndSet<P> {
    const INIT: Self = TestAndSet {
        owned: Atomic::ZERO,
    };
}

// SAFETY: only one thread's exchange finds 0, and only its unlock brings 0 back.
unsafe impl<P: Platform> RawLock for TestAndSet<P> {
    type Token = ();

    const NAME: &'static str = "test_and_set";

    fn lock(&self) {
        while self.try_lock().is_none() {
            // Relaxed: the exchange in `try_lock` acquires.
            let _ = P::wait_until(&self.owned, Relaxed, Spin::Forever, |owned: u32| owned == 0);
        }
    }

    fn try_lock(&self) -> Option<()> {
        // Acquire: pairs with the release in `unlock`.
        let exchanged = self.owned.compare_exchange(0, 1, Acquire, Relaxed);
        exchanged.is_ok().then_some(())
    }

    unsafe fn unlock(&self, (): ()) {
        self.owned.store(0, Release);
    }

    fn is_locked(&self) -> bool {
        self.owned.load(Relaxed) != 0
    }

    fn is_contended(&self) -> bool {
        false // it does not know its waiters
    }
}

fn main() -> ExitCode {
    overlock_lab::run(vec![overlock_lab::register!(TestAndSet)])
}
