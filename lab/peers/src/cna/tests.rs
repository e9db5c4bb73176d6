use overlock_core::toy::stage::Actor;
use overlock_core::toy::{Point, Toy, as_thread};

use super::*;
use crate::course::Course;

// On the toy, threads with even numbers run on socket 0, and the others on socket 1.

fn start(course: &Course<Cna<Toy>>, number: usize) -> Actor {
    let waiter = course.thread(number, |_| {});
    waiter.to(Point::Wait);
    waiter
}

#[test]
fn alone_it_is_free_again() {
    let course = Course::<Cna<Toy>>::new();
    let token = course.lock.lock();
    assert!(course.lock.is_locked() && !course.lock.is_contended());
    assert!(course.lock.try_lock().is_none());
    course.unlock(token);
    course.unlock(course.lock.try_lock().unwrap());
    assert_eq!(course.owners(), []);
}

/// Fails if the handoff goes to the next in the queue, and hangs if the others are lost.
#[test]
fn waiters_of_the_owners_socket_come_first() {
    let course = Course::<Cna<Toy>>::new();
    let token = course.lock.lock();
    let waiters = [1, 3, 2, 5, 4].map(|number| start(&course, number));
    course.unlock(token);
    let [first, third, second, fifth, fourth] = waiters;
    for waiter in [second, fourth, first, third, fifth] {
        waiter.end();
    }
    assert_eq!(course.owners(), [2, 4, 1, 3, 5]);
}

/// Fails if the secondary queue is not joined to the arrivals behind it.
#[test]
fn the_secondary_queue_is_served_before_the_main_one_where_no_waiter_is_local() {
    let course = Course::<Cna<Toy>>::new();
    let token = course.lock.lock();
    let [one, two] = [1, 2].map(|number| start(&course, number));
    course.unlock(token);
    let three = start(&course, 3);
    for waiter in [two, one, three] {
        waiter.end();
    }
    assert_eq!(course.owners(), [2, 1, 3]);
}

/// Fails if the choice is left out: then 4 comes before 1.
#[test]
fn seldom_the_other_socket_is_next() {
    let course = Course::<Cna<Toy>>::new();
    let token = course.lock.lock();
    let one = start(&course, 1);
    let two = course.thread(2, |token| {
        let guard = token.0.as_ref().unwrap();
        random::pretend::<Toy>(&guard.node().info, SELDOM);
    });
    two.to(Point::Wait);
    let four = start(&course, 4);
    course.unlock(token);
    for waiter in [two, one, four] {
        waiter.end();
    }
    assert_eq!(course.owners(), [2, 1, 4]);
}

/// Fails if the spare's link is left in the lock: the second unlock then frees nothing.
#[test]
fn a_thread_without_a_node_hands_off() {
    let course = Course::<Cna<Toy>>::new();
    let token = as_thread(99, || course.lock.lock());
    assert!(token.0.is_none());
    let waiter = start(&course, 1);
    course.unlock(token);
    waiter.end();
    course.unlock(as_thread(99, || course.lock.lock()));
    assert_eq!(course.owners(), [1]);
}
