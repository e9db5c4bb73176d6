//! Readers that write to an entry of their own thread's slot, and not to the lock.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use super::states::Step;
use super::{OFF, OverlockRw, Policy};
use crate::platform::{Atomic, Platform};

/// Whether `bias` is on.
fn on(bias: u32) -> bool {
    bias != 0 && bias & OFF == 0
}

impl<P: Platform, Y: Policy> OverlockRw<P, Y> {
    /// Whether readers may be there by their entries. Relaxed: who asks has seen the last counted reader leave
    /// (acquire), and after a switch by a visible reader's predecessor it was on already.
    #[inline]
    pub(super) fn is_biased(&self) -> bool {
        on(self.bias.load(Relaxed))
    }

    /// Enters without a write to the lock, if it is biased and the thread has an entry left.
    #[inline]
    pub(super) fn enter_visibly(&self) -> Option<&'static P::U32> {
        // A first look, decided by RB.
        let id = self.bias.load(Relaxed);
        if !on(id) {
            return None;
        }
        let entries = &P::slots()[P::slot()?].reading.0;
        let mut entry = &entries[0];
        if entry.load(Relaxed) != 0 {
            entry = free_entry::<P>(entries)?;
        }
        // RE. Release: the entry may have named another lock before, and a writer of that one takes this store, too, for a
        // sign that its reader has left. (RU alone would not do: a later store, relaxed, is not of its release sequence.)
        entry.store(id, Release);
        P::light_barrier();
        // RB: acquire, pairs with the release in `switch_on`.
        if self.bias.load(Acquire) == id {
            Step::Enter.taken::<P>();
            return Some(entry);
        }
        Step::EnterInVain.taken::<P>();
        self.leave_ended(entry);
        None
    }

    #[inline]
    pub(super) fn leave_visibly(&self, entry: &P::U32) {
        crate::check!(
            entry.load(Relaxed) & !OFF == self.bias.load(Relaxed) & !OFF,
            "unlock of a lock that this reader does not hold"
        );
        // RU: release, pairs with WE.
        entry.store(0, Release);
        Step::Leave.taken::<P>();
        P::light_barrier();
        if !self.is_biased() {
            Step::LeaveEnded.taken::<P>();
            self.leave_ended(entry);
        }
    }

    /// The bias has ended: somebody may sleep until this entry is cleared.
    #[cold]
    #[inline(never)]
    fn leave_ended(&self, entry: &P::U32) {
        // RU; SeqCst: before the look at `drainer`, against DK and WE.
        entry.swap(0, SeqCst);
        self.kick_drainer();
    }

    /// Switches the bias on. The caller holds the lock (R2).
    #[cold]
    pub(super) fn switch_on(&self) {
        let bias = self.bias.load(Relaxed);
        let id = if bias == 0 {
            new_id::<P>()
        } else {
            bias & !OFF
        };
        // Release, pairs with RB: passes on what the last writer did. Another reader may be doing the same.
        let switched = self.bias.compare_exchange(bias, id, Release, Relaxed);
        if switched.is_ok() && bias != id {
            Step::BiasOn.taken::<P>();
        }
    }

    /// Ends the bias; whether it was on. The caller holds the gate. If no reader is counted but perhaps itself, it
    /// stays ended (R2).
    pub(super) fn end_bias(&self) -> bool {
        let bias = self.bias.load(Relaxed);
        let ends = on(bias);
        if ends {
            // WB
            self.bias.store(bias | OFF, SeqCst);
            Step::BiasOff.taken::<P>();
            P::heavy_barrier();
        }
        ends
    }

    /// The entry of a reader that has not left.
    pub(super) fn find_entry(&self) -> Option<&'static P::U32> {
        let id = self.bias.load(Relaxed) & !OFF;
        if id == 0 {
            return None;
        }
        P::slots()[..P::slots_in_use()]
            .iter()
            .flat_map(|slot| &slot.reading.0)
            // WE: SeqCst, see `leave_ended`; acquire, pairs with RU.
            .find(|entry| entry.load(SeqCst) == id)
    }

    pub(super) fn has_entries(&self) -> bool {
        self.find_entry().is_some()
    }
}

/// The calling thread reads another lock as well: one of its entries that names none. Once found free it stays so, since only this thread
/// uses it, and the signal handlers that interrupt it leave it as they found it.
#[cold]
#[inline(never)]
fn free_entry<P: Platform>(entries: &[P::U32]) -> Option<&P::U32> {
    entries.iter().find(|entry| entry.load(Relaxed) == 0)
}

/// An id that no other lock has, as long as fewer than 2^31 have been biased. (Two with one id wait for each other's readers.)
fn new_id<P: Platform>() -> u32 {
    loop {
        // Relaxed: only that it is new.
        let id = P::reader_ids().fetch_add(1, Relaxed).wrapping_add(1) & !OFF;
        if id != 0 {
            return id;
        }
    }
}
