//! The explorer: a model checker of our own, with blocking waits and weak memory.
//!
//! Checkers that only know atomics see each poll of a waiter as a step, and drown in them. Here a
//! [`wait_until`](Platform::wait_until) whose condition does not hold blocks the thread until a
//! word that it has read changes. So a wait that nobody ends shows as a deadlock. And a search over
//! all executions with a bounded number of departures ends. Departures are changes of thread, old
//! messages, early time-outs, and spurious wake-ups.
//!
//! | module | what is there |
//! |---|---|
//! | [`exec`] | threads as fibres, who runs next, what a step does |
//! | `handoff` | the recommended mutex's bound on how often a waiter is bypassed |
//! | [`memory`] | messages, views, happens-before |
//! | [`search`] | execution after execution |
//! | [`strategy`] | all executions within a bound, random walks, PCT, replay |

pub mod exec;
mod handoff;
pub mod memory;
pub mod search;
pub mod strategy;
#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::Ordering;

use overlock_core::platform::{
    Atomic, Atomics, ByteLanes, Cpu, Deadline, FutexPlatform, Instant, Kick, Lanes, Pause,
    Platform, Spin,
};
use overlock_core::sleep::rt_mutex::{PiError, PiPlatform};
use overlock_family::FamilyPlatform;

use crate::arena::{self, Placed};
use crate::pi::{self, Kernel, Sleepers};
use crate::tables::Tables;
use crate::world::{Data, World};
use exec::step;
use memory::{At, Plain};

/// The platform of the explorer.
#[derive(Clone, Copy, Debug)]
pub struct Explorer;

/// An atomic of the explorer. Its value is in the execution at hand; each execution starts with the
/// value that it was made with.
#[derive(Debug)]
pub struct Word<T> {
    /// Its [key](At::key), once it has been used. It must not move from then on.
    key: Cell<Option<u32>>,
    init: u64,
    _value: PhantomData<T>,
}

// SAFETY: a `Word` belongs to one operating-system thread, which runs all threads of an execution.
unsafe impl<T> Send for Word<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Word<T> {}

impl<T> Drop for Word<T> {
    fn drop(&mut self) {
        step::drop_word(self.at());
    }
}

impl<T> Word<T> {
    const fn with(init: u64) -> Self {
        Word {
            key: Cell::new(None),
            init,
            _value: PhantomData,
        }
    }

    /// Which one it is. In the arena that follows from its place: the same in each execution. In a
    /// box or a frame it follows from its turn among those at its first use: the same after the
    /// same choices.
    fn at(&self) -> At {
        let key = self.key.get().unwrap_or_else(|| match arena::offset(self) {
            Some(offset) => 2 * (offset / size_of::<Self>()) as u32,
            None => {
                OUTSIDE.set(OUTSIDE.get() + 1);
                2 * OUTSIDE.get() + 1
            }
        });
        self.key.set(Some(key));
        At {
            key,
            init: self.init,
        }
    }
}

thread_local! {
    /// How many atomics outside of the arena this execution has used.
    static OUTSIDE: Cell<u32> = const { Cell::new(0) };
    static PI: RefCell<Sleepers> = RefCell::default();
    static TABLES: Cell<Option<&'static Tables<Explorer>>> = const { Cell::new(None) };
}

/// An execution begins: the next atomics get the same places as in the one before.
pub(crate) fn rewind() {
    arena::reset();
    crate::world::forget_ranks();
    tables();
    OUTSIDE.set(0);
    PI.take();
}

fn tables() -> &'static Tables<Explorer> {
    TABLES.get().unwrap_or_else(|| {
        // One for each operating-system thread that explores, for as long as the program runs:
        // queue nodes are immortal.
        let tables = Placed::new(Tables::new()).share();
        arena::keep();
        TABLES.set(Some(tables));
        tables
    })
}

macro_rules! words {
    ($($int:ty),*) => {$(
        impl Atomic<$int> for Word<$int> {
            const ZERO: Self = Word::with(0);

            fn new(value: $int) -> Self {
                Word::with(value as u64)
            }
            #[track_caller]
            fn load(&self, order: Ordering) -> $int {
                step::load(self.at(), order) as $int
            }
            #[track_caller]
            fn store(&self, value: $int, order: Ordering) {
                step::store(self.at(), value as u64, order);
            }
            #[track_caller]
            fn swap(&self, value: $int, order: Ordering) -> $int {
                self.always(order, |_| value)
            }
            #[track_caller]
            fn compare_exchange(
                &self,
                current: $int,
                new: $int,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$int, $int> {
                step::update(self.at(), success, failure, |old| {
                    (old as $int == current).then_some(new as u64)
                })
                .map(|old| old as $int)
                .map_err(|old| old as $int)
            }
            #[track_caller]
            fn compare_exchange_weak(
                &self,
                current: $int,
                new: $int,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$int, $int> {
                let refuse = step::chance();
                step::update(self.at(), success, failure, |old| {
                    (!refuse && old as $int == current).then_some(new as u64)
                })
                .map(|old| old as $int)
                .map_err(|old| old as $int)
            }
            #[track_caller]
            fn fetch_add(&self, value: $int, order: Ordering) -> $int {
                self.always(order, |old| old.wrapping_add(value))
            }
            #[track_caller]
            fn fetch_sub(&self, value: $int, order: Ordering) -> $int {
                self.always(order, |old| old.wrapping_sub(value))
            }
            #[track_caller]
            fn fetch_or(&self, value: $int, order: Ordering) -> $int {
                self.always(order, |old| old | value)
            }
            #[track_caller]
            fn fetch_and(&self, value: $int, order: Ordering) -> $int {
                self.always(order, |old| old & value)
            }
        }

        impl Word<$int> {
            #[track_caller]
            fn always(&self, order: Ordering, change: impl FnOnce($int) -> $int) -> $int {
                match self.change(order, |old| Some(change(old))) {
                    Ok(old) | Err(old) => old,
                }
            }

            #[track_caller]
            fn change(
                &self,
                order: Ordering,
                change: impl FnOnce($int) -> Option<$int>,
            ) -> Result<$int, $int> {
                step::update(self.at(), order, Ordering::Relaxed, |old| {
                    change(old as $int).map(|new| new as u64)
                })
                .map(|old| old as $int)
                .map_err(|old| old as $int)
            }
        }
    )*};
}

words!(u8, u16, u32, u64, usize);

/// An operation on a lane is one access to the whole word, as its definition says.
macro_rules! lanes {
    ($word:ty, $half:ty) => {
        impl Lanes<$word, $half> for Word<$word> {
            fn join(low: $half, high: $half) -> $word {
                <$word>::from(low) | <$word>::from(high) << <$half>::BITS
            }
            fn low(word: $word) -> $half {
                word as $half
            }
            fn high(word: $word) -> $half {
                (word >> <$half>::BITS) as $half
            }
            fn add_low(word: $word, value: $half) -> $word {
                Self::join((word as $half).wrapping_add(value), Self::high(word))
            }
            #[track_caller]
            fn low_store(&self, value: $half, order: Ordering) {
                self.always(order, |word| Self::join(value, Self::high(word)));
            }
            #[track_caller]
            fn low_fetch_add(&self, value: $half, order: Ordering) -> $half {
                Self::low(self.always(order, |word| Self::add_low(word, value)))
            }
            #[track_caller]
            fn low_compare_exchange(
                &self,
                current: $half,
                new: $half,
                success: Ordering,
            ) -> Result<$half, $half> {
                self.change(success, |word| {
                    (Self::low(word) == current).then(|| Self::join(new, Self::high(word)))
                })
                .map(Self::low)
                .map_err(Self::low)
            }
            #[track_caller]
            fn high_swap(&self, value: $half, order: Ordering) -> $half {
                Self::high(self.always(order, |word| Self::join(Self::low(word), value)))
            }
        }
    };
}

lanes!(u16, u8);
lanes!(u32, u16);

impl ByteLanes for Word<u32> {
    #[track_caller]
    fn byte0_store(&self, value: u8, order: Ordering) {
        self.always(order, |word| word & !0xff | u32::from(value));
    }
    #[track_caller]
    fn byte1_store(&self, value: u8, order: Ordering) {
        self.always(order, |word| word & !0xff00 | u32::from(value) << 8);
    }
    #[track_caller]
    fn byte0_swap(&self, value: u8, order: Ordering) -> u8 {
        self.always(order, |word| word & !0xff | u32::from(value)) as u8
    }
    #[track_caller]
    fn byte0_compare_exchange(&self, current: u8, new: u8, success: Ordering) -> Result<u8, u8> {
        self.change(success, |word| {
            (word as u8 == current).then_some(word & !0xff | u32::from(new))
        })
        .map(|word| word as u8)
        .map_err(|word| word as u8)
    }
}

/// The time of a poll of a spin loop, in nanoseconds.
const POLL_NS: u64 = 10;

impl Atomics for Explorer {
    type U8 = Word<u8>;
    type U16 = Word<u16>;
    type U32 = Word<u32>;
    type U64 = Word<u64>;
    type Usize = Word<usize>;
}

impl Platform for Explorer {
    #[track_caller]
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
        let until = match limit {
            Spin::Forever => None,
            Spin::Polls(turns) => Some(step::time() + u64::from(turns.saturating_sub(1)) * POLL_NS),
            Spin::Until(end) => Some(end.as_nanos()),
        };
        let mut over = until.is_some_and(|until| until <= step::time());
        loop {
            step::begin_look();
            let seen = word.load(order);
            if done(seen) {
                return Ok(seen);
            }
            if over {
                return Err(seen);
            }
            over = step::watch(until);
        }
    }

    /// Between two polls others come first: what happens meanwhile is what it is for. A delay takes
    /// no time: what happens meanwhile may happen at the next poll as well.
    #[track_caller]
    fn pause(time: Pause) {
        match time {
            Pause::Iterations(_) => step::pause(),
            Pause::Nanos(nanos) => {
                step::pass(nanos);
                step::pause();
            }
            Pause::Delay(_) => {}
        }
    }

    #[track_caller]
    fn halt(word: &Word<u32>, expected: u32, until: Option<Deadline>) -> bool {
        step::sleeps_at(ptr::from_ref(word).addr(), word.at());
        let until = until.map(|end| end.instant::<Self>().as_nanos());
        step::halt(word.at(), expected.into(), until)
    }

    #[track_caller]
    fn kick(word: *const Word<u32>, whom: Kick) {
        // There is nobody to wake where nobody has ever slept.
        let Some(at) = step::slept_at(word.addr()) else {
            return step::breathe();
        };
        match whom {
            Kick::One => step::kick(at),
            Kick::All => step::kick_all(at),
        }
    }

    fn cpu() -> Cpu {
        Cpu(step::me() as u32 % 2)
    }

    fn preempted(cpu: Cpu) -> bool {
        cpu != Cpu::UNKNOWN && step::chance()
    }

    fn now() -> Instant {
        Instant::from_nanos(step::now())
    }

    fn parallelism() -> u32 {
        step::rules().parallelism
    }

    fn tables() -> overlock_core::tables::Tables<Self> {
        tables().view()
    }

    fn rank() -> u32 {
        crate::world::rank(Self::slot())
    }

    fn slot() -> Option<usize> {
        let me = step::me();
        (me < step::rules().slots).then_some(me)
    }
}

impl FutexPlatform for Explorer {
    /// By chance: it changes what a thread takes.
    fn is_realtime() -> bool {
        step::chance()
    }

    #[track_caller]
    fn requeue(from: &Word<u32>, to: &Word<u32>) -> bool {
        step::sleeps_at(ptr::from_ref(to).addr(), to.at());
        step::requeue(from.at(), to.at());
        true
    }

    fn light_barrier() {
        step::light_barrier();
    }

    fn heavy_barrier() {
        step::heavy_barrier();
    }

    fn socket() -> u32 {
        Self::cpu().0
    }
}

impl Kernel for Explorer {
    fn number() -> usize {
        step::me()
    }

    fn sleepers<R>(work: impl FnOnce(&mut Sleepers) -> R) -> R {
        PI.with_borrow_mut(work)
    }

    fn refuses() -> bool {
        step::chance()
    }

    fn granted(thread: usize) -> &'static Word<u32> {
        tables().granted(thread)
    }
}

impl PiPlatform for Explorer {
    fn thread_id() -> u32 {
        pi::id(Self::number())
    }

    fn lock_pi(word: &Word<u32>, until: Option<Deadline>) -> Result<(), PiError> {
        pi::lock::<Self>(word, until)
    }

    fn unlock_pi(word: &Word<u32>) {
        pi::unlock::<Self>(word);
    }

    fn was_before_fork(_id: u32) -> bool {
        false
    }
}

impl FamilyPlatform for Explorer {
    fn family_tables() -> overlock_family::tables::Tables<Self> {
        tables().family()
    }
}

impl World for Explorer {
    const NAME: &'static str = "explore";
    type Data = Checked;
    type Handle = usize;

    fn spawn(body: impl FnOnce() + Send + 'static) -> usize {
        step::spawn(Box::new(body))
    }

    fn join(thread: usize) {
        step::join(thread);
    }

    fn breathe() {
        step::breathe();
    }
}

/// Data whose every access is checked for a race.
#[derive(Debug, Default)]
pub struct Checked(RefCell<Plain>);

// SAFETY: all threads of an execution run on one operating-system thread, and no borrow outlives an
// access.
unsafe impl Send for Checked {}
// SAFETY: as above.
unsafe impl Sync for Checked {}

impl Data for Checked {
    fn new() -> Self {
        Self::default()
    }

    #[track_caller]
    fn write(&self) {
        step::access(&self.0, true);
    }

    #[track_caller]
    fn read(&self) {
        step::access(&self.0, false);
    }
}
