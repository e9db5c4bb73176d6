//! Releases of locks that the thread does not hold. The locks here are numbers.

use overlock::lockdep::{self, ClassId, Site};

use crate::alone;
use crate::alone::{EXIT, RELEASE, SLEEP};
use crate::raw::{R, X, take};

const LOCK: usize = 0x100;

/// Runs `f` on another thread, and waits for it.
fn elsewhere(f: impl FnOnce() + Send + 'static) {
    std::thread::spawn(|| {
        f();
        lockdep::thread_exits();
    })
    .join()
    .unwrap();
}

fn own() {
    lockdep::release_own(LOCK, Site::here());
}

/// Fails where the holder's record keeps the lock: then the holder takes it again, and exits with
/// it held.
#[test]
fn a_release_by_another_thread_is_reported_and_ends_the_hold() {
    let said = alone!(|| {
        let class = lockdep::class_named("lock");
        take(LOCK, class, X);
        elsewhere(own);
        assert_eq!(lockdep::reports(), 1);
        take(LOCK, class, X);
        own();
        take(LOCK, class, X);
        elsewhere(own);
        lockdep::sleeps(0, Site::here());
        lockdep::thread_exits();
    });
    // Two releases at one line are reported once.
    said.is(&[RELEASE]);
    said.has(" holds it:\n 0x100 (lock){exclusive}, at: ");
}

#[test]
fn a_release_by_another_thread_is_fine_if_the_lock_allows_it() {
    let said = alone!(|| {
        take(LOCK, ClassId::NONE, X);
        elsewhere(|| lockdep::release(LOCK));
        lockdep::thread_exits();
    });
    said.is(&[]);
}

#[test]
fn releases_of_unseen_acquisitions_are_not_reported() {
    let said = alone!(|| {
        // Acquired earlier, or by a thread without a record.
        own();
        // Held by readers, of which the releasing thread may be one.
        take(LOCK, ClassId::NONE, R);
        elsewhere(own);
        assert_eq!(lockdep::reports(), 0);
        lockdep::thread_exits();
    });
    said.is(&[EXIT]);
}

#[test]
fn releases_of_locks_beyond_the_recorded_ones_are_not_reported() {
    let said = alone!(|| {
        for lock in 1..=100 {
            take(lock * 16, ClassId::NONE, X);
        }
        for lock in 1..=100 {
            lockdep::release_own(lock * 16, Site::here());
        }
    });
    said.is(&["too many locks held; the newest ones of this thread are not seen"]);
}

/// Fails where locks that others have released stay in a thread's record.
#[test]
fn locks_released_by_other_threads_leave_the_record() {
    let said = alone!(|| {
        for _ in 0..1000 {
            take(LOCK, ClassId::NONE, X);
            elsewhere(|| lockdep::release(LOCK));
        }
        // One of them may not fit; by then there is room.
        for lock in [0x200, 0x300] {
            take(lock, ClassId::NONE, X);
        }
        lockdep::sleeps(0, Site::here());
        assert_eq!(lockdep::warnings(), 1);
    });
    assert!(said.titles().contains(&SLEEP), "{}", said.0);
}

#[test]
fn a_release_of_a_free_lock_is_reported() {
    let said = alone!(|| {
        lockdep::set_json(2);
        lockdep::release_free(LOCK, lockdep::class_named("lock"), Site::here());
        take(LOCK, ClassId::NONE, X);
        elsewhere(own);
    });
    said.is(&[RELEASE; 2]);
    said.has("but nobody holds it.");
    let lines = said.0.lines().filter(|line| line.starts_with('{'));
    let values: Vec<serde_json::Value> = lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(values[0]["lockdep"], "release");
    assert_eq!(values[0]["releases"]["class"], "lock");
    assert!(values[0]["holder"].is_null() && values[1]["holder"].is_u64());
    assert_eq!(values[1]["while"]["lock"], "0x100");
}
