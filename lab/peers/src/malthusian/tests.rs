use overlock_core::toy::stage::Actor;
use overlock_core::toy::{Toy, as_thread, halts, kicks};

use super::*;
use crate::course::Course;

fn start(course: &Course<Malthusian<Toy>>, number: usize) -> Actor {
    let waiter = course.thread(number, |_| {});
    waiter.sleep();
    waiter
}

#[test]
fn alone_it_is_free_again() {
    let course = Course::<Malthusian<Toy>>::new();
    let token = course.lock.lock();
    assert!(course.lock.is_locked() && !course.lock.is_contended());
    assert!(course.lock.try_lock().is_none());
    course.unlock(token);
    course.unlock(course.lock.try_lock().unwrap());
    assert_eq!((kicks(), halts()), (0, 0));
    assert_eq!(course.owners(), []);
}

/// Fails if the first waiter is not set aside. Then the order is that of the arrivals.
#[test]
fn surplus_waiters_are_set_aside_and_come_back_youngest_first() {
    let course = Course::<Malthusian<Toy>>::new();
    let token = course.lock.lock();
    let [one, two, three, four] = [1, 2, 3, 4].map(|number| start(&course, number));
    course.unlock(token);
    assert!(two.is_kicked() && !one.is_kicked());
    // 2 sets 3 aside, after 1.
    for waiter in [two, four, three, one] {
        assert!(waiter.is_kicked());
        waiter.end();
    }
    assert_eq!(course.owners(), [2, 4, 3, 1]);
}

/// Fails if the only waiter is set aside.
#[test]
fn a_waiter_without_others_behind_is_next() {
    let course = Course::<Malthusian<Toy>>::new();
    let token = course.lock.lock();
    let one = start(&course, 1);
    course.unlock(token);
    one.end();
    assert_eq!(course.owners(), [1]);
}

/// Fails if the choice is left out, or takes the youngest.
#[test]
fn seldom_the_eldest_is_next() {
    let course = Course::<Malthusian<Toy>>::new();
    let token = course.lock.lock();
    let [one, two, three] = [1, 2, 3].map(|number| start(&course, number));
    let four = course.thread(4, |token| {
        let guard = token.0.as_ref().unwrap();
        random::pretend::<Toy>(&guard.node().info, SELDOM);
    });
    four.sleep();
    let five = start(&course, 5);
    course.unlock(token);
    // 1 and 3 are set aside when 4 unlocks, and 5 waits.
    for waiter in [two, four, one, five, three] {
        assert!(waiter.is_kicked());
        waiter.end();
    }
    assert_eq!(course.owners(), [2, 4, 1, 5, 3]);
}

/// Fails if the spare's link is left in the lock: the second unlock then frees nothing.
#[test]
fn a_thread_without_a_node_hands_off() {
    let course = Course::<Malthusian<Toy>>::new();
    let token = as_thread(99, || course.lock.lock());
    assert!(token.0.is_none());
    let waiter = start(&course, 1);
    course.unlock(token);
    waiter.end();
    course.unlock(as_thread(99, || course.lock.lock()));
    assert_eq!(course.owners(), [1]);
}
