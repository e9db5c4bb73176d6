//! The counters belong to the whole process, and other tests count too. So this test runs in a
//! process of its own.

use overlock_core::stat::Latency;
use std::env::current_exe;
use std::process::Command;

use super::*;
use crate::spin::Queued;

/// Slow acquisitions = queued + stolen, and what else is counted on the way.
#[test]
#[cfg_attr(miri, ignore = "Miri starts no processes")]
fn slow_acquisitions_are_queued_or_stolen() {
    let alone = concat!(module_path!(), "::alone");
    let (_crate, alone) = alone.split_once("::").unwrap();
    let output = Command::new(current_exe().unwrap())
        .args([alone, "--exact", "--ignored"])
        .output()
        .unwrap();
    let text = std::string::String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}"
    );
}

/// Starts at zero, runs `scene`, and compares each counter that it names; all others must be 0.
fn expect(counts: &[(Event, u64)], scene: impl FnOnce()) {
    stat::reset();
    scene();
    let now = stat::snapshot();
    for &event in Event::ALL {
        let due = counts.iter().find(|(named, _)| *named == event);
        assert_eq!(
            now.count(event),
            due.map_or(0, |(_, due)| *due),
            "{event:?}"
        );
    }
    let sleeps = now.count(Event::PvWaitHead) + now.count(Event::PvWaitNode);
    assert_eq!(now.histogram(Latency::TimeBlocked).count(), sleeps);
    let kicks = now.count(Event::PvKickUnlock);
    assert_eq!(now.histogram(Latency::PvLatencyKick).count(), kicks);
    let wakes = now.count(Event::PvKickWake);
    assert_eq!(now.histogram(Latency::PvLatencyWake).count(), wakes);
}

#[test]
#[ignore = "run by the test above"]
fn alone() {
    stat::enable(true);
    // The fast path counts nothing.
    let lock = leak::<Small<false, true>>();
    expect(&[], || lock.lock());
    // Four slow acquisitions: two queued, two stolen, one of those without a node.
    let counts = [
        (Event::LockSlowpath, 2),
        (Event::PvLockStealing, 2),
        (Event::LockNoNode, 1),
        (Event::PvWaitHead, 2),
        (Event::PvWaitAgain, 1),
        (Event::PvWaitNode, 2),
        (Event::PvWaitEarly, 2),
        (Event::PvSpuriousWakeup, 1),
        (Event::PvKickUnlock, 3),
        (Event::PvKickWake, 3),
        (Event::PvHashHops, 3),
    ];
    expect(&counts, || {
        let [head, second] = [1, 2].map(|thread| locker(thread, lock));
        head.sleep();
        second.sleep();
        second.startle();
        second.sleep();
        unlock(lock);
        lock.lock(); // A thief.
        head.sleep();
        unlock(lock);
        head.end();
        unlock(lock);
        second.end();
        at(Point::Wait, move || unlock(lock));
        as_thread(SLOTS, || lock.lock());
    });

    // One slow acquisition in unfair mode.
    let counts = [
        (Event::LockSlowpath, 1),
        (Event::PvLockStealing, 1),
        (Event::PvWaitHead, 1),
        (Event::PvHashHops, 1),
        (Event::PvKickUnlock, 1),
        (Event::PvKickWake, 1),
    ];
    let lock = leak::<Published>();
    expect(&counts, || {
        lock.lock();
        let [head, thief] = [1, 2].map(|thread| locker(thread, lock));
        head.sleep();
        thief.to(Point::Wait);
        unlock(lock);
        thief.end();
        unlock(lock);
        head.end();
        unlock(lock);
    });

    // The native lock: slow = pending + queued + without a node.
    let native: &'static Queued<Toy> = Box::leak(Box::new(Queued::new()));
    // SAFETY: used where it is locked.
    let unlock = || unsafe { native.unlock(()) };
    let counts = [
        (Event::LockPending, 2),
        (Event::LockSlowpath, 2),
        (Event::LockUseNode2, 1),
        (Event::LockNoNode, 1),
    ];
    expect(&counts, || {
        native.lock();
        let [pending, queued, interrupted] =
            [1, 2, 3].map(|thread| actor(thread, || native.lock()));
        pending.to(Point::Wait);
        queued.to(Point::Wait);
        // A handler waits with its thread's second node.
        let guard = as_thread(3, || overlock_core::node::NodeGuard::<Toy>::new().unwrap());
        interrupted.to(Point::Wait);
        drop(guard);
        unlock();
        for waiter in [pending, queued, interrupted] {
            waiter.end();
            unlock();
        }
        native.lock();
        let pending = actor(1, || native.lock());
        pending.to(Point::Wait);
        at(Point::Wait, move || {
            unlock();
            pending.end();
            unlock();
        });
        as_thread(SLOTS, || native.lock());
    });
}
