//! A platform for unit tests: one real thread plays all threads, and a script says what the others
//! do at each point where a lock calls its platform.
//!
//! A test registers steps with [`at`]. Each runs once, when the lock under test reaches that point:
//! in [`Point::Wait`] between a poll that was not accepted and the next, in [`Point::Halt`] just
//! before the halt loads its word (the moment at which a lost wake-up happens), at each barrier and
//! kick. A step plays another thread with [`as_thread`]. A wait that no step ends panics with
//! "stuck", and so does a halt, with "lost wake-up".
//!
//! Steps nest: the last to begin runs to its end first. A test whose threads must alternate uses
//! actors instead (see [`stage`]).

pub mod stage;
pub mod wall_clock;
pub mod watch;

use std::boxed::Box;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::thread_local;
use std::vec::Vec;

use crate::platform::{
    self, Atomic, Atomics, Cpu, Deadline, FutexPlatform, Instant, Kick, Pause, Platform, Spin,
};
use crate::tables::{Storage, Tables};

/// The toy platform.
#[derive(Debug)]
pub struct Toy;

/// A point where a lock calls its platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// A poll in `wait_until` was not accepted.
    Wait,
    /// A poll in `wait_until` was accepted, and `wait_until` is about to return.
    Seen,
    /// `spin_first` was called: the thread is about to sleep, and has not said so yet.
    Spin,
    /// `halt` was called and has not loaded its word yet.
    Halt,
    /// `kick` or `requeue` was called.
    Kick,
    /// `spread` was called: a table is about to be searched.
    Hash,
    /// `light_barrier` was called.
    Light,
    /// `heavy_barrier` was called.
    Heavy,
}

/// Threads that a test can play; thread numbers above have no slot.
pub const SLOTS: usize = 8;

/// New tables, for a test.
fn tables<P: Platform>() -> Tables<P> {
    Tables::new(Box::leak(Box::<Storage<P, SLOTS>>::default()))
}

type Action = Box<dyn FnOnce()>;

thread_local! {
    static TABLES: Tables<Toy> = tables();
    static SCRIPT: RefCell<VecDeque<(Point, Action)>> = const { RefCell::new(VecDeque::new()) };
    static THREAD: Cell<usize> = const { Cell::new(0) };
    static CPU: Cell<Option<u32>> = const { Cell::new(None) };
    static CLOCK: Cell<u64> = const { Cell::new(0) };
    static YIELD: Cell<Option<Action>> = const { Cell::new(None) };
    /// The wall clock minus the monotonic clock.
    static WALL: Cell<i64> = const { Cell::new(0) };
    static KICKS: Cell<usize> = const { Cell::new(0) };
    static HALTS: Cell<usize> = const { Cell::new(0) };
    static FIRST_SPINS: Cell<usize> = const { Cell::new(0) };
    static REALTIME: Cell<bool> = const { Cell::new(false) };
    static RANK: Cell<u32> = const { Cell::new(0) };
    static SPIN_NS: Cell<u64> = const { Cell::new(5_000) };
    static SPINS: RefCell<Vec<(u64, bool)>> = const { RefCell::new(Vec::new()) };
}

/// Adds a step: the next time that a lock reaches `point`, after all earlier steps for it, `step`
/// runs.
pub fn at(point: Point, step: impl FnOnce() + 'static) {
    SCRIPT.with_borrow_mut(|script| script.push_back((point, Box::new(step))));
}

/// Runs `play` as thread number `thread` (on the CPU of the same number, unless [`on_cpu`] says
/// other).
pub fn as_thread<R>(thread: usize, play: impl FnOnce() -> R) -> R {
    let before = THREAD.replace(thread);
    let result = play();
    THREAD.set(before);
    result
}

/// Moves the wall clock by `by` nanoseconds.
pub fn set_wall_clock(by: i64) {
    WALL.set(WALL.get() + by);
}

/// Sets the rank of the calling actor, or of all threads of the script.
pub fn set_rank(rank: u32) {
    RANK.set(rank);
}

/// Puts every thread onto `cpu`.
pub fn on_cpu(cpu: u32) {
    CPU.set(Some(cpu));
}

/// The calling thread's time slice is over: where it next offers its CPU, `meanwhile` runs.
pub fn end_slice(meanwhile: impl FnOnce() + 'static) {
    YIELD.set(Some(Box::new(meanwhile)));
}

/// How often a lock has called `kick` so far in this test.
pub fn kicks() -> usize {
    KICKS.get()
}

/// How often a halt has really slept, that is, found its word as expected.
pub fn halts() -> usize {
    HALTS.get()
}

/// How many threads have been about to sleep on a new object.
pub fn first_spins() -> usize {
    FIRST_SPINS.get()
}

/// From now on the calling thread's spins are no use.
pub fn stop_spins() {
    SPIN_NS.set(0);
}

/// From now on the calling thread has a real-time priority.
pub fn be_realtime() {
    REALTIME.set(true);
}

/// The spins of the calling thread that its platform was told of: their lengths, and whether they
/// ended with the lock.
pub fn spins() -> Vec<(u64, bool)> {
    SPINS.take()
}

/// Steps that have not run; a test ends by asserting that there are none.
pub fn left() -> usize {
    SCRIPT.with_borrow(VecDeque::len)
}

fn step(point: Point) -> bool {
    if stage::paused(point) {
        return true;
    }
    let step = SCRIPT.with_borrow_mut(|script| {
        let index = script.iter().position(|(at, _)| *at == point)?;
        script.remove(index)
    });
    match step {
        Some((_, play)) => {
            play();
            true
        }
        None => false,
    }
}

impl Atomics for Toy {
    type U8 = AtomicU8;
    type U16 = AtomicU16;
    type U32 = AtomicU32;
    type U64 = AtomicU64;
    type Usize = AtomicUsize;
}

impl Platform for Toy {
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
        let mut polls = 0;
        loop {
            let seen = word.load(order);
            if done(seen) {
                step(Point::Seen);
                return Ok(seen);
            }
            polls += 1;
            match limit {
                Spin::Polls(most) if polls >= most => return Err(seen),
                Spin::Until(end) if Self::now() >= end => return Err(seen),
                _ => {}
            }
            if !step(Point::Wait) {
                match limit {
                    Spin::Polls(_) => return Err(seen),
                    Spin::Until(end) => CLOCK.set(end.as_nanos()),
                    Spin::Forever => panic!("stuck: no step will change {word:?}"),
                }
            }
        }
    }

    fn spin_first(_object: usize, is_new: bool, word: &Self::U32, expected: u32) -> bool {
        FIRST_SPINS.set(FIRST_SPINS.get() + usize::from(is_new));
        step(Point::Spin);
        word.load(Ordering::Relaxed) != expected
    }

    // One step: Miri would take minutes for a step each nanosecond.
    fn pause(time: Pause) {
        let nanos = match time {
            Pause::Iterations(iterations) => iterations.into(),
            Pause::Nanos(nanos) | Pause::Delay(nanos) => nanos,
        };
        CLOCK.set(CLOCK.get() + nanos);
        step(Point::Wait);
    }

    fn halt(word: &AtomicU32, expected: u32, until: Option<Deadline>) -> bool {
        step(Point::Halt);
        if word.load(Ordering::Relaxed) != expected {
            return false;
        }
        HALTS.set(HALTS.get() + 1);
        if stage::slept(word) {
            return until.is_none_or(|until| !until.is_over::<Toy>());
        }
        // Asleep: another thread's step may still kick.
        while step(Point::Wait) {
            if word.load(Ordering::Relaxed) != expected {
                return true;
            }
        }
        match until {
            Some(end) => CLOCK.set(end.instant::<Toy>().as_nanos().max(CLOCK.get())),
            None => panic!("lost wake-up: no step will kick {word:?}"),
        }
        false
    }

    fn kick(word: *const AtomicU32, whom: Kick) {
        KICKS.set(KICKS.get() + 1);
        step(Point::Kick);
        stage::kicked(word, whom);
    }

    fn rank() -> u32 {
        RANK.get()
    }

    fn cpu() -> Cpu {
        Cpu(CPU.get().unwrap_or(THREAD.get() as u32))
    }

    fn preempted(cpu: Cpu) -> bool {
        cpu == Self::cpu()
    }

    fn now() -> Instant {
        CLOCK.set(CLOCK.get() + 1);
        Instant::from_nanos(CLOCK.get())
    }

    fn wall_clock() -> u64 {
        Self::now().as_nanos().saturating_add_signed(WALL.get())
    }

    fn parallelism() -> u32 {
        2
    }

    fn tables() -> Tables<Toy> {
        stage::tables().unwrap_or_else(|| TABLES.with(|tables| *tables))
    }

    fn slot() -> Option<usize> {
        (THREAD.get() < SLOTS).then(|| THREAD.get())
    }

    fn spread(address: usize) -> u32 {
        step(Point::Hash);
        platform::spread(address)
    }
}

impl FutexPlatform for Toy {
    fn requeue(from: &AtomicU32, to: &AtomicU32) -> bool {
        step(Point::Kick);
        stage::requeued(from, to)
    }

    fn yield_slice(_now: u64) -> bool {
        YIELD.take().map(|meanwhile| meanwhile()).is_some()
    }

    fn spin_before_sleep(_lock: &AtomicU32) -> u64 {
        SPIN_NS.get()
    }

    fn learn_spin(_lock: &AtomicU32, ticks: u64, acquired: bool) {
        SPINS.with_borrow_mut(|spins| spins.push((ticks, acquired)));
    }

    fn is_realtime() -> bool {
        REALTIME.get()
    }

    fn light_barrier() {
        step(Point::Light);
    }

    fn heavy_barrier() {
        step(Point::Heavy);
    }

    fn socket() -> u32 {
        Self::cpu().0 % 2
    }
}
