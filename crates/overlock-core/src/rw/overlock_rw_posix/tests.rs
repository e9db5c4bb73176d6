//! Thread 0 is the director; the parts are threads 1 to 7.

use std::boxed::Box;

use super::wait::{AMPLE_NS, AWAY_NS, FAR_AWAY_NS, FAR_NS, SPIN_NS};
use super::*;
use crate::looks::Look;
use crate::toy::stage::{Actor, actor};
use crate::toy::watch::{self, Access, Watch};
use crate::toy::{Point, Toy, at, halts, kicks, left};

type Lock = &'static OverlockRwPosix<Toy>;

const ALL: [Passing; 3] = [Passing::Never, Passing::Later, Passing::AtOnce];

fn leak() -> Lock {
    Box::leak(Box::new(OverlockRwPosix::new()))
}

fn word(lock: Lock) -> u32 {
    lock.word.load(Relaxed)
}

fn soon() -> Option<Instant> {
    Some(Toy::now().plus_nanos(100 * SPIN_NS))
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

fn writer(number: usize, lock: Lock) -> Actor {
    actor(number, move || lock.write())
}

#[test]
fn the_word_tells_who_reads_who_writes_and_who_sleeps() {
    let lock = leak();
    assert!(!lock.is_locked() && !lock.is_write_locked() && !lock.is_contended());
    lock.read();
    assert!(lock.try_read().is_some());
    assert_eq!(word(lock), 2);
    assert!(lock.is_locked() && !lock.is_write_locked() && !lock.is_contended());
    assert!(lock.try_write().is_none() && !lock.has_queue());
    let waits = writer(1, lock);
    waits.sleep();
    assert!(lock.has_queue());
    assert_eq!(word(lock), 2 | ASLEEP | CLOSED);
    assert!(lock.is_contended() && !lock.is_write_locked());
    unlock_read(lock);
    unlock_read(lock);
    assert!(!lock.is_locked() && lock.try_write().is_none());
    waits.end();
    assert_eq!(word(lock), WRITING);
    assert!(lock.is_locked() && lock.is_write_locked() && !lock.is_contended());
    assert!(lock.try_read().is_none() && lock.try_write().is_none());
    unlock_write(lock);
    assert_eq!((word(lock), size_of_val(lock)), (0, 20));
}

/// Fails where it looks at the word all the time, or gets through the gate instead. (Who may pass at once waits beside the writer.)
#[test]
fn who_finds_it_busy_stays_away_from_the_word_and_looks_again() {
    let acquire: [fn(Lock); 3] = [
        |lock| assert_eq!(lock.read_passing(Passing::Never, None), Ok(())),
        |lock| assert_eq!(lock.read_passing(Passing::Later, None), Ok(())),
        |lock| lock.write(),
    ];
    for acquire in acquire {
        let mut away = 0;
        for (times, nanos) in AWAY_NS.into_iter().enumerate() {
            let lock = leak();
            lock.write();
            (0..times).for_each(|_| at(Point::Wait, || {}));
            at(Point::Wait, move || unlock_write(lock));
            let start = Toy::now();
            acquire(lock);
            away += nanos;
            assert!((away..away + 16).contains(&Toy::now().nanos_since(start)));
            assert_eq!(left(), 0);
        }
    }
    let gate = [Step::ReadPast, Step::ReadBeside, Step::WriteAtGate];
    assert!(!gate.into_iter().any(Step::was_taken));
}

/// Fails where it does not look at what looks cost, or does not record that, or is away for the first time only, or no longer than that.
#[test]
fn where_looks_are_dear_it_stays_away_for_longer() {
    let away = |lock: Lock, times: usize| {
        lock.write();
        (0..times).for_each(|_| at(Point::Wait, || {}));
        at(Point::Wait, move || unlock_write(lock));
        let start = Toy::now();
        lock.read();
        unlock_read(lock);
        Toy::now().nanos_since(start)
    };
    let mut least = 0;
    for (times, nanos) in AWAY_NS.into_iter().enumerate() {
        let lock = leak();
        let look = look_at(lock);
        (0..100).for_each(|_| look.record(FAR_NS + 1));
        assert_eq!(look.nanos(), FAR_NS + 1);
        least += nanos.max(FAR_AWAY_NS);
        assert!((least..least + 32).contains(&away(lock, times)));
    }
    let lock = leak();
    let look = look_at(lock);
    (0..100).for_each(|_| look.record(FAR_NS + 1));
    // In this world they take no time beside that of the clock.
    (0..1000).for_each(|_| {
        away(lock, 0);
    });
    assert!(look.nanos() <= FAR_NS);
    assert!((AWAY_NS[0]..AWAY_NS[0] + 16).contains(&away(lock, 0)));
}

fn look_at(lock: Lock) -> &'static Look {
    let looks = Toy::looks().unwrap();
    looks.at(Toy::spread(ptr::from_ref(lock).addr()))
}

/// Fails where whose limit is near stays away as long as others, or one that has more time does not.
#[test]
fn who_has_little_time_goes_to_the_gate_at_once() {
    let acquire: [fn(Lock, Instant); 3] = [
        |lock, until| assert_eq!(lock.read_passing(Passing::Never, Some(until)), Ok(())),
        |lock, until| assert_eq!(lock.read_passing(Passing::Later, Some(until)), Ok(())),
        |lock, until| assert!(lock.write_within(Some(until))),
    ];
    for acquire in acquire {
        for (nanos, at_gate) in [(AMPLE_NS, true), (2 * AMPLE_NS, false)] {
            let lock = leak();
            lock.write();
            at(Point::Wait, move || {
                assert_eq!(lock.gate.is_locked(), at_gate);
                unlock_write(lock);
            });
            acquire(lock, Toy::now().plus_nanos(nanos));
            assert_eq!(left(), 0);
        }
    }
}

/// Fails where who may pass at once stays away first; and where `Passing` is not looked at: in `try_read_passing`, in `read_slow`.
#[test]
fn only_those_that_may_pass_a_closed_lock() {
    let lock = leak();
    lock.read();
    let waits = writer(1, lock);
    waits.sleep();
    let attempts = ALL.map(|passing| lock.try_read_passing(passing));
    assert_eq!(attempts, [Err(Refused::Busy), Ok(()), Ok(())]);
    let start = Toy::now();
    assert_eq!(lock.read_passing(Passing::AtOnce, None), Ok(()));
    assert!(Toy::now().nanos_since(start) < AWAY_NS[0]);
    let start = Toy::now();
    assert_eq!(lock.read_passing(Passing::Later, None), Ok(()));
    assert!(Toy::now().nanos_since(start) >= PATIENCE_NS);
    let long = start.plus_nanos(3 * PATIENCE_NS);
    assert_eq!(lock.read_until(long), None);
    assert!(Toy::now() >= long);
    assert_eq!(word(lock), 5 | ASLEEP | CLOSED);
    (0..5).for_each(|_| unlock_read(lock));
    waits.end();
    assert_eq!(word(lock), WRITING);
}

/// Fails where the top bit is not looked at, or who finds it stays counted.
#[test]
fn too_many_readers_are_refused() {
    let lock = leak();
    lock.word.store(FULL, Relaxed);
    for passing in ALL {
        assert_eq!(lock.try_read_passing(passing), Err(Refused::Full));
        assert_eq!(lock.read_passing(passing, None), Err(Refused::Full));
    }
    assert_eq!(word(lock), FULL);
    assert!(!lock.gate.is_locked());
    lock.word.store(FULL - 1, Relaxed);
    assert_eq!(lock.read_passing(Passing::Never, None), Ok(()));
}

#[test]
#[should_panic(expected = "more than 134217728 readers")]
fn a_trait_that_has_no_way_to_say_so_panics() {
    let lock = leak();
    lock.word.store(FULL, Relaxed);
    lock.read();
}

/// I2. Fails where a writer at its limit leaves `CLOSED` or `ASLEEP`, a reader at its limit leaves its share or `ASLEEP`, or the gate stays closed.
#[test]
fn who_gives_up_leaves_nothing_behind() {
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
        assert_eq!(word(lock) & !PASSING, WRITING);
        assert!(!lock.gate.is_locked());
    }
    assert!(halts() >= 6, "all of them slept");
    unlock_write(lock);
    assert_eq!(word(lock), 0);
}

/// Fails where a reader that gives up takes `PASSING` with it: another one sleeps for ever.
#[test]
fn who_gives_up_leaves_what_others_need() {
    let lock = leak();
    lock.write();
    let stays = reader(1, lock, Passing::AtOnce);
    stays.sleep();
    let late = lock.read_passing(Passing::AtOnce, soon());
    assert_eq!(late, Err(Refused::Late));
    assert_eq!(word(lock), 1 | WRITING | PASSING);
    unlock_write(lock);
    stays.end();
}

/// I3, the kick for all. Fails where `PASSING` wakes one.
#[test]
fn all_that_pass_are_woken_and_the_one_at_the_gate() {
    let lock = leak();
    lock.write();
    let parts = [
        reader(1, lock, Passing::AtOnce),
        reader(2, lock, Passing::AtOnce),
        reader(3, lock, Passing::Never),
    ];
    parts.iter().for_each(Actor::sleep);
    assert_eq!(word(lock), 3 | WRITING | PASSING | ASLEEP);
    unlock_write(lock);
    assert_eq!((word(lock), kicks()), (3, 1));
    parts.into_iter().for_each(Actor::end);
    assert_eq!(word(lock), 3);
}

/// Fails where a reader that passes goes to sleep for good beside a writer that has left meanwhile.
#[test]
fn who_is_about_to_sleep_sees_the_writer_leave() {
    for passing in ALL {
        let lock = leak();
        lock.write();
        let waits = reader(1, lock, passing);
        waits.to(Point::Halt);
        unlock_write(lock);
        waits.end();
        assert_eq!(word(lock), 1);
    }
    let lock = leak();
    lock.read();
    let waits = writer(1, lock);
    waits.to(Point::Halt);
    unlock_read(lock);
    waits.end();
    assert_eq!(word(lock), WRITING);
}

/// Fails where any reader kicks, or the last one does not.
#[test]
fn the_last_reader_kicks_the_writer_at_the_gate() {
    let lock = leak();
    lock.read();
    lock.read();
    let waits = writer(1, lock);
    waits.sleep();
    unlock_read(lock);
    assert_eq!(kicks(), 0);
    unlock_read(lock);
    assert_eq!(kicks(), 1);
    waits.end();
    unlock_write(lock);
    lock.read();
    unlock_read(lock);
    assert_eq!(kicks(), 1, "nobody sleeps");
}

/// "Bounds". Fails where a writer at the gate never closes the lock to others: they would write for ever.
#[test]
fn after_a_while_a_writer_at_the_gate_lets_no_other_pass() {
    let lock = leak();
    lock.write();
    let start = Toy::now();
    AWAY_NS.iter().for_each(|_| at(Point::Wait, || {}));
    at(Point::Wait, move || {
        // Its look at the writer. Another one comes at once, again and again.
        unlock_write(lock);
        lock.write();
    });
    at(Point::Halt, move || {
        assert_eq!(word(lock), WRITING | ASLEEP);
        unlock_write(lock);
        lock.write();
    });
    at(Point::Halt, || {});
    at(Point::Halt, move || {
        assert_eq!(word(lock), WRITING | ASLEEP | CLOSED);
        assert!(Toy::now().nanos_since(start) >= PATIENCE_NS);
        unlock_write(lock);
        assert_eq!(word(lock), CLOSED);
        assert!(lock.try_write().is_none() && !lock.seize());
        assert!(lock.try_read().is_none());
    });
    lock.write();
    assert_eq!((word(lock), left()), (WRITING, 0));
}

/// I4: the release is an unlock's only access, whoever sleeps.
#[test]
fn an_unlock_touches_nothing_after_its_release() {
    type Watched = OverlockRwPosix<Watch>;
    let lock: &'static Watched = Box::leak(Box::new(Watched::new()));
    watch::watch(lock);
    watch::freed();
    let accesses = |flags: u32, unlock: fn(&Watched)| {
        lock.word.store(flags, Relaxed);
        watch::touches();
        unlock(lock);
        watch::touches()
    };
    // SAFETY: `flags` say that it is read.
    let read = |lock: &Watched| unsafe { lock.unlock_read(()) };
    // SAFETY: `flags` say that it is written.
    let write = |lock: &Watched| unsafe { lock.unlock_write(()) };
    for flags in [0, ASLEEP | CLOSED] {
        assert_eq!(accesses(flags | 1, read), [Access::Add]);
    }
    for flags in [0, ASLEEP, PASSING | 1, ASLEEP | PASSING | 1] {
        assert_eq!(accesses(flags | WRITING, write), [Access::And]);
    }
    assert_eq!(kicks(), 4);
}

/// Fails where the gate stays with a thread that is gone, or readers that waited beside a writer stay counted.
#[test]
fn a_child_forgets_who_waited() {
    use crate::raw::RawForkRwLock;
    for (written, before, after) in [
        (true, WRITING | CLOSED | PASSING | ASLEEP | 3, WRITING),
        (false, CLOSED | ASLEEP | 2, 2),
        (false, WRITING | ASLEEP | 2, WRITING | 2),
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
