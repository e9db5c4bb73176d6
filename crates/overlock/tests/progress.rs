//! 16 threads on 2 CPUs, with holders and waiters that lose or give away their CPU: every lock gets
//! on, and whoever still waits when the others have left gets it too. A wake-up that was lost shows
//! in the second: while others come and go, their unlocks make up for it.

mod common;
#[path = "common/until.rs"]
mod until;
#[path = "common/watch.rs"]
mod watch;

use std::sync::{Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use common::Pair;
use overlock::Linux;
use overlock::spin::RawLock;
use overlock_core::Platform;
use until::{Until, until_of};
use watch::Place;

const THREADS: usize = if cfg!(miri) { 4 } else { 16 };
/// A round ends with its threads leaving, one after another; many rounds, many last waiters.
const ROUND: Duration = Duration::from_millis(if cfg!(miri) { 2 } else { 40 });
/// A round that has begun goes on; a strictly fair lock takes up to 200 ms to let all leave.
const ROUNDS: Duration = Duration::from_millis(if cfg!(miri) { 2 } else { 700 });
const SECTION: Duration = Duration::from_nanos(40);
const DEADLINES_NS: u64 = 300_000;

/// One lock at a time has the CPUs.
static TURN: Mutex<()> = Mutex::new(());

struct Trial<L> {
    pair: Pair<L>,
    places: [Place; THREADS],
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

    /// Whether to do what is done once in `times`.
    fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// A short pause: none, or the CPU given away for a moment or for a while.
    fn pause(&mut self, seldom: u64) {
        if self.once_in(seldom) {
            thread::yield_now();
        } else if self.once_in(4 * seldom) {
            thread::sleep(Duration::from_nanos(self.below(50_000)));
        }
    }
}

impl<L: RawLock> Trial<L> {
    fn acquire(&self, place: &Place, until: Option<Until<L>>, random: &mut Random) -> L::Token {
        if random.once_in(8)
            && let Some(token) = self.pair.lock.try_lock()
        {
            return token;
        }
        while let Some(until) = until.filter(|_| random.once_in(3)) {
            let deadline = Linux::now().plus_nanos(random.below(DEADLINES_NS));
            place.waits(true);
            match until(&self.pair.lock, deadline) {
                Some(token) => return token,
                None => {
                    assert!(Linux::now() >= deadline, "{} gave up early", L::NAME);
                    place.is_outside();
                }
            }
        }
        place.waits(false);
        self.pair.lock.lock()
    }

    fn work(&self, number: usize, until: Option<Until<L>>, round: u64) {
        let place = &self.places[number];
        let mut random = Random((round << 32 | number as u64) * 2 + 1);
        let begin = Instant::now();
        while begin.elapsed() < ROUND {
            let token = self.acquire(place, until, &mut random);
            place.is_inside();
            self.pair.section(token, || {
                let begin = Instant::now();
                while begin.elapsed() < SECTION {}
                random.pause(64);
            });
            place.is_outside();
            random.pause(16);
        }
    }
}

/// The first two CPUs that the process may use, for all threads that come from this one.
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
    let _turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    take_two_cpus();
    // Leaked: where a thread is stuck the test ends before it does.
    let trial: &'static Trial<L> = Box::leak(Box::new(Trial {
        pair: Pair::new(),
        places: Default::default(),
    }));
    let begin = Instant::now();
    for round in 1.. {
        let threads = (0..THREADS)
            .map(|number| thread::spawn(move || trial.work(number, until, round)))
            .collect();
        watch::join(L::NAME, &trial.places, threads);
        assert!(!trial.pair.lock.is_locked(), "{}", L::NAME);
        assert!(!trial.pair.lock.is_contended(), "{}", L::NAME);

        if begin.elapsed() > ROUNDS {
            break;
        }
    }
    assert!(trial.pair.count() > 0);
}

macro_rules! tests {
    ($($name:ident: $lock:ident, $kind:ident;)*) => {$(
        #[test]
        fn $name() {
            gets_on::<overlock::spin::$lock>(until_of!(overlock::spin::$lock));
        }
    )*};
}

overlock_core::spin_locks!(tests);

/// The tests above run `lock_until` wherever there is one.
#[test]
fn deadlines_are_found() {
    assert!(until_of!(overlock::sleep::Overlock).is_some());
    assert!(until_of!(overlock::spin::Unfair).is_some());
    assert!(until_of!(overlock::spin::Ticket).is_none());
}
