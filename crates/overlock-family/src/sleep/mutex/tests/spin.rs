//! Spinning: which threads spin, where, and for how long.

use super::*;

#[test]
fn a_newcomer_takes_the_mutex_while_it_spins() {
    let lock = held::<Outside>();
    at(Point::Wait, move || as_thread(0, || unlock(lock)));
    as_thread(1, || lock.lock());
    assert_eq!((kicks(), halts()), (0, 0));
    ends_with(1, lock);
}

/// [`Policy::SPIN_NS`], and the deadline before it.
#[test]
fn a_spin_ends_in_time() {
    let lock = held::<Outside>();
    let begin = Toy::now();
    assert!(as_thread(1, || lock.lock_until(begin.plus_nanos(100))).is_none());
    assert!((100..200).contains(&Toy::now().nanos_since(begin)));
    let begin = Toy::now();
    at(Point::Halt, move || {
        let spun = Toy::now().nanos_since(begin);
        assert!(
            (Outside::SPIN_NS..2 * Outside::SPIN_NS).contains(&spun),
            "{spun}"
        );
        as_thread(0, || unlock(lock));
    });
    as_thread(1, || lock.lock());
    ends_with(1, lock);
}

/// The check of `preempted` in `spin_on_owner`.
#[test]
fn nobody_spins_for_an_owner_whose_cpu_it_runs_on() {
    on_cpu(3);
    let lock = held::<Outside>();
    at(Point::Wait, || panic!("it spins"));
    at(Point::Halt, move || {
        as_thread(0, || unlock(lock));
        // The owner may be anywhere, then.
        on_cpu(4);
    });
    as_thread(1, || lock.lock());
    assert_eq!(left(), 1);
    assert!(is_owner(1, lock));
}

#[test]
fn only_the_head_of_the_spin_queue_watches_the_owner() {
    let lock = held::<Outside>();
    let [one, two] = [1, 2].map(|thread| locker(thread, lock));
    one.to(Point::Wait);
    two.to(Point::Wait);
    assert!(lock.is_contended());
    unlock(lock);
    two.to(Point::Wait);
    assert!(
        !lock.is_locked(),
        "the second in the queue polls its own node"
    );
    one.end();
    assert!(is_owner(1, lock));
    two.to(Point::Wait);
    as_thread(1, || unlock(lock));
    two.end();
    ends_with(2, lock);
    assert_eq!(kicks(), 0);
}

/// `Outside`: two threads watch the owner, the head of the spin queue and the woken sleeper.
#[test]
fn a_woken_sleeper_spins_outside_the_spin_queue() {
    let lock = held::<Outside>();
    let one = sleeper(1, lock);
    unlock(lock);
    lock.lock();
    let newcomer = locker(2, lock);
    newcomer.to(Point::Wait);
    one.to(Point::Wait);
    assert!(one_is_not_in_the_queue(lock));
    unlock(lock);
    newcomer.to(Point::Wait);
    one.end();
    as_thread(1, || unlock(lock));
    newcomer.end();
    ends_with(2, lock);
}

fn one_is_not_in_the_queue(lock: Lock) -> bool {
    // The newcomer's node has no successor.
    id(2).node::<Toy>().next.load(Relaxed) == 0 && lock.spinners.is_locked()
}

/// `Inside`: it stands behind the newcomer, and leaves the queue when the mutex is handed off to it
/// (the check in `spin_in_queue`; without it nobody takes the mutex until the limit).
#[test]
fn a_woken_sleeper_may_join_the_spin_queue() {
    let lock = held::<Inside>();
    let one = actor(1, || {
        let begin = Toy::now();
        lock.lock();
        let spun = Toy::now().nanos_since(begin);
        assert!(spun < 2 * Inside::SPIN_NS, "its second spin ended early");
    });
    one.sleep();
    unlock(lock);
    lock.lock();
    let newcomer = locker(2, lock);
    newcomer.to(Point::Wait);
    one.to(Point::Wait);
    let behind = id(2).node::<Toy>().next.load(Relaxed);
    assert_eq!(
        behind,
        u32::from(NodeId::new(1, 1).bits()),
        "its second node: the first is in the list"
    );
    unlock(lock);
    newcomer.to(Point::Wait);
    one.end();
    as_thread(1, || unlock(lock));
    newcomer.end();
    ends_with(2, lock);
}

/// `Never`.
#[test]
fn a_woken_sleeper_may_go_back_to_sleep_at_once() {
    let lock = held::<NoSpin>();
    let one = sleeper(1, lock);
    unlock(lock);
    lock.lock();
    one.sleep_before(Point::Wait);
    unlock(lock);
    one.end();
    ends_with(1, lock);
}
