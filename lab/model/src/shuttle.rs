//! The platform of shuttle: random and PCT schedules of many threads, sequentially consistent.
//!
//! A waiter polls, and yields; a sleeper parks. Time passes as shuttle's random numbers say, so
//! bounded waits and timers end early or late.

mod word;

use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;
use std::sync::atomic::Ordering;

use overlock_core::platform::{
    Atomic, Atomics, Cpu, Deadline, FutexPlatform, Instant, Kick, Pause, Platform, Spin,
};
use overlock_core::sleep::rt_mutex::{PiError, PiPlatform};
use overlock_family::FamilyPlatform;
use shuttle::rand::{Rng, thread_rng};
use shuttle::scheduler::{PctScheduler, RandomScheduler, Schedule, Scheduler, Task, TaskId};
use shuttle::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize};
use shuttle::thread::{self, JoinHandle, Thread};
use shuttle::{Config, FailurePersistence, MaxSteps, Runner};

use crate::arena;
use crate::failure::{Failure, Kind, quiet};
use crate::pi::{self, Kernel, Sleepers};
use crate::scenario::{Scenario, Setting};
use crate::tables::Tables;
use crate::world::{Data, World};
pub use word::Word;

/// The platform of shuttle.
#[derive(Clone, Copy, Debug)]
pub struct Shuttle;

/// Polls of a wait with a limit, at most.
const POLLS: u32 = 4;

/// A sleeper: the word, the thread, and whether it was kicked.
struct Sleeper {
    word: *const Word<AtomicU32>,
    thread: Thread,
    task: usize,
    kicked: bool,
}

/// The data that the threads of an execution share, with the tables.
struct Run {
    tables: &'static Tables<Shuttle>,
    setting: Setting,
    now: u64,
    sleepers: Vec<Sleeper>,
    pi: Sleepers,
}

thread_local! {
    static RUN: RefCell<Option<Run>> = const { RefCell::new(None) };
    static TABLES: Cell<*mut Tables<Shuttle>> = const { Cell::new(std::ptr::null_mut()) };
}

fn with<R>(work: impl FnOnce(&mut Run) -> R) -> R {
    RUN.with_borrow_mut(|run| work(run.as_mut().expect("an execution")))
}

fn tables() -> &'static Tables<Shuttle> {
    with(|run| run.tables)
}

fn me() -> usize {
    usize::from(shuttle::current::me())
}

/// One in `n`.
fn chance(n: u32) -> bool {
    thread_rng().gen_range(0..n) == 0
}

impl Atomics for Shuttle {
    type U8 = Word<AtomicU8>;
    type U16 = Word<AtomicU16>;
    type U32 = Word<AtomicU32>;
    type U64 = Word<AtomicU64>;
    type Usize = Word<AtomicUsize>;
}

impl Platform for Shuttle {
    /// A delay takes no time: what happens meanwhile may happen at the next poll as well.
    fn pause(time: Pause) {
        match time {
            Pause::Iterations(_) => thread::yield_now(),
            Pause::Nanos(nanos) => {
                let end = Self::now().plus_nanos(nanos);
                while Self::now() < end {
                    thread::yield_now();
                }
            }
            Pause::Delay(_) => {}
        }
    }

    fn cpu() -> Cpu {
        Cpu(me() as u32 % 2)
    }

    fn now() -> Instant {
        with(|run| {
            run.now += run.setting.tick;
            Instant::from_nanos(run.now)
        })
    }

    fn parallelism() -> u32 {
        with(|run| run.setting.parallelism)
    }

    fn tables() -> overlock_core::tables::Tables<Self> {
        tables().view()
    }

    fn rank() -> u32 {
        crate::world::rank(Self::slot())
    }

    fn slot() -> Option<usize> {
        let (me, slots) = (me(), with(|run| run.setting.slots));
        (me < slots).then_some(me)
    }

    fn wait_until<T, A>(
        word: &A,
        order: Ordering,
        limit: Spin,
        done: impl Fn(T) -> bool,
    ) -> Result<T, T>
    where
        T: Copy + Eq,
        A: Atomic<T>,
    {
        let mut polls = match limit {
            Spin::Forever => u32::MAX,
            Spin::Polls(polls) => polls.clamp(1, POLLS),
            Spin::Until(_) => POLLS,
        };
        loop {
            let seen = word.load(order);
            if done(seen) {
                return Ok(seen);
            }
            if limit != Spin::Forever {
                polls -= 1;
            }
            if polls == 0 {
                if let Spin::Until(end) = limit {
                    with(|run| run.now = run.now.max(end.as_nanos()));
                }
                return Err(seen);
            }
            thread::yield_now();
        }
    }

    fn halt(word: &Word<AtomicU32>, expected: u32, until: Option<Deadline>) -> bool {
        let until = until.map(|end| end.instant::<Self>().as_nanos());
        // A kick comes between the load and the entry no more than in a kernel: nothing here lets
        // others run.
        if word.load(Ordering::SeqCst) != expected || chance(16) {
            return true;
        }
        let task = me();
        with(|run| {
            run.sleepers.push(Sleeper {
                word,
                thread: thread::current(),
                task,
                kicked: false,
            });
        });
        loop {
            let kicked = with(|run| {
                run.sleepers
                    .iter()
                    .any(|sleeper| sleeper.task == task && sleeper.kicked)
            });
            if kicked {
                break;
            }
            match until {
                None => thread::park(),
                Some(end) if chance(8) => {
                    with(|run| run.now = run.now.max(end));
                    break;
                }
                Some(_) => thread::yield_now(),
            }
        }
        with(|run| run.sleepers.retain(|sleeper| sleeper.task != task));
        true
    }

    fn kick(word: *const Word<AtomicU32>, whom: Kick) {
        thread::yield_now();
        loop {
            let sleeper = with(|run| {
                let sleeper = (run.sleepers.iter_mut())
                    .find(|sleeper| std::ptr::eq(sleeper.word, word) && !sleeper.kicked)?;
                sleeper.kicked = true;
                Some(sleeper.thread.clone())
            });
            let Some(sleeper) = sleeper else { return };
            sleeper.unpark();
            if whom == Kick::One {
                return;
            }
        }
    }

    fn preempted(cpu: Cpu) -> bool {
        cpu != Cpu::UNKNOWN && chance(8)
    }
}

impl FutexPlatform for Shuttle {
    fn socket() -> u32 {
        Self::cpu().0
    }

    fn requeue(from: &Word<AtomicU32>, to: &Word<AtomicU32>) -> bool {
        thread::yield_now();
        with(|run| {
            for sleeper in &mut run.sleepers {
                if std::ptr::eq(sleeper.word, from) && !sleeper.kicked {
                    sleeper.word = to;
                }
            }
        });
        true
    }

    fn light_barrier() {}

    fn heavy_barrier() {
        thread::yield_now();
    }
}

impl Kernel for Shuttle {
    fn number() -> usize {
        me()
    }

    fn sleepers<R>(work: impl FnOnce(&mut Sleepers) -> R) -> R {
        with(|run| work(&mut run.pi))
    }

    fn refuses() -> bool {
        chance(8)
    }

    fn granted(thread: usize) -> &'static Word<AtomicU32> {
        tables().granted(thread)
    }
}

impl PiPlatform for Shuttle {
    fn thread_id() -> u32 {
        pi::id(Self::number())
    }

    fn lock_pi(word: &Word<AtomicU32>, until: Option<Deadline>) -> Result<(), PiError> {
        pi::lock::<Self>(word, until)
    }

    fn unlock_pi(word: &Word<AtomicU32>) {
        pi::unlock::<Self>(word);
    }

    fn was_before_fork(_id: u32) -> bool {
        false
    }
}

impl FamilyPlatform for Shuttle {
    fn family_tables() -> overlock_family::tables::Tables<Self> {
        tables().family()
    }
}

impl World for Shuttle {
    const NAME: &'static str = "shuttle";
    type Data = Torn;
    type Handle = JoinHandle<()>;

    fn spawn(body: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
        thread::spawn(body)
    }

    fn join(thread: JoinHandle<()>) {
        thread.join().expect("a thread that does not panic");
    }

    fn breathe() {
        thread::yield_now();
    }
}

/// Data whose accesses take a while, and notice others.
#[derive(Debug)]
pub struct Torn(AtomicU32);

const WRITER: u32 = 1 << 16;

impl Data for Torn {
    fn new() -> Self {
        Torn(AtomicU32::new(0))
    }

    fn write(&self) {
        let others = self.0.fetch_add(WRITER, Ordering::SeqCst);
        assert_eq!(others, 0, "a writer is not alone");
        thread::yield_now();
        self.0.fetch_sub(WRITER, Ordering::SeqCst);
    }

    fn read(&self) {
        let others = self.0.fetch_add(1, Ordering::SeqCst);
        assert!(others < WRITER, "a reader meets a writer");
        thread::yield_now();
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// How to choose schedules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedules {
    /// At random.
    Random,
    /// Probabilistic concurrency testing, with bugs of this depth in mind.
    Pct(usize),
}

/// A scheduler that is not dropped: shuttle's print what to do about a failure when they are, and
/// we report it ourselves.
struct Silent<S>(ManuallyDrop<S>);

impl<S: Scheduler> Scheduler for Silent<S> {
    fn new_execution(&mut self) -> Option<Schedule> {
        self.0.new_execution()
    }

    fn next_task(
        &mut self,
        runnable: &[&Task],
        current: Option<TaskId>,
        is_yielding: bool,
    ) -> Option<TaskId> {
        self.0.next_task(runnable, current, is_yielding)
    }

    fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }
}

/// Runs a scenario on `executions` schedules.
///
/// # Errors
///
/// The first that fails.
pub fn check(
    scenario: &Scenario,
    schedules: Schedules,
    seed: u64,
    executions: usize,
) -> Result<(), Box<Failure>> {
    let mut config = Config::new();
    config.failure_persistence = FailurePersistence::None;
    config.max_steps = MaxSteps::FailAfter(100_000);
    config.silence_warnings = true;
    // The tables are built on it, and its atomics are large.
    config.stack_size = 1 << 20;
    let (body, setting) = (scenario.body.clone(), scenario.setting);
    let run = move || {
        begin(setting);
        body();
    };
    fn silent<S>(scheduler: S) -> Silent<S> {
        Silent(ManuallyDrop::new(scheduler))
    }
    let result = quiet(|| match schedules {
        Schedules::Random => Runner::new(
            silent(RandomScheduler::new_from_seed(seed, executions)),
            config,
        )
        .run(run),
        Schedules::Pct(depth) => Runner::new(
            silent(PctScheduler::new_from_seed(seed, depth, executions)),
            config,
        )
        .run(run),
    });
    RUN.set(None);
    result.map(drop).map_err(|text| {
        let kind = if text.contains("deadlock") {
            Kind::Deadlock
        } else if text.contains("max_steps") {
            Kind::NoProgress
        } else {
            Kind::Panic
        };
        Box::new(Failure::new(kind, text))
    })
}

/// Makes new tables for an execution, and drops the last one's.
fn begin(setting: Setting) {
    arena::reset();
    let tables = Box::into_raw(Box::new(Tables::new()));
    let old = TABLES.replace(tables);
    if !old.is_null() {
        // SAFETY: from `Box::into_raw` below; the threads of the last execution have ended, or will
        // never run again.
        drop(unsafe { Box::from_raw(old) });
    }
    // SAFETY: dropped only by the next execution.
    let tables = unsafe { &*tables };
    RUN.set(Some(Run {
        tables,
        setting,
        now: 1_000_000,
        sleepers: Vec::new(),
        pi: Sleepers::default(),
    }));
}
