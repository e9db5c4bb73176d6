//! The locks that exclude.

use std::thread;
use std::time::Duration;

use overlock::CancelToken;
use overlock_core::raw::RawLock;

use crate::common::Pair;
use crate::extras::Extras;
use crate::{SECTIONS, THREADS, far, on_threads, soon};

/// Locks in the given way, as far as the lock can.
fn lock<L: RawLock>(
    lock: &L,
    iteration: usize,
    extras: &Extras<L>,
    cancel: &CancelToken,
) -> L::Token {
    let token = match (iteration % 4, extras.until, extras.cancellable) {
        (1, Some(lock_until), _) => Some(lock_until(lock, far()).expect("there is time")),
        (2, _, Some(lock_cancellable)) => lock_cancellable(lock, cancel, None),
        (3, Some(lock_until), _) => lock_until(lock, soon()),
        _ => None,
    };
    token.unwrap_or_else(|| lock.lock())
}

/// One section, which ends in the given way, as far as the lock can.
fn section<L: RawLock>(pair: &Pair<L>, token: L::Token, iteration: usize, extras: &Extras<L>) {
    match (iteration % 3, &extras.fair) {
        (1, Some(fair)) => {
            // The others go to sleep.
            pair.change(|| thread::sleep(Duration::from_millis(1)));
            // SAFETY: the token is of this lock and this thread.
            unsafe { (fair.unlock)(&pair.lock, token) };
        }
        (2, Some(fair)) => {
            pair.change(thread::yield_now);
            // SAFETY: as above.
            let token = unsafe { (fair.bump)(&pair.lock, token) };
            pair.section(token, || {});
        }
        _ => pair.section(token, thread::yield_now),
    }
}

pub fn excludes<L: RawLock>(extras: fn() -> Extras<L>) {
    let pair = &Pair::<L>::new();
    let cancel = &CancelToken::new();
    let changes = on_threads(THREADS, |number| {
        let extras = extras();
        let before = |iteration| usize::from(iteration % 3 == 2 && extras.fair.is_some());
        let mut changes = 0;
        for iteration in number..number + SECTIONS {
            let token = lock(&pair.lock, iteration, &extras, cancel);
            section(pair, token, iteration, &extras);
            changes += 1 + before(iteration);
            if iteration == 0 {
                cancel.cancel();
            }
        }
        if let Some(token) = pair.lock.try_lock() {
            pair.section(token, || {});
            changes += 1;
        }
        changes
    });
    assert_eq!(pair.count() as usize, changes);
    assert!(!pair.lock.is_locked() && !pair.lock.is_contended());
}

macro_rules! spinning {
    ($($name:ident: $lock:ident, $kind:ident, $can:ident;)*) => {$(
        #[test]
        fn $name() {
            excludes(Extras::<overlock::spin::$lock>::$can);
        }
    )*};
}

macro_rules! sleeping {
    ($($name:ident: $lock:ident, $kind:ident, $can:ident;)*) => {$(
        #[test]
        fn $name() {
            excludes(Extras::<overlock_family::sleep::$lock<overlock::Linux>>::$can);
        }
    )*};
}

overlock_family::spin_locks!(spinning);
overlock_family::sleep_locks!(sleeping);

spinning! {
    fast_queue_lazy: LazyFastQueue, node, basic;
}
