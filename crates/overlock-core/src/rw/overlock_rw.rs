//! The reader-writer lock that we recommend: `overlock::RwLock` is built on it, and with its readers always visible
//! it is the per-CPU reader-writer semaphore, `overlock::PerCpuRwLock`.
//!
//! A lock whose readers count themselves in one word scales no better than a mutex: the word's cache line goes from CPU to
//! CPU. And a lock that keeps its waiters in order collapses where threads outnumber CPUs. So this one is made of two parts:
//!
//! 1. **The gate**, an [`Overlock`] that a writer holds while it waits for the readers to leave and while it
//!    writes. Everything that is known there about waiting under overcommit (spinning while it pays,
//!    turns, sleeping by timers, a bound on being passed) holds for readers and writers alike.
//! 2. **Readers in two modes.** A reader *counts* itself in the lock's word. Where the lock is read for long without a write, it
//!    becomes *biased*: a reader then writes the lock's id into an entry of its own thread's slot, which is
//!    a plain store and a light barrier, and readers of any number run without touching a shared line. A writer
//!    ends the bias: it pays for a heavy barrier and looks through the slots (Dice and Kogan, "BRAVO: Biased Locking for
//!    Reader-Writer Locks", 2019, with the fence moved to the writer; the kernel's per-CPU reader-writer semaphore does the same
//!    with RCU in the barrier's place).
//!
//! # Layout
//!
//! 40 bytes.
//!
//! | field | who writes it |
//! |---|---|
//! | `gate: Overlock` | who wants to write, and readers that found it closed |
//! | `readers: u64` | low half: counted readers, and those that are just finding the gate closed; high half: how many have ever counted themselves, modulo 2^32 |
//! | `bias: u32` | 0 until the lock is biased for the first time, then its id; with the top bit while it is not biased. Switched on by who holds the lock, off by who holds the gate |
//! | `drainer: u16` | the holder of the gate that sleeps until readers have left |
//! | `upgradable: u8` | 1 from the acquisition of an upgradable reader to its release; set by the holder of the gate |
//! | `quiet: u8` | 0 by each writer when it leaves; 1 by readers now and then: nobody has written since |
//! | `waiting: list` | who waits for the upgradable reader to leave |
//!
//! # States
//!
//! ```text
//!                 reader: readers + 1, gate open              reader of a biased lock: entry = id, bias still on
//!   free ---------------------------------------> read <---------------------------------------- free
//!     |                                            |   ^
//!     | writer: gate closed                        |   +-- reader that found the gate closed: passes it itself
//!     v                                            v
//!   draining: no new readers  ------------------------> written: no reader left ---gate opened---> free
//!     |                        |                           |
//!     |                        |                           +--downgrade: readers + 1, gate opened---> read
//!     |                        +--at its limit: gate opened---> read
//!     |
//!     +--there is an upgradable reader: gate opened, in the list until that has left
//! ```
//!
//! What each of them does, step by step:
//!
//! ```text
//! a counted reader      gate open: readers + 1. Gate closed: in vain, readers - 1; it passes the gate: readers + 1
//!     leaves            readers - 1; where a drainer sleeps, kicks it
//! a visible reader      entry = id, the bias is still on. It has ended: in vain, entry = 0; then as a counted one
//!     leaves            entry = 0. The bias has ended: clears it again, and kicks the drainer
//! the bias              off --> on by who holds the lock, on --> off by who holds the gate
//! a drainer             waits until the counted readers are gone, then for one entry after the other: awake, then asleep
//! an upgradable reader  gate closed: upgradable = 1, readers + 1, gate opened
//!     upgrades          gate closed, the others drained: readers - 1, upgradable = 0. At its limit: gate opened, it reads on
//!     leaves            upgradable = 0: from then on a counted reader
//! who meets one         gate opened, joins the list. The first closes the gate: upgradable = 1, opens it and sleeps; or 0, and it goes
//!                       on. At its limit it leaves the list. Without a node: naps between attempts
//! ```
//!
//! # Invariants
//!
//! - R1: whoever holds the lock for reading, by count or by entry, came while no writer was past its draining; a writer writes only
//!   when it has seen the count at 0 (1 for the upgradable reader itself) and no entry with the lock's id, after closing the gate.
//! - R2: bias is switched on only by a holder of the lock, or of the gate: so not between a writer's last look at it and that
//!   writer's release.
//! - R3: an entry holds a lock's id from before its reader looks at `bias` until the reader has left.
//! - R4: `upgradable` becomes 1 only under the gate, and while it is 1 its reader is counted; nobody drains the lock then but that one.
//! - R5: whenever the gate is free and an entry names the lock, the bias is on, or that entry's reader has not entered, and will
//!   not: so a writer that finds the bias off need not look for entries. Who gives up waiting for entries switches the bias on again.
//!
//! # Orderings
//!
//! - RC, the reader's increment, then RG, its look at the gate; WG, the acquisition of the gate, then WC, the writer's look at the count:
//!   all sequentially consistent, so the reader finds the gate closed or the writer finds the reader (Dekker's pattern).
//! - RE, the store of the entry, light barrier, RB, the look at `bias`; WB, the store that ends the bias, heavy barrier, WE, the look
//!   at the entries: the same, with the fence on the writer's side. RB is an acquire and pairs with the release that
//!   switched the bias on: by a holder of the lock, to whom the last writer's release was visible.
//! - RU, a reader's decrement or its clearing of the entry, both releases, pair with WC and WE, acquires. WE may find the entry in use
//!   for another lock already: RE, a release, says as much.
//! - A writer's release of the gate pairs with the acquire in RG.
//!
//! # Why no wake-up is lost
//!
//! A drainer that is about to sleep names itself in `drainer` and counts itself in the kick table (DK), then looks at the
//! readers once more (WC, WE). A counted reader that leaves decrements (RU), then looks at the table
//! (RK); all are sequentially consistent. A visible reader that leaves finds the bias ended, by the barriers; it then clears its entry
//! once more with a read-modify-write and looks at `drainer`. What the drainer halts on is its node's
//! count of kicks (`sleep/wait_list.rs`).
//!
//! # Bounds
//!
//! - A writer closes the gate at once, and readers that come later wait. So it waits for the gate, which is bounded as
//!   [`spin::overlock`](crate::spin::overlock) says, and for the longest section of those that read at that moment. Writers do not starve.
//! - A reader waits for a closed gate in the same way as a writer, and so it does not starve either.
//! - Where an upgradable reader holds the lock, writers and other upgradable readers wait in the order of their arrival until it has left,
//!   and then for the gate.
//! - At most 2^31 readers: a panic beyond.

mod drain;
mod fork;
mod policy;
mod states;
#[cfg(test)]
mod tests;
mod tokenless;
mod upgrade;
mod visible;

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};

use crate::platform::{Atomic, ConstPlatform, Instant, Platform, Zero};
use crate::raw::{ConstLock, CreateError, RawDowngradeRwLock, RawLock, RawRwLock, RawTimedRwLock};
use crate::sleep::wait_list::{Limit, WaitList};
use crate::spin::Overlock;
use crate::spin::overlock::Gate;

pub use policy::{Bias, Counted, PerCpu, Policy, Recommended};
use states::Step;

/// In `readers`: one that counts itself, for the two halves.
const READER: u64 = 1 | 1 << 32;

/// Half of what the low half of `readers` can hold.
const MOST_READERS: u64 = 1 << 31;

/// In `bias`: the id is there, the bias is not.
const OFF: u32 = 1 << 31;

/// The recommended reader-writer lock: see the [module's page](self). 40 bytes.
#[derive(Debug)]
pub struct OverlockRw<P: Platform, Y: Policy = Recommended> {
    gate: Overlock<P, Gate>,
    readers: P::U64,
    bias: P::U32,
    drainer: P::U16,
    upgradable: P::U8,
    quiet: P::U8,
    waiting: WaitList<P>,
    policy: PhantomData<Y>,
}

/// [`OverlockRw`] whose readers always count themselves.
pub type OverlockRwCounted<P> = OverlockRw<P, Counted>;

/// A reader's acquisition.
#[derive(Debug)]
pub struct Read<P: Platform>(Option<&'static P::U32>);

/// A writer's acquisition.
#[derive(Debug)]
pub struct Write(());

impl<P: ConstPlatform, Y: Policy> OverlockRw<P, Y> {
    /// A new, unlocked lock.
    pub const fn new() -> Self {
        OverlockRw {
            gate: Overlock::new(),
            readers: Zero::ZERO,
            bias: Zero::ZERO,
            drainer: Zero::ZERO,
            upgradable: Zero::ZERO,
            quiet: Zero::ZERO,
            waiting: WaitList::INIT,
            policy: PhantomData,
        }
    }
}

impl<P: ConstPlatform, Y: Policy> Default for OverlockRw<P, Y> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: ConstPlatform, Y: Policy> ConstLock for OverlockRw<P, Y> {
    #[allow(clippy::declare_interior_mutable_const)] // each use is a new lock, as intended
    const INIT: Self = Self::new();
}

/// The counted readers in `readers`.
fn count(readers: u64) -> u64 {
    readers & u64::from(u32::MAX)
}

impl<P: Platform, Y: Policy> OverlockRw<P, Y> {
    /// Counted readers between two [looks](Self::look), less one: a mask for the high half.
    const LOOK: u64 = match Y::BIAS {
        Bias::Always => 0,
        _ => Y::LOOK_EVERY - 1,
    };

    /// Counts a reader in, if the gate is open. Without it where it is closed, and with `WAITS` also where the reader has
    /// stepped aside and waited for its turn.
    #[inline]
    fn enter_counted<const WAITS: bool>(&self) -> bool {
        // RC
        let before = self.readers.fetch_add(READER, SeqCst);
        // RG
        let open = self.gate.is_open();
        if open && count(before) == 0 && before >> 32 & Self::LOOK != 0 {
            Step::Count.taken::<P>();
            return true;
        }
        self.enter_among_others::<WAITS>(before, open)
    }

    #[cold]
    fn enter_among_others<const WAITS: bool>(&self, before: u64, open: bool) -> bool {
        Step::of_counting(open).taken::<P>();
        if open && before >> 32 & Self::LOOK == 0 {
            self.look(before);
        }
        let crowded = WAITS && count(before) != 0 && self.gate.is_crowded(self.done());
        if open && !crowded {
            return true;
        }
        self.leave_counted();
        if crowded {
            self.gate.step_aside(|| self.done());
        }
        false
    }

    /// How many have ever counted themselves.
    fn reads(&self) -> u32 {
        (self.readers.load(Relaxed) >> 32) as u32
    }

    /// How much has been done with the lock.
    fn done(&self) -> u32 {
        self.gate.passed().wrapping_add(self.reads())
    }

    /// Acquires the gate, unless `limit` is reached first.
    #[inline]
    fn close_gate(&self, limit: &Limit<'_, P>) -> bool {
        // WG
        self.gate.lock_within(limit, || self.reads())
    }

    #[inline]
    fn leave_counted(&self) {
        // RU: release, pairs with WC. SeqCst: before RK, against DK and WC.
        let before = self.readers.fetch_sub(1, SeqCst);
        Step::Uncount.taken::<P>();
        crate::check!(count(before) > 0, "unlock of a lock that nobody reads");
        // RK. A drainer waits for none, or for all but itself.
        if self.gate.kicks().load(SeqCst) != 0 && count(before) <= 2 {
            self.kick_drainer();
        }
    }

    /// The gate was closed: passes it like a writer, but lets other readers in meanwhile.
    #[cold]
    fn read_slow(&self, limit: &Limit<'_, P>) -> bool {
        let acquired = self.close_gate(limit);
        if acquired {
            self.gate.open();
            // Relaxed: the writer that acquires the gate after this one's release sees the count.
            let before = self.readers.fetch_add(READER, Relaxed);
            Step::PassGate.taken::<P>();
            self.release_gate();
            if before >> 32 & Self::LOOK == 0 {
                self.look(before);
            }
        }
        acquired
    }

    /// The caller holds the gate.
    #[inline]
    fn release_gate(&self) {
        // SAFETY: the caller holds the gate, whose token is ().
        unsafe { self.gate.unlock(()) }
    }

    /// The caller has written, and is about to let go of the gate.
    #[inline]
    fn end_write(&self) {
        self.quiet.store(0, Relaxed);
        if Y::BIAS == Bias::Always {
            self.switch_on();
        }
    }

    /// The caller has written: lets the others in again.
    #[inline]
    fn open_gate(&self) {
        self.end_write();
        self.release_gate();
    }

    /// A counted reader looks, now and then, whether the lock should be biased, and whether there are too many of them.
    #[cold]
    fn look(&self, readers: u64) {
        if count(readers) >= MOST_READERS {
            self.leave_counted();
            panic!("more than {MOST_READERS} readers of one lock");
        }
        let wanted = match Y::BIAS {
            Bias::Never => false,
            Bias::Learned => self.quiet.load(Relaxed) != 0,
            Bias::Always => true,
        };
        if !wanted {
            self.quiet.store(1, Relaxed);
        } else if self.gate.is_deserted() {
            self.switch_on();
        }
    }

    /// The caller holds the gate, and has just acquired it: waits until it may write.
    #[inline]
    fn write_at_gate(&self, limit: &Limit<'_, P>) -> bool {
        // WC; and readers that are there by their entries left the bias on.
        let clear = count(self.readers.load(SeqCst)) == 0 && !self.is_biased();
        if clear {
            Step::Write.taken::<P>();
        }
        clear || self.clear_out(limit)
    }
}

// SAFETY: R1, by the orderings above.
unsafe impl<P: Platform, Y: Policy> RawRwLock for OverlockRw<P, Y> {
    type Read = Read<P>;
    type Write = Write;

    const NAME: &'static str = Y::NAME;

    fn create() -> Result<Self, CreateError> {
        Ok(OverlockRw {
            gate: Overlock::create()?,
            readers: P::U64::new(0),
            bias: P::U32::new(0),
            drainer: P::U16::new(0),
            upgradable: P::U8::new(0),
            quiet: P::U8::new(0),
            waiting: WaitList::new(),
            policy: PhantomData,
        })
    }

    #[inline]
    fn read(&self) -> Read<P> {
        if let Some(entry) = self.enter_visibly() {
            return Read(Some(entry));
        }
        if !self.enter_counted::<true>() {
            self.read_slow(&Limit::NONE);
        }
        Read(None)
    }

    /// May fail where a waiter is just being given the lock.
    #[inline]
    fn try_read(&self) -> Option<Read<P>> {
        match self.enter_visibly() {
            Some(entry) => Some(Read(Some(entry))),
            None => self.enter_counted::<false>().then_some(Read(None)),
        }
    }

    #[inline]
    unsafe fn unlock_read(&self, token: Read<P>) {
        match token.0 {
            Some(entry) => self.leave_visibly(entry),
            None => self.leave_counted(),
        }
    }

    #[inline]
    fn write(&self) -> Write {
        self.close_gate(&Limit::NONE);
        self.write_at_gate(&Limit::NONE);
        Write(())
    }

    fn try_write(&self) -> Option<Write> {
        self.gate.try_lock()?;
        let clear = self.is_clear(0);
        if clear {
            Step::Write.taken::<P>();
        } else {
            Step::TryInVain.taken::<P>();
            self.release_gate();
        }
        clear.then_some(Write(()))
    }

    #[inline]
    unsafe fn unlock_write(&self, Write(()): Write) {
        self.open_gate();
        Step::Unlock.taken::<P>();
    }

    fn is_locked(&self) -> bool {
        !self.gate.is_open() || count(self.readers.load(Acquire)) != 0 || self.has_entries()
    }

    fn is_write_locked(&self) -> bool {
        !self.gate.is_open()
    }

    fn is_contended(&self) -> bool {
        self.gate.is_contended() || self.drainer.load(Relaxed) != 0 || !self.waiting.looks_empty()
    }
}

// SAFETY: as above; who gives up has not entered.
unsafe impl<P: Platform, Y: Policy> RawTimedRwLock for OverlockRw<P, Y> {
    fn read_until(&self, deadline: Instant) -> Option<Read<P>> {
        self.try_read().or_else(|| {
            self.read_slow(&Limit::until(deadline))
                .then_some(Read(None))
        })
    }

    fn write_until(&self, deadline: Instant) -> Option<Write> {
        let limit = Limit::until(deadline);
        let acquired = self.close_gate(&limit) && self.write_at_gate(&limit);
        acquired.then_some(Write(()))
    }
}

// SAFETY: as above; the writer becomes a counted reader before it lets go of the gate.
unsafe impl<P: Platform, Y: Policy> RawDowngradeRwLock for OverlockRw<P, Y> {
    unsafe fn downgrade(&self, Write(()): Write) -> Read<P> {
        // Relaxed, as in `read_slow`.
        self.readers.fetch_add(READER, Relaxed);
        Step::Downgrade.taken::<P>();
        self.open_gate();
        Read(None)
    }
}
