//! Atomic integers as a trait, so that a checker or a simulator can supply its own.

use core::fmt::Debug;
#[cfg(target_has_atomic = "64")]
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicUsize, Ordering};

/// An atomic integer holding a `T`; the operations are those of [`core::sync::atomic`].
#[allow(missing_docs)] // each is documented at its namesake in core
pub trait Atomic<T: Copy + Eq>: Send + Sync + Debug + 'static {
    /// Holds 0. A `const`, so that locks and tables can be statics.
    const ZERO: Self;

    fn new(value: T) -> Self;
    fn load(&self, order: Ordering) -> T;
    fn store(&self, value: T, order: Ordering);
    fn swap(&self, value: T, order: Ordering) -> T;
    fn compare_exchange(
        &self,
        current: T,
        new: T,
        success: Ordering,
        failure: Ordering,
    ) -> Result<T, T>;
    fn compare_exchange_weak(
        &self,
        current: T,
        new: T,
        success: Ordering,
        failure: Ordering,
    ) -> Result<T, T>;
    fn fetch_add(&self, value: T, order: Ordering) -> T;
    fn fetch_sub(&self, value: T, order: Ordering) -> T;
    fn fetch_or(&self, value: T, order: Ordering) -> T;
    fn fetch_and(&self, value: T, order: Ordering) -> T;
}

macro_rules! impl_atomic {
    ($($atomic:ty: $int:ty),*) => {$(
        impl Atomic<$int> for $atomic {
            const ZERO: Self = <$atomic>::new(0);

            #[inline(always)]
            fn new(value: $int) -> Self {
                <$atomic>::new(value)
            }
            #[inline(always)]
            fn load(&self, order: Ordering) -> $int {
                self.load(order)
            }
            #[inline(always)]
            fn store(&self, value: $int, order: Ordering) {
                self.store(value, order);
            }
            #[inline(always)]
            fn swap(&self, value: $int, order: Ordering) -> $int {
                self.swap(value, order)
            }
            #[inline(always)]
            fn compare_exchange(
                &self,
                current: $int,
                new: $int,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$int, $int> {
                self.compare_exchange(current, new, success, failure)
            }
            #[inline(always)]
            fn compare_exchange_weak(
                &self,
                current: $int,
                new: $int,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$int, $int> {
                self.compare_exchange_weak(current, new, success, failure)
            }
            #[inline(always)]
            fn fetch_add(&self, value: $int, order: Ordering) -> $int {
                self.fetch_add(value, order)
            }
            #[inline(always)]
            fn fetch_sub(&self, value: $int, order: Ordering) -> $int {
                self.fetch_sub(value, order)
            }
            #[inline(always)]
            fn fetch_or(&self, value: $int, order: Ordering) -> $int {
                self.fetch_or(value, order)
            }
            #[inline(always)]
            fn fetch_and(&self, value: $int, order: Ordering) -> $int {
                self.fetch_and(value, order)
            }
        }
    )*};
}

impl_atomic!(AtomicU8: u8, AtomicU16: u16, AtomicU32: u32, AtomicUsize: usize);
#[cfg(target_has_atomic = "64")]
impl_atomic!(AtomicU64: u64);

/// Sets words to 0. A word that is 0 is not written: a page that nobody has touched stays so.
pub fn clear<'a, T: Copy + Eq + Default, A: Atomic<T> + 'a>(words: impl Iterator<Item = &'a A>) {
    for word in words {
        if word.load(Relaxed) != T::default() {
            word.store(T::default(), Relaxed);
        }
    }
}
