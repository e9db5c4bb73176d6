//! Simulated atomics: words of memory whose every access goes through the engine.

use std::sync::atomic::{
    AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering, Ordering::Relaxed,
};

use overlock_core::platform::{Atomic, ByteLanes, Lanes};

use crate::cache::Access;
use crate::engine::{self, Store};

/// An atomic integer of a simulated machine, whose memory has total store order. Outside of
/// simulations, where a test prepares or checks words, it is an ordinary atomic with the given
/// ordering.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Word<A>(A);

/// 8 bits.
pub type U8 = Word<AtomicU8>;
/// 16 bits.
pub type U16 = Word<AtomicU16>;
/// 32 bits.
pub type U32 = Word<AtomicU32>;
/// 64 bits.
pub type U64 = Word<AtomicU64>;
/// The size of a pointer.
pub type Usize = Word<AtomicUsize>;

impl<A> Drop for Word<A> {
    /// Takes buffered stores with it.
    fn drop(&mut self) {
        engine::forget_stores(self.address());
    }
}

impl<A> Word<A> {
    pub(crate) fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    #[inline]
    fn access<R>(&self, access: Access, effect: impl FnOnce(&A) -> R) -> R {
        engine::access(self.address(), access, || effect(&self.0))
    }
}

impl U32 {
    /// Returns the value without an access: for the host, which compares a word while it puts a
    /// vCPU to sleep.
    pub(crate) fn peek(&self) -> u32 {
        self.0.load(Relaxed)
    }
}

macro_rules! word {
    ($($atomic:ty: $int:ty),*) => {$(
        impl Word<$atomic> {
            /// Sets some bits by a store. `effect` does so at once.
            #[inline]
            fn set(&self, bits: $int, value: $int, effect: impl FnOnce()) {
                /// # Safety
                ///
                /// `word` points to an atomic of this type.
                unsafe fn perform(word: *const (), bits: u64, value: u64) {
                    // SAFETY: the caller's.
                    let word = unsafe { &*word.cast::<$atomic>() };
                    // One thread runs the simulation, and no fibre runs now.
                    let old = word.load(Relaxed);
                    word.store(old & !(bits as $int) | value as $int & bits as $int, Relaxed);
                }
                let store = Store {
                    word: std::ptr::from_ref(&self.0).cast(),
                    perform,
                    bits: bits as u64,
                    value: value as u64,
                };
                engine::store(store, effect);
            }

            /// Loads in a simulation. Most polls are outside of it, and shorter without this.
            fn load_inside(&self, order: Ordering) -> $int {
                if let Some((bits, value)) = engine::stores_of_unobserved(self.address()) {
                    return self.0.load(order) & !(bits as $int) | value as $int;
                }
                match engine::forwarded(self.address(), <$int>::MAX as u64) {
                    Some(value) => value as $int,
                    None => self.access(Access::Read, |word| word.load(order)),
                }
            }
        }

        impl Atomic<$int> for Word<$atomic> {
            const ZERO: Self = Self(<$atomic>::new(0));

            fn new(value: $int) -> Self {
                Self(<$atomic>::new(value))
            }
            /// From the caller's store buffer if it is there.
            #[inline]
            fn load(&self, order: Ordering) -> $int {
                if engine::is_outside() {
                    return self.0.load(order);
                }
                self.load_inside(order)
            }
            fn store(&self, value: $int, order: Ordering) {
                // A sequentially consistent store is an exchange on x86.
                if order == Ordering::SeqCst {
                    self.access(Access::Locked, |word| word.store(value, order));
                } else {
                    self.set(<$int>::MAX, value, || self.0.store(value, order));
                }
            }
            fn compare_exchange(&self, current: $int, new: $int, success: Ordering, failure: Ordering) -> Result<$int, $int> {
                self.access(Access::Locked, |word| word.compare_exchange(current, new, success, failure))
            }
            fn compare_exchange_weak(&self, current: $int, new: $int, success: Ordering, failure: Ordering) -> Result<$int, $int> {
                self.compare_exchange(current, new, success, failure)
            }
            locked!($int: swap, fetch_add, fetch_sub, fetch_or, fetch_and);
        }
    )*};
}

macro_rules! locked {
    ($int:ty: $($operation:ident),*) => {$(
        fn $operation(&self, value: $int, order: Ordering) -> $int {
            self.access(Access::Locked, |word| word.$operation(value, order))
        }
    )*};
}

word!(AtomicU8: u8, AtomicU16: u16, AtomicU32: u32, AtomicU64: u64, AtomicUsize: usize);

macro_rules! lanes {
    ($word:ty, $whole:ty, $half:ty) => {
        impl Lanes<$whole, $half> for $word {
            fn join(low: $half, high: $half) -> $whole {
                <$whole>::from(high) << <$half>::BITS | <$whole>::from(low)
            }
            fn low(word: $whole) -> $half {
                word as $half
            }
            fn high(word: $whole) -> $half {
                (word >> <$half>::BITS) as $half
            }
            fn add_low(word: $whole, value: $half) -> $whole {
                Self::join((word as $half).wrapping_add(value), Self::high(word))
            }
            /// One instruction, as x86 has for a part of a word. A refusal orders nothing.
            fn update(
                &self,
                order: Ordering,
                change: impl FnMut($whole) -> Option<$whole>,
            ) -> Result<$whole, $whole> {
                self.access(Access::Locked, |word| {
                    word.fetch_update(order, Relaxed, change)
                })
            }
            /// A store.
            fn replace(&self, order: Ordering, change: impl Fn($whole) -> $whole) {
                debug_assert!(matches!(order, Relaxed | Ordering::Release));
                let value = change(0);
                self.set(!(value ^ change(<$whole>::MAX)), value, || {
                    let _ = self.0.fetch_update(order, Relaxed, |old| Some(change(old)));
                });
            }
        }
    };
}

lanes!(U16, u16, u8);
lanes!(U32, u32, u16);

impl ByteLanes for U32 {}

#[cfg(test)]
mod tests {
    use std::cell::UnsafeCell;

    use super::*;

    struct Shared(UnsafeCell<u32>);
    // SAFETY: users of the cell hold the lock of the test below.
    unsafe impl Sync for Shared {}

    /// A lock in the low half of a word, and a counter in the high half. Outside of simulations
    /// words are shared by any number of threads. Fails where a part is changed by a load and a
    /// store, and under Miri where an access has a weaker ordering than the given one.
    #[test]
    fn parts_are_changed_by_one_instruction_in_the_given_order() {
        let times = if cfg!(miri) { 100 } else { 20_000 };
        let (word, locked) = (U32::ZERO, Shared(UnsafeCell::new(0)));
        let add = |locked: &Shared| {
            for _ in 0..times {
                while word.low_compare_exchange(0, 1, Ordering::Acquire).is_err() {
                    std::thread::yield_now();
                }
                // SAFETY: since the compare-exchange above this thread is the only user until the
                // store below, and it has acquired from the one before.
                unsafe { *locked.0.get() += 1 };
                word.low_store(0, Ordering::Release);
                word.fetch_add(1 << 16, Relaxed);
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| add(&locked));
            add(&locked);
        });
        assert_eq!(locked.0.into_inner(), 2 * times);
        assert_eq!(word.load(Relaxed), (2 * times) << 16);
    }
}
