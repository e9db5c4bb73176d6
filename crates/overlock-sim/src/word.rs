//! The atomics of the platform: a word of memory whose every access goes through the engine.

use std::sync::atomic::{
    AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering, Ordering::Relaxed,
};

use overlock_core::platform::{Atomic, ByteLanes, Lanes, Zero};

use crate::cache::Access;
use crate::engine;

/// An atomic integer on a simulated machine. Outside of simulations, for those who set a scene or look at what is left, it is
/// an ordinary one.
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
    /// The value, without any access: for the host, which looks at a word while it puts a vCPU to sleep.
    pub(crate) fn peek(&self) -> u32 {
        self.0.load(Relaxed)
    }
}

macro_rules! word {
    ($($atomic:ty: $int:ty),*) => {$(
        impl Zero for Word<$atomic> {
            const ZERO: Self = Self(<$atomic>::new(0));
        }

        // Effects are relaxed whatever the order asked for: one thread of the operating system has all of them, one after another.
        impl Atomic<$int> for Word<$atomic> {
            fn new(value: $int) -> Self {
                Self(<$atomic>::new(value))
            }
            fn load(&self, _: Ordering) -> $int {
                self.access(Access::Read, |word| word.load(Relaxed))
            }
            fn store(&self, value: $int, order: Ordering) {
                // A sequentially consistent store is an exchange on x86.
                let access = if order == Ordering::SeqCst { Access::Locked } else { Access::Write };
                self.access(access, |word| word.store(value, Relaxed));
            }
            fn swap(&self, value: $int, _: Ordering) -> $int {
                self.access(Access::Locked, |word| word.swap(value, Relaxed))
            }
            fn compare_exchange(&self, current: $int, new: $int, _: Ordering, _: Ordering) -> Result<$int, $int> {
                self.access(Access::Locked, |word| word.compare_exchange(current, new, Relaxed, Relaxed))
            }
            fn compare_exchange_weak(&self, current: $int, new: $int, success: Ordering, failure: Ordering) -> Result<$int, $int> {
                self.compare_exchange(current, new, success, failure)
            }
            fn fetch_add(&self, value: $int, _: Ordering) -> $int {
                self.access(Access::Locked, |word| word.fetch_add(value, Relaxed))
            }
            fn fetch_sub(&self, value: $int, _: Ordering) -> $int {
                self.access(Access::Locked, |word| word.fetch_sub(value, Relaxed))
            }
            fn fetch_or(&self, value: $int, _: Ordering) -> $int {
                self.access(Access::Locked, |word| word.fetch_or(value, Relaxed))
            }
            fn fetch_and(&self, value: $int, _: Ordering) -> $int {
                self.access(Access::Locked, |word| word.fetch_and(value, Relaxed))
            }
        }
    )*};
}

word!(AtomicU8: u8, AtomicU16: u16, AtomicU32: u32, AtomicU64: u64, AtomicUsize: usize);

/// A change of a part of the word, as one instruction: what x86 has for it.
macro_rules! part {
    ($self:ident, $access:expr, $change:expr) => {
        $self.access($access, |word| {
            let old = word.load(Relaxed);
            if let Some(new) = $change(old) {
                word.store(new, Relaxed);
            }
            old
        })
    };
}

fn stores(order: Ordering) -> Access {
    debug_assert!(matches!(order, Relaxed | Ordering::Release));
    Access::Write
}

macro_rules! lanes {
    ($word:ty, $whole:ty, $half:ty, $bits:literal) => {
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
                part!(self, stores(order), |old| Some(Self::join(
                    value,
                    Self::high(old)
                )));
            }
            fn low_fetch_add(&self, value: $half, _: Ordering) -> $half {
                Self::low(part!(self, Access::Locked, |old| Some(Self::add_low(
                    old, value
                ))))
            }
            fn low_compare_exchange(
                &self,
                current: $half,
                new: $half,
                _: Ordering,
            ) -> Result<$half, $half> {
                let old = part!(self, Access::Locked, |old| {
                    (Self::low(old) == current).then(|| Self::join(new, Self::high(old)))
                });
                let old = Self::low(old);
                if old == current { Ok(old) } else { Err(old) }
            }
            fn high_swap(&self, value: $half, _: Ordering) -> $half {
                Self::high(part!(self, Access::Locked, |old| Some(Self::join(
                    Self::low(old),
                    value
                ))))
            }
        }
    };
}

lanes!(U16, u16, u8, 8);
lanes!(U32, u32, u16, 16);

impl ByteLanes for U32 {
    fn byte0_store(&self, value: u8, order: Ordering) {
        part!(self, stores(order), |old| Some(
            old & !0xff | u32::from(value)
        ));
    }
    fn byte1_store(&self, value: u8, order: Ordering) {
        part!(self, stores(order), |old| Some(
            old & !0xff00 | u32::from(value) << 8
        ));
    }
    fn byte0_swap(&self, value: u8, _: Ordering) -> u8 {
        part!(self, Access::Locked, |old| Some(
            old & !0xff | u32::from(value)
        )) as u8
    }
    fn byte0_compare_exchange(&self, current: u8, new: u8, _: Ordering) -> Result<u8, u8> {
        let old = part!(self, Access::Locked, |old: u32| {
            (old as u8 == current).then_some(old & !0xff | u32::from(new))
        }) as u8;
        if old == current { Ok(old) } else { Err(old) }
    }
}
