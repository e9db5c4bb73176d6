//! The toy platform with atomics that report every access. For races between two accesses that no
//! call to the platform separates, and for accesses that come too late.
//!
//! A test names the lock with [`watch`]. From then on its steps ([`before`], [`after`]) run around
//! accesses to the lock's bytes. [`freed`] starts a record of them: each would touch memory that
//! belongs to another object.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::thread_local;
use std::vec::Vec;

use super::{Action, Box, Toy};
use crate::platform::{
    Atomic, Atomics, ByteLanes, Cpu, Deadline, FutexPlatform, Instant, Kick, Lanes, Pause,
    Platform, Spin,
};
use crate::tables::Tables;

/// The toy platform, watched.
#[derive(Debug)]
pub struct Watch;

/// An atomic that reports each access. An operation on a lane is one access.
#[derive(Debug)]
#[repr(transparent)] // so that its address is that of the inner atomic
pub struct Watched<A>(A);

/// A kind of access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the names of operations
pub enum Access {
    Load,
    Store,
    Swap,
    /// A compare-exchange, whether or not it succeeds.
    Exchange,
    Add,
    Or,
    And,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    Before,
    After,
}

thread_local! {
    static RANGE: RefCell<Range<usize>> = const { RefCell::new(0..0) };
    static STEPS: RefCell<VecDeque<(When, Access, Action)>> = const { RefCell::new(VecDeque::new()) };
    static FREED: Cell<bool> = const { Cell::new(false) };
    static TOUCHES: RefCell<Vec<Access>> = const { RefCell::new(Vec::new()) };
    static TABLES: Tables<Watch> = super::tables();
}

/// From now on, steps run around accesses to `lock`'s bytes.
pub fn watch<T>(lock: &T) {
    let start = std::ptr::from_ref(lock).addr();
    RANGE.set(start..start + size_of::<T>());
}

/// Runs `step` just before the next access of this kind, after all earlier steps for it.
pub fn before(access: Access, step: impl FnOnce() + 'static) {
    STEPS.with_borrow_mut(|steps| steps.push_back((When::Before, access, Box::new(step))));
}

/// Runs `step` just after the next access of this kind, after all earlier steps for it.
pub fn after(access: Access, step: impl FnOnce() + 'static) {
    STEPS.with_borrow_mut(|steps| steps.push_back((When::After, access, Box::new(step))));
}

/// From now on the lock's memory belongs to another object, and accesses are recorded.
pub fn freed() {
    FREED.set(true);
}

/// The accesses since [`freed`].
pub fn touches() -> Vec<Access> {
    TOUCHES.take()
}

/// Steps that have not run.
pub fn left() -> usize {
    STEPS.with_borrow(VecDeque::len)
}

fn step(when: When, access: Access) {
    let step = STEPS.with_borrow_mut(|steps| {
        let index = steps
            .iter()
            .position(|(w, a, _)| (*w, *a) == (when, access))?;
        steps.remove(index)
    });
    if let Some((_, _, play)) = step {
        play();
    }
}

impl<A> Watched<A> {
    fn access<R>(&self, access: Access, work: impl FnOnce(&A) -> R) -> R {
        let here = std::ptr::from_ref(self).addr();
        if !RANGE.with_borrow(|range| range.contains(&here)) {
            return work(&self.0);
        }
        step(When::Before, access);
        if FREED.get() {
            TOUCHES.with_borrow_mut(|touches| touches.push(access));
        }
        let result = work(&self.0);
        step(When::After, access);
        result
    }
}

impl<T: Copy + Eq, A: Atomic<T>> Atomic<T> for Watched<A> {
    const ZERO: Self = Watched(A::ZERO);

    fn new(value: T) -> Self {
        Watched(A::new(value))
    }
    fn load(&self, order: Ordering) -> T {
        self.access(Access::Load, |a| a.load(order))
    }
    fn store(&self, value: T, order: Ordering) {
        self.access(Access::Store, |a| a.store(value, order));
    }
    fn swap(&self, value: T, order: Ordering) -> T {
        self.access(Access::Swap, |a| a.swap(value, order))
    }
    fn compare_exchange(
        &self,
        current: T,
        new: T,
        success: Ordering,
        failure: Ordering,
    ) -> Result<T, T> {
        self.access(Access::Exchange, |a| {
            a.compare_exchange(current, new, success, failure)
        })
    }
    fn compare_exchange_weak(
        &self,
        current: T,
        new: T,
        success: Ordering,
        failure: Ordering,
    ) -> Result<T, T> {
        self.access(Access::Exchange, |a| {
            a.compare_exchange_weak(current, new, success, failure)
        })
    }
    fn fetch_add(&self, value: T, order: Ordering) -> T {
        self.access(Access::Add, |a| a.fetch_add(value, order))
    }
    fn fetch_sub(&self, value: T, order: Ordering) -> T {
        self.access(Access::Add, |a| a.fetch_sub(value, order))
    }
    fn fetch_or(&self, value: T, order: Ordering) -> T {
        self.access(Access::Or, |a| a.fetch_or(value, order))
    }
    fn fetch_and(&self, value: T, order: Ordering) -> T {
        self.access(Access::And, |a| a.fetch_and(value, order))
    }
}

impl<W: Copy + Eq, H: Copy + Eq, A: Lanes<W, H>> Lanes<W, H> for Watched<A> {
    fn join(low: H, high: H) -> W {
        A::join(low, high)
    }
    fn low(word: W) -> H {
        A::low(word)
    }
    fn high(word: W) -> H {
        A::high(word)
    }
    fn add_low(word: W, value: H) -> W {
        A::add_low(word, value)
    }
    fn low_store(&self, value: H, order: Ordering) {
        self.access(Access::Store, |a| a.low_store(value, order));
    }
    fn low_fetch_add(&self, value: H, order: Ordering) -> H {
        self.access(Access::Add, |a| a.low_fetch_add(value, order))
    }
    fn low_compare_exchange(&self, current: H, new: H, success: Ordering) -> Result<H, H> {
        self.access(Access::Exchange, |a| {
            a.low_compare_exchange(current, new, success)
        })
    }
    fn high_swap(&self, value: H, order: Ordering) -> H {
        self.access(Access::Swap, |a| a.high_swap(value, order))
    }
}

impl<A: ByteLanes> ByteLanes for Watched<A> {
    fn byte0_store(&self, value: u8, order: Ordering) {
        self.access(Access::Store, |a| a.byte0_store(value, order));
    }
    fn byte1_store(&self, value: u8, order: Ordering) {
        self.access(Access::Store, |a| a.byte1_store(value, order));
    }
    fn byte0_swap(&self, value: u8, order: Ordering) -> u8 {
        self.access(Access::Swap, |a| a.byte0_swap(value, order))
    }
    fn byte0_compare_exchange(&self, current: u8, new: u8, success: Ordering) -> Result<u8, u8> {
        self.access(Access::Exchange, |a| {
            a.byte0_compare_exchange(current, new, success)
        })
    }
}

impl Atomics for Watch {
    type U8 = Watched<AtomicU8>;
    type U16 = Watched<AtomicU16>;
    type U32 = Watched<AtomicU32>;
    type U64 = Watched<AtomicU64>;
    type Usize = Watched<AtomicUsize>;
}

impl Platform for Watch {
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
        Toy::wait_until(word, order, limit, done)
    }

    fn pause(time: Pause) {
        Toy::pause(time);
    }

    fn halt(word: &Watched<AtomicU32>, expected: u32, until: Option<Deadline>) -> bool {
        Toy::halt(&word.0, expected, until)
    }

    fn kick(word: *const Watched<AtomicU32>, whom: Kick) {
        Toy::kick(word.cast(), whom);
    }

    fn cpu() -> Cpu {
        Toy::cpu()
    }

    fn preempted(cpu: Cpu) -> bool {
        Toy::preempted(cpu)
    }

    fn now() -> Instant {
        Toy::now()
    }

    fn parallelism() -> u32 {
        Toy::parallelism()
    }

    fn tables() -> Tables<Watch> {
        TABLES.with(|tables| *tables)
    }

    fn slot() -> Option<usize> {
        Toy::slot()
    }

    fn spread(address: usize) -> u32 {
        Toy::spread(address)
    }
}

impl FutexPlatform for Watch {
    fn light_barrier() {
        Toy::light_barrier();
    }

    fn heavy_barrier() {
        Toy::heavy_barrier();
    }
}
