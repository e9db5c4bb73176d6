//! Ctrl-C.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

/// A flag that the handler of Ctrl-C sets, and that a thread polls which waits for a round to end.
#[derive(Debug, Default)]
pub struct Interrupt {
    raised: AtomicBool,
    lock: Mutex<()>,
    changed: Condvar,
}

impl Interrupt {
    /// Requests the end of the run, for good.
    pub fn raise(&self) {
        self.raised.store(true, Ordering::Relaxed);
        self.wake();
    }

    /// Whether the run is to end.
    pub fn is_raised(&self) -> bool {
        self.raised.load(Ordering::Relaxed)
    }

    /// Makes [`wait`](Self::wait) recheck. Takes the lock, so that it cannot fall between the
    /// recheck and the sleep.
    pub fn wake(&self) {
        let _lock = self.lock.lock().expect("nobody panics with this lock");
        self.changed.notify_all();
    }

    /// Waits until `done`, for `limit` at most, and returns whether it is done. Rechecks whenever
    /// another thread [wakes](Self::wake) it or [raises](Self::raise) the interrupt.
    pub fn wait(&self, limit: Duration, done: impl Fn() -> bool) -> bool {
        let lock = self.lock.lock().expect("nobody panics with this lock");
        let (_lock, result) = self
            .changed
            .wait_timeout_while(lock, limit, |()| !done())
            .expect("nobody panics with this lock");
        !result.timed_out()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn waits_for_the_limit() {
        let start = Instant::now();
        assert!(!Interrupt::default().wait(Duration::from_millis(5), || false));
        assert!(start.elapsed() >= Duration::from_millis(5));
    }

    #[test]
    fn an_interrupt_wakes_who_waits_for_it() {
        let interrupt = Interrupt::default();
        std::thread::scope(|scope| {
            scope.spawn(|| interrupt.raise());
            assert!(interrupt.wait(Duration::from_secs(60), || interrupt.is_raised()));
        });
    }
}
