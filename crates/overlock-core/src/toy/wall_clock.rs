//! Tests of waits with deadlines by the wall clock, for the locks of each crate.

use super::{Point, Toy, at, left, set_wall_clock};
use crate::platform::{Deadline, Platform};
use crate::raw::{RawTimedLock, RawTimedRwLock};

const LIMIT_NS: u64 = 10_000_000;
const STEP_NS: i64 = 8_000_000;

/// Checks that a wait that has begun ends at its deadline by the wall clock, also when that clock
/// is set, forwards or backwards.
///
/// # Panics
///
/// If it does not.
pub fn follows_the_wall_clock(wait: impl Fn(Deadline) -> bool) {
    for step in [0, -STEP_NS, STEP_NS] {
        let begin = Toy::now();
        let deadline = Deadline::Wall(Toy::wall_clock() + LIMIT_NS);
        at(Point::Wait, move || set_wall_clock(step));
        assert!(!wait(deadline));
        assert_eq!(left(), 0, "it has waited");
        assert!(deadline.is_over::<Toy>());
        let expected = LIMIT_NS.saturating_add_signed(-step);
        let waited = Toy::now().nanos_since(begin);
        assert!(
            (expected..=expected + 1_000_000).contains(&waited),
            "{waited} ns where the clock was set by {step}"
        );
    }
}

/// The same for a lock.
///
/// # Panics
///
/// If it does not.
pub fn lock_follows_the_wall_clock<L: RawTimedLock>() {
    let lock = L::create().unwrap();
    let token = lock.lock();
    follows_the_wall_clock(|deadline| lock.lock_until(deadline).is_some());
    // SAFETY: of the acquisition above.
    unsafe { lock.unlock(token) };
}

/// The same for a reader-writer lock.
///
/// # Panics
///
/// If it does not.
pub fn rwlock_follows_the_wall_clock<L: RawTimedRwLock>() {
    let lock = L::INIT;
    let token = lock.write();
    follows_the_wall_clock(|deadline| lock.read_until(deadline).is_some());
    follows_the_wall_clock(|deadline| lock.write_until(deadline).is_some());
    // SAFETY: of the acquisition above.
    unsafe { lock.unlock_write(token) };
    let token = lock.read();
    follows_the_wall_clock(|deadline| lock.write_until(deadline).is_some());
    // SAFETY: of the acquisition above.
    unsafe { lock.unlock_read(token) };
}
