//! The threads, over something that is no lock.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use super::*;
use crate::plan::{How, Side, Step};
use crate::subject::Subject;
use crate::worker::Ask;
use overlock_core::facts::{Bound, Facts};

/// Counts steps; fails, panics or gives up where it is asked to.
#[derive(Debug, Default)]
pub struct Fake {
    pub visits: AtomicU64,
    panics: AtomicBool,
    gives_up: Option<How>,
}

impl Subject for Fake {
    fn step(&self, worker: &Worker, _: &Step) {
        self.visits.fetch_add(1, Relaxed);
        assert!(!self.panics.load(Relaxed), "as asked");
        if let Some(how) = self.gives_up {
            let ask = Ask {
                op: Op::LockUntil,
                lock: 0,
                side: Side::Write,
                how,
            };
            worker.acquire(ask, || 0, |_| None::<()>);
        }
    }

    fn visits(&self, _: usize) -> u64 {
        self.visits.load(Relaxed)
    }

    fn state(&self, lock: usize) -> String {
        format!("a fake, number {lock}")
    }

    fn at_rest(&self, _: &dyn Fn(usize) -> u64) -> Result<(), Violation> {
        Ok(())
    }
}

/// An entry for fakes with this bound.
pub fn entry(bound: Bound) -> &'static Entry {
    made(bound, |_| Ok(Box::new(Fake::default())))
}

type Make = fn(usize) -> Result<Box<dyn Subject>, overlock_core::raw::CreateError>;

fn made(bound: Bound, make: Make) -> &'static Entry {
    Box::leak(Box::new(Entry {
        model: false,
        name: "fake",
        facts: Facts {
            bound,
            ..Facts::SLEEPING
        },
        make,
    }))
}

const SOON: Duration = Duration::from_secs(60);

fn start(entry: &'static Entry, churn: u32) -> &'static Job {
    let settings = Settings {
        churn,
        ..Settings::default()
    };
    let job = Job::new(entry, &settings, 3).unwrap();
    job.start().unwrap();
    job
}

fn until(done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < SOON);
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn threads_rest_go_on_and_leave() {
    let job = start(entry(Bound::None), 0);
    for _ in 0..3 {
        let before = job.subject.visits(0);
        until(|| job.subject.visits(0) > before);
        job.ask(Command::Rest);
        assert!(job.all(Command::Rest, SOON));
        let resting = job.subject.visits(0);
        thread::sleep(Duration::from_millis(5));
        assert_eq!(job.subject.visits(0), resting);
        job.ask(Command::Go);
    }
    assert!(!job.all(Command::Stop, Duration::from_millis(1)));
    job.ask(Command::Stop);
    assert!(job.all(Command::Stop, SOON));
    assert!(job.workers.iter().all(|state| state.doing().op == Op::Gone));
    assert!(job.verdict().is_none());
}

#[test]
fn who_exits_is_replaced() {
    let job = start(entry(Bound::None), 2);
    let born = || {
        job.workers
            .iter()
            .all(|state| state.generation.load(Relaxed) > 5)
    };
    until(born);
    // Those that come while all are to rest, rest.
    job.ask(Command::Rest);
    assert!(job.all(Command::Rest, SOON));
    job.ask(Command::Stop);
    assert!(job.all(Command::Stop, SOON));
}

#[test]
fn a_panic_is_a_violation_and_ends_the_run() {
    let panics: Make = |_| {
        Ok(Box::new(Fake {
            panics: AtomicBool::new(true),
            ..Fake::default()
        }))
    };
    let job = start(made(Bound::None, panics), 0);
    assert!(job.all(Command::Stop, SOON));
    let verdict = job.verdict().clone().unwrap();
    assert_eq!(verdict.kind, ViolationKind::Panic);
    assert!(verdict.message.contains("as asked"), "{verdict}");
}

fn verdict_of_one_that_gives_up(make: Make) -> Violation {
    let job = start(made(Bound::None, make), 0);
    assert!(job.all(Command::Stop, SOON));
    job.verdict().clone().unwrap()
}

#[test]
fn giving_up_early_is_a_violation() {
    let verdict = verdict_of_one_that_gives_up(|_| {
        Ok(Box::new(Fake {
            gives_up: Some(How::Timed(u64::MAX / 2)),
            ..Fake::default()
        }))
    });
    assert_eq!(verdict.kind, ViolationKind::GaveUp);
    assert!(verdict.message.contains("gives up early"), "{verdict}");
}

#[test]
fn giving_up_for_no_reason_is_a_violation() {
    let verdict = verdict_of_one_that_gives_up(|_| {
        Ok(Box::new(Fake {
            gives_up: Some(How::Wait),
            ..Fake::default()
        }))
    });
    assert_eq!(verdict.kind, ViolationKind::GaveUp);
    assert!(verdict.message.contains("for no reason"), "{verdict}");
}

#[test]
fn what_threads_and_handlers_wrote_is_added_up() {
    let job = Job::new(entry(Bound::None), &Settings::default(), 2).unwrap();
    job.workers[0].tallies.written[1].add();
    job.workers[1].handled.written[1].add();
    assert_eq!((job.written(0), job.written(1)), (0, 2));
}
