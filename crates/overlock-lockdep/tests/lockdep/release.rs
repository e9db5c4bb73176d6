//! Releases of locks that are not held. The locks are numbers here.

use overlock_lockdep::{self as lockdep, ClassId, Site};

use crate::alone;
use crate::alone::{EXIT, SLEEP};

use crate::raw::{R, X, take};

const RELEASE: &str = "release of a lock that is not held";

const LOCK: usize = 0x100;

/// On another thread, to its end.
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

/// Fails where the holder's record still holds the lock: then the holder takes it again, and ends
/// with it held.
#[test]
fn a_stranger_that_releases_a_lock_is_reported_and_the_holder_holds_it_no_more() {
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
    // Twice from one line is once.
    said.is(&[RELEASE]);
    said.has(" holds it:\n 0x100 (lock){exclusive}, at: ");
}

#[test]
fn of_a_lock_that_others_may_release_it_is_no_mistake() {
    let said = alone!(|| {
        take(LOCK, ClassId::NONE, X);
        elsewhere(|| lockdep::release(LOCK));
        lockdep::thread_exits();
    });
    said.is(&[]);
}

#[test]
fn what_was_not_seen_is_not_reported() {
    let said = alone!(|| {
        // Acquired before, or by a thread that was not seen.
        own();
        // Held by readers, of which the releasing one may be one.
        take(LOCK, ClassId::NONE, R);
        elsewhere(own);
        assert_eq!(lockdep::reports(), 0);
        lockdep::thread_exits();
    });
    said.is(&[EXIT]);
}

#[test]
fn nor_are_locks_beyond_those_that_a_thread_can_be_seen_to_hold() {
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

/// Fails where entries that others have released stay in the way.
#[test]
fn locks_that_are_handed_on_leave_room_for_more() {
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
fn a_release_of_what_nobody_holds_is_reported() {
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
