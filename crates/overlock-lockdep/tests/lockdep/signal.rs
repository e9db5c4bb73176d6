//! Locks and signal handlers. The locks are numbers here.

use overlock_lockdep::{self as lockdep, How};

use crate::alone;
use crate::raw::{R, S, X, chain, take};

const SIGNAL: &str = "inconsistent use of a lock in a signal handler";
const CHAIN: &str = "possible circular locking dependency through a signal handler";

/// A handler takes the lock, the rest of the program too.
fn with_handler(lock: usize, outside: How, inside: How) {
    let class = lockdep::class_of_lock(lock);
    take(lock, class, outside);
    lockdep::release(lock);
    let before = lockdep::enter_signal(libc::SIGUSR1);
    take(lock, class, inside);
    lockdep::release(lock);
    lockdep::exit_signal(before);
}

#[test]
fn a_lock_of_a_handler_that_can_interrupt_its_holder() {
    let said = alone!(|| {
        with_handler(0x100, X, X);
        assert_eq!(lockdep::reports(), 1);
        with_handler(0x200, X, X.trying());
        with_handler(0x300, R, R);
        assert_eq!(lockdep::reports(), 1);
        with_handler(0x400, X, R);
        with_handler(0x500, R, X);
    });
    said.is(&[SIGNAL; 3]);
    said.has("handlers of these signals, and held where they can arrive:\n  10\n");
}

#[test]
fn a_lock_of_a_handler_is_fine_where_the_signal_is_blocked() {
    let said = alone!(|| {
        block(libc::SIG_BLOCK);
        with_handler(0x100, X, X);
        with_handler(0x100, X, X);
        assert_eq!(lockdep::reports(), 0);
        block(libc::SIG_UNBLOCK);
        // In the place where it is held, not where the handler is.
        chain(&[(0x100, X)]);
    });
    said.is(&[SIGNAL]);
}

fn block(how: i32) {
    // SAFETY: zeros are an empty set.
    let mut set = unsafe { std::mem::zeroed() };
    // SAFETY: valid for the write.
    unsafe { libc::sigaddset(&mut set, libc::SIGUSR1) };
    // SAFETY: the thread's own mask.
    let failed = unsafe { libc::pthread_sigmask(how, &set, std::ptr::null_mut()) };
    assert_eq!(failed, 0);
}

/// As the handler of SIGUSR1.
fn in_handler(f: impl FnOnce()) {
    let before = lockdep::enter_signal(libc::SIGUSR1);
    f();
    lockdep::exit_signal(before);
}

/// Blocks SIGUSR1 around the code.
fn blocked(f: impl FnOnce()) {
    block(libc::SIG_BLOCK);
    f();
    block(libc::SIG_UNBLOCK);
}

/// Number of reports that the scene adds.
fn reported(scene: impl FnOnce()) -> usize {
    let before = lockdep::reports();
    scene();
    lockdep::reports() - before
}

/// Fails where one of the three ways to complete it does not check for it.
#[test]
fn what_a_handler_waits_for_must_not_be_held_while_one_is_asked_for_that_it_can_interrupt() {
    let said = alone!(|| {
        let [a, b] = [0x100, 0x200];
        chain(&[(b, X)]);
        blocked(|| chain(&[(a, X), (b, X)]));
        assert_eq!(reported(|| in_handler(|| chain(&[(a, X)]))), 1);

        let [a, b] = [0x110, 0x210];
        in_handler(|| chain(&[(a, X)]));
        chain(&[(b, X)]);
        assert_eq!(reported(|| blocked(|| chain(&[(a, X), (b, X)]))), 1);

        let [a, b] = [0x120, 0x220];
        in_handler(|| chain(&[(a, X)]));
        blocked(|| chain(&[(a, X), (b, X)]));
        // By now the mask has been read.
        blocked(|| chain(&[(b, X)]));
        assert_eq!(reported(|| chain(&[(b, X)])), 1);

        // Once for each pair.
        in_handler(|| chain(&[(a, X)]));
        chain(&[(b, X)]);
        blocked(|| chain(&[(a, X), (b, X)]));
    });
    said.is(&[CHAIN; 3]);
    said.has("<signal>");
}

#[test]
fn over_some_steps_too_and_what_lies_beyond_is_looked_at() {
    let said = alone!(|| {
        let [a, b, c, d] = [0x100, 0x200, 0x300, 0x400].map(|lock| (lock, X));
        blocked(|| {
            chain(&[a, b]);
            chain(&[b, c]);
            chain(&[c, d]);
        });
        in_handler(|| chain(&[a]));
        chain(&[c]);
        assert_eq!(lockdep::reports(), 1);
        chain(&[d]);
    });
    said.is(&[CHAIN; 2]);
    said.has("0x100 --> 0x200 --> 0x300\n");
}

#[test]
fn what_is_only_held_where_the_signal_is_blocked_or_was_tried_is_no_part_of_it() {
    let said = alone!(|| {
        let [a, b, c, d] = [0x100, 0x200, 0x300, 0x400];
        in_handler(|| chain(&[(a, X)]));
        blocked(|| {
            chain(&[(a, X), (b, X)]);
            chain(&[(a, X), (c, X.trying())]);
        });
        chain(&[(c, X)]);
        blocked(|| chain(&[(b, X)]));
        // Another signal than the handler's.
        let before = lockdep::enter_signal(libc::SIGUSR2);
        lockdep::exit_signal(before);
        // A lock that the handler only tries.
        in_handler(|| chain(&[(d, X.trying())]));
        blocked(|| chain(&[(d, X), (c, X)]));
    });
    said.is(&[]);
}

/// For all modes of the four locks: the handler's wait, how its lock is held, how the other is
/// requested, and how it is held.
#[test]
fn readers_block_no_readers_that_wait_for_holders_only() {
    let said = alone!(|| {
        lockdep::set_output(-1);
        let mut next = 0x1000;
        let mut is_one = |waits: How, held: How, wanted: How, open: How| {
            next += 0x100;
            let [a, b] = [next, next + 0x10];
            reported(|| {
                in_handler(|| chain(&[(a, waits)]));
                blocked(|| chain(&[(a, held), (b, wanted)]));
                chain(&[(b, open)]);
            }) == 1
        };
        assert!(is_one(X, X, X, X));
        assert!(is_one(S, S, S, S));
        assert!(is_one(R, X, X, X));
        assert!(is_one(X, R, X, X));
        assert!(!is_one(R, R, X, X));
        assert!(is_one(R, X, R, X));
        assert!(!is_one(R, X, R, R));
        assert!(is_one(X, X, X, R));
        assert!(is_one(X, X, S, R));
    });
    said.is(&[]);
}

/// A lock of a handler that is held where the signal can arrive is reported for that, not for what
/// it leads to.
#[test]
fn one_mistake_is_one_report() {
    let said = alone!(|| {
        let [a, b, c] = [0x100, 0x200, 0x300].map(|lock| (lock, X));
        in_handler(|| chain(&[a]));
        chain(&[a]);
        blocked(|| chain(&[a, b]));
        chain(&[b]);
        // In the handler itself.
        in_handler(|| chain(&[a, c]));
        chain(&[c]);
        // From one that is fine to one that is reported.
        let d = (0x400, X);
        in_handler(|| chain(&[d]));
        blocked(|| chain(&[d, c]));
    });
    said.is(&[SIGNAL; 2]);
}

#[test]
fn a_handler_that_is_left_by_a_jump_is_left() {
    let said = alone!(|| {
        let (a, b) = (0x100, 0x200);
        chain(&[(a, X)]);
        lockdep::enter_signal(libc::SIGUSR1);
        lockdep::leave_signals();
        chain(&[(a, X)]);
        // It is in none that could end.
        let before = lockdep::enter_signal(libc::SIGUSR2);
        assert_eq!(before, 0);
        chain(&[(b, X)]);
        lockdep::exit_signal(before);
        blocked(|| chain(&[(b, X)]));
        assert_eq!(lockdep::reports(), 1);
    });
    said.is(&[SIGNAL]);
    said.has("  12\n");
}

#[test]
fn it_can_be_read_by_programs() {
    let said = alone!(|| {
        lockdep::set_output(-1);
        lockdep::set_json(2);
        let [a, b] = ["a", "b"].map(lockdep::class_named);
        take(0x20, b, X);
        lockdep::release(0x20);
        blocked(|| {
            take(0x10, a, X);
            take(0x20, b, X);
            lockdep::release(0x20);
            lockdep::release(0x10);
        });
        in_handler(|| take(0x10, a, X));
    });
    let line = said.0.lines().next().unwrap();
    let value: serde_json::Value = serde_json::from_str(line).unwrap();
    assert_eq!(value["lockdep"], "signal-chain");
    assert_eq!(value["signals"], 1 << (libc::SIGUSR1 - 1));
    assert_eq!(
        (&value["waits"], &value["interrupts"]),
        (&"a".into(), &"b".into())
    );
    assert_eq!(value["uses"]["lock"], "0x10");
    assert_eq!(value["chain"][0]["to"], "b");
}
