//! Waiters that poll before they sleep.

use super::*;

/// An actor that polls.
fn polling(scene: Stage, number: usize, limit: (Option<Deadline>, bool)) -> Actor {
    let part = scene.waiter(number, move || limit);
    part.to(Point::Wait);
    assert_eq!(state(number), POLLING);
    part
}

/// Fails where `wake` ignores POLLING: it would make a system call for a thread that is awake.
#[test]
fn a_polling_waiter_is_woken_without_a_system_call() {
    let scene = stage_with(Condvar::new());
    let waiter = polling(scene, 1, (None, false));
    assert!(scene.condvar.notify_one());
    assert_eq!((kicks(), state(1)), (0, WOKEN));
    waiter.end();
    assert_eq!(scene.back(), [(1, true)]);
}

/// Fails where a lock that is held adopts a thread that is awake.
#[test]
fn a_polling_waiter_is_not_requeued() {
    let scene = requeue::Adopting::with(Condvar::new());
    let waiter = scene.waiter(1);
    waiter.to(Point::Wait);
    scene.lock.lock();
    assert!(scene.condvar.notify_one());
    assert!(!scene.lock.is_contended());
    scene.unlock();
    waiter.end();
    assert_eq!(kicks(), 0);
}

/// ("lost wake-up") Fails where `poll` ends without the change to WAITING: nobody would kick it.
#[test]
fn a_waiter_that_polled_in_vain_is_woken() {
    let scene = stage_with(Condvar::new());
    let waiter = polling(scene, 1, (None, false));
    waiter.sleep();
    assert_eq!(state(1), WAITING);
    assert!(scene.condvar.notify_one());
    assert!(waiter.is_kicked());
    waiter.end();
    assert_eq!(scene.back(), [(1, true)]);
}

/// Fails where a poll goes on past the deadline.
#[test]
fn a_deadline_ends_a_poll() {
    let scene = stage_with(Condvar::new());
    let waiter = actor(1, || {
        scene.lock.lock();
        let deadline = Toy::now().plus_nanos(SPIN_NS / 4);
        scene.wait(1, Some(deadline.into()), false);
        assert!(Toy::now().nanos_since(deadline) < SPIN_NS / 4);
        scene.unlock();
    });
    waiter.end();
    assert_eq!(scene.back(), [(1, false)]);
    assert_eq!(halts(), 0);
}

/// Counts the waits without a poll until the next one that polls.
fn skipped(condvar: &Condvar<Toy>) -> usize {
    (0..).take_while(|_| !condvar.allow_poll()).count()
}

/// The back-off after polls in vain.
#[test]
fn polls_in_vain_become_rare() {
    let condvar: Condvar<Toy> = Condvar::new();
    let gaps = [(); 10].map(|()| skipped(&condvar));
    assert_eq!(gaps, [0, 1, 3, 7, 15, 31, 63, 127, 255, 255]);
}

/// Fails where a notification does not see that its waiter polls.
#[test]
fn the_waiter_after_a_successful_poll_polls_too() {
    let scene = stage_with(Condvar::new());
    let condvar = &scene.condvar;
    let gaps = [(); 5].map(|()| skipped(condvar));
    assert_eq!(gaps, [0, 1, 3, 7, 15]);
    condvar.skip.store(0, Relaxed);
    for backoff in [4, 3, 2, 1, 0, 0] {
        let waiter = polling(scene, 1, (None, false));
        assert!(condvar.notify_one());
        waiter.end();
        assert_eq!(
            (condvar.backoff.load(Relaxed), condvar.skip.load(Relaxed)),
            (backoff, 0)
        );
    }
    assert_eq!(kicks(), 0);
}
