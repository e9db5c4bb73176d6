//! The platform of loom: all executions of two and three threads within a bound on preemptions,
//! with C11's orderings.
//!
//! A waiter polls, and yields, and so does a sleeper: loom has no way to block on a word. It gives
//! up an execution with too many steps, which is how a wait that nobody ends shows. Loom knows no
//! chance: bounded waits poll twice, timers are over at once.

use std::cell::{Cell, RefCell};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize as Count;
use std::sync::atomic::Ordering::{self, AcqRel, Relaxed, SeqCst};
use std::time::{Duration, Instant as Stopwatch};

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, fence};
use loom::thread::{self, JoinHandle};
use overlock_core::diagram::Transition;
use overlock_core::platform::{
    Atomic, Atomics, ByteLanes, Cpu, Deadline, Instant, Kick, Platform, Spin,
};
use overlock_core::raw::RawLock;
use overlock_core::sleep::rt_mutex::{PiError, PiPlatform};
use overlock_core::sleep::{Mutex, MutexInside, MutexNone, RtMutex};
use overlock_core::spin::{FastQueue, LazyFastQueue};

use crate::failure::{Failure, Kind, quiet};
use crate::pi::{self, Kernel, Sleepers};
use crate::scenario::{Scenario, Setting};
use crate::tables::Tables;
use crate::world::{Data, World};
use crate::wrap::{lanes, pi_of_run, platform_of_run, words};
use crate::{arena, coverage};

/// The platform of loom.
#[derive(Clone, Copy, Debug)]
pub struct Loom;

/// An atomic of loom's.
#[derive(Debug)]
pub struct Word<A>(A);

/// Loom takes sequentially consistent accesses for acquires and releases, no more. With a fence on
/// both sides they are at least what they should be (and a little more: what only an access proper
/// allows, loom does not find here).
fn fenced<R>(order: Ordering, work: impl FnOnce() -> R) -> R {
    if order != SeqCst {
        return work();
    }
    fence(SeqCst);
    let result = work();
    fence(SeqCst);
    result
}

words!(AtomicU8: u8, AtomicU16: u16, AtomicU32: u32, AtomicU64: u64, AtomicUsize: usize);
lanes!(Word<AtomicU16>: u16, u8; Word<AtomicU32>: u32, u16);

impl ByteLanes for Word<AtomicU32> {}

/// The most threads of a scenario that loom takes. It could take five; with four, no search ends.
pub const THREADS: usize = 3;

/// Scenarios that loom gives up on, and from how many preemptions on: it lets a thread that waits
/// load an old value again and again, or run alternately with another that waits for a third, and
/// takes that for no progress. The explorer and shuttle check them.
const BEYOND: &[(&str, &str, usize)] = &[
    (FastQueue::<Loom>::NAME, "one-node", 0),
    (FastQueue::<Loom>::NAME, "no-node", 0),
    (FastQueue::<Loom>::NAME, "no-node-try", 0),
    (LazyFastQueue::<Loom>::NAME, "one-node", 0),
    (LazyFastQueue::<Loom>::NAME, "no-node", 0),
    (LazyFastQueue::<Loom>::NAME, "no-node-try", 0),
    ("osq", "one-leaves", 0),
    ("osq", "two-leave", 0),
    (Mutex::<Loom>::NAME, "within", 2),
    (Mutex::<Loom>::NAME, "bump", 2),
    (MutexInside::<Loom>::NAME, "within", 2),
    (MutexInside::<Loom>::NAME, "bump", 2),
    (MutexNone::<Loom>::NAME, "within", 2),
    (MutexNone::<Loom>::NAME, "bump", 2),
];

/// With fewer preemptions than this loom can run a scenario of a lock.
pub fn bound(lock: &str, scenario: &str) -> usize {
    (BEYOND.iter())
        .find(|beyond| (beyond.0, beyond.1) == (lock, scenario))
        .map_or(usize::MAX, |beyond| beyond.2)
}

/// Whether loom can run a scenario of a lock.
pub fn takes(lock: &str, scenario: &Scenario) -> bool {
    scenario.threads <= THREADS
        && bound(lock, &scenario.name) > 0
        // Half of it is the kernel's, whose steps have an order that C11's atomics alone do not
        // give.
        && lock != RtMutex::<Loom>::NAME
}

/// Steps after which loom gives an execution up.
const STEPS: usize = 20_000;

/// A sleeper: the word, the thread, and whether it was kicked.
struct Sleeper {
    word: *const Word<AtomicU32>,
    thread: usize,
    kicked: bool,
}

struct Run {
    tables: *mut Tables<Loom>,
    setting: Setting,
    now: u64,
    threads: usize,
    sleepers: Vec<Sleeper>,
    pi: Sleepers,
}

thread_local! {
    static RUN: RefCell<Option<Run>> = const { RefCell::new(None) };
}

loom::thread_local! {
    static ME: Cell<usize> = Cell::new(0);
}

fn with<R>(work: impl FnOnce(&mut Run) -> R) -> R {
    RUN.with_borrow_mut(|run| work(run.as_mut().expect("an execution")))
}

fn tables() -> &'static Tables<Loom> {
    // SAFETY: they live until `end`, which the first thread calls when all others have ended.
    unsafe { &*with(|run| run.tables) }
}

fn me() -> usize {
    ME.with(Cell::get)
}

impl Atomics for Loom {
    type U8 = Word<AtomicU8>;
    type U16 = Word<AtomicU16>;
    type U32 = Word<AtomicU32>;
    type U64 = Word<AtomicU64>;
    type Usize = Word<AtomicUsize>;
}

impl Platform for Loom {
    platform_of_run!();

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
        let mut polled = false;
        loop {
            let seen = word.load(order);
            if done(seen) {
                return Ok(seen);
            }
            match limit {
                Spin::Forever => {}
                Spin::Polls(_) if polled => return Err(seen),
                Spin::Until(end) if polled => {
                    with(|run| run.now = run.now.max(end.as_nanos()));
                    return Err(seen);
                }
                Spin::Polls(_) | Spin::Until(_) => polled = true,
            }
            thread::yield_now();
        }
    }

    fn halt(word: &Word<AtomicU32>, expected: u32, until: Option<Deadline>) {
        let until = until.map(|end| end.instant::<Self>().as_nanos());
        // A kernel's lock makes the load and the entry one step. Here the entry comes first, and a
        // fence between it and the load, and between the waker's store and its search: so
        // one of the two sees the other.
        let thread = me();
        with(|run| {
            run.sleepers.push(Sleeper {
                word,
                thread,
                kicked: false,
            });
        });
        fence(SeqCst);
        if word.0.load(SeqCst) != expected {
            with(|run| run.sleepers.retain(|sleeper| sleeper.thread != thread));
            return;
        }
        loop {
            thread::yield_now();
            let kicked = with(|run| {
                (run.sleepers.iter()).any(|sleeper| sleeper.thread == thread && sleeper.kicked)
            });
            if kicked {
                break;
            }
            if let Some(end) = until {
                with(|run| run.now = run.now.max(end));
                break;
            }
        }
        with(|run| run.sleepers.retain(|sleeper| sleeper.thread != thread));
    }

    fn kick_at(word: *const Word<AtomicU32>, whom: Kick) {
        // Between the caller's change of the word and the search.
        fence(SeqCst);
        let most = match whom {
            Kick::One => 1,
            Kick::All | Kick::Apart => usize::MAX,
        };
        with(|run| {
            (run.sleepers.iter_mut())
                .filter(|sleeper| ptr::eq(sleeper.word, word) && !sleeper.kicked)
                .take(most)
                .for_each(|sleeper| sleeper.kicked = true);
        });
    }

    fn requeue(from: &Word<AtomicU32>, to: &Word<AtomicU32>) -> bool {
        // As in `kick_at`.
        fence(SeqCst);
        with(|run| {
            for sleeper in &mut run.sleepers {
                if ptr::eq(sleeper.word, from) && !sleeper.kicked {
                    sleeper.word = to;
                }
            }
        });
        true
    }

    fn light_barrier() {
        fence(SeqCst);
    }

    fn heavy_barrier() {
        fence(SeqCst);
    }

    fn preempted(_cpu: Cpu) -> bool {
        false
    }
}

pi_of_run!(Loom, false);

impl World for Loom {
    const NAME: &'static str = "loom";
    type Data = Raced;
    type Handle = JoinHandle<()>;

    fn spawn(body: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
        let number = with(|run| {
            run.threads += 1;
            run.threads
        });
        thread::spawn(move || {
            ME.with(|me| me.set(number));
            body();
        })
    }

    fn join(thread: JoinHandle<()>) {
        thread.join().expect("a thread that does not panic");
    }

    fn breathe() {
        // Loom finds unordered accesses without it, and each step costs executions.
    }
}

/// Data whose accesses loom judges.
#[derive(Debug)]
pub struct Raced(UnsafeCell<u32>);

// SAFETY: loom runs one thread at a time, and panics where two accesses are not ordered.
unsafe impl Send for Raced {}
// SAFETY: as above.
unsafe impl Sync for Raced {}

impl Data for Raced {
    fn new() -> Self {
        Raced(UnsafeCell::new(0))
    }

    fn write(&self) {
        // SAFETY: loom has just checked that no other access is under way, and none can begin
        // before this ends.
        self.0.with_mut(|data| unsafe { *data += 1 });
    }

    fn read(&self) {
        // SAFETY: as for `write`.
        self.0.with(|data| unsafe { data.read() });
    }
}

/// How far loom goes.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Preemptions in one execution.
    pub preemptions: usize,
    /// Time.
    pub time: Duration,
}

/// The result of loom.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Executions.
    pub executions: usize,
    /// Whether there are no others with at most so many preemptions.
    pub complete: bool,
}

/// Runs all executions of a scenario within the bounds.
///
/// # Errors
///
/// The first that fails.
pub fn check(scenario: &Scenario, bounds: Bounds) -> Result<Done, Box<Failure>> {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(bounds.preemptions);
    builder.max_branches = STEPS;
    // Also how often loom reads the clock.
    builder.checkpoint_interval = 500;
    builder.max_duration = Some(bounds.time);
    builder.max_threads = THREADS + 1;
    let count = Arc::new(Count::new(0));
    let (body, setting) = (scenario.body.clone(), scenario.setting);
    let counted = Arc::clone(&count);
    let start = Stopwatch::now();
    let result = quiet(|| {
        builder.check(move || {
            counted.fetch_add(1, AcqRel);
            begin(setting);
            body();
            end();
        });
    });
    let executions = count.load(Relaxed);
    if let Err(text) = result {
        // Loom's atomics in the tables belong to an execution that has failed: they are forgotten.
        RUN.set(None);
        let kind = if text.contains("maximum number of branches") {
            Kind::NoProgress
        } else if text.contains("deadlock") {
            Kind::Deadlock
        } else {
            Kind::Panic
        };
        return Err(Box::new(Failure::new(kind, text)));
    }
    Ok(Done {
        executions,
        complete: start.elapsed() < bounds.time,
    })
}

fn begin(setting: Setting) {
    arena::reset();
    RUN.set(Some(Run {
        tables: ptr::null_mut(),
        setting,
        now: 1_000_000,
        threads: 0,
        sleepers: Vec::new(),
        pi: Sleepers::default(),
    }));
    let tables = Box::into_raw(Box::new(Tables::new()));
    with(|run| run.tables = tables);
}

fn end() {
    if let Some(run) = RUN.take() {
        // SAFETY: from `Box::into_raw` in `begin`; all other threads have ended.
        drop(unsafe { Box::from_raw(run.tables) });
    }
}
