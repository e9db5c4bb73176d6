//! Atomics of other crates behind our trait.

/// Implements `Atomic` for `Word<A>`, a newtype of the calling module, for each atomic type, and
/// the lanes by their
macro_rules! words {
    ($($atomic:ty: $int:ty),*) => {$(
        impl ::overlock_core::platform::Atomic<$int> for Word<$atomic> {
            fn new(value: $int) -> Self {
                Word(<$atomic>::new(value))
            }
            fn load(&self, order: Ordering) -> $int {
                fenced(order, || self.0.load(order))
            }
            fn store(&self, value: $int, order: Ordering) {
                fenced(order, || self.0.store(value, order));
            }
            fn swap(&self, value: $int, order: Ordering) -> $int {
                fenced(order, || self.0.swap(value, order))
            }
            fn compare_exchange(
                &self,
                current: $int,
                new: $int,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$int, $int> {
                fenced(success, || self.0.compare_exchange(current, new, success, failure))
            }
            fn compare_exchange_weak(
                &self,
                current: $int,
                new: $int,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$int, $int> {
                fenced(success, || self.0.compare_exchange_weak(current, new, success, failure))
            }
            fn fetch_add(&self, value: $int, order: Ordering) -> $int {
                fenced(order, || self.0.fetch_add(value, order))
            }
            fn fetch_sub(&self, value: $int, order: Ordering) -> $int {
                fenced(order, || self.0.fetch_sub(value, order))
            }
            fn fetch_or(&self, value: $int, order: Ordering) -> $int {
                fenced(order, || self.0.fetch_or(value, order))
            }
            fn fetch_and(&self, value: $int, order: Ordering) -> $int {
                fenced(order, || self.0.fetch_and(value, order))
            }
        }
    )*};
}

macro_rules! lanes {
    ($($type:ty: $word:ty, $half:ty);*) => {$(
        impl ::overlock_core::platform::Lanes<$word, $half> for $type {
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

pub(crate) use {lanes, words};
