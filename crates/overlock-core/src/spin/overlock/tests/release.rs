//! The release of the policy `Posix`: the last access to the lock, and what a sleeper does that it has missed.

use super::*;
use crate::raw::RawFairLock;
use crate::toy::watch::{self, Access, Watch, freed, touches, watch};

type Watched = &'static Overlock<Watch, Posix>;

/// A lock that thread 0 holds, watched.
fn watched() -> Watched {
    let lock: Watched = Box::leak(Box::default());
    lock.lock();
    watch(lock);
    lock
}

/// The lock's memory is somebody else's as soon as the lock is free.
fn freed_when_released(lock: Watched) {
    watch::after(Access::Store, move || {
        if Atomic::load(&lock.locked, Relaxed) == FREE {
            assert!(!lock.guard.is_held(), "the guard is dropped before");
            freed();
        } else {
            freed_when_released(lock);
        }
    });
}

/// And as soon as the guard is dropped, where the lock was handed over.
fn freed_when_given(lock: Watched) {
    watch::after(Access::Swap, move || {
        assert_eq!(Atomic::load(&lock.locked, Relaxed), HANDED);
        freed();
    });
}

/// A sleeper in the list, whose announcement stands.
fn sleeper(lock: Watched) -> NodeId {
    let id = NodeId::new(1, 0);
    let queue = lock.queue();
    queue.push_back(id, Watch::now());
    queue.set_kick(KICK);
    id
}

fn untouched(release: impl FnOnce()) {
    release();
    assert_eq!(watch::left(), 0, "it was not released");
    assert_eq!(touches(), []);
}

fn unlock_watched(lock: Watched) {
    // SAFETY: locked in `watched`.
    untouched(|| unsafe { lock.unlock(()) });
}

/// The order in `unlock`: look, then store.
#[test]
fn nothing_is_touched_after_the_release() {
    let lock = watched();
    freed_when_released(lock);
    unlock_watched(lock);
}

#[test]
fn nor_where_another_lock_has_sleepers() {
    let lock = watched();
    lock.kicks().fetch_add(1, Relaxed);
    freed_when_released(lock);
    unlock_watched(lock);
}

/// The order in `call_and_release`: call, drop the guard, release, kick.
#[test]
fn nor_where_a_sleeper_is_called() {
    let lock = watched();
    let id = sleeper(lock);
    freed_when_released(lock);
    at(Point::Kick, move || {
        assert_eq!(Atomic::load(&lock.locked, Relaxed), FREE);
        assert_eq!(touches(), [Access::Load], "this test's own");
    });
    unlock_watched(lock);
    assert_eq!((kicks(), left()), (1, 0));
    let state = &id.node::<Watch>().state;
    assert_eq!(Atomic::load(state, Relaxed), CALLED);
    assert_eq!(lock.request(), NOTHING);
}

#[test]
fn nor_where_it_is_handed_over() {
    let lock = watched();
    let id = NodeId::new(1, 0);
    assert!(lock.queue().ask_for_hand_over(id, CLAIMING));
    freed_when_given(lock);
    unlock_watched(lock);
    assert_eq!(kicks(), 1);
    assert!(lock.take_handed(id));
}

#[test]
fn nor_where_a_fair_unlock_gives_it_away() {
    let lock = watched();
    let id = sleeper(lock);
    freed_when_given(lock);
    // SAFETY: locked in `watched`.
    untouched(|| unsafe { lock.unlock_fair(()) });
    assert_eq!(kicks(), 1);
    assert!(lock.take_handed(id));
}

/// `take_deferred` before the release; and the kick after it.
#[test]
fn nor_for_a_kick_that_was_kept() {
    let lock = watched();
    assert!(lock.kick_after_unlock(NodeId::new(7, 0)));
    freed_when_released(lock);
    at(Point::Kick, move || {
        assert_eq!(Atomic::load(&lock.locked, Relaxed), FREE);
        assert_eq!(touches(), [Access::Load], "this test's own");
    });
    unlock_watched(lock);
    assert_eq!((kicks(), left()), (1, 0));
    assert_eq!(Atomic::load(lock.kicks(), Relaxed), 0);
}

/// `queue_soon` in `call_and_release`: with `queue` a handler waits for the thread that it has interrupted. And nobody marks the guard: its
/// holder would do the work after it has dropped it. The sleeper's timer ends its sleep.
#[test]
fn an_unlock_goes_without_the_guard_if_it_must() {
    let lock = leak::<Posix>();
    lock.lock();
    at(Point::Halt, || {
        let queue = lock.queue();
        as_thread(0, || unlock(lock));
        assert!(!lock.is_locked());
        assert_eq!((halts(), lock.request()), (0, KICK));
        assert!(!queue.leave(), "marked");
        assert_eq!(kicks(), 0);
    });
    let before = Toy::now();
    as_thread(1, || lock.lock());
    assert!(Toy::now().nanos_since(before) < 2 * TURN_NS);
    assert_eq!((halts(), kicks(), left()), (1, 0, 0));
    assert!(Step::GiveBlocked.was_taken());
    unlock(lock);
    assert_clean(lock);
}

/// The timer in `claim`: the unlocker looked before the claim was announced, and stored after its last look. With other policies one of
/// the two sees the other.
#[test]
fn a_claim_that_the_release_has_missed_takes_the_lock_by_its_timer() {
    let lock = leak::<Posix>();
    lock.lock();
    let claimant = NodeId::new(1, 0);
    at(Point::Heavy, || panic!("a barrier that helps nobody"));
    at(Point::Halt, || lock.locked.store(FREE, Release));
    let before = Toy::now();
    as_thread(1, || {
        assert!(lock.compete(claimant, &mut woken(), true, &Limit::NONE));
    });
    assert!(Toy::now().nanos_since(before) < 2_000_000);
    assert_eq!((halts(), kicks(), left()), (1, 0, 1));
    unlock(lock);
    assert!(!lock.is_locked() && !lock.is_contended());
    assert_eq!(lock.kicks().load(Relaxed), 0);
}

/// The same for a claim with a deadline, which is no later for the timer.
#[test]
fn a_claim_gives_up_at_its_deadline() {
    let lock = leak::<Posix>();
    lock.lock();
    for wait in [300_000, 5_000_000] {
        let id = NodeId::new(1, 0);
        assert!(lock.queue().ask_for_hand_over(id, CLAIMING));
        let deadline = Toy::now().plus_nanos(wait);
        assert!(!as_thread(1, || lock.claim(id, &Limit::until(deadline))));
        assert!((0..10_000).contains(&Toy::now().nanos_since(deadline)));
        ended(lock, id);
    }
    unlock(lock);
    assert_clean(lock);
}

/// `call_one` in `pass_on`: the one that was called gives up beside a free lock.
#[test]
fn who_gives_up_beside_a_free_lock_calls_the_next() {
    let lock = leak::<Posix>();
    let [leaver, next] = [1, 2].map(|slot| NodeId::new(slot, 0));
    lock.queue().push_back(next, Toy::now());
    at(Point::Heavy, || panic!("a barrier that helps nobody"));
    let mut sleeper = woken();
    let passed = Limit::until(Toy::now());
    let next_state = &next.node::<Toy>().state;
    let gave_up = lock.fall_back(leaver, &mut sleeper, &passed);
    assert!(matches!(gave_up, Next::GiveUp));
    assert_eq!((kicks(), next_state.load(Relaxed)), (1, CALLED));
    assert!(!lock.is_contended());
}

#[test]
fn a_sleeper_is_called_by_the_unlock_and_asks_if_it_is_too_late() {
    let lock = leak::<Posix>();
    lock.lock();
    let one = actor(1, || lock.lock());
    one.sleep();
    unlock(lock);
    assert_eq!(kicks(), 1);
    lock.lock();
    one.to(Point::Wait);
    unlock(lock);
    one.end();
    unlock(lock);
    assert_clean(lock);
}
