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
    /// Takes its buffered stores with it.
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
                if let Some((bits, value)) = engine::stores_of_unobserved(self.address()) {
                    return self.0.load(order) & !(bits as $int) | value as $int;
                }
                match engine::forwarded(self.address(), <$int>::MAX as u64) {
                    Some(value) => value as $int,
                    None => self.access(Access::Read, |word| word.load(order)),
                }
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
    ($word:ty, $whole:ty, $half:ty, $bits:literal) => {
        impl $word {
            /// Stores to these bits.
            fn store_part(&self, bits: $whole, value: $whole, order: Ordering) {
                debug_assert!(matches!(order, Relaxed | Ordering::Release));
                let change = |old| Some(old & !bits | value);
                self.set(bits, value, || {
                    let _ = self.0.fetch_update(order, Relaxed, change);
                });
            }

            /// Changes the word by one instruction, as x86 can a part of it. `Err` has the word
            /// that `change` refused; a refusal orders nothing.
            fn update(
                &self,
                order: Ordering,
                change: impl FnMut($whole) -> Option<$whole>,
            ) -> Result<$whole, $whole> {
                self.access(Access::Locked, |word| {
                    word.fetch_update(order, Relaxed, change)
                })
            }
        }

        impl Lanes<$whole, $half> for $word {
            fn join(low: $half, high: $half) -> $whole {
                <$whole>::from(high) << $bits | <$whole>::from(low)
            }
            fn low(word: $whole) -> $half {
                word as $half
            }
            fn high(word: $whole) -> $half {
                (word >> $bits) as $half
            }
            fn add_low(word: $whole, value: $half) -> $whole {
                Self::join(Self::low(word).wrapping_add(value), Self::high(word))
            }
            fn low_store(&self, value: $half, order: Ordering) {
                self.store_part(<$half>::MAX.into(), value.into(), order);
            }
            fn low_fetch_add(&self, value: $half, order: Ordering) -> $half {
                let old = self.update(order, |old| Some(Self::add_low(old, value)));
                Self::low(old.unwrap_or_else(|old| old))
            }
            fn low_compare_exchange(
                &self,
                current: $half,
                new: $half,
                order: Ordering,
            ) -> Result<$half, $half> {
                let old = self.update(order, |old| {
                    (Self::low(old) == current).then(|| Self::join(new, Self::high(old)))
                });
                old.map(Self::low).map_err(Self::low)
            }
            fn high_swap(&self, value: $half, order: Ordering) -> $half {
                let old = self.update(order, |old| Some(Self::join(Self::low(old), value)));
                Self::high(old.unwrap_or_else(|old| old))
            }
        }
    };
}

lanes!(U16, u16, u8, 8);
lanes!(U32, u32, u16, 16);

impl ByteLanes for U32 {
    fn byte0_store(&self, value: u8, order: Ordering) {
        self.store_part(0xff, value.into(), order);
    }
    fn byte1_store(&self, value: u8, order: Ordering) {
        self.store_part(0xff00, u32::from(value) << 8, order);
    }
    fn byte0_swap(&self, value: u8, order: Ordering) -> u8 {
        let old = self.update(order, |old| Some(old & !0xff | u32::from(value)));
        old.unwrap_or_else(|old| old) as u8
    }
    fn byte0_compare_exchange(&self, current: u8, new: u8, order: Ordering) -> Result<u8, u8> {
        let old = self.update(order, |old| {
            (old as u8 == current).then_some(old & !0xff | u32::from(new))
        });
        old.map(|old| old as u8).map_err(|old| old as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails where a part is changed by a load and a store. Outside of simulations words are shared
    /// by any number of threads.
    #[test]
    fn parts_are_changed_by_one_instruction() {
        let times = if cfg!(miri) { 100 } else { 100_000 };
        let word = U32::ZERO;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..times {
                    word.low_fetch_add(1, Relaxed);
                }
            });
            for _ in 0..times {
                word.fetch_add(1 << 16, Relaxed);
            }
        });
        let all = word.load(Relaxed);
        let halves = (all as u16, (all >> 16) as u16);
        assert_eq!(halves, (times as u16, times as u16));
    }

    /// Fails under Miri where an access has a weaker ordering than the given one.
    #[test]
    fn accesses_have_the_given_ordering() {
        let data = std::cell::UnsafeCell::new(0);
        struct Shared<'a>(&'a std::cell::UnsafeCell<u64>);
        // SAFETY: users of the cell hold the lock below.
        unsafe impl Sync for Shared<'_> {}
        let (lock, data) = (U16::ZERO, Shared(&data));
        let add = |data: &Shared<'_>| {
            for _ in 0..100 {
                while lock.low_compare_exchange(0, 1, Ordering::Acquire).is_err() {
                    std::thread::yield_now();
                }
                // SAFETY: since the compare-exchange above this thread is the only user until the
                // store below, and it has acquired from the one before.
                unsafe { *data.0.get() += 1 };
                lock.low_store(0, Ordering::Release);
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| add(&data));
            add(&data);
        });
        // SAFETY: the other thread has been joined.
        assert_eq!(unsafe { *data.0.get() }, 200);
    }
}
