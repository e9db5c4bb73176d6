//! The two widths of a paravirtual ticket: how a word holds head and tail, and how a number is
//! drawn from it.
//!
//! Bit 0 of either half is free for the slow-path flag, so numbers go up by 2. With all numbers out
//! a held lock would look free; each width has its own way to refuse before that.

use core::fmt::Debug;
use core::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed};

use overlock_core::platform::{Atomic, Lanes, Platform, Spin};

/// The difference between a number and the next.
pub(super) const STEP: u32 = 2;

/// Bit 0 of head or tail: a waiter may sleep.
pub(super) const FLAG: u32 = 1;

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Small {}
    impl Sealed for super::Large {}
}

/// The width of a ticket: [`Small`] or [`Large`].
///
/// A word of either width is handled as a `u32` with the head in its low [`BITS`](Self::BITS) bits.
pub trait Width: sealed::Sealed + Debug + Send + Sync + 'static {
    /// The lock's word.
    type Word<P: Platform>: Atomic<Self::Int>;
    /// The word's value.
    type Int: Copy + Eq;
    /// Bits of a ticket.
    const BITS: u32;
    /// Numbers that may be out before a draw.
    const LIMIT: u32;

    #[doc(hidden)]
    #[track_caller]
    fn load<P: Platform>(word: &Self::Word<P>, order: Ordering) -> u32;
    /// (h, t) -> (h, t+2), acquire; returns the word from before. `None` where this width checks
    /// the limit before it draws, and it is reached.
    #[doc(hidden)]
    #[track_caller]
    fn draw<P: Platform>(word: &Self::Word<P>) -> Option<u32>;
    /// (h, t) -> (h+2, t), acquire and release, always a read-modify-write; returns the head from
    /// before with its flag.
    #[doc(hidden)]
    #[track_caller]
    fn serve<P: Platform>(word: &Self::Word<P>) -> u32;
    /// Sets bits, acquire and release, always a read-modify-write; returns the word from before.
    #[doc(hidden)]
    #[track_caller]
    fn raise<P: Platform>(word: &Self::Word<P>, bits: u32) -> u32;
    /// Whether `current` was replaced by `new`, with `success` ordering.
    #[doc(hidden)]
    #[track_caller]
    fn exchange<P: Platform>(
        word: &Self::Word<P>,
        current: u32,
        new: u32,
        success: Ordering,
    ) -> bool;
    /// [`Platform::wait_until`], each poll an acquire load.
    #[doc(hidden)]
    #[track_caller]
    fn wait_until<P: Platform>(
        word: &Self::Word<P>,
        limit: Spin,
        done: impl Fn(u32) -> bool,
    ) -> Result<u32, u32>;
}

/// 8-bit tickets in a 16-bit word: 127 threads may hold or wait.
///
/// The last free number is never drawn. That takes a check before each draw, so a number is drawn
/// by compare-exchange. So few numbers leave no room for drawing first and giving back a number
/// beyond the limit.
#[derive(Debug)]
pub struct Small;

/// 16-bit tickets in a 32-bit word: 28,672 threads may hold or wait.
///
/// A number is drawn by one addition, and a number drawn beyond the limit is given back. Seven
/// eighths of the 32,768 numbers are for waiters. The rest is for threads between drawing and
/// giving back: the lock would break only with 4,096 threads at that point at once.
#[derive(Debug)]
pub struct Large;

macro_rules! word_operations {
    ($word:ident, $int:ty, $half:ty) => {
        type Word<P: Platform> = P::$word;
        type Int = $int;
        const BITS: u32 = <$half>::BITS;

        #[inline(always)]
        fn load<P: Platform>(word: &P::$word, order: Ordering) -> u32 {
            u32::from(word.load(order))
        }

        #[inline(always)]
        fn serve<P: Platform>(word: &P::$word) -> u32 {
            u32::from(word.low_fetch_add(STEP as $half, AcqRel))
        }

        #[inline(always)]
        fn raise<P: Platform>(word: &P::$word, bits: u32) -> u32 {
            u32::from(word.fetch_or(bits as $int, AcqRel))
        }

        #[inline(always)]
        fn exchange<P: Platform>(
            word: &P::$word,
            current: u32,
            new: u32,
            success: Ordering,
        ) -> bool {
            word.compare_exchange(current as $int, new as $int, success, Relaxed)
                .is_ok()
        }

        #[inline(always)]
        fn wait_until<P: Platform>(
            word: &P::$word,
            limit: Spin,
            done: impl Fn(u32) -> bool,
        ) -> Result<u32, u32> {
            P::wait_until(word, Acquire, limit, |seen: $int| done(u32::from(seen)))
                .map(u32::from)
                .map_err(u32::from)
        }
    };
}

impl Width for Small {
    /// One number is never out, so that head and tail tell all from none.
    const LIMIT: u32 = 127;

    #[inline]
    fn draw<P: Platform>(word: &P::U16) -> Option<u32> {
        let mut seen = word.load(Relaxed);
        while out::<Self>(u32::from(seen)) < Self::LIMIT {
            let drawn = seen.wrapping_add((STEP << Self::BITS) as u16);
            match word.compare_exchange_weak(seen, drawn, Acquire, Relaxed) {
                Ok(old) => return Some(u32::from(old)),
                Err(now) => seen = now,
            }
        }
        None
    }

    word_operations!(U16, u16, u8);
}

impl Width for Large {
    /// Seven eighths of the numbers.
    const LIMIT: u32 = 28_672;

    #[inline(always)]
    fn draw<P: Platform>(word: &P::U32) -> Option<u32> {
        Some(word.fetch_add(STEP << Self::BITS, Acquire))
    }

    word_operations!(U32, u32, u16);
}

/// The head of `word` with its flag.
#[inline(always)]
pub(super) fn head<W: Width>(word: u32) -> u32 {
    word & mask::<W>()
}

/// The tail of `word` with its flag.
#[inline(always)]
pub(super) fn tail<W: Width>(word: u32) -> u32 {
    word >> W::BITS
}

/// The number that `word` serves.
#[inline(always)]
pub(super) fn served<W: Width>(word: u32) -> u32 {
    head::<W>(word) & !FLAG
}

/// The number that `word` gives to the next to draw.
#[inline(always)]
pub(super) fn next<W: Width>(word: u32) -> u32 {
    tail::<W>(word) & !FLAG
}

/// The number after `number`.
pub(super) fn after<W: Width>(number: u32) -> u32 {
    (number + STEP) & mask::<W>()
}

/// How many numbers are out.
pub(super) fn out<W: Width>(word: u32) -> u32 {
    (next::<W>(word).wrapping_sub(served::<W>(word)) & mask::<W>()) / STEP
}

/// Head and tail, with their flags, as a word.
pub(super) fn join<W: Width>(head: u32, tail: u32) -> u32 {
    head | tail << W::BITS
}

/// `word` with `tail`, its flag included, moved on by `steps`, forwards or backwards.
pub(super) fn move_tail<W: Width>(word: u32, steps: i32) -> u32 {
    let tail = tail::<W>(word).wrapping_add_signed(steps * STEP as i32);
    join::<W>(head::<W>(word), tail & mask::<W>())
}

const fn mask<W: Width>() -> u32 {
    (1 << W::BITS) - 1
}
