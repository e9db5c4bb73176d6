//! The holder of the gate waits until the readers have left.

use core::sync::atomic::Ordering::{Relaxed, SeqCst};

use super::states::Step;
use super::{OFF, OverlockRw, Policy, count};
use crate::links::nap;
use crate::node::NodeId;
use crate::platform::{Atomic, Platform, Spin};
use crate::sleep::wait_list::{self, Limit, Waiter};

/// How long a drainer watches the readers before it sleeps. Most sections are shorter, and a reader that
/// has lost its CPU is away for a thousand times as long.
const SPIN_NS: u64 = 5_000;
/// Looks before it reads the clock.
const FIRST_TURNS: u32 = 24;

impl<P: Platform, Y: Policy> OverlockRw<P, Y> {
    /// The caller, who holds the gate, is not clear to write: waits until the lock is empty, or gives the gate
    /// back once `limit` is reached.
    #[cold]
    pub(super) fn clear_out(&self, limit: &Limit<'_, P>) -> bool {
        if limit.is_for_ever()
            && count(self.readers.load(Relaxed)) != 0
            && self.gate.is_crowded(self.done())
        {
            self.release_gate();
            self.gate.step_aside(|| self.done());
            self.close_gate(limit);
        }
        // R4: nobody sets it while this thread has the gate.
        if self.upgradable.load(Relaxed) != 0 {
            self.release_gate();
            if !self.wait_for_gate_without_upgradable(limit) {
                return false;
            }
        }
        let drained = self.drain(0, limit);
        if !drained {
            self.release_gate();
        }
        drained
    }

    /// Whether no reader is left but the `own` counted ones of the caller, who holds the gate. Ends the bias to find
    /// out.
    pub(super) fn is_clear(&self, own: u64) -> bool {
        // WC
        if count(self.readers.load(SeqCst)) > own {
            return false;
        }
        self.end_bias();
        let clear = !self.has_entries();
        if !clear {
            // R5; nobody writes (R2).
            self.switch_on();
        }
        clear
    }

    /// Waits until no reader is left but the `own` counted ones of the caller, who holds the gate. False once `limit` is
    /// reached.
    pub(super) fn drain(&self, own: u64, limit: &Limit<'_, P>) -> bool {
        // From here on readers that come wait.
        let ended = self.end_bias();
        // WC
        let gone = |readers| count(readers) <= own;
        let drained = self.spin(&self.readers, gone, limit)
            || self.sleep(limit, || gone(self.readers.load(SeqCst)));
        if !drained {
            Step::DrainAtLimit.taken::<P>();
            if ended {
                // R5; nobody writes (R2).
                self.switch_on();
            }
            return false;
        }
        Step::DrainCount.taken::<P>();
        // Until the last counted one had left, it might switch the bias on (R2).
        self.end_bias();
        while let Some(entry) = self.find_entry() {
            Step::DrainEntry.taken::<P>();
            if !self.outwait(entry, limit) {
                Step::DrainAtLimit.taken::<P>();
                // R5 and R2, as above.
                self.switch_on();
                return false;
            }
        }
        Step::Drained.taken::<P>();
        true
    }

    /// Waits until the reader with this entry has left, which it may have done by now.
    pub(super) fn outwait(&self, entry: &P::U32, limit: &Limit<'_, P>) -> bool {
        // Not what the entry holds: that may be 0 already, or another lock's id.
        let id = self.bias.load(Relaxed) & !OFF;
        let left = |seen| seen != id;
        // WE
        self.spin(entry, left, limit) || self.sleep(limit, || left(entry.load(SeqCst)))
    }

    /// Watches a word of the readers' for a while.
    fn spin<T, A>(&self, word: &A, gone: impl Fn(T) -> bool, limit: &Limit<'_, P>) -> bool
    where
        T: Copy + Eq,
        A: Atomic<T>,
    {
        if P::wait_until(word, SeqCst, Spin::Turns(FIRST_TURNS), &gone).is_ok() {
            return true;
        }
        let end = limit.earlier(P::now().plus_nanos(SPIN_NS));
        P::wait_until(word, SeqCst, Spin::Until(end), &gone).is_ok()
    }

    /// Sleeps until `gone` is true, which the readers that leave give word of. False once `limit` is reached.
    #[cold]
    fn sleep(&self, limit: &Limit<'_, P>, gone: impl Fn() -> bool) -> bool {
        let Some(waiter) = Waiter::<P>::new() else {
            while !gone() {
                if limit.reached().is_some() {
                    return false;
                }
                nap::<P>();
                Step::Nap.taken::<P>();
            }
            return true;
        };
        // DK: before the look in `gone`, against RU and what follows it.
        self.drainer.store(waiter.id().bits(), SeqCst);
        self.gate.kicks().fetch_add(1, SeqCst);
        Step::DrainerSleeps.taken::<P>();
        let gone = waiter.sleep_until(limit, gone);
        self.gate.kicks().fetch_sub(1, SeqCst);
        self.drainer.store(0, Relaxed);
        gone
    }

    /// A reader has left. Touches the lock once more, and then only the drainer's node, which is immortal.
    #[cold]
    pub(super) fn kick_drainer(&self) {
        if let Some(drainer) = NodeId::from_bits(self.drainer.load(SeqCst)) {
            Step::KickDrainer.taken::<P>();
            wait_list::kick::<P>(drainer);
        }
    }
}
