//! Spins, and turns of the owner where the lock is tight.

use super::*;
use crate::toy::{end_slice, spins, stop_spins};

/// Less than a gap.
const A_BIT: u64 = GAP_NS / 2;

fn is_tight(lock: Lock) -> bool {
    lock.word.load(Relaxed) & TIGHT != 0
}

/// A tight lock that thread 0 holds.
fn tight() -> Lock {
    let lock = held();
    lock.word.fetch_or(TIGHT, Relaxed);
    lock
}

/// Thread `thread` waits for the lock, and looks whether it is tight.
fn prober(thread: usize, lock: Lock) -> Actor {
    let actor = actor(thread, move || {
        let now = Toy::ticks();
        // It reads the clock twice before.
        let looks = |delay: &u64| spread((now + delay + 2) as usize) % PROBES == 0;
        Toy::pause(Pause::Delay((0..).find(looks).expect("there is one")));
        lock.lock();
    });
    poll(&actor, 2);
    actor
}

/// Lets the waiter poll so often.
fn poll(waiter: &Actor, times: u32) {
    for _ in 0..times {
        waiter.to(Point::Wait);
    }
}

/// Lets the waiter see a free lock, which is taken before its next poll. `parity`: by another
/// waiter.
fn comes_back(lock: Lock, waiter: &Actor, parity: u32) {
    waiter.interrupt(move || unlock(lock));
    // The poll, and the look.
    waiter.to(Point::Wait);
    waiter.interrupt(move || {
        assert!(lock.try_lock().is_some());
        lock.word.fetch_xor(parity, Relaxed);
    });
    waiter.to(Point::Wait);
}

/// `fetch_or` in `spin`.
#[test]
fn a_waiter_marks_a_lock_whose_owner_is_soon_back() {
    let lock = held();
    let one = prober(1, lock);
    for look in 1..=LOOKS {
        assert!(!is_tight(lock));
        comes_back(lock, &one, 0);
        assert_eq!(is_tight(lock), look == LOOKS);
    }
    unlock(lock);
    one.end();
    assert!(has(lock, LOCKED | PARITY) && !lock.is_contended());
    ends(lock);
}

/// `PARITY` in `is_soon_back`: another waiter was faster.
#[test]
fn a_lock_that_goes_to_another_waiter_is_not_tight() {
    let lock = held();
    let one = prober(1, lock);
    comes_back(lock, &one, 0);
    comes_back(lock, &one, PARITY);
    assert!(!is_tight(lock));
    unlock(lock);
    one.end();
    ends(lock);
}

/// `waits` in `spin`, until CHECK_NS.
#[test]
fn a_waiter_leaves_a_tight_lock_to_its_owner_for_a_turn() {
    let lock = tight();
    let one = actor(1, move || {
        let start = Toy::now();
        lock.lock();
        assert!(Toy::now().nanos_since(start) >= CHECK_NS);
    });
    one.to(Point::Wait);
    unlock(lock);
    one.end();
    assert!(!is_tight(lock), "its owner has stayed away: `fetch_and`");
    ends(lock);
}

/// The same for a lock that is handed off.
#[test]
fn nobody_waits_for_a_turn_on_a_lock_that_was_handed_off() {
    let lock = tight();
    let one = locker(1, lock);
    one.to(Point::Halt);
    unlock_fair(lock); // kicks nobody
    one.end();
    assert!(!has(lock, HANDOFF) && lock.is_locked());
    ends(lock);
}

/// `learn_spin` and `GAP_NS` in `spin`.
#[test]
fn the_platform_learns_how_long_spins_end() {
    let lock = held();
    let one = actor(1, move || {
        assert!(lock.lock_until(Toy::now().plus_nanos(A_WHILE)).is_none());
        assert_eq!(spins(), [(SPIN_NS, false)]);
    });
    one.sleep();
    one.interrupt(|| {
        Toy::pause(Pause::Delay(A_WHILE));
    });
    one.startle();
    one.end();
    let two = actor(2, move || {
        lock.lock();
        let [(SPIN_NS, false), (age, true)] = spins()[..] else {
            panic!("an interrupted spin, and one that ended with the lock");
        };
        assert!(age > A_BIT && age < SPIN_NS);
    });
    poll(&two, POLLS);
    two.interrupt(|| {
        Toy::pause(Pause::Delay(GAP_NS + A_BIT));
    });
    two.sleep();
    two.startle();
    poll(&two, POLLS);
    two.interrupt(|| {
        Toy::pause(Pause::Delay(A_BIT));
    });
    unlock(lock);
    two.end();
    ends(lock);
}

/// `spun > limit` in `spin`.
#[test]
fn a_waiter_whose_spins_are_no_use_looks_once() {
    let lock = held();
    let one = actor(1, move || {
        stop_spins();
        let since = Toy::ticks();
        assert!(!lock.spin(&Contender {
            since,
            counted: false
        }));
        assert_eq!(spins(), [(0, false)]);
    });
    one.end();
    unlock(lock);
}

/// `yield_slice` in `spin`: the age of the spin begins anew.
#[test]
fn a_waiter_yields_at_the_end_of_its_slice() {
    let lock = held();
    let one = actor(1, move || {
        end_slice(move || unlock(lock));
        lock.lock();
    });
    one.end();
    ends(lock);
}

/// `last` in `spin`: PAUSE takes long on some processors.
#[test]
fn a_first_look_that_takes_long_is_no_interruption() {
    let lock = held();
    let one = actor(1, move || {
        lock.lock();
        assert!(matches!(spins()[..], [(age, true)] if age >= 2 * GAP_NS));
    });
    one.to(Point::Wait);
    one.interrupt(|| {
        Toy::pause(Pause::Delay(2 * GAP_NS));
    });
    poll(&one, POLLS);
    unlock(lock);
    one.end();
    ends(lock);
}

/// `!ends` in `spin`: else a waiter with a slow clock leaves a free lock alone for ever.
#[test]
fn a_spin_that_ends_takes_a_tight_lock_that_is_free() {
    let lock = tight();
    let one = actor(1, move || {
        lock.lock();
        assert!(matches!(spins()[..], [(age, true)] if age > GAP_NS));
    });
    one.to(Point::Wait);
    one.to(Point::Wait);
    one.interrupt(move || {
        unlock(lock);
        Toy::pause(Pause::Delay(GAP_NS + 1));
    });
    one.end();
    ends(lock);
}
