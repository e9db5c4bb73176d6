//! 16 threads on 2 CPUs, with holders and waiters that lose or yield their CPU. Every lock makes
//! progress, and a last waiter gets it after the others have left. The second part detects a lost
//! wake-up: before that, unlocks of other threads make up for it.

use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::Pair;
use crate::serial;
use crate::until::{Until, until_of};
use crate::watch::{self, ThreadState};
use overlock::System;
use overlock::spin::RawLock;
use overlock_core::Platform;

const THREADS: usize = if cfg!(miri) { 4 } else { 16 };
/// A round ends with its threads leaving, one after another; many rounds, many last waiters.
const ROUND: Duration = Duration::from_millis(if cfg!(miri) { 2 } else { 40 });
/// A round that has begun continues; a strictly fair lock takes up to 200 ms to let all leave.
const ROUNDS: Duration = Duration::from_millis(if cfg!(miri) { 2 } else { 700 });
const SECTION: Duration = Duration::from_nanos(40);
const DEADLINES_NS: u64 = 300_000;

struct Trial<L> {
    pair: Pair<L>,
    states: [ThreadState; THREADS],
}

/// Xorshift: the same from run to run, as far as threads are.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % limit
    }

    /// True once in `times`, on average.
    fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// A short pause: none, or the CPU yielded for a moment or for a while.
    fn pause(&mut self, seldom: u64) {
        if self.once_in(seldom) {
            thread::yield_now();
        } else if self.once_in(4 * seldom) {
            thread::sleep(Duration::from_nanos(self.below(50_000)));
        }
    }
}

impl<L: RawLock> Trial<L> {
    fn acquire(
        &self,
        state: &ThreadState,
        until: Option<Until<L>>,
        random: &mut Random,
    ) -> L::Token {
        if random.once_in(8)
            && let Some(token) = self.pair.lock.try_lock()
        {
            return token;
        }
        while let Some(until) = until.filter(|_| random.once_in(3)) {
            let deadline = System::now().plus_nanos(random.below(DEADLINES_NS));
            state.waits(true);
            match until(&self.pair.lock, deadline) {
                Some(token) => return token,
                None => {
                    assert!(System::now() >= deadline, "{} gave up early", L::NAME);
                    state.is_outside();
                }
            }
        }
        state.waits(false);
        self.pair.lock.lock()
    }

    fn work(&self, number: usize, until: Option<Until<L>>, round: u64) {
        let state = &self.states[number];
        let mut random = Random((round << 32 | number as u64) * 2 + 1);
        let begin = Instant::now();
        while begin.elapsed() < ROUND {
            let token = self.acquire(state, until, &mut random);
            state.is_inside();
            self.pair.section(token, || {
                let begin = Instant::now();
                while begin.elapsed() < SECTION {}
                random.pause(64);
            });
            state.is_outside();
            random.pause(16);
        }
    }
}

/// Restricts this thread, and those that it creates, to the first two CPUs of the process.
fn take_two_cpus() {
    static TWO: OnceLock<rustix::thread::CpuSet> = OnceLock::new();
    if cfg!(miri) {
        return;
    }
    let two = TWO.get_or_init(|| {
        let all = rustix::thread::sched_getaffinity(None).unwrap();
        let mut two = rustix::thread::CpuSet::new();
        let cpus = 0..rustix::thread::CpuSet::MAX_CPU;
        cpus.filter(|&cpu| all.is_set(cpu))
            .take(2)
            .for_each(|cpu| two.set(cpu));
        two
    });
    rustix::thread::sched_setaffinity(None, two).unwrap();
}

fn gets_on<L: RawLock>(until: Option<Until<L>>) {
    let _serial = serial();
    take_two_cpus();
    // Leaked: if a thread is stuck the test ends before it does.
    let trial: &'static Trial<L> = Box::leak(Box::new(Trial {
        pair: Pair::new(),
        states: Default::default(),
    }));
    let begin = Instant::now();
    for round in 1.. {
        let threads = (0..THREADS)
            .map(|number| thread::spawn(move || trial.work(number, until, round)))
            .collect();
        watch::join(L::NAME, &trial.states, threads);
        assert!(!trial.pair.lock.is_locked(), "{}", L::NAME);
        assert!(!trial.pair.lock.is_contended(), "{}", L::NAME);

        if begin.elapsed() > ROUNDS {
            break;
        }
    }
    assert!(trial.pair.count() > 0);
}

macro_rules! tests {
    ($($name:ident: $lock:ident, $kind:ident, $can:ident;)*) => {$(
        #[test]
        fn $name() {
            gets_on::<overlock::spin::$lock>(until_of!($can, overlock::spin::$lock));
        }
    )*};
}

overlock_family::spin_locks!(tests);
