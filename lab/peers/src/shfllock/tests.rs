use overlock_core::toy::stage::Actor;
use overlock_core::toy::{Point, Toy, as_thread};

use super::*;
use crate::course::Course;

// On the toy, threads with even numbers run on socket 0, and the others on socket 1.

fn start(course: &Course<ShflLock<Toy>>, number: usize) -> Actor {
    let waiter = course.thread(number, |()| {});
    waiter.to(Point::Wait);
    waiter
}

#[test]
fn alone_it_is_free_again() {
    let course = Course::<ShflLock<Toy>>::new();
    course.lock.lock();
    assert!(course.lock.is_locked() && !course.lock.is_contended());
    assert!(course.lock.try_lock().is_none());
    course.unlock(());
    course.lock.try_lock().unwrap();
    course.unlock(());
    assert_eq!(course.owners(), []);
}

/// Fails where a newcomer takes the lock that is free while the first waiter has not seen it.
#[test]
fn nobody_steals_from_the_queue() {
    let course = Course::<ShflLock<Toy>>::new();
    course.lock.lock();
    let two = start(&course, 2);
    course.unlock(());
    assert!(course.lock.try_lock().is_none());
    two.end();
    course.lock.try_lock().unwrap();
    course.unlock(());
    assert_eq!(course.owners(), [2]);
}

/// The first waiter comes alone, and looks again when the others are there. Fails if the order is
/// that of the arrivals, and hangs if a waiter is lost.
#[test]
fn waiters_of_the_first_ones_socket_come_next() {
    let course = Course::<ShflLock<Toy>>::new();
    course.lock.lock();
    let waiters = [2, 1, 4, 3, 6, 5].map(|number| start(&course, number));
    // The polls of its rest.
    for _ in 0..=REST {
        waiters[0].to(Point::Wait);
    }
    course.unlock(());
    let [two, one, four, three, six, five] = waiters;
    for waiter in [two, four, six, one, three, five] {
        waiter.end();
    }
    assert_eq!(course.owners(), [2, 4, 6, 1, 3, 5]);
}

/// Fails if 4, the last of the group, does not get the role: then 6 stays behind 1. (5 is the last
/// waiter when 2 shuffles, 7 when 4 does.)
#[test]
fn the_last_of_a_group_is_the_next_shuffler() {
    let course = Course::<ShflLock<Toy>>::new();
    course.lock.lock();
    let [two, one, four, five] = [2, 1, 4, 5].map(|number| start(&course, number));
    for _ in 0..=REST {
        two.to(Point::Wait);
    }
    let [six, seven] = [6, 7].map(|number| start(&course, number));
    for _ in 0..=REST {
        four.to(Point::Wait);
    }
    course.unlock(());
    for waiter in [two, four, six, one, five, seven] {
        waiter.end();
    }
    assert_eq!(course.owners(), [2, 4, 6, 1, 5, 7]);
}

/// Fails if a thread without a node waits for stealing to be allowed.
#[test]
fn a_thread_without_a_node_passes_the_queue() {
    let course = Course::<ShflLock<Toy>>::new();
    course.lock.lock();
    let two = start(&course, 2);
    course.unlock(());
    as_thread(99, || course.lock.lock());
    course.unlock(());
    two.end();
    assert_eq!(course.owners(), [2]);
}
