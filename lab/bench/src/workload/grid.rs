//! The grid's loop for a mutual-exclusion lock on this machine: sections of one kind, gaps of
//! another.
//!
//! The section is one function for all locks and is never inlined. Inlined into each lock's loop it
//! could run up to half as fast again for one lock as for another, by its alignment alone.

use std::sync::atomic::AtomicU64;
use std::thread;
use std::time::Duration;

use super::audit::{audit, sums};
use super::random::{Random, zipf};
use super::{Extra, InTime, Sample, Tally, many};
use crate::error::Error;
use crate::lock::BenchLock;
use crate::probe::{Pass, Probe, Timed, Untimed};
use crate::world::native::{Native, NativeWorker};
use crate::world::{Word, Work, Worker, Workers, World};

/// How many locks there are under [`Locks::Zipf`].
const MANY_LOCKS: u16 = 1_000;
/// How many choices among them are drawn beforehand, for all threads.
const CHOICES: usize = 1 << 14;
/// Of so many operations under [`Locks::Hot`], one takes the hot lock.
const COLD_TO_HOT: usize = 10;

/// The load of the threads.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Computation while the lock is held.
    pub critical: Work,
    /// Computation between two acquisitions.
    pub between: Work,
    /// The holder's other actions.
    pub inside: Inside,
    /// Which lock an operation takes.
    pub locks: Locks,
    /// When a thread sleeps without a lock.
    pub pause: Option<Pause>,
    /// Seed of the random choices.
    pub seed: u64,
}

/// The holder's action in the middle of its section, besides computing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inside {
    /// Nothing.
    Nothing,
    /// Calls `sched_yield`.
    Yield,
    /// Sleeps.
    Sleep(Duration),
}

/// Which lock an operation takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locks {
    /// There is one.
    One,
    /// There are two, taken in turn.
    InTurn,
    /// One operation in ten takes the lock of all, the others take the thread's own.
    Hot,
    /// One of a thousand, by Zipf's law.
    Zipf,
}

impl Locks {
    /// How many locks there are.
    fn count(self, threads: usize) -> usize {
        match self {
            Self::One => 1,
            Self::InTurn => 2,
            Self::Hot => 1 + threads,
            Self::Zipf => MANY_LOCKS.into(),
        }
    }
}

/// Sleep between operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// After so many operations, and before the first.
    pub every: u64,
    /// The shortest pause.
    pub least: Duration,
    /// The longest. Between the two all lengths are equally likely.
    pub most: Duration,
}

/// A lock and what it guards, side by side as in a `Mutex<(u64, u64)>`, and nothing else near. The
/// words differ only while a thread is in the section.
#[repr(C, align(128))]
struct Guarded<L> {
    lock: L,
    words: Words,
}

struct Words {
    first: AtomicU64,
    second: AtomicU64,
}

/// The section, in one copy. Writes one word, performs the holder's action, writes the other.
/// Returns whether it found the words different.
#[inline(never)]
fn section(worker: &NativeWorker, words: &Words, critical: Work, inside: Inside) -> bool {
    let before = words.first.get();
    let torn = before != words.second.get();
    words.first.set(before.wrapping_add(1));
    worker.work(critical);
    match inside {
        Inside::Nothing => {}
        Inside::Yield => worker.rest(),
        Inside::Sleep(time) => thread::sleep(time),
    }
    words.second.add(1);
    torn
}

/// One round.
///
/// # Errors
///
/// [`Error::NotExclusive`] and [`Error::Torn`] if the words are not what the operations make of
/// them, and those of [`World::run`].
pub fn round<L: BenchLock>(
    world: &Native,
    workers: &Workers,
    shape: &Shape,
    pass: Pass,
) -> Result<Sample, Error> {
    match pass {
        Pass::Throughput => drive::<L, Untimed>(world, workers, shape, pass),
        Pass::Latency => drive::<L, Timed>(world, workers, shape, pass),
    }
}

fn drive<L: BenchLock, P: Probe>(
    world: &Native,
    workers: &Workers,
    shape: &Shape,
    pass: Pass,
) -> Result<Sample, Error> {
    let guarded = || {
        Ok(Guarded {
            lock: L::create()?,
            words: Words {
                first: AtomicU64::new(0),
                second: AtomicU64::new(0),
            },
        })
    };
    let all = many(shape.locks.count(workers.threads), guarded)?;
    let choices = match shape.locks {
        Locks::Zipf => zipf(MANY_LOCKS, CHOICES),
        _ => Vec::new(),
    };
    let simple = shape.locks == Locks::One && shape.pause.is_none();
    let outcome = world.run(workers, &|worker| {
        let mut member = Member::<P>::new(worker, shape, pass);
        if simple {
            member.simply(&all[0]);
        } else {
            member.variously(&all, &choices);
        }
        member.leave()
    })?;
    let (outcome, did) = outcome.split();
    let sample = Sample::new(outcome, Extra::None);
    if L::EXCLUDES {
        let [performed, torn] = sums(&did);
        let (mut first, mut second) = (0, 0);
        for guarded in &all {
            first += guarded.words.first.get();
            second += guarded.words.second.get();
        }
        audit(&[(performed, first), (performed, second)], performed, torn)?;
    }
    Ok(sample)
}

/// A thread at work.
struct Member<'a, P> {
    worker: &'a NativeWorker,
    shape: &'a Shape,
    probe: P,
    in_time: InTime,
    /// All operations.
    performed: u64,
    torn: u64,
}

impl<'a, P: Probe> Member<'a, P> {
    fn new(worker: &'a NativeWorker, shape: &'a Shape, pass: Pass) -> Self {
        Self {
            worker,
            shape,
            probe: P::new(pass),
            in_time: InTime::default(),
            performed: 0,
            torn: 0,
        }
    }

    /// One operation; whether there is time for more.
    #[inline(always)] // for some locks only, else, and the empty loop shows the call
    fn operate<L: BenchLock>(&mut self, guarded: &Guarded<L>) -> bool {
        let Shape {
            critical, inside, ..
        } = *self.shape;
        let guard = self.probe.lock(self.worker, &guarded.lock);
        let torn = section(self.worker, &guarded.words, critical, inside);
        drop(guard);
        self.probe.released();
        self.torn += u64::from(torn);
        self.performed += 1;
        self.in_time.goes_on(self.worker, self.performed)
    }

    /// The measured loop where there is one lock.
    fn simply<L: BenchLock>(&mut self, guarded: &Guarded<L>) {
        while self.operate(guarded) {
            self.worker.work(self.shape.between);
        }
    }

    /// The measured loop where there are several, or where threads sleep between operations.
    fn variously<L: BenchLock>(&mut self, all: &[Guarded<L>], choices: &[u16]) {
        let index = self.worker.index();
        let mut random = Random::new(self.shape.seed.wrapping_add(index as u64));
        loop {
            if let Some(pause) = self.shape.pause
                && self.performed.is_multiple_of(pause.every)
            {
                pause.sleep(&mut random);
                if self.worker.stopped() {
                    return;
                }
            }
            let which = match self.shape.locks {
                Locks::One => 0,
                Locks::InTurn => (self.performed % 2) as usize,
                Locks::Hot if random.index(COLD_TO_HOT) == 0 => 0,
                Locks::Hot => 1 + index,
                Locks::Zipf => choices[random.index(choices.len())].into(),
            };
            if !self.operate(&all[which]) {
                return;
            }
            self.worker.work(self.shape.between);
        }
    }

    fn leave(self) -> (Tally, [u64; 2]) {
        let did = [self.performed, self.torn];
        (Tally::new(self.in_time.count(), self.probe), did)
    }
}

impl Pause {
    fn sleep(self, random: &mut Random) {
        let spread = self.most.saturating_sub(self.least);
        let part = random.below(1 << 20) as f64 / f64::from(1 << 20);
        thread::sleep(self.least + spread.mul_f64(part));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::lock::{CreateError, Nothing};
    use crate::peers::Std;
    use crate::world::Part;

    const SHAPE: Shape = Shape {
        critical: Work(20),
        between: Work(20),
        inside: Inside::Nothing,
        locks: Locks::One,
        pause: None,
        seed: 1,
    };

    fn run<L: BenchLock>(shape: &Shape, pass: Pass) -> Result<Sample, Error> {
        let world = Native::new(vec![0], Arc::default(), |_, _| panic!("hangs"));
        let workers = Workers {
            lock: "test",
            threads: 4,
            pin: false,
            stop_after: Duration::from_millis(30),
            measured: Part::Warm,
        };
        round::<L>(&world, &workers, shape, pass)
    }

    /// Every way to hold a lock, to choose one, and to pause.
    #[test]
    fn a_lock_passes_in_every_shape() {
        let pause = Pause {
            every: 3,
            least: Duration::from_micros(50),
            most: Duration::from_micros(100),
        };
        let sleep = Inside::Sleep(Duration::from_micros(50));
        for inside in [Inside::Nothing, Inside::Yield, sleep] {
            for locks in [Locks::One, Locks::InTurn, Locks::Hot, Locks::Zipf] {
                for pause in [None, Some(pause)] {
                    let shape = Shape {
                        inside,
                        locks,
                        pause,
                        ..SHAPE
                    };
                    let sample = run::<Std>(&shape, Pass::Latency).unwrap();
                    assert_eq!(sample.operations.len(), 4);
                    let waits = sample.waits.unwrap().count();
                    assert!(waits >= sample.operations.iter().sum(), "{shape:?}");
                }
            }
        }
    }

    /// Does not exclude, but has `EXCLUDES` set.
    struct Broken;

    impl BenchLock for Broken {
        type Guard<'a> = ();

        fn create() -> Result<Self, CreateError> {
            Ok(Self)
        }

        fn lock(&self) {}
    }

    #[test]
    fn a_lock_that_does_not_exclude_is_found_out() {
        let shape = Shape {
            inside: Inside::Yield,
            ..SHAPE
        };
        // In a round of a machine that stops threads may not meet.
        let mut rounds = (0..100).map(|_| run::<Broken>(&shape, Pass::Throughput));
        let error = rounds.find_map(Result::err).unwrap();
        assert!(matches!(
            error,
            Error::NotExclusive { .. } | Error::Torn { .. }
        ));
        // The limit does not either, but is not judged.
        assert!(run::<Nothing>(&shape, Pass::Throughput).is_ok());
    }

    /// A pause before the first operation: nothing is done in a round that ends before.
    #[test]
    fn what_ends_after_the_time_does_not_count() {
        // The end of a round is late where the machine stops.
        let ends_before = [60, 600, 6_000].into_iter().any(|pause| {
            let pause = Duration::from_millis(pause);
            let shape = Shape {
                pause: Some(Pause {
                    every: 1,
                    least: pause,
                    most: pause,
                }),
                ..SHAPE
            };
            run::<Std>(&shape, Pass::Throughput).unwrap().total() == 0
        });
        assert!(ends_before);
    }
}
