//! Every reader-writer lock, on real threads.

mod starvation;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use crate::caller::{Caller, until};
use crate::readers::{Downgrade, Extras, FairRelock, Pair, Random, Timed, soon};
use crate::serial;
use crate::watch::{self, ThreadState};
use overlock::System;
use overlock::rw::RawRwLock;
use overlock_core::Platform;
use overlock_core::facts::{HasFacts, Waiting};

/// A round ends with its threads leaving, one after another; many rounds, many last waiters.
const ROUND: Duration = Duration::from_millis(if cfg!(miri) { 10_000 } else { 20 });
const SECTIONS: u64 = if cfg!(miri) { 30 } else { 1 << 40 };
const ROUNDS: u64 = if cfg!(miri) { 1 } else { 10 };

/// Many threads: sleeping readers are not all woken at once. A lock whose waiters spin in a queue
/// is not for more threads than CPUs.
fn threads(waiting: Waiting) -> (usize, usize) {
    match waiting {
        Waiting::Spins => (3, 3),
        _ if cfg!(miri) => (4, 6),
        _ => (16, 300),
    }
}

struct Trial<L> {
    pair: Pair<L>,
    states: Vec<ThreadState>,
    ends: AtomicBool,
}

impl<L: RawRwLock> Trial<L> {
    /// Leaked: if a thread is stuck the test ends before it does.
    fn new(threads: usize) -> &'static Self {
        Box::leak(Box::new(Trial {
            pair: Pair::new(),
            states: (0..threads).map(|_| ThreadState::default()).collect(),
            ends: AtomicBool::new(false),
        }))
    }

    /// Runs all parts at once, and joins them.
    fn run(&'static self, part: impl Fn(usize, &'static ThreadState) + Clone + Send + 'static) {
        let threads = self.states.iter().enumerate().map(|(number, state)| {
            let part = part.clone();
            thread::spawn(move || part(number, state))
        });
        watch::join(L::NAME, &self.states, threads.collect());
    }

    fn assert_idle(&self) {
        assert!(!self.pair.lock.is_locked(), "{}", L::NAME);
        assert!(!self.pair.lock.is_write_locked(), "{}", L::NAME);
        assert!(!self.pair.lock.is_contended(), "{}", L::NAME);
    }

    fn read(&self, state: &ThreadState, timed: Option<&Timed<L>>, random: &mut Random) -> L::Read {
        if random.once_in(8)
            && let Some(token) = self.pair.lock.try_read()
        {
            return token;
        }
        while let Some(timed) = timed.filter(|_| random.once_in(3)) {
            let deadline = soon(random);
            state.waits(true);
            match (timed.read)(&self.pair.lock, deadline) {
                Some(token) => return token,
                None => assert!(System::now() >= deadline, "{} gave up early", L::NAME),
            }
            state.is_outside();
        }
        state.waits(false);
        self.pair.lock.read()
    }

    fn write(
        &self,
        state: &ThreadState,
        timed: Option<&Timed<L>>,
        random: &mut Random,
    ) -> L::Write {
        if random.once_in(8)
            && let Some(token) = self.pair.lock.try_write()
        {
            return token;
        }
        while let Some(timed) = timed.filter(|_| random.once_in(3)) {
            let deadline = soon(random);
            state.waits(true);
            match (timed.write)(&self.pair.lock, deadline) {
                Some(token) => return token,
                None => assert!(System::now() >= deadline, "{} gave up early", L::NAME),
            }
            state.is_outside();
        }
        state.waits(false);
        self.pair.lock.write()
    }

    /// Performs one acquisition of any kind, and returns the number of its writes.
    fn section(&self, state: &ThreadState, extras: &Extras<L>, random: &mut Random) -> u64 {
        let pair = &self.pair;
        if let Some(section) = extras.upgradable_section.filter(|_| random.once_in(4)) {
            return section(pair, state, random);
        }
        if random.once_in(4) {
            let token = self.write(state, extras.timed.as_ref(), random);
            state.is_inside();
            let count = pair.change(|| random.pause(64));
            match extras.downgrade.filter(|_| random.once_in(2)) {
                Some(downgrade) => {
                    // SAFETY: the token is of this lock and this thread.
                    let token = unsafe { downgrade(&pair.lock, token) };
                    let now = pair.inspect(|| random.pause(16));
                    assert_eq!(now, count, "a writer came between, {}", L::NAME);
                    pair.end_read(token);
                }
                None => pair.end_write(token),
            }
            return 1;
        }
        let token = self.read(state, extras.timed.as_ref(), random);
        state.is_inside();
        pair.inspect(|| random.pause(32));
        pair.end_read(token);
        0
    }
}

/// Readers, writers and the rest, with holders and waiters that lose or yield their CPU: writers
/// exclude, and nobody waits for ever. A lost wake-up shows when the others have left.
fn excludes_and_gets_on<L: RawRwLock + HasFacts>(extras: fn() -> Extras<L>) {
    let _serial = serial();
    static WROTE: AtomicUsize = AtomicUsize::new(0);
    WROTE.store(0, Relaxed);
    let trial = Trial::<L>::new(threads(L::FACTS.waiting).0);
    for round in 1..=ROUNDS {
        trial.run(move |number, state| {
            let extras = extras();
            let mut random = Random((round << 32 | number as u64) * 2 + 1);
            let begin = Instant::now();
            let mut wrote = 0;
            for section in 0.. {
                if section >= SECTIONS || begin.elapsed() >= ROUND {
                    break;
                }
                wrote += trial.section(state, &extras, &mut random);
                state.is_outside();
                random.pause(16);
            }
            WROTE.fetch_add(wrote as usize, Relaxed);
        });
        trial.assert_idle();
    }
    assert_eq!(
        trial.pair.count(),
        WROTE.load(Relaxed) as u64,
        "{}",
        L::NAME
    );
}

/// All readers are inside at once: none leaves before the last has arrived.
fn readers_share<L: RawRwLock>() {
    let _serial = serial();
    static INSIDE: AtomicUsize = AtomicUsize::new(0);
    INSIDE.store(0, Relaxed);
    let trial = Trial::<L>::new(4);
    trial.run(|_, state| {
        state.waits(false);
        let token = trial.pair.lock.read();
        state.is_inside();
        INSIDE.fetch_add(1, Relaxed);
        while INSIDE.load(Relaxed) < 4 {
            thread::yield_now();
        }
        trial.pair.end_read(token);
    });
    trial.assert_idle();
}

fn tries<L: RawRwLock>() {
    let trial = Trial::<L>::new(0);
    let lock = &trial.pair.lock;
    let elsewhere = |try_it: fn(&Pair<L>) -> bool| {
        thread::scope(|scope| scope.spawn(|| try_it(&trial.pair)).join().unwrap())
    };
    let reads = |pair: &Pair<L>| {
        pair.lock
            .try_read()
            .map(|token| pair.end_read(token))
            .is_some()
    };
    let writes = |pair: &Pair<L>| {
        pair.lock
            .try_write()
            .map(|token| pair.end_write(token))
            .is_some()
    };
    for _ in 0..3 {
        assert!(elsewhere(reads) && elsewhere(writes));
        let token = lock.try_write().expect("the lock is free");
        assert!(lock.is_locked() && lock.is_write_locked());
        assert!(!elsewhere(reads) && !elsewhere(writes));
        trial.pair.end_write(token);
        let token = lock.try_read().expect("the lock is free");
        assert!(lock.is_locked() && !lock.is_write_locked());
        assert!(elsewhere(reads) && !elsewhere(writes));
        trial.pair.end_read(token);
        trial.assert_idle();
    }
}

/// A thread that gives up leaves nothing behind, in any mode.
fn deadlines_pass<L: RawRwLock>(timed: Option<Timed<L>>) {
    let Some(timed) = timed else { return };
    let _serial = serial();
    let trial = Trial::<L>::new(4);
    let lock = &trial.pair.lock;
    let token = lock.write();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let deadline = System::now().plus_nanos(3_000_000);
                assert!((timed.read)(lock, deadline).is_none());
                assert!(System::now() >= deadline);
                let deadline = System::now().plus_nanos(3_000_000);
                assert!((timed.write)(lock, deadline).is_none());
                assert!(System::now() >= deadline);
            });
        }
    });
    trial.pair.end_write(token);
    trial.assert_idle();
    let long = || System::now().plus_nanos(1 << 40);
    trial
        .pair
        .end_read((timed.read)(lock, long()).expect("the lock is free"));
    trial
        .pair
        .end_write((timed.write)(lock, long()).expect("the lock is free"));
    // In the past, but it tries once.
    let past = System::now();
    trial
        .pair
        .end_read((timed.read)(lock, past).expect("the lock is free"));
    trial
        .pair
        .end_write((timed.write)(lock, past).expect("the lock is free"));
    trial.assert_idle();
}

/// A writer that lets readers in lets waiting ones in.
fn downgrade_lets_readers_in<L: RawRwLock>(downgrade: Option<Downgrade<L>>) {
    let Some(downgrade) = downgrade else { return };
    let _serial = serial();
    static INSIDE: AtomicUsize = AtomicUsize::new(0);
    INSIDE.store(0, Relaxed);
    let trial = Trial::<L>::new(4);
    trial.run(move |number, state| {
        let lock = &trial.pair.lock;
        if number == 0 {
            let token = lock.write();
            trial.ends.store(true, Relaxed);
            thread::sleep(Duration::from_millis(2));
            // SAFETY: the token is of this lock and this thread.
            let token = unsafe { downgrade(lock, token) };
            while INSIDE.load(Relaxed) < 3 {
                thread::yield_now();
            }
            trial.pair.end_read(token);
        } else {
            while !trial.ends.load(Relaxed) {
                thread::yield_now();
            }
            state.waits(false);
            let token = lock.read();
            INSIDE.fetch_add(1, Relaxed);
            trial.pair.end_read(token);
        }
    });
    trial.assert_idle();
}

/// A lock that was released fairly is not taken back: a writer that sleeps for it precedes the next
/// acquisition of the releasing thread. The lock's `unlock_write_fair`, and the default methods of
/// `RawFairRwLock`.
fn fairness_lets_a_writer_in<L: RawRwLock>(relocks: Option<[(&'static str, FairRelock<L>); 6]>) {
    let _serial = serial();
    for (name, fair_relock) in relocks.into_iter().flatten() {
        let trial = Trial::<L>::new(2);
        let writer: &'static _ = Box::leak(Box::new(OnceLock::new()));
        trial.run(move |number, state| {
            let lock = &trial.pair.lock;
            if number == 0 {
                let wait_for_sleeper = || {
                    trial.ends.store(true, Relaxed);
                    assert!(until(writer, Caller::is_asleep), "{}", L::NAME);
                    assert!(lock.is_contended());
                };
                let inspect = || {
                    let writes = trial.pair.inspect(|| {});
                    assert_eq!(writes, 1, "{}: {name} was taken back", L::NAME);
                };
                fair_relock(lock, &wait_for_sleeper, &inspect);
            } else {
                while !trial.ends.load(Relaxed) {
                    thread::yield_now();
                }
                state.waits(false);
                let _ = writer.set(Caller::here());
                let token = lock.write();
                trial.pair.change(|| {});
                trial.pair.end_write(token);
                state.is_outside();
            }
        });
        trial.assert_idle();
    }
}

/// More readers than are woken at a time wait for one writer, and a few writers among them.
fn a_crowd_gets_in<L: RawRwLock + HasFacts>() {
    let _serial = serial();
    let crowd = threads(L::FACTS.waiting).1;
    let trial = Trial::<L>::new(crowd);
    let token = trial.pair.lock.write();
    let begun = &*Box::leak(Box::new(AtomicUsize::new(0)));
    let opener = thread::spawn(move || {
        while begun.load(Relaxed) < crowd {
            thread::yield_now();
        }
        thread::sleep(Duration::from_millis(5));
    });
    thread::scope(|scope| {
        let all = scope.spawn(|| {
            trial.run(move |number, state| {
                begun.fetch_add(1, Relaxed);
                state.waits(false);
                if number % 100 == 50 {
                    let token = trial.pair.lock.write();
                    state.is_inside();
                    trial.pair.change(|| {});
                    trial.pair.end_write(token);
                } else {
                    let token = trial.pair.lock.read();
                    state.is_inside();
                    trial.pair.inspect(|| {});
                    trial.pair.end_read(token);
                }
                state.is_outside();
            });
        });
        opener.join().unwrap();
        trial.pair.end_write(token);
        all.join().unwrap();
    });
    trial.assert_idle();
}

macro_rules! tests {
    ($($name:ident: $module:ident::$lock:ident, $can:ident;)*) => {$(
        mod $name {
            use super::*;

            type Lock = overlock::rw::$lock;

            #[test]
            fn excludes_and_gets_on() {
                super::excludes_and_gets_on::<Lock>(Extras::<Lock>::$can);
            }

            #[test]
            fn readers_share() {
                super::readers_share::<Lock>();
            }

            #[test]
            fn tries() {
                super::tries::<Lock>();
            }

            #[test]
            fn deadlines_pass() {
                super::deadlines_pass::<Lock>(Extras::<Lock>::$can().timed);
            }

            #[test]
            fn downgrade_lets_readers_in() {
                super::downgrade_lets_readers_in::<Lock>(Extras::<Lock>::$can().downgrade);
            }

            #[test]
            #[cfg_attr(miri, ignore = "it asks the operating system")]
            fn fairness_lets_a_writer_in() {
                super::fairness_lets_a_writer_in::<Lock>(Extras::<Lock>::$can().fair_relocks);
            }

            #[test]
            fn writers_do_not_starve() {
                starvation::writers_do_not_starve::<Lock>();
            }

            #[test]
            fn readers_do_not_starve() {
                starvation::readers_do_not_starve::<Lock>();
            }

            #[test]
            fn a_crowd_gets_in() {
                super::a_crowd_gets_in::<Lock>();
            }
        }
    )*};
}

overlock_family::rw_locks!(tests);
