//! The atomics of shuttle behind our trait.

use std::sync::atomic::Ordering;

use overlock_core::platform::{Atomic, ByteLanes, Lanes};
use shuttle::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize};

/// An atomic of shuttle's: sequentially consistent, whatever the ordering.
#[derive(Debug)]
pub struct Word<A>(A);

/// Implements `Atomic` for `Word<A>` for each atomic type.
macro_rules! words {
    ($($atomic:ty: $int:ty),*) => {$(
        impl Atomic<$int> for Word<$atomic> {
            const ZERO: Self = Word(<$atomic>::new(0));

            fn new(value: $int) -> Self {
                Word(<$atomic>::new(value))
            }
            fn load(&self, order: Ordering) -> $int {
                self.0.load(order)
            }
            fn store(&self, value: $int, order: Ordering) {
                self.0.store(value, order);
            }
            fn swap(&self, value: $int, order: Ordering) -> $int {
                self.0.swap(value, order)
            }
            fn compare_exchange(
                &self,
                current: $int,
                new: $int,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$int, $int> {
                self.0.compare_exchange(current, new, success, failure)
            }
            fn compare_exchange_weak(
                &self,
                current: $int,
                new: $int,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$int, $int> {
                self.0.compare_exchange_weak(current, new, success, failure)
            }
            fn fetch_add(&self, value: $int, order: Ordering) -> $int {
                self.0.fetch_add(value, order)
            }
            fn fetch_sub(&self, value: $int, order: Ordering) -> $int {
                self.0.fetch_sub(value, order)
            }
            fn fetch_or(&self, value: $int, order: Ordering) -> $int {
                self.0.fetch_or(value, order)
            }
            fn fetch_and(&self, value: $int, order: Ordering) -> $int {
                self.0.fetch_and(value, order)
            }
        }
    )*};
}

/// Implements `Lanes` for words by their halves.
macro_rules! lanes {
    ($($type:ty: $word:ty, $half:ty);*) => {$(
        impl Lanes<$word, $half> for $type {
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
        }
    )*};
}

words!(AtomicU8: u8, AtomicU16: u16, AtomicU32: u32, AtomicU64: u64, AtomicUsize: usize);
lanes!(Word<AtomicU16>: u16, u8; Word<AtomicU32>: u32, u16);

impl ByteLanes for Word<AtomicU32> {}
