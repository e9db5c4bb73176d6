//! The place of the slow-path flag, which decides what an unlock may touch.

use core::fmt::Debug;
use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed};

use super::waiters;
use super::width::{FLAG, STEP, Width, after, join, next, served, tail};
use crate::tables::FamilyPlatform;
use overlock_core::stat::{self, Event, Latency};

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::HeadFlag {}
    impl Sealed for super::TailFlag {}
}

/// The place of the slow-path flag: [`HeadFlag`] or [`TailFlag`].
pub trait SlowFlag: sealed::Sealed + Debug + Send + Sync + 'static {
    #[doc(hidden)]
    const IN_TAIL: bool;

    /// The flag, as bits of the word.
    #[doc(hidden)]
    fn bits<W: Width>() -> u32 {
        join::<W>(
            FLAG * u32::from(!Self::IN_TAIL),
            FLAG * u32::from(Self::IN_TAIL),
        )
    }

    /// Serves the next number, and kicks its waiter if the flag says that it may sleep.
    #[doc(hidden)]
    fn release<P: FamilyPlatform, W: Width>(word: &W::Word<P>);

    /// Called by a waiter that has become the owner with `number`, and has loaded `seen`.
    #[doc(hidden)]
    fn acquired<P: FamilyPlatform, W: Width>(word: &W::Word<P>, number: u32, seen: u32);
}

/// The flag is bit 0 of the head, as since Linux 4.0: the release returns it, and does not touch
/// the lock after that.
#[derive(Debug)]
pub struct HeadFlag;

/// The flag is bit 0 of the tail, as published in 2013: the release loads it, and may write to
/// the lock, *after* the next owner may have freed it.
///
/// For comparison and study. It is sound in Rust, where a lock outlives the call that unlocks it,
/// and unsound for callers whose next owner may free the lock.
#[derive(Debug)]
pub struct TailFlag;

impl SlowFlag for HeadFlag {
    const IN_TAIL: bool = false;

    #[inline]
    fn release<P: FamilyPlatform, W: Width>(word: &W::Word<P>) {
        let key = ptr::from_ref(word).addr();
        // PU: (h|f, t) -> (h+2|f, t). From here on `word` may be freed: `key` is a number.
        let old = W::serve::<P>(word);
        if old & FLAG != 0 {
            released_slow::<P>(key, after::<W>(old & !FLAG));
        }
    }

    /// The last of the waiters clears the flag: only here is it known that no waiter sleeps.
    fn acquired<P: FamilyPlatform, W: Width>(word: &W::Word<P>, number: u32, seen: u32) {
        // A waiter that raises the flag after `seen` has a later number, and the exchange fails.
        if seen & FLAG != 0 {
            let next = after::<W>(number);
            // (n|f, n+2) -> (n, n+2). Relaxed: a read-modify-write, so the release sequence of PR
            // continues.
            let alone = join::<W>(number | FLAG, next);
            W::exchange::<P>(word, alone, join::<W>(number, next), Relaxed);
        }
    }
}

impl SlowFlag for TailFlag {
    const IN_TAIL: bool = true;

    #[inline]
    fn release<P: FamilyPlatform, W: Width>(word: &W::Word<P>) {
        let before = W::load::<P>(word, Relaxed);
        // PU: (h, t|f) -> (h+2, t|f).
        W::serve::<P>(word);
        // The fault of this form, here and below: the lock is no longer ours. PU too: acquire,
        // pairs with PR, whose entry must be found.
        if tail::<W>(W::load::<P>(word, Acquire)) & FLAG != 0 {
            Self::release_slow::<P, W>(word, before);
        }
    }

    /// The release clears the flag.
    #[inline(always)]
    fn acquired<P: FamilyPlatform, W: Width>(_: &W::Word<P>, _: u32, _: u32) {}
}

impl TailFlag {
    #[cold]
    fn release_slow<P: FamilyPlatform, W: Width>(word: &W::Word<P>, before: u32) {
        let number = after::<W>(served::<W>(before));
        if next::<W>(before) == number {
            // No thread waited when we loaded `before`. (n, n|f) -> (n, n): fails where a waiter
            // has come since.
            let flagged = join::<W>(number, tail::<W>(before));
            if W::exchange::<P>(word, flagged, join::<W>(number, number), Relaxed) {
                return stat::count::<P>(Event::ReleasedSlow);
            }
        }
        released_slow::<P>(ptr::from_ref(word).addr(), number);
    }
}

/// Kicks the waiter of `number`, if it sleeps.
#[cold]
fn released_slow<P: FamilyPlatform>(key: usize, number: u32) {
    stat::count::<P>(Event::ReleasedSlow);
    let kicked = stat::timed::<P, _>(Latency::PvLatencyKick, || {
        waiters::kick::<P>(key, number / STEP)
    });
    if kicked {
        stat::count::<P>(Event::ReleasedSlowKicked);
    }
}
