//! What a sleeper does between its announcement and its sleep, against a release that has not seen it.

use super::*;

/// OL prevents it, in both forms: the unlocker has loaded `kick` before it was set, and stores only now.
#[test]
fn a_release_that_did_not_see_the_announcement_is_seen_by_the_last_look() {
    fn look<Y: Policy>() {
        let lock = leak::<Y>();
        lock.lock();
        at(Point::Light, || lock.locked.store(FREE, Release));
        as_thread(1, || lock.lock());
        assert_eq!(halts(), 0, "slept beside a free lock");
        as_thread(1, || unlock(lock));
        assert_clean(lock);
    }
    look::<Recommended>();
    look::<Exchange>();
    look::<Posix>();
}

/// The second half of `brief_look`: the store comes a little later than the look.
#[test]
fn a_release_is_seen_that_leaves_the_store_buffer_a_little_later() {
    fn look<Y: Policy>() {
        let lock = leak::<Y>();
        lock.lock();
        at(Point::Light, || {
            at(Point::Wait, || lock.locked.store(FREE, Release));
        });
        as_thread(1, || lock.lock());
        assert_eq!(halts(), 0, "slept beside a free lock");
        as_thread(1, || unlock(lock));
        assert_clean(lock);
    }
    look::<Recommended>();
    look::<Posix>();
}

/// I2's timer, and the look at `locked` in `halt`: without it the sleeper waits for an unlock that nobody owes it.
#[test]
fn a_release_that_comes_later_still_costs_a_sleep_and_no_more() {
    fn sleep<Y: Policy>() {
        let lock = leak::<Y>();
        lock.lock();
        at(Point::Halt, || lock.locked.store(FREE, Release));
        let [before, halted] = [Toy::now().as_nanos(), halts() as u64];
        as_thread(1, || lock.lock());
        assert!(Toy::now().as_nanos() < before + 2 * TURN_NS);
        assert_eq!((halts() as u64 - halted, kicks()), (1, 0));
        as_thread(1, || unlock(lock));
        assert_clean(lock);
    }
    sleep::<Recommended>();
    sleep::<Posix>();
}

/// The look that comes before each sleep without a request: the release has come while the sleeper had the guard.
#[test]
fn one_that_owners_without_a_cpu_have_passed_looks_before_it_sleeps() {
    let lock = leak::<OwnerCpu>();
    let id = NodeId::new(1, 0);
    let mut sleeper = woken();
    crate::toy::on_cpu(0);
    lock.lock();
    as_thread(1, || lock.fall_back(id, &mut sleeper, &Limit::NONE));
    as_thread(1, || lock.queue().unlink(id));
    lock.done.store(lock.done.load(Relaxed) + 4, Relaxed);
    let next = as_thread(1, || lock.fall_back(id, &mut sleeper, &Limit::NONE));
    assert!(Step::AgainLater.was_taken());
    let Next::Again(place, false) = next else {
        panic!("neither asleep again nor a claim");
    };
    lock.locked.store(FREE, Release);
    assert!(as_thread(1, || lock.looks(id, &place, &Limit::NONE)));
    unlock(lock);
    assert_clean(lock);
}

/// `halt`: the unlock has called nobody, as it may, and the deadline comes before the timer.
#[test]
fn a_deadline_ends_no_wait_beside_a_free_lock() {
    fn sleep<Y: Policy>() {
        let lock = leak::<Y>();
        lock.lock();
        at(Point::Halt, || lock.locked.store(FREE, Release));
        let deadline = Toy::now().plus_nanos(TURN_NS / 2);
        let acquired = as_thread(1, || lock.lock_until(deadline));
        assert!(acquired.is_some());
        as_thread(1, || unlock(lock));
        assert_clean(lock);
    }
    sleep::<Recommended>();
    sleep::<Posix>();
}

/// The same for the exchange form, which needs no heavy barrier.
#[test]
fn the_exchange_form_runs_no_heavy_barrier() {
    let lock = leak::<Exchange>();
    lock.lock();
    at(Point::Heavy, || panic!("a barrier nobody needs"));
    at(Point::Halt, || as_thread(0, || unlock(lock)));
    as_thread(1, || lock.lock());
    assert_eq!(left(), 1);
    assert_eq!(kicks(), 1);
}

/// OK and OL once more: the release that its request for the hand-over did not reach.
#[test]
fn a_sleeper_that_fails_takes_a_last_look_before_it_sleeps_again() {
    let lock = leak::<Recommended>();
    lock.lock();
    let one = locker(1, lock);
    one.sleep();
    unlock(lock);
    lock.lock();
    one.to(Point::Light);
    lock.locked.store(FREE, Release);
    one.end();
    unlock(lock);
    assert_clean(lock);
}
