//! Thread 0 runs the script; the actors are threads 1 to 7.

mod rank;
mod upgrade;
mod wake;

use std::boxed::Box;
use std::cell::RefCell;

use super::wait::{BACKOFF_NS, MIN_BACKOFF_LIMIT_NS, SPIN_NS};
use super::*;
use crate::platform::{Instant, Pause};
use crate::raw::{RawFairRwLock, RawUpgradeRwLock};
use crate::toy::stage::{Actor, actor};
use crate::toy::watch::{self, Access, Watch};
use crate::toy::{Point, Toy, at, halts, kicks, left};

type Lock = &'static OverlockRw<Toy>;

const ALL: [Passing; 3] = [Passing::Never, Passing::Later, Passing::AtOnce];

fn leak() -> Lock {
    Box::leak(Box::new(OverlockRw::new()))
}

fn word(lock: Lock) -> u32 {
    lock.word.load(Relaxed)
}

fn soon() -> Option<Deadline> {
    Some(Toy::now().plus_nanos(100 * SPIN_NS).into())
}

fn unlock_read(lock: Lock) {
    // SAFETY: each test unlocks what it has locked.
    unsafe { lock.unlock_read(()) }
}

fn unlock_write(lock: Lock) {
    // SAFETY: each test unlocks what it has locked.
    unsafe { lock.unlock_write(()) }
}

fn reader(number: usize, lock: Lock, passing: Passing) -> Actor {
    actor(number, move || {
        assert_eq!(lock.read_passing(passing, None), Ok(()));
    })
}

/// A reader that goes to sleep when thread 0 is about to.
fn reader_behind(number: usize, lock: Lock) -> &'static RefCell<Option<Actor>> {
    let behind: &RefCell<Option<Actor>> = Box::leak(Box::default());
    at(Point::Halt, move || {
        let reads = reader(number, lock, Passing::Never);
        reads.sleep();
        behind.replace(Some(reads));
    });
    behind
}

fn writer(number: usize, lock: Lock) -> Actor {
    actor(number, move || lock.write())
}

#[test]
fn the_word_shows_readers_writers_and_sleepers() {
    let lock = leak();
    assert!(!lock.is_locked() && !lock.is_write_locked() && !lock.is_contended());
    lock.read();
    assert!(lock.try_read().is_some());
    assert_eq!(word(lock), 2);
    assert!(lock.is_locked() && !lock.is_write_locked() && !lock.is_contended());
    assert!(lock.try_write().is_none());
    let waits = writer(1, lock);
    waits.sleep();
    assert_eq!(word(lock), 2 | FIRST | CLOSED);
    assert!(lock.is_contended() && !lock.is_write_locked());
    unlock_read(lock);
    unlock_read(lock);
    assert!(!lock.is_locked() && lock.try_write().is_none());
    waits.end();
    assert_eq!(word(lock), WRITING);
    assert!(lock.is_locked() && lock.is_write_locked() && !lock.is_contended());
    assert!(lock.try_read().is_none() && lock.try_write().is_none());
    unlock_write(lock);
    assert_eq!(word(lock), 0);
    assert_eq!(size_of_val(lock), size_of::<Overlock<Toy>>() + 4);
}

/// Fails where it polls without back-off, or goes to the gate or to sleep instead. (A reader that
/// may barge at once counts itself behind the writer.)
#[test]
fn a_busy_waiter_backs_off_before_it_polls_again() {
    let acquire: [fn(Lock); 3] = [
        |lock| assert_eq!(lock.read_passing(Passing::Never, None), Ok(())),
        |lock| assert_eq!(lock.read_passing(Passing::Later, None), Ok(())),
        |lock| lock.write(),
    ];
    for acquire in acquire {
        let mut backoff = 0;
        for (times, nanos) in BACKOFF_NS.into_iter().enumerate() {
            let lock = leak();
            lock.write();
            (0..times).for_each(|_| at(Point::Wait, || {}));
            at(Point::Wait, move || {
                // Nobody is counted behind the writer, or at the gate.
                assert_eq!(lock.word.load(Relaxed), WRITING);
                assert!(!lock.gate.is_locked());
                unlock_write(lock);
            });
            let start = Toy::now();
            acquire(lock);
            backoff += nanos;
            // A reading of the toy's clock takes 1 ns: one for each poll, and this one.
            let readings = times as u64 + 2;
            assert_eq!(Toy::now().nanos_since(start), backoff + readings);
            assert_eq!(left(), 0);
        }
    }
    assert_eq!(halts(), 0);
}

/// Fails where a wait with a short limit backs off too: a writer that tries again and again never
/// closes the lock.
#[test]
fn a_wait_with_a_short_limit_goes_to_the_gate_at_once() {
    for (nanos, at_gate) in [
        (MIN_BACKOFF_LIMIT_NS, true),
        (2 * MIN_BACKOFF_LIMIT_NS, false),
    ] {
        let lock = leak();
        lock.write();
        at(Point::Wait, move || {
            assert_eq!(lock.gate.is_locked(), at_gate);
            unlock_write(lock);
        });
        assert!(lock.write_within(Some(Toy::now().plus_nanos(nanos).into())));
        assert_eq!(left(), 0);
    }
}

/// Fails where a reader that may barge at once backs off first, and where `try_read_passing` or
/// `read_slow` ignores `Passing`.
#[test]
fn only_readers_that_may_barge_enter_a_closed_lock() {
    let lock = leak();
    lock.read();
    let waits = writer(1, lock);
    waits.sleep();
    let attempts = ALL.map(|passing| lock.try_read_passing(passing));
    assert_eq!(attempts, [Err(Refused::Busy), Ok(()), Ok(())]);
    let start = Toy::now();
    assert_eq!(lock.read_passing(Passing::AtOnce, None), Ok(()));
    // It reads the clock twice, and does not back off.
    assert_eq!(Toy::now().nanos_since(start), 3);
    let start = Toy::now();
    assert_eq!(lock.read_passing(Passing::Later, None), Ok(()));
    assert!(Toy::now().nanos_since(start) >= BARGE_DELAY_NS);
    let long = start.plus_nanos(3 * BARGE_DELAY_NS);
    assert_eq!(lock.read_until(long), None);
    assert!(Toy::now() >= long);
    // Flags of sleepers that gave up may stay as long as the lock is closed (I3).
    assert_eq!(word(lock) & !OTHERS, 5 | FIRST | CLOSED);
    (0..5).for_each(|_| unlock_read(lock));
    waits.end();
    unlock_write(lock);
    assert_eq!(word(lock), 0);
}

/// Fails where the top bit is ignored, or a reader that finds it stays counted.
#[test]
fn too_many_readers_are_refused() {
    let lock = leak();
    lock.word.store(FULL, Relaxed);
    for passing in ALL {
        assert_eq!(lock.try_read_passing(passing), Err(Refused::Full));
        assert_eq!(lock.read_passing(passing, None), Err(Refused::Full));
    }
    assert!(lock.try_upgradable().is_none());
    assert_eq!(word(lock), FULL);
    lock.word.store(FULL - 1, Relaxed);
    assert_eq!(lock.read_passing(Passing::Never, None), Ok(()));
}

#[test]
#[should_panic(expected = "more than 16777216 readers")]
fn too_many_readers_panic_where_the_trait_cannot_refuse() {
    let lock = leak();
    lock.word.store(FULL, Relaxed);
    lock.read();
}

/// I2, I3. Fails where a writer at its limit leaves `CLOSED`, `FIRST` or `OTHERS`, a reader at its
/// limit its share, or the gate stays closed.
#[test]
fn a_waiter_that_gives_up_leaves_no_flag_and_no_share() {
    let lock = leak();
    lock.read();
    for _ in 0..2 {
        assert!(!lock.write_within(soon()));
        assert_eq!(word(lock), 1);
        assert!(!lock.gate.is_locked());
    }
    unlock_read(lock);
    lock.write();
    assert!(!lock.write_within(soon()));
    for passing in ALL {
        assert_eq!(lock.read_passing(passing, soon()), Err(Refused::Late));
        assert_eq!(word(lock) & !OTHERS, WRITING);
        assert!(!lock.gate.is_locked());
    }
    assert!(halts() >= 6, "all of them slept");
    unlock_write(lock);
    assert_eq!(word(lock), 0);
}

/// Fails where a wait tries less than once, or waits for longer than `until`.
#[test]
fn a_wait_tries_once_even_after_its_deadline() {
    let lock = leak();
    let past = Instant::from_nanos(0);
    assert!(lock.read_until(past).is_some());
    assert!(lock.write_until(past).is_none());
    unlock_read(lock);
    assert!(lock.write_until(past).is_some());
    let start = Toy::now();
    assert!(lock.read_until(past).is_none());
    for nanos in [100, 2_000, 9_000] {
        let until = Toy::now().plus_nanos(nanos);
        assert!(lock.read_until(until).is_none());
        assert!(lock.write_until(until).is_none());
    }
    assert!(Toy::now().nanos_since(start) < 12_000);
}

/// "Bounds". Fails where a writer at the gate never closes the lock to others, or needs a timer to:
/// the others would write for ever.
#[test]
fn a_writer_at_the_gate_closes_the_lock_after_the_barge_delay() {
    let lock = leak();
    lock.write();
    let waits = writer(1, lock);
    waits.sleep();
    assert_eq!(word(lock), WRITING | FIRST);
    let again = move || {
        unlock_write(lock);
        lock.write();
    };
    let mut releases = 0;
    while word(lock) & CLOSED == 0 {
        again();
        // An actor's clock is its own, and goes on while it spins.
        waits.sleep();
        releases += 1;
    }
    assert!(
        (2..=BARGE_DELAY_NS / SPIN_NS).contains(&releases),
        "{releases}"
    );
    assert_eq!(word(lock), WRITING | FIRST | CLOSED);
    unlock_write(lock);
    assert!(lock.try_write().is_none() && !lock.try_write_now());
    assert!(lock.try_read().is_none());
    waits.end();
    assert_eq!(word(lock), WRITING);
}

/// "Bounds". Fails where a reader that has waited for `BARGE_DELAY_NS` does not count itself: the
/// writers would go on for ever.
#[test]
fn a_reader_counts_itself_after_the_barge_delay() {
    let lock = leak();
    lock.write();
    at(Point::Halt, move || {
        assert_eq!(word(lock), WRITING | OTHERS);
        Toy::pause(Pause::Delay(BARGE_DELAY_NS));
        unlock_write(lock);
        lock.write();
    });
    at(Point::Halt, move || {
        assert_eq!(word(lock), 1 | WRITING | OTHERS);
        unlock_write(lock);
        assert!(lock.try_write().is_none() && !lock.try_write_now());
    });
    lock.read();
    assert_eq!((word(lock), left()), (1, 0));
}

/// I4: the release is an unlock's last access, whatever flags are set.
#[test]
fn an_unlock_touches_nothing_after_its_release() {
    type Watched = OverlockRw<Watch>;
    let lock: &'static Watched = Box::leak(Box::new(Watched::new()));
    watch::watch(lock);
    watch::freed();
    let last = |flags: u32, unlock: fn(&Watched)| {
        lock.word.store(flags, Relaxed);
        watch::touches();
        unlock(lock);
        let touches = watch::touches();
        let release = [Access::Add, Access::Exchange];
        assert!(release.contains(touches.last().unwrap()), "{touches:?}");
        // Before it: a failed exchange, and a load. (Under Miri weak exchanges fail spuriously.)
        assert!(touches.len() <= 3 || cfg!(miri), "{touches:?}");
        touches.len()
    };
    // SAFETY: `flags` say that it is read.
    let read = |lock: &Watched| unsafe { lock.unlock_read(()) };
    for flags in [0, FIRST | CLOSED, FIRST | CLOSED | OTHERS, OTHERS | 2] {
        assert_eq!(last(flags | 1, read), 1);
    }
    let writes: [fn(&Watched); 4] = [
        // SAFETY: `flags` say that it is written.
        |lock| unsafe { lock.unlock_write(()) },
        // SAFETY: as above.
        |lock| unsafe { lock.unlock_write_fair(()) },
        // SAFETY: as above.
        |lock| unsafe { lock.downgrade(()) },
        // SAFETY: as above.
        |lock| unsafe { lock.downgrade_to_upgradable(()) },
    ];
    for write in writes {
        assert_eq!(last(WRITING, write), 1);
        for flags in [1, FIRST, OTHERS | 1, FIRST | OTHERS | 1, CLOSED | FIRST] {
            last(flags | WRITING, write);
        }
    }
    let upgradables: [fn(&Watched); 3] = [
        // SAFETY: `flags` say that there is an upgradable reader.
        |lock| unsafe { lock.unlock_upgradable(()) },
        // SAFETY: as above.
        |lock| unsafe { lock.unlock_upgradable_fair(()) },
        // SAFETY: as above.
        |lock| unsafe { lock.downgrade_upgradable(()) },
    ];
    for upgradable in upgradables {
        for flags in [0, FIRST, FIRST | CLOSED | OTHERS, 1] {
            last((flags | UPGRADABLE) + 1, upgradable);
        }
    }
    assert_eq!(kicks(), 2 + 4 * 4 + 3 * 2);
}

/// Fails where the gate stays with a thread that exists only in the parent, or where readers that
/// were counted behind a writer stay counted.
#[test]
fn a_child_forgets_waiters() {
    use crate::raw::RawForkRwLock;
    for (written, before, after) in [
        (true, WRITING | CLOSED | OTHERS | FIRST | 3, WRITING),
        (false, CLOSED | FIRST | 2, 2),
        (false, WRITING | FIRST | 2, WRITING | 2),
        (false, UPGRADABLE | UPGRADING | OTHERS | 2, UPGRADABLE | 2),
        (false, 0, 0),
    ] {
        let lock = leak();
        lock.gate.lock();
        lock.word.store(before, Relaxed);
        // SAFETY: there is no other thread that uses it.
        unsafe { lock.forget_waiters(written) };
        assert_eq!(word(lock), after);
        assert!(!lock.gate.is_locked());
    }
}
