//! Turns, spells, and sleepers that come late.

use super::*;

#[test]
fn a_surplus_thread_sleeps_until_its_turn_and_nobody_kicks_it() {
    let lock = leak::<Recommended>();
    lock.lock();
    at(Point::Halt, || {
        assert_eq!(lock.request(), NOTHING);
        as_thread(0, || unlock(lock));
    });
    let before = as_thread(1, || {
        let now = Toy::now();
        learned(lock).saturate();
        lock.lock();
        now
    });
    assert_eq!((kicks(), halts()), (0, 1));
    assert!(Toy::now().nanos_since(before) >= TURN_NS - (1 << 14));
    assert_eq!(lock.turn.load(Relaxed), 2, "thread 1 has the turn");
    as_thread(1, || unlock(lock));
    assert_clean(lock);
}

#[test]
fn turns_begin_one_after_the_other_and_the_one_before_makes_way() {
    let lock = leak::<Recommended>();
    lock.lock();
    let now = Toy::now();
    let first = lock.book(now, 30);
    assert!(lock.book(now, 30).nanos_since(first) >= 30 << 14);
    as_thread(1, || {
        learned(lock).saturate();
        at(Point::Halt, || as_thread(0, || unlock(lock)));
        lock.lock();
        assert!(!lock.is_surplus(learned(lock)), "it is thread 1's turn");
        lock.turn.store(3, Relaxed);
        assert!(lock.is_surplus(learned(lock)), "thread 2's has begun");
    });
}

#[test]
fn a_thread_with_a_deadline_waits_for_no_turn() {
    let lock = leak::<Recommended>();
    lock.lock();
    as_thread(1, || {
        learned(lock).saturate();
        let deadline = Toy::now().plus_nanos(TURN_NS / 2);
        at(Point::Wait, || as_thread(0, || unlock(lock)));
        assert!(lock.lock_until(deadline).is_some());
        assert_eq!(halts(), 0);
        unlock(lock);
    });
    assert_clean(lock);
}

#[test]
fn where_cpus_are_short_a_thread_makes_room_after_its_spell() {
    let lock = leak::<Recommended>();
    lock.lock();
    as_thread(1, || {
        let learned = learned(lock);
        learned.restart(Toy::now());
        Toy::pause(3_000_000);
        learned.sample(Toy::now(), Toy::now(), 1, 0);
        assert!(!lock.is_surplus(learned), "it has never come late");
        learned.restart(Toy::now());
        learned.came_late();
        learned.sample(Toy::now(), Toy::now(), 1, 0);
        assert!(!lock.is_surplus(learned), "it has just come");
        Toy::pause(3_000_000);
        learned.sample(Toy::now(), Toy::now(), 1, 0);
        assert!(lock.is_surplus(learned));
        at(Point::Halt, || as_thread(0, || unlock(lock)));
        lock.lock();
        assert_eq!((kicks(), halts()), (0, 1));
        assert_eq!(lock.turn.load(Relaxed), 0, "several use the lock at a time");
        assert!(Step::MakeRoom.was_taken());
        unlock(lock);
    });
    assert_clean(lock);
}

#[test]
fn bookings_end_where_no_thread_should_sleep_longer_and_old_ones_count_for_nothing() {
    let lock = leak::<Recommended>();
    let now = Toy::now();
    let mut longest = 0;
    for _ in 0..1000 {
        longest = longest.max(lock.book(now, 30).nanos_since(now));
    }
    assert!((15_000_000..=17_500_000).contains(&longest), "{longest}");
    let later = now.plus_nanos(3_600_000_000_000);
    assert!(lock.book(later, 30).nanos_since(later) < TURN_NS * 2);
}

/// `busy` in `settle`: a lock that nobody uses meanwhile waits for no timer.
#[test]
fn after_a_late_wake_up_the_next_sleeper_of_a_busy_lock_is_left_to_its_timer() {
    for (late, busy) in [(false, true), (true, false), (true, true)] {
        let lock = leak::<Recommended>();
        let next = NodeId::new(2, 0);
        lock.queue().push_back(next, Toy::now());
        let mut sleeper = woken();
        if late {
            Toy::pause(1_000_000);
        }
        lock.done.store(if busy { 1000 } else { 100 }, Relaxed);
        lock.settle(&lock.queue(), NodeId::new(1, 0), &mut sleeper);
        let kick = if late && busy { NOTHING } else { KICK };
        assert_eq!(lock.request(), kick, "late {late}, busy {busy}");
        lock.queue().unlink(next);
        ended(lock, next);
    }
    assert!(Step::KickLater.was_taken());
}
