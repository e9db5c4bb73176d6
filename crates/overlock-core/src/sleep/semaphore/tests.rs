//! Thread 0 runs the script; the actors are threads 1 to 7. The last tests watch each access to a
//! semaphore.

use std::boxed::Box;
use std::format;
use std::sync::{Arc, Mutex};
use std::vec::Vec;

use super::*;
use crate::links::BACKOFF_SLEEP_NS;
use crate::toy::stage::{Actor, actor};
use crate::toy::watch::{self, Access, Watch, after, before, freed, touches, watch};
use crate::toy::{Point, SLOTS, Toy, as_thread, at, halts, left, set_rank};

type Sem = &'static Semaphore<Toy>;

fn leak(permits: u32) -> Sem {
    Box::leak(Box::new(Semaphore::new(permits)))
}

/// An actor that acquires `n` permits, asleep.
fn sleeper(number: usize, semaphore: Sem, n: u32) -> Actor {
    let part = actor(number, move || semaphore.acquire_many(n));
    part.sleep();
    part
}

/// An actor that wants `n` permits, and whose deadline passes in its first sleep.
fn timed(number: usize, semaphore: Sem, n: u32, gets_them: bool) -> Actor {
    let part = actor(number, move || {
        let deadline = Some(Toy::now().plus_nanos(2).into());
        let granted = semaphore.acquire_many_limited(n, deadline, None);
        assert_eq!(granted, gets_them);
    });
    part.sleep();
    part.startle();
    part
}

#[test]
fn permits_are_taken_and_given_back() {
    static TWO: Semaphore<Toy> = Semaphore::new(2);
    assert!(TWO.try_acquire() && TWO.try_acquire() && !TWO.try_acquire());
    assert!(TWO.try_acquire_many(0) && !TWO.try_acquire_many(u32::MAX));
    TWO.release();
    assert_eq!((TWO.available(), TWO.is_contended()), (1, false));
    TWO.acquire();
    TWO.release_many(5);
    TWO.acquire_many(3);
    TWO.acquire_many(0);
    assert_eq!(TWO.available(), 2);
    assert_eq!(
        format!("{TWO:?}"),
        "Semaphore { available: 2, is_contended: false, .. }"
    );
    assert_eq!(size_of_val(&TWO), 12);
    // The most permits that there can be.
    for semaphore in [leak(MAX_PERMITS), leak(0)] {
        semaphore.release_many(MAX_PERMITS - semaphore.available());
        semaphore.acquire_many(MAX_PERMITS);
        assert_eq!(semaphore.available(), 0);
        let waiter = sleeper(1, semaphore, 1);
        semaphore.release();
        waiter.end();
    }
    assert_eq!(Semaphore::<Toy>::new(3).available(), 3);
}

/// Fails where waiters are served in order of arrival whatever their rank, where those of equal
/// rank change places, and where a waiter of rank does not get permits that are there.
#[test]
fn the_highest_rank_is_served_first() {
    let semaphore = leak(0);
    let ranked = |number, rank, n| {
        let part = actor(number, move || {
            set_rank(rank);
            semaphore.acquire_many(n);
        });
        part.sleep();
        part
    };
    let [zero, ten, thirty, later] = [(1, 0, 1), (2, 10, 1), (3, 30, 1), (4, 10, 1)]
        .map(|(number, rank, n)| ranked(number, rank, n));
    for part in [thirty, ten, later, zero] {
        semaphore.release();
        assert_eq!(semaphore.available(), 0);
        part.end();
    }
    let many = ranked(5, 0, 3);
    semaphore.release_many(2);
    let one = actor(6, move || {
        set_rank(20);
        semaphore.acquire();
    });
    one.end();
    assert_eq!(semaphore.available(), 1);
    semaphore.release_many(2);
    many.end();
}

/// Fails where `serve` takes another waiter than the first, or a newcomer does not join at the end.
#[test]
fn a_permit_goes_to_the_waiter_that_waited_longest() {
    for initial in [0, 1, 1000, MAX_PERMITS] {
        let semaphore = leak(initial);
        semaphore.acquire_many(initial);
        let order = Arc::new(Mutex::new(Vec::new()));
        let parts = [1, 2, 3].map(|number| {
            let order = order.clone();
            let part = actor(number, move || {
                semaphore.acquire();
                order.lock().unwrap().push(number);
            });
            part.sleep();
            part
        });
        for (index, part) in parts.into_iter().enumerate() {
            semaphore.release();
            assert_eq!(semaphore.available(), 0);
            assert!(!semaphore.try_acquire());
            assert_eq!(semaphore.is_contended(), index != 2);
            part.end();
        }
        assert_eq!(*order.lock().unwrap(), [1, 2, 3]);
    }
}

/// I3. Fails where `try_acquire_many` takes permits despite `QUEUED`, and where `serve` skips a
/// first that wants more than there are.
#[test]
fn a_waiter_for_many_permits_is_not_bypassed() {
    let semaphore = leak(0);
    let [three, one, two] = [(1, 3), (2, 1), (3, 2)].map(|(part, n)| sleeper(part, semaphore, n));
    semaphore.release_many(2);
    assert_eq!(semaphore.available(), 2);
    assert!(!semaphore.try_acquire());
    // An acquisition of 0 permits always succeeds.
    semaphore.acquire_many(0);
    assert!(semaphore.try_acquire_many(0));
    semaphore.release_many(3);
    // 3 and 1 were granted, and 1 is left for the one that wants 2.
    three.end();
    one.end();
    assert_eq!(semaphore.available(), 1);
    semaphore.release();
    two.end();
    assert_eq!(
        (semaphore.available(), semaphore.is_contended()),
        (0, false)
    );
}

/// Fails ("lost wake-up") where `give_up` does not serve: there are enough permits for the next.
/// And I3: where `take_or_lock_list` takes permits despite `QUEUED`.
#[test]
fn when_a_first_that_wanted_many_gives_up_the_next_is_served() {
    let semaphore = leak(1);
    let many = timed(1, semaphore, 2, false);
    let one = sleeper(2, semaphore, 1);
    many.end();
    one.end();
    assert_eq!(
        (semaphore.available(), semaphore.is_contended()),
        (0, false)
    );
}

#[test]
fn waiters_give_up_from_any_place_in_the_list() {
    let semaphore = leak(0);
    let mut parts = [1, 2, 3, 4].map(|part| Some(timed(part, semaphore, 1, false)));
    for index in [1, 3, 0] {
        parts[index].take().unwrap().end();
        assert!(semaphore.is_contended());
    }
    parts[2].take().unwrap().end();
    assert!(!semaphore.is_contended());
    semaphore.release();
    assert!(semaphore.try_acquire());
}

/// Fails where `give_up` does not check whether the permits were granted.
#[test]
fn a_waiter_at_its_deadline_keeps_a_granted_permit() {
    let semaphore = leak(0);
    let waiter = timed(1, semaphore, 1, true);
    assert!(!semaphore.take_or_lock_list(NEVER));
    waiter.to(Point::Wait); // Its deadline has passed, and it waits for the wait lock.
    semaphore.release();
    assert_eq!(semaphore.available(), 1);
    semaphore.serve();
    assert_eq!(semaphore.available(), 0);
    waiter.end();
    assert!(!semaphore.is_contended());
}

/// I4. Fails where `give_up` returns with permits before the signal: its node is still the batch's.
#[test]
fn a_granted_waiter_stays_until_it_is_signalled() {
    let semaphore = leak(0);
    let first = sleeper(1, semaphore, 1);
    let second = timed(2, semaphore, 1, true);
    let third = sleeper(3, semaphore, 1);
    let releaser = actor(4, move || semaphore.release_many(3));
    releaser.to(Point::Kick); // It has signalled the first of the three.
    second.sleep();
    releaser.end();
    first.end();
    second.end();
    third.end();
}

#[test]
fn a_cancellation_ends_waits_and_not_acquisitions_without_a_wait() {
    let token: &'static CancelToken<Toy> = Box::leak(Box::new(CancelToken::new()));
    let semaphore = leak(0);
    let parts = [1, 2].map(|number| {
        let part = actor(number, || {
            assert!(!semaphore.acquire_cancellable(token, None));
        });
        part.sleep();
        part
    });
    token.cancel();
    parts.into_iter().for_each(Actor::end);
    assert!(!semaphore.acquire_cancellable(token, None));
    semaphore.release();
    assert!(semaphore.acquire_cancellable(token, None));
    let past = Toy::now();
    assert!(!semaphore.acquire_until(past));
    semaphore.release();
    assert!(semaphore.acquire_until(past));
    assert!(!semaphore.is_contended());
}

/// Fails ("stuck") where `wait_for_list` has no limit.
#[test]
fn a_waiter_for_the_wait_lock_gives_its_cpu_to_the_holder() {
    let semaphore = leak(0);
    semaphore.take_or_lock_list(NEVER);
    semaphore.release(); // Does not wait.
    at(Point::Halt, || semaphore.serve());
    semaphore.acquire();
    assert_eq!((left(), halts()), (0, 1));
    assert_eq!(
        (semaphore.available(), semaphore.is_contended()),
        (0, false)
    );
}

#[test]
fn a_thread_without_a_node_backs_off_between_attempts() {
    let semaphore = leak(0);
    let waiter = sleeper(1, semaphore, 1);
    at(Point::Halt, || semaphore.release()); // For the waiter.
    at(Point::Halt, || semaphore.release());
    as_thread(SLOTS, || semaphore.acquire());
    waiter.end();
    let deadline = Toy::now().plus_nanos(10 * BACKOFF_SLEEP_NS);
    assert!(!as_thread(SLOTS, || semaphore.acquire_until(deadline)));
    assert!(Toy::now() > deadline);
    assert_eq!(left(), 0);
}

#[test]
#[cfg(any(debug_assertions, feature = "checked"))]
#[should_panic(expected = "more permits released than a semaphore holds")]
fn one_permit_too_many_panics() {
    leak(MAX_PERMITS - 1).release_many(2);
}

#[test]
#[cfg(not(any(debug_assertions, feature = "checked")))]
fn permits_beyond_the_most_are_lost() {
    let semaphore = leak(MAX_PERMITS - 1);
    semaphore.release_many(u32::MAX);
    assert_eq!(
        (semaphore.available(), semaphore.is_contended()),
        (MAX_PERMITS, false)
    );
}

#[test]
#[should_panic(expected = "more permits than a semaphore holds")]
fn a_semaphore_of_too_many_permits_cannot_be_made() {
    Semaphore::<Toy>::new(MAX_PERMITS + 1);
}

fn watched() -> &'static Semaphore<Watch> {
    let semaphore = Box::leak(Box::new(Semaphore::<Watch>::new(0)));
    watch(semaphore);
    semaphore
}

/// Fails where `take_or_lock_list` sets its flags by anything but an exchange that expects the
/// permits that it saw.
#[test]
fn a_release_before_the_waiter_is_announced_is_taken() {
    let semaphore = watched();
    before(Access::Exchange, || semaphore.release());
    semaphore.acquire();
    assert_eq!((watch::left(), halts()), (0, 0));
    assert_eq!(
        (semaphore.available(), semaphore.is_contended()),
        (0, false)
    );
}

/// A release while the wait lock is held, by another thread or by a handler on the holder itself.
/// Fails where the release waits for the wait lock, and ("lost wake-up") where `serve` releases it
/// without expecting the word that it saw.
#[test]
fn the_holder_of_the_wait_lock_serves_a_release() {
    let semaphore = watched();
    after(Access::Exchange, || {
        assert_eq!(semaphore.state(), QUEUED | WAIT_LOCK);
        semaphore.release();
        assert_eq!(semaphore.state(), 1 << SHIFT | QUEUED | WAIT_LOCK);
    });
    semaphore.acquire();
    assert_eq!((watch::left(), halts()), (0, 0));
    assert_eq!(
        (semaphore.available(), semaphore.is_contended()),
        (0, false)
    );
    // Later: between the load of `serve` and its exchange.
    before(Access::Exchange, || {});
    before(Access::Exchange, || semaphore.release());
    semaphore.acquire();
    assert_eq!((watch::left(), halts()), (0, 0));
    assert_eq!(
        (semaphore.available(), semaphore.is_contended()),
        (0, false)
    );
    // And between its load and its subtraction.
    before(Access::Exchange, || {});
    before(Access::Exchange, || semaphore.release());
    before(Access::Add, || semaphore.release());
    semaphore.acquire();
    assert_eq!((watch::left(), halts()), (0, 0));
    assert_eq!(
        (semaphore.available(), semaphore.is_contended()),
        (1, false)
    );
}

/// I5. Fails where `serve` signals granted waiters before it releases the wait lock.
#[test]
fn a_release_touches_nothing_once_a_waiter_can_acquire_by_it() {
    let semaphore = watched();
    at(Point::Halt, || as_thread(1, || semaphore.release()));
    // It is signalled, and may be about to free the semaphore.
    at(Point::Kick, freed);
    semaphore.acquire();
    assert_eq!((left(), touches()), (0, Vec::new()));
}

/// The same without waiters.
#[test]
fn a_release_without_waiters_touches_nothing_after_its_exchange() {
    let semaphore = watched();
    after(Access::Exchange, freed);
    semaphore.release();
    assert_eq!((watch::left(), touches()), (0, Vec::new()));
}

/// A thread held the wait lock at a fork.
#[test]
fn a_child_forgets_the_wait_lock() {
    let semaphore = leak(1);
    semaphore.word.fetch_or(QUEUED | WAIT_LOCK, Relaxed);
    // SAFETY: there is nobody else.
    unsafe { semaphore.forget_waiters() };
    assert!(semaphore.try_acquire());
    semaphore.release();
    assert_eq!(semaphore.available(), 1);
}
