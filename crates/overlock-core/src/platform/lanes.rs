//! Atomic operations on a part of a word: published locks access a byte or a half of their word.
//!
//! Rust forbids racing atomic accesses of different sizes to the same bytes. So each operation here
//! is *defined* as one atomic operation on the whole word, the default body of its trait method.
//! Miri, the checkers, the simulator and machines other than x86-64 run that body. On x86-64 the
//! same transition is one narrower instruction in `asm!`, which refines the whole-word operation.
//! There a store, exchange, add or compare of a naturally aligned part is single-copy atomic. A
//! locked one is a full barrier like its wide form, and a plain one of any width is a release store
//! under TSO. A test compares both forms. `--cfg overlock_portable` selects the whole-word forms
//! everywhere.
//!
//! "Low" is the least significant part, wherever it lies in memory.

use core::sync::atomic::{AtomicU16, AtomicU32, Ordering};

use super::Atomic;

/// A word of type `W` made of two halves of type `H`.
pub trait Lanes<W: Copy + Eq, H: Copy + Eq>: Atomic<W> {
    /// Joins `low` and `high` to a word.
    fn join(low: H, high: H) -> W;
    /// The low half of `word`.
    fn low(word: W) -> H;
    /// The high half of `word`.
    fn high(word: W) -> H;
    /// The low half of the sum, no carry into the high half.
    fn add_low(word: W, value: H) -> W;

    /// One atomic read-modify-write of the whole word, retried while others change it. `Err`
    /// carries the word that `change` refused.
    #[inline]
    fn update(&self, success: Ordering, mut change: impl FnMut(W) -> Option<W>) -> Result<W, W> {
        let mut word = self.load(Ordering::Relaxed);
        while let Some(new) = change(word) {
            match self.compare_exchange_weak(word, new, success, Ordering::Relaxed) {
                Ok(old) => return Ok(old),
                Err(now) => word = now,
            }
        }
        Err(word)
    }

    /// Replaces some bits, which are the same ones whatever the word is. `order` is `Relaxed` or
    /// `Release`.
    #[inline]
    fn replace(&self, order: Ordering, change: impl Fn(W) -> W) {
        self.update(order, |word| Some(change(word))).ok();
    }

    /// Replaces the low half. `order` is `Relaxed` or `Release`.
    #[inline]
    fn low_store(&self, value: H, order: Ordering) {
        self.replace(order, |word| Self::join(value, Self::high(word)));
    }

    /// Adds to the low half, wrapping, no carry into the high half; returns the low half from
    /// before.
    #[inline]
    fn low_fetch_add(&self, value: H, order: Ordering) -> H {
        match self.update(order, |word| Some(Self::add_low(word, value))) {
            Ok(word) | Err(word) => Self::low(word),
        }
    }

    /// Replaces the low half if it is `current`; either way returns the low half from before.
    /// A failure orders nothing.
    #[inline]
    fn low_compare_exchange(&self, current: H, new: H, success: Ordering) -> Result<H, H> {
        self.update(success, |word| {
            (Self::low(word) == current).then(|| Self::join(new, Self::high(word)))
        })
        .map(Self::low)
        .map_err(Self::low)
    }

    /// Replaces the high half and returns the high half from before.
    #[inline]
    fn high_swap(&self, value: H, order: Ordering) -> H {
        match self.update(order, |word| Some(Self::join(Self::low(word), value))) {
            Ok(word) | Err(word) => Self::high(word),
        }
    }
}

/// Bytes of a 32-bit word: the locked byte (0) and the pending byte (1) of a queued spinlock, and
/// what lies beside a locked byte.
pub trait ByteLanes: Lanes<u32, u16> {
    /// Byte 0. `order` is `Relaxed` or `Acquire`.
    #[inline]
    fn byte0_load(&self, order: Ordering) -> u8 {
        self.load(order) as u8
    }

    /// Replaces byte 0. `order` is `Relaxed` or `Release`.
    #[inline]
    fn byte0_store(&self, value: u8, order: Ordering) {
        self.replace(order, |word| word & !0xff | u32::from(value));
    }

    /// Replaces byte 1. `order` is `Relaxed` or `Release`.
    #[inline]
    fn byte1_store(&self, value: u8, order: Ordering) {
        self.replace(order, |word| word & !0xff00 | u32::from(value) << 8);
    }

    /// Replaces byte 0 and returns byte 0 from before.
    #[inline]
    fn byte0_swap(&self, value: u8, order: Ordering) -> u8 {
        match self.update(order, |word| Some(word & !0xff | u32::from(value))) {
            Ok(word) | Err(word) => word as u8,
        }
    }

    /// Replaces byte 0 if it is `current`; either way returns byte 0 from before. A failure orders
    /// nothing.
    #[inline]
    fn byte0_compare_exchange(&self, current: u8, new: u8, success: Ordering) -> Result<u8, u8> {
        self.update(success, |word| {
            (word as u8 == current).then_some(word & !0xff | u32::from(new))
        })
        .map(|word| word as u8)
        .map_err(|word| word as u8)
    }
}

/// The x86-64 forms. Every `asm!` block leaves memory clobbered (no `nomem`), so the compiler
/// moves no access across it: a locked instruction serves every ordering, a plain store
/// serves `Relaxed` and `Release`.
macro_rules! asm_lanes {
    ($half:ty, $reg:ident, $modifier:literal, $acc:tt, $size:literal) => {
        #[cfg(all(target_arch = "x86_64", not(miri), not(overlock_portable)))]
        #[inline(always)]
        fn low_store(&self, value: $half, order: Ordering) {
            debug_assert!(matches!(order, Ordering::Relaxed | Ordering::Release));
            // SAFETY: the low half is the first in memory on x86-64 and lies within `self`; the
            // store refines the whole-word update that the trait defines (see the module's page).
            unsafe {
                core::arch::asm!(
                    concat!("mov ", $size, " ptr [{p}], {v", $modifier, "}"),
                    p = in(reg) self.as_ptr(),
                    v = in($reg) value,
                    options(nostack, preserves_flags)
                );
            }
        }

        #[cfg(all(target_arch = "x86_64", not(miri), not(overlock_portable)))]
        #[inline(always)]
        fn low_fetch_add(&self, value: $half, _order: Ordering) -> $half {
            let old: $half;
            // SAFETY: as for `low_store`; the instruction is locked.
            unsafe {
                core::arch::asm!(
                    concat!("lock xadd ", $size, " ptr [{p}], {v", $modifier, "}"),
                    p = in(reg) self.as_ptr(),
                    v = inout($reg) value => old,
                    options(nostack)
                );
            }
            old
        }

        #[cfg(all(target_arch = "x86_64", not(miri), not(overlock_portable)))]
        #[inline(always)]
        fn low_compare_exchange(
            &self,
            current: $half,
            new: $half,
            _success: Ordering,
        ) -> Result<$half, $half> {
            let old: $half;
            // SAFETY: as for `low_store`; the instruction is locked.
            unsafe {
                core::arch::asm!(
                    concat!("lock cmpxchg ", $size, " ptr [{p}], {new", $modifier, "}"),
                    p = in(reg) self.as_ptr(),
                    new = in($reg) new,
                    inout($acc) current => old,
                    options(nostack)
                );
            }
            if old == current { Ok(old) } else { Err(old) }
        }

        #[cfg(all(target_arch = "x86_64", not(miri), not(overlock_portable)))]
        #[inline(always)]
        fn high_swap(&self, value: $half, _order: Ordering) -> $half {
            let old: $half;
            // SAFETY: the high half lies half a word further, within `self`; `xchg` with memory
            // is locked, and it refines the whole-word update that the trait defines.
            unsafe {
                core::arch::asm!(
                    concat!("xchg ", $size, " ptr [{p} + {off}], {v", $modifier, "}"),
                    p = in(reg) self.as_ptr(),
                    off = const size_of::<$half>(),
                    v = inout($reg) value => old,
                    options(nostack, preserves_flags)
                );
            }
            old
        }
    };
}

impl Lanes<u16, u8> for AtomicU16 {
    #[inline(always)]
    fn join(low: u8, high: u8) -> u16 {
        u16::from(low) | u16::from(high) << 8
    }
    #[inline(always)]
    fn low(word: u16) -> u8 {
        word as u8
    }
    #[inline(always)]
    fn high(word: u16) -> u8 {
        (word >> 8) as u8
    }
    #[inline(always)]
    fn add_low(word: u16, value: u8) -> u16 {
        word & !0xff | u16::from((word as u8).wrapping_add(value))
    }

    asm_lanes!(u8, reg_byte, "", "al", "byte");
}

impl Lanes<u32, u16> for AtomicU32 {
    #[inline(always)]
    fn join(low: u16, high: u16) -> u32 {
        u32::from(low) | u32::from(high) << 16
    }
    #[inline(always)]
    fn low(word: u32) -> u16 {
        word as u16
    }
    #[inline(always)]
    fn high(word: u32) -> u16 {
        (word >> 16) as u16
    }
    #[inline(always)]
    fn add_low(word: u32, value: u16) -> u32 {
        word & !0xffff | u32::from((word as u16).wrapping_add(value))
    }

    asm_lanes!(u16, reg, ":x", "ax", "word");
}

impl ByteLanes for AtomicU32 {
    #[cfg(all(target_arch = "x86_64", not(miri), not(overlock_portable)))]
    #[inline(always)]
    fn byte0_load(&self, order: Ordering) -> u8 {
        debug_assert!(matches!(order, Ordering::Relaxed | Ordering::Acquire));
        let value: u8;
        // SAFETY: as for `byte0_store`; a load acquires on x86-64.
        unsafe {
            core::arch::asm!(
                "mov {v}, byte ptr [{p}]",
                p = in(reg) self.as_ptr(),
                v = out(reg_byte) value,
                options(nostack, preserves_flags)
            );
        }
        value
    }

    #[cfg(all(target_arch = "x86_64", not(miri), not(overlock_portable)))]
    #[inline(always)]
    fn byte0_store(&self, value: u8, order: Ordering) {
        debug_assert!(matches!(order, Ordering::Relaxed | Ordering::Release));
        // SAFETY: byte 0 is the first in memory on x86-64 and lies within `self`; the store refines
        // the whole-word update that the trait defines (see the module's page).
        unsafe {
            core::arch::asm!(
                "mov byte ptr [{p}], {v}",
                p = in(reg) self.as_ptr(),
                v = in(reg_byte) value,
                options(nostack, preserves_flags)
            );
        }
    }

    #[cfg(all(target_arch = "x86_64", not(miri), not(overlock_portable)))]
    #[inline(always)]
    fn byte1_store(&self, value: u8, order: Ordering) {
        debug_assert!(matches!(order, Ordering::Relaxed | Ordering::Release));
        // SAFETY: as for `byte0_store`; byte 1 lies within `self`.
        unsafe {
            core::arch::asm!(
                "mov byte ptr [{p} + 1], {v}",
                p = in(reg) self.as_ptr(),
                v = in(reg_byte) value,
                options(nostack, preserves_flags)
            );
        }
    }

    #[cfg(all(target_arch = "x86_64", not(miri), not(overlock_portable)))]
    #[inline(always)]
    fn byte0_swap(&self, value: u8, _order: Ordering) -> u8 {
        let old: u8;
        // SAFETY: as for `byte0_store`; `xchg` with memory is locked.
        unsafe {
            core::arch::asm!(
                "xchg byte ptr [{p}], {v}",
                p = in(reg) self.as_ptr(),
                v = inout(reg_byte) value => old,
                options(nostack, preserves_flags)
            );
        }
        old
    }

    #[cfg(all(target_arch = "x86_64", not(miri), not(overlock_portable)))]
    #[inline(always)]
    fn byte0_compare_exchange(&self, current: u8, new: u8, _success: Ordering) -> Result<u8, u8> {
        let old: u8;
        // SAFETY: as for `byte0_store`; the instruction is locked.
        unsafe {
            core::arch::asm!(
                "lock cmpxchg byte ptr [{p}], {new}",
                p = in(reg) self.as_ptr(),
                new = in(reg_byte) new,
                inout("al") current => old,
                options(nostack)
            );
        }
        if old == current { Ok(old) } else { Err(old) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An `AtomicU32` or `AtomicU16` that keeps the whole-word bodies of the lane traits.
    #[derive(Debug)]
    struct Whole<A>(A);

    macro_rules! whole {
        ($atomic:ty, $int:ty) => {
            impl Atomic<$int> for Whole<$atomic> {
                const ZERO: Self = Whole(<$atomic>::new(0));

                fn new(value: $int) -> Self {
                    Whole(<$atomic>::new(value))
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
        };
    }
    whole!(AtomicU16, u16);
    whole!(AtomicU32, u32);

    macro_rules! whole_lanes {
        ($atomic:ty, $word:ty, $half:ty) => {
            impl Lanes<$word, $half> for Whole<$atomic> {
                fn join(low: $half, high: $half) -> $word {
                    <$atomic>::join(low, high)
                }
                fn low(word: $word) -> $half {
                    <$atomic>::low(word)
                }
                fn high(word: $word) -> $half {
                    <$atomic>::high(word)
                }
                fn add_low(word: $word, value: $half) -> $word {
                    <$atomic>::add_low(word, value)
                }
            }
        };
    }
    whole_lanes!(AtomicU16, u16, u8);
    whole_lanes!(AtomicU32, u32, u16);
    impl ByteLanes for Whole<AtomicU32> {}

    /// The results of every lane operation, and the words after it, starting from `word`.
    fn halves<W: Copy + Eq, H: Copy + Eq, A: Lanes<W, H>>(
        word: W,
        value: H,
        current: H,
    ) -> ([W; 5], [H; 3]) {
        let run = |operation: &dyn Fn(&A)| {
            let atomic = A::new(word);
            operation(&atomic);
            atomic.load(Ordering::Relaxed)
        };
        let atomic = || A::new(word);
        let exchanged = match atomic().low_compare_exchange(current, value, Ordering::AcqRel) {
            Ok(old) => {
                assert!(old == current);
                old
            }
            Err(old) => {
                assert!(old != current);
                old
            }
        };
        (
            [
                run(&|a| a.low_store(value, Ordering::Release)),
                run(&|a| a.low_store(value, Ordering::Relaxed)),
                run(&|a| _ = a.low_fetch_add(value, Ordering::AcqRel)),
                run(&|a| _ = a.low_compare_exchange(current, value, Ordering::Acquire)),
                run(&|a| _ = a.high_swap(value, Ordering::AcqRel)),
            ],
            [
                atomic().low_fetch_add(value, Ordering::AcqRel),
                exchanged,
                atomic().high_swap(value, Ordering::AcqRel),
            ],
        )
    }

    fn bytes<A: ByteLanes>(word: u32, value: u8, current: u8) -> ([u32; 4], [u8; 3]) {
        let run = |operation: &dyn Fn(&A)| {
            let atomic = A::new(word);
            operation(&atomic);
            atomic.load(Ordering::Relaxed)
        };
        let exchanged = A::new(word).byte0_compare_exchange(current, value, Ordering::Acquire);
        assert_eq!(exchanged.is_ok(), word as u8 == current);
        (
            [
                run(&|a| a.byte0_store(value, Ordering::Release)),
                run(&|a| a.byte1_store(value, Ordering::Release)),
                run(&|a| _ = a.byte0_swap(value, Ordering::AcqRel)),
                run(&|a| _ = a.byte0_compare_exchange(current, value, Ordering::Acquire)),
            ],
            [
                A::new(word).byte0_load(Ordering::Acquire),
                A::new(word).byte0_swap(value, Ordering::AcqRel),
                exchanged.unwrap_or_else(|old| old),
            ],
        )
    }

    #[test]
    fn narrow_instructions_do_what_the_whole_word_operations_do() {
        for word in [0, 1, 0x00ff, 0x0100, 0xff00, 0xffff, 0x7f80, 0x1234_u16] {
            for value in [0, 1, 2, 0x7f, 0x80, 0xff_u8] {
                for current in [word as u8, 0, 3] {
                    assert_eq!(
                        halves::<_, _, AtomicU16>(word, value, current),
                        halves::<_, _, Whole<AtomicU16>>(word, value, current),
                    );
                }
            }
        }
        for word in [
            0,
            1,
            0xffff,
            0x1_0000,
            0xffff_ffff,
            0xffff_0000,
            0x8000_7fff_u32,
        ] {
            for value in [0, 1, 2, 0x7fff, 0x8000, 0xffff_u16] {
                for current in [word as u16, 0, 3] {
                    assert_eq!(
                        halves::<_, _, AtomicU32>(word, value, current),
                        halves::<_, _, Whole<AtomicU32>>(word, value, current),
                    );
                    assert_eq!(
                        bytes::<AtomicU32>(word, value as u8, current as u8),
                        bytes::<Whole<AtomicU32>>(word, value as u8, current as u8),
                    );
                }
            }
        }
    }

    #[test]
    fn no_carry_leaves_the_low_half() {
        let word = AtomicU32::new(0xabcd_ffff);
        assert_eq!(word.low_fetch_add(1, Ordering::Relaxed), 0xffff);
        assert_eq!(word.load(Ordering::Relaxed), 0xabcd_0000);
    }
}
