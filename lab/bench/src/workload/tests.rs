use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

use super::*;
use crate::error::Error;
use crate::lock::{BenchCondvar, BenchLock, BenchRwLock, CreateError, Held};
use crate::probe::Pass;
use crate::world::native::{Native, NativeWorker};
use crate::world::{Outcome, Part, Word, Work, Worker, Workers};

#[test]
fn a_lock_caps_its_operations() {
    let cap = |workload: Workload, threads| workload.cap(100.0, threads, 2);
    let rw = |reads, records| Workload::Rw {
        cs: 100.0,
        ncs: 0.0,
        reads,
        records,
    };
    assert_eq!(cap(Workload::micro(100.0, 0.0), 8), 1e7);
    assert_eq!(cap("micro:choices=3".parse().unwrap(), 8), 3e7);
    assert_eq!(cap(rw(0.0, 1), 8), 1e7);
    assert_eq!(cap(rw(100.0, 1), 8), 2e7);
    assert_eq!(cap(rw(100.0, 1), 1), 1e7);
    assert_eq!(cap(rw(0.0, 10), 8), 1e8);
    assert_eq!(cap(Workload::Qdisc, 8), f64::INFINITY);
}

#[test]
fn parameters_have_phrases() {
    let parameters = Parameters {
        cs_ns: Some(5.0),
        reads_percent: Some(99.5),
        records: Some(1),
        ..Parameters::default()
    };
    assert_eq!(parameters.describe(), ", 99.5 % reads, 1 record");
    assert_eq!(Parameters::default().describe(), "");
}

#[test]
fn an_empty_section_has_no_cap() {
    assert_eq!(Workload::ALL[0].cap(0.0, 8, 2), f64::INFINITY);
    assert_eq!(Workload::ALL[5].cap(0.0, 8, 2), f64::INFINITY);
}

/// The machine, but for a thread that reads a word: another one often runs before it goes on.
struct Jumpy(Native);

struct JumpyWord(AtomicU64);

impl Word for JumpyWord {
    fn new(value: u64) -> Self {
        Self(AtomicU64::new(value))
    }

    fn get(&self) -> u64 {
        let value = self.0.load(Ordering::Relaxed);
        thread::yield_now();
        value
    }

    fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }
}

impl World for Jumpy {
    type Word = JumpyWord;
    type Worker = NativeWorker;

    fn run<T: Send>(
        &self,
        workers: &Workers,
        body: &(dyn Fn(&NativeWorker) -> T + Sync),
    ) -> Result<Outcome<T>, Error> {
        self.0.run(workers, body)
    }

    fn work(&self, _: f64) -> Work {
        Work::NONE
    }

    fn measure(&self, _: Work) -> f64 {
        0.0
    }

    fn nanoseconds(&self, _: u64) -> f64 {
        0.0
    }
}

/// A world with one worker, whose time is up after so many tests.
struct Late {
    tests: usize,
}

struct LateWorker(Cell<usize>);

impl Worker for LateWorker {
    fn index(&self) -> usize {
        0
    }

    fn stopped(&self) -> bool {
        let left = self.0.get();
        self.0.set(left.saturating_sub(1));
        left == 0
    }

    fn work(&self, _: Work) {}

    fn rest(&self) {}

    fn ticks(&self) -> u64 {
        0
    }
}

impl World for Late {
    type Word = AtomicU64;
    type Worker = LateWorker;

    fn run<T: Send>(
        &self,
        _: &Workers,
        body: &(dyn Fn(&LateWorker) -> T + Sync),
    ) -> Result<Outcome<T>, Error> {
        Ok(Outcome {
            results: vec![body(&LateWorker(Cell::new(self.tests)))],
            elapsed: Duration::from_millis(1),
            stopped: true,
            cpu: Duration::ZERO,
            switches: 0,
            windows: Vec::new(),
        })
    }

    fn work(&self, _: f64) -> Work {
        Work::NONE
    }

    fn measure(&self, _: Work) -> f64 {
        0.0
    }

    fn nanoseconds(&self, _: u64) -> f64 {
        0.0
    }
}

/// A round of one thread, whose time is up after so many tests.
fn late(workload: Workload, rounds: &Rounds<Late>, tests: usize, pass: Pass) -> Sample {
    let world = Late { tests };
    let workers = Workers {
        lock: "test",
        threads: 1,
        pin: false,
        stop_after: Duration::ZERO,
        measured: Part::Warm,
    };
    let prepared = workload.prepare(&world, 1.0, Duration::ZERO);
    prepared.round(rounds, &world, &workers, pass).unwrap()
}

/// The operation that has begun when the time is up is done, and does not count.
#[test]
fn what_ends_late_does_not_count() {
    let patterns = ["ping-pong", "broadcast"].map(|pattern| {
        let condvar: Workload = format!("condvar:pattern={pattern}").parse().unwrap();
        condvar
    });
    for workload in Workload::ALL.into_iter().chain(patterns) {
        let rounds = rounds::<Late>(workload.family());
        let counted = |tests, pass| late(workload, &rounds, tests, pass).total();
        for pass in [Pass::Throughput, Pass::Latency] {
            assert_eq!(counted(1, pass), 0, "{workload:?}");
            assert!(counted(2, pass) > 0, "{workload:?}");
        }
    }
}

/// A lock that notes that it was used; [`USED`] has a place for each.
struct Marked(usize);

static USED: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];
static MADE: AtomicU64 = AtomicU64::new(0);

impl BenchLock for Marked {
    type Guard<'a> = ();

    fn create() -> Result<Self, CreateError> {
        Ok(Self(MADE.fetch_add(1, Ordering::Relaxed) as usize))
    }

    fn lock(&self) {
        USED[self.0].fetch_add(1, Ordering::Relaxed);
    }
}

/// Fails where all operations have the same lock, or go round.
#[test]
fn operations_choose_among_locks() {
    let rounds = Rounds::exclusive::<Marked>();
    let workload = "micro:choices=3".parse().unwrap();
    late(workload, &rounds, 300, Pass::Throughput);
    let used: Vec<_> = USED
        .iter()
        .map(|used| used.load(Ordering::Relaxed))
        .collect();
    assert!(used.iter().all(|&times| times > 50), "{used:?}");
    assert!(used[0] != used[1] || used[1] != used[2], "{used:?}");
}

/// Does not exclude, but has `EXCLUDES` set.
struct Broken;

fn rounds<W: World>(family: Family) -> Rounds<W> {
    match family {
        Family::Exclusive => Rounds::exclusive::<Broken>(),
        Family::ReaderWriter => Rounds::reader_writer::<Broken>(),
        Family::Condvar => Rounds::condvar::<Broken>(),
    }
}

impl BenchLock for Broken {
    type Guard<'a> = ();

    fn create() -> Result<Self, CreateError> {
        Ok(Self)
    }

    fn lock(&self) {}
}

impl BenchRwLock for Broken {
    type Read<'a> = ();
    type Write<'a> = ();

    fn create() -> Result<Self, CreateError> {
        Ok(Self)
    }

    fn read(&self) {}

    fn write(&self) {}
}

impl BenchCondvar for Broken {
    type Mutex = Self;

    fn create() -> Result<Self, CreateError> {
        Ok(Self)
    }

    fn wait<'a>(&self, (): Held<'a, Self>) -> Held<'a, Self> {
        thread::yield_now();
    }

    fn notify_one(&self) {}

    fn notify_all(&self) {}
}

/// Writers exclude each other and no readers.
struct WritersOnly(Mutex<()>);

impl BenchRwLock for WritersOnly {
    type Read<'a> = ();
    type Write<'a> = MutexGuard<'a, ()>;

    fn create() -> Result<Self, CreateError> {
        Ok(Self(Mutex::new(())))
    }

    fn read(&self) {}

    fn write(&self) -> Self::Write<'_> {
        self.0.lock().unwrap()
    }
}

/// The error of the first round that notices.
fn found_out(workload: Workload, rounds: &Rounds<Jumpy>) -> Error {
    let world = Jumpy(Native::new(vec![0], Arc::default(), |workers, left| {
        panic!("{left} threads of {workers:?} hang")
    }));
    let prepared = workload.prepare(&world, 1.0, Duration::ZERO);
    let workers = Workers {
        lock: "test",
        threads: 4,
        pin: false,
        stop_after: Duration::from_millis(20),
        measured: Part::Warm,
    };
    (0..50)
        .find_map(|_| {
            prepared
                .round(rounds, &world, &workers, Pass::Throughput)
                .err()
        })
        .unwrap_or_else(|| panic!("nobody noticed in {workload:?}"))
}

#[test]
fn a_lock_that_does_not_exclude_is_found_out() {
    // In the other patterns of condvar a lost update makes everybody wait for ever, which is
    // noticed as well.
    for workload in Workload::ALL {
        let error = found_out(workload, &rounds(workload.family()));
        assert!(
            matches!(error, Error::NotExclusive { .. } | Error::Torn { .. }),
            "{workload:?}: {error}"
        );
    }
}

#[test]
fn a_reader_beside_a_writer_is_found_out() {
    let rounds = Rounds::reader_writer::<WritersOnly>();
    let error = found_out(Workload::Rwsem, &rounds);
    assert!(
        matches!(error, Error::Torn { reads, torn } if reads >= torn),
        "{error}"
    );
}

#[test]
fn a_lost_write_is_found_out() {
    let rounds = Rounds::reader_writer::<Broken>();
    let writes = Workload::Rw {
        cs: 0.0,
        ncs: 0.0,
        reads: 0.0,
        records: 1,
    };
    let error = found_out(writes, &rounds);
    assert!(matches!(error, Error::NotExclusive { .. }), "{error}");
}
