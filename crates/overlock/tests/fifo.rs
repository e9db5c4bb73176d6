//! The locks that promise first come, first served, measured: threads line up one by one behind a holder, and
//! enter in that order.

use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use overlock::spin::{FastQueue, Mcs, PvTicket, Queued, RawLock, Ticket};

/// Long enough for a thread that was started to be in line, on a busy machine too.
const IN_LINE: Duration = Duration::from_millis(60);

fn first_come_first_served<L: RawLock>() {
    let lock = &L::create().unwrap();
    let order = &Mutex::new(Vec::new());
    let token = lock.lock();
    thread::scope(|scope| {
        for number in 0..4 {
            scope.spawn(move || {
                let token = lock.lock();
                order.lock().unwrap().push(number);
                // SAFETY: the token is of this lock and this thread.
                unsafe { lock.unlock(token) };
            });
            thread::sleep(IN_LINE);
            assert!(lock.is_contended());
        }
        // SAFETY: the token is of this lock and this thread.
        unsafe { lock.unlock(token) };
    });
    assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3], "{}", L::NAME);
}

#[test]
fn ticket() {
    first_come_first_served::<Ticket>();
}

#[test]
fn pv_ticket() {
    first_come_first_served::<PvTicket>();
}

#[test]
fn mcs() {
    first_come_first_served::<Mcs>();
}

#[test]
fn fast_queue() {
    first_come_first_served::<FastQueue>();
}

#[test]
fn queued() {
    first_come_first_served::<Queued>();
}
