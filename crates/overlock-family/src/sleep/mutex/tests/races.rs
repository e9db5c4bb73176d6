//! Races between two accesses to the mutex that no call to the platform separates, and accesses
//! after the release.

use super::{Box, id};
use crate::sleep::mutex::KernelMutex;
use crate::sleep::mutex::word::{self, WAITERS};
use core::sync::atomic::Ordering::Relaxed;
use overlock_core::platform::{Atomic, Platform};
use overlock_core::raw::{RawFairLock, RawLock, RawTimedLock};
use overlock_core::sleep::wait_list::ASLEEP;
use overlock_core::sleep::wait_list::{WAITING, Waiter};
use overlock_core::toy::watch::{Access, Watch, after, before, freed, left, touches, watch};
use overlock_core::toy::{Point, as_thread, at, halts, kicks};

type Lock = &'static KernelMutex<Watch>;

/// A watched mutex that thread 0 holds.
fn held() -> Lock {
    let lock: Lock = Box::leak(Box::new(KernelMutex::new()));
    lock.lock();
    watch(lock);
    lock
}

fn unlock(lock: Lock) {
    // SAFETY: each test unlocks what it has locked.
    unsafe { lock.unlock(()) }
}

/// `take` after `join`: the unlock came before W was set, and has woken nobody.
#[test]
fn the_attempt_after_the_join_sees_an_unlock_just_before_it() {
    let lock = held();
    before(Access::Or, move || as_thread(0, || unlock(lock)));
    as_thread(1, || lock.lock());
    assert_eq!((left(), kicks(), halts()), (0, 0, 0));
    as_thread(1, || unlock(lock));
    assert!(!lock.is_locked() && !lock.is_contended());
}

/// The check of the limit in `spin_on_owner`. Without it each lost exchange begins a wait of its
/// own, whose first poll may find the mutex free again before the clock is read.
#[test]
fn a_spin_that_loses_races_ends_in_time() {
    let lock = held();
    as_thread(0, || unlock(lock));
    before(Access::Exchange, move || {
        lock.owner.fetch_or(WAITERS, Relaxed);
    });
    let end = Watch::now();
    assert!(!as_thread(1, || lock.spin_on_owner(None, end)));
    assert!(!lock.is_locked());
    assert_eq!(left(), 0);
}

/// A kick is latched: the unlock comes after the sleeper's last check.
#[test]
fn an_unlock_just_before_the_halt_ends_the_halt() {
    let lock = held();
    at(Point::Halt, move || as_thread(0, || unlock(lock)));
    as_thread(1, || lock.lock());
    assert_eq!((kicks(), halts()), (1, 0));
    as_thread(1, || unlock(lock));
}

/// The order in `prepare_to_sleep`, the document's third patch. The unlock comes just before the
/// sleeper announces that it must be woken again, and does not wake it. With the last attempt
/// before the announcement, the unlock comes between the two, and the sleeper sleeps for ever.
#[test]
fn the_last_attempt_sees_an_unlock_just_before_the_announcement() {
    let lock = held();
    at(Point::Halt, move || {
        as_thread(0, || {
            unlock(lock);
            lock.lock(); // a thief
        });
        // The sleeper fails, and spins.
        at(Point::Wait, move || {
            // It takes the wait lock after that.
            before(Access::Exchange, move || {
                let before = kicks();
                as_thread(0, || unlock(lock));
                assert_eq!(kicks(), before, "it is awake");
            });
        });
    });
    as_thread(1, || lock.lock());
    assert_eq!((left(), halts()), (0, 0));
    as_thread(1, || unlock(lock));
    assert!(!lock.is_locked() && !lock.is_contended());
}

/// The same unlock, but after the announcement and the last attempt.
#[test]
fn an_unlock_after_the_last_attempt_wakes_the_sleeper() {
    let lock = held();
    at(Point::Halt, move || {
        as_thread(0, || {
            unlock(lock);
            lock.lock();
        });
        at(Point::Halt, move || as_thread(0, || unlock(lock)));
    });
    as_thread(1, || lock.lock());
    assert_eq!((left(), kicks(), halts()), (0, 2, 0));
    as_thread(1, || unlock(lock));
}

/// `take` in `give_up`: the wake-up of a sleeper that gives up is not lost for those behind it.
#[test]
fn a_sleeper_woken_at_its_deadline_takes_the_free_mutex() {
    // SAFETY: thread 0 has it.
    let fair: fn(Lock) = |lock| unsafe { lock.unlock_fair(()) };
    for release in [unlock, fair] {
        let lock = held();
        at(Point::Halt, move || {
            // It returns from the halt too late, and takes the wait lock.
            before(Access::Exchange, move || as_thread(0, || release(lock)));
        });
        let end = Watch::now().plus_nanos(1_000_000);
        assert!(as_thread(1, || lock.lock_until(end)).is_some());
        assert_eq!(left(), 0);
        as_thread(1, || unlock(lock));
        assert!(!lock.is_locked() && !lock.is_contended());
    }
}

/// A handoff request between the unlock's load of the word and its exchange: the exchange fails and
/// is tried again.
#[test]
fn an_unlock_serves_a_handoff_request_that_comes_during_it() {
    let lock = held();
    let waiter = as_thread(1, || Waiter::<Watch>::new(&()).unwrap());
    lock.join(&waiter);
    before(Access::Exchange, move || {
        // That was the wait lock; the next one is the release.
        before(Access::Exchange, move || {
            as_thread(1, || assert!(!lock.take_or_request(id(1))));
        });
    });
    unlock(lock);
    assert!(word::is_handed_to(lock.owner.load(Relaxed), id(1)));
    assert_eq!(left(), 0);
}

/// M5, first case: the release is the only access.
#[test]
fn nothing_touches_the_mutex_after_the_fast_unlock() {
    let lock = held();
    after(Access::Exchange, freed);
    unlock(lock);
    assert_eq!((left(), touches()), (0, [].into()));
}

/// M5, second case: the wait lock is released last, after the mutex and with W set. And M6: the
/// kick touches the node only.
fn the_wait_lock_is_the_last_access(release: fn(Lock)) {
    let lock = held();
    let waiter = as_thread(1, || Waiter::<Watch>::new(&()).unwrap());
    lock.join(&waiter);
    waiter.node().kicks.fetch_or(ASLEEP, Relaxed);
    before(Access::Store, move || {
        let word = lock.owner.load(Relaxed);
        let released = word == WAITERS || word == word::handed_to(id(1));
        assert!(released, "under the wait lock");
        // Later the node may wait for something else.
        assert_ne!(id(1).node::<Watch>().state.load(Relaxed), WAITING);
    });
    after(Access::Store, freed);
    release(lock);
    assert_eq!((left(), touches()), (0, [].into()));
    assert_eq!(kicks(), 1);
}

#[test]
fn the_last_access_of_a_slow_unlock_is_to_the_wait_lock() {
    the_wait_lock_is_the_last_access(unlock);
}

#[test]
fn the_last_access_of_a_handoff_is_to_the_wait_lock() {
    // SAFETY: thread 0 has it.
    the_wait_lock_is_the_last_access(|lock| unsafe { lock.unlock_fair(()) });
}

/// The release of the wait lock in `unlock_slow` before the exchange. The last sleeper gives up
/// between the unlock's load of W and the wait lock. The next owner finds W clear, and would not
/// meet the wait lock.
#[test]
fn an_unlock_that_finds_the_list_empty_releases_last() {
    let lock = held();
    let waiter = as_thread(1, || Waiter::<Watch>::new(&()).unwrap());
    lock.join(&waiter);
    before(Access::Exchange, move || {
        assert!(!as_thread(1, || lock.give_up(id(1))));
        // The wait lock, then the release.
        after(Access::Exchange, || after(Access::Exchange, freed));
    });
    unlock(lock);
    assert_eq!((left(), touches()), (0, [].into()));
    assert_eq!(lock.owner.load(Relaxed), 0);
}
