//! The watchdog, over workers whose state the test sets.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};

use super::*;
use crate::plan::Step;
use crate::registry::Entry;
use crate::settings::Settings;
use crate::subject::Subject;
use crate::worker::Worker;
use overlock_core::facts::{Bound, Facts};

const PATIENCE: Duration = Duration::from_millis(60);

/// Something whose visits the test counts.
#[derive(Debug)]
struct Fake(&'static AtomicU64);

impl Subject for Fake {
    fn step(&self, _: &Worker, _: &Step) {}

    fn visits(&self, _: usize) -> u64 {
        self.0.load(Relaxed)
    }

    fn state(&self, lock: usize) -> String {
        format!("a fake, number {lock}")
    }

    fn at_rest(&self, _: &dyn Fn(usize) -> u64) -> Result<(), Violation> {
        Ok(())
    }
}

/// Two workers whose state the test sets, and a watchdog.
struct Scene {
    job: &'static Job,
    watch: Watch,
    visits: &'static AtomicU64,
    sequence: u64,
}

impl Scene {
    fn new(bound: Bound) -> Self {
        thread_local! {
            static VISITS: &'static AtomicU64 = Box::leak(Box::default());
        }
        let entry = Box::leak(Box::new(Entry {
            model: false,
            name: "fake",
            facts: Facts {
                bound,
                ..Facts::SLEEPING
            },
            make: |_| Ok(Box::new(Fake(VISITS.with(|visits| *visits)))),
        }));
        let job = Job::new(entry, &Settings::default(), 2).unwrap();
        Self {
            job,
            watch: Watch::new(job, PATIENCE),
            visits: VISITS.with(|visits| *visits),
            sequence: 0,
        }
    }

    /// Thread `index` begins `op`.
    fn set(&mut self, index: usize, op: Op, writes: u8) {
        self.sequence += 1;
        let doing = Doing {
            op,
            lock: 0,
            writes,
            reads: 0,
            sequence: self.sequence,
        };
        self.job.workers[index].set(doing, Linux::now().as_nanos());
    }

    /// Checks again and again for so long, with `meanwhile` in between.
    fn watch(&mut self, time: Duration, meanwhile: impl Fn(&mut Self)) -> Option<Violation> {
        let end = Instant::now() + time;
        while Instant::now() < end {
            meanwhile(self);
            if let Some(violation) = self.watch.check() {
                return Some(violation);
            }
            thread::sleep(Duration::from_millis(1));
        }
        None
    }

    fn visit(&self) {
        self.visits.fetch_add(1, Relaxed);
    }
}

/// A thread that spins or sleeps until it is dropped; its id.
struct Thread {
    id: u32,
    done: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Thread {
    fn new(spins: bool) -> Self {
        let done = Arc::new(AtomicBool::new(false));
        let (sender, receiver) = std::sync::mpsc::channel();
        let ends = Arc::clone(&done);
        let thread = thread::spawn(move || {
            sender
                .send(rustix::thread::gettid().as_raw_pid() as u32)
                .unwrap();
            while !ends.load(Relaxed) {
                if spins {
                    std::hint::spin_loop();
                } else {
                    thread::park();
                }
            }
        });
        Self {
            id: receiver.recv().unwrap(),
            done,
            thread: Some(thread),
        }
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.done.store(true, Relaxed);
        let thread = self.thread.take().unwrap();
        thread.thread().unpark();
        thread.join().unwrap();
    }
}

const LONG: Duration = Duration::from_secs(20);

#[test]
fn a_thread_that_stands_still_is_noticed_and_so_is_who_it_waits_for() {
    let mut scene = Scene::new(Bound::None);
    scene.set(0, Op::Inside, 1);
    scene.set(1, Op::Lock, 0);
    let violation = scene
        .watch(LONG, |scene| scene.set(0, Op::Inside, 1))
        .unwrap();
    assert_eq!(violation.kind, ViolationKind::Hang);
    let start = "hangs: thread 1 waits in lock of lock 0 since 0.";
    assert!(violation.message.starts_with(start), "{violation}");
    assert!(
        violation.details[0].contains("is inside of lock 0"),
        "{violation}"
    );
    assert!(
        violation.details[0].ends_with("holds 0 alone"),
        "{violation}"
    );
    assert!(
        violation.details[1].ends_with("holds nothing"),
        "{violation}"
    );
    assert_eq!(violation.details[2], "lock 0: a fake, number 0");
}

#[test]
fn threads_that_get_on_are_left_alone() {
    let mut scene = Scene::new(Bound::None);
    let found = scene.watch(4 * PATIENCE, |scene| {
        scene.set(0, Op::Inside, 1);
        scene.set(1, Op::Lock, 0);
    });
    assert_eq!(found, None);
}

#[test]
fn those_that_rest_or_have_left_are_left_alone() {
    let mut scene = Scene::new(Bound::None);
    scene.set(0, Op::Resting, 0);
    scene.set(1, Op::Gone, 0);
    assert_eq!(scene.watch(4 * PATIENCE, |_| {}), None);
}

#[test]
fn without_a_bound_a_waiter_may_be_bypassed_for_ever_but_not_hang() {
    let mut scene = Scene::new(Bound::None);
    scene.set(0, Op::Resting, 0);
    scene.set(1, Op::Lock, 0);
    assert_eq!(scene.watch(4 * PATIENCE, |scene| scene.visit()), None);
    let violation = scene.watch(LONG, |_| {}).unwrap();
    assert_eq!(violation.kind, ViolationKind::Hang);
}

#[test]
fn with_a_bound_a_waiter_that_is_bypassed_for_too_long_starves() {
    let mut scene = Scene::new(Bound::Within(Duration::from_millis(10)));
    scene.set(0, Op::Resting, 0);
    scene.set(1, Op::Lock, 0);
    let violation = scene.watch(LONG, |scene| scene.visit()).unwrap();
    assert_eq!(violation.kind, ViolationKind::Starvation);
}

#[test]
fn who_may_be_bypassed_though_not_without_end_starves_when_the_patience_ends() {
    let mut scene = Scene::new(Bound::Finite);
    scene.set(0, Op::Resting, 0);
    scene.set(1, Op::Lock, 0);
    let violation = scene.watch(LONG, |scene| scene.visit()).unwrap();
    assert_eq!(violation.kind, ViolationKind::Starvation);
}

/// It runs, but who is before it may not.
#[test]
fn who_may_be_bypassed_though_it_runs_does_not_starve_before() {
    let spinner = Thread::new(true);
    let mut scene = Scene::new(Bound::Finite);
    scene.watch = Watch::new(scene.job, LONG);
    scene.set(0, Op::Resting, 0);
    scene.set(1, Op::Lock, 0);
    scene.job.workers[1].set_thread(spinner.id);
    let found = scene.watch(Duration::from_millis(200), |scene| scene.visit());
    assert_eq!(found, None);
}

/// Without the time that the thread has had of a CPU it would take the patience.
#[test]
fn a_waiter_that_runs_and_is_bypassed_starves_at_once() {
    let spinner = Thread::new(true);
    if proc::ran(spinner.id).is_none() {
        return;
    }
    let mut scene = Scene::new(Bound::Order);
    scene.watch = Watch::new(scene.job, LONG);
    scene.set(0, Op::Resting, 0);
    scene.set(1, Op::Lock, 0);
    scene.job.workers[1].set_thread(spinner.id);
    let violation = scene.watch(LONG, |scene| scene.visit()).unwrap();
    assert_eq!(violation.kind, ViolationKind::Starvation);
    assert!(violation.message.contains("though it ran"), "{violation}");
    assert!(scene.watch.overtaken() > 8);
}

#[test]
fn a_waiter_that_does_not_run_is_not_the_locks_fault() {
    let sleeper = Thread::new(false);
    let mut scene = Scene::new(Bound::Order);
    scene.watch = Watch::new(scene.job, LONG);
    scene.set(0, Op::Resting, 0);
    scene.set(1, Op::Lock, 0);
    scene.job.workers[1].set_thread(sleeper.id);
    let found = scene.watch(Duration::from_millis(200), |scene| scene.visit());
    assert_eq!(found, None);
}

/// It must be in line before anybody can pass it, and run again before that counts.
#[test]
fn only_what_happens_between_two_runs_of_a_waiter_counts() {
    let ran = |times| Ran {
        time: 0,
        slices: times * AWAKE_TIMES,
    };
    let mut case = Case::None;
    assert_eq!(case.hear(ran(0), 10), None);
    assert_eq!(case.hear(ran(0), 20), None);
    assert_eq!(case.hear(ran(1), 30), None);
    assert_eq!(case.hear(ran(1), 80), None);
    assert_eq!(case.hear(ran(2), 90), Some(60));
    let spun = |times| Ran {
        time: times * AWAKE_FOR,
        slices: 1,
    };
    let mut case = Case::Over(spun(0));
    assert_eq!(case.hear(spun(1), 5), None);
    assert_eq!(case.hear(spun(2), 7), Some(2));
}

#[test]
fn what_a_handler_found_is_reported() {
    let mut scene = Scene::new(Bound::None);
    scene.job.workers[1].handled.torn.raise(3);
    let violation = scene.watch.check().unwrap();
    assert_eq!(violation.kind, ViolationKind::Exclusion);
    assert!(
        violation.message.contains("on thread 1 got lock 2"),
        "{violation}"
    );
}
