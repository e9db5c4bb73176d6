//! Waiters that spin before they sleep.

use super::*;

/// Fails where a kick does not see that its waiter has not said that it sleeps.
#[test]
fn a_spinner_is_woken_without_a_system_call() {
    let scene = stage();
    let waiter = scene.waiter(1, || (None, false));
    waiter.to(Point::Spin);
    assert!(scene.condvar.notify_one());
    assert_eq!((kicks(), state(1)), (0, WOKEN));
    waiter.end();
    assert_eq!(scene.back(), [(1, true)]);
}

/// Fails where the platform is not told that nothing is known about waits for it.
#[test]
fn the_first_wait_is_that_for_a_new_condition_variable() {
    let scene = requeue::Adopting::new();
    for is_new in [true, false] {
        let waiter = actor(1, move || {
            scene.lock.lock();
            // SAFETY: locked above.
            unsafe { scene.condvar.wait(&scene.lock, ()) };
            scene.unlock();
            assert_eq!(first_spins(), usize::from(is_new));
        });
        waiter.sleep();
        assert!(scene.condvar.notify_one());
        waiter.end();
    }
}

/// Fails where a lock that is held adopts a thread that is awake.
#[test]
fn a_spinner_is_not_requeued() {
    let scene = requeue::Adopting::new();
    let waiter = scene.waiter(1);
    waiter.to(Point::Spin);
    scene.lock.lock();
    assert!(scene.condvar.notify_one());
    assert!(!scene.lock.is_contended());
    scene.unlock();
    waiter.end();
    assert_eq!(kicks(), 0);
}

/// ("lost wake-up") Fails where a waiter that has spun in vain does not say that it sleeps.
#[test]
fn a_waiter_that_spun_in_vain_is_kicked() {
    let scene = stage();
    let waiter = scene.waiter(1, || (None, false));
    waiter.to(Point::Spin);
    waiter.sleep();
    assert!(scene.condvar.notify_one());
    assert!(waiter.is_kicked());
    waiter.end();
    assert_eq!(scene.back(), [(1, true)]);
}
