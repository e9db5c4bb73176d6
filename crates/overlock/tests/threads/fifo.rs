//! The locks that promise first come, first served, measured: threads line up one by one behind a
//! holder, and enter in that order.

use std::sync::{Mutex, OnceLock};
use std::thread;

use crate::caller::{Caller, until};
use overlock::spin::RawLock;
use overlock_core::facts::{Bound, HasFacts};

fn first_come_first_served<L: RawLock>() {
    let lock = &L::create().unwrap();
    let order = &Mutex::new(Vec::new());
    let callers = &[const { OnceLock::new() }; 4];
    let token = lock.lock();
    let in_line = thread::scope(|scope| {
        let in_line = (0..4).all(|number| {
            scope.spawn(move || {
                let _ = callers[number].set(Caller::here());
                let token = lock.lock();
                order.lock().unwrap().push(number);
                // SAFETY: the token is of this lock and this thread.
                unsafe { lock.unlock(token) };
            });
            until(&callers[number], Caller::is_waiting) && lock.is_contended()
        });
        // SAFETY: the token is of this lock and this thread.
        unsafe { lock.unlock(token) };
        in_line
    });
    assert!(in_line, "{}", L::NAME);
    assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3], "{}", L::NAME);
}

macro_rules! tests {
    ($($name:ident: $lock:ident, $kind:ident, $can:ident;)*) => {$(
        #[test]
        fn $name() {
            use overlock::spin::$lock as Lock;

            if <Lock as HasFacts>::FACTS.bound == Bound::Order {
                first_come_first_served::<Lock>();
            }
        }
    )*};
}

overlock_family::spin_locks!(tests);
