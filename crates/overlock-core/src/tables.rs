//! The tables that locks keep outside of themselves, for threads and for waiters.
//!
//! A platform provides room for it, and hands it out by [`Platform::tables`](crate::Platform):
//!
//! ```ignore
//! static STORAGE: Storage<MyKernel, THREADS, { THREADS.div_ceil(8) }, LOCK_TICKETS> = Storage::INIT;
//!
//! fn tables() -> Tables<MyKernel> {
//!     Tables::new(&STORAGE)
//! }
//! ```
//!
//! Each table belongs to the locks that use it, and lies beside them:
//!
//! | table | of | where |
//! |---|---|---|
//! | queue nodes | all queued locks | [`node`](crate::node) |
//! | tickets and their pool | [`fast_queue`](crate::spin::fast_queue) | `spin/fast_queue/tickets.rs` |
//! | sleepers by ticket | [`pv_ticket`](crate::spin::pv_ticket) | `spin/pv_ticket/waiters.rs` |
//! | the lock hash | [`pv_queued`](crate::spin::pv_queued), [`hybrid`](crate::spin::hybrid) | `spin/pv/lock_hash.rs` |
//! | read locks of each thread | [`percpu_rwsem`](crate::rw::percpu_rwsem) | `rw/percpu_rwsem/reading.rs` |

use crate::platform::atomics::{Atomics, ConstAtomics};
use crate::rw::percpu_rwsem::reading::ReaderIds;
use crate::slot::{MAX_SLOTS, Slot};
#[cfg(target_has_atomic = "64")]
use crate::spin::fast_queue::tickets::{TicketPool, TicketTable, Tickets};
use crate::spin::pv::lock_hash::line::Line;
use crate::spin::pv_ticket::waiters::line::WaiterLine;

/// Room for the tables of a platform. All zero bytes at first: a static takes no space in the
/// program's file, and a page of it no memory until it is used.
///
/// - `SLOTS`: the most threads that can wait in a queue at a time, at most [`MAX_SLOTS`].
/// - `WAITER_LINES`: cache lines for sleepers of paravirtual ticket locks, of 16 each. They work
///   best with a line for every eight slots. At least 1.
/// - `LOCK_TICKETS`: two for each [fast queue spinlock](crate::spin::FastQueue) that may live at a
///   time.
#[derive(Debug)]
#[repr(C)]
pub struct Storage<
    A: Atomics,
    const SLOTS: usize,
    const WAITER_LINES: usize,
    const LOCK_TICKETS: usize,
> {
    slots: [Slot<A>; SLOTS],
    #[cfg(target_has_atomic = "64")]
    tickets: Tickets<A, SLOTS, LOCK_TICKETS>,
    waiters: [WaiterLine<A>; WAITER_LINES],
    lock_hash: [Line<A>; SLOTS],
    #[cfg(target_has_atomic = "64")]
    ticket_pool: TicketPool<A>,
    reader_ids: ReaderIds<A>,
}

impl<A: ConstAtomics, const SLOTS: usize, const WAITER_LINES: usize, const LOCK_TICKETS: usize>
    Storage<A, SLOTS, WAITER_LINES, LOCK_TICKETS>
{
    /// Empty tables, for a static.
    #[allow(clippy::declare_interior_mutable_const)] // each use is a new one, as intended
    pub const INIT: Self = Storage {
        slots: [const { Slot::INIT }; SLOTS],
        #[cfg(target_has_atomic = "64")]
        tickets: Tickets::INIT,
        waiters: [const { WaiterLine::INIT }; WAITER_LINES],
        lock_hash: [const { Line::INIT }; SLOTS],
        #[cfg(target_has_atomic = "64")]
        ticket_pool: TicketPool::INIT,
        reader_ids: ReaderIds::INIT,
    };
}

impl<A: Atomics, const SLOTS: usize, const WAITER_LINES: usize, const LOCK_TICKETS: usize>
    Storage<A, SLOTS, WAITER_LINES, LOCK_TICKETS>
{
    /// Empty tables.
    pub fn new() -> Self {
        Storage {
            slots: core::array::from_fn(|_| Slot::new()),
            #[cfg(target_has_atomic = "64")]
            tickets: Tickets::new(),
            waiters: core::array::from_fn(|_| WaiterLine::new()),
            lock_hash: core::array::from_fn(|_| Line::new()),
            #[cfg(target_has_atomic = "64")]
            ticket_pool: TicketPool::new(),
            reader_ids: ReaderIds::new(),
        }
    }
}

impl<A: Atomics, const SLOTS: usize, const WAITER_LINES: usize, const LOCK_TICKETS: usize> Default
    for Storage<A, SLOTS, WAITER_LINES, LOCK_TICKETS>
{
    fn default() -> Self {
        Self::new()
    }
}

/// The tables of a platform: see the [module's page](self).
#[derive(Debug)]
pub struct Tables<A: Atomics> {
    pub(crate) slots: &'static [Slot<A>],
    #[cfg(target_has_atomic = "64")]
    pub(crate) tickets: TicketTable<A>,
    pub(crate) waiters: &'static [WaiterLine<A>],
    /// With as many buckets as there are nodes, since a node is in at most one.
    pub(crate) lock_hash: &'static [Line<A>],
    pub(crate) reader_ids: &'static ReaderIds<A>,
}

impl<A: Atomics> Clone for Tables<A> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<A: Atomics> Copy for Tables<A> {}

impl<A: Atomics> Tables<A> {
    /// The tables in `storage`. Costs nothing if the storage is a static.
    ///
    /// Does not compile if the storage has more than [`MAX_SLOTS`] slots, or no waiter lines.
    #[inline(always)]
    pub const fn new<const SLOTS: usize, const WAITER_LINES: usize, const LOCK_TICKETS: usize>(
        storage: &'static Storage<A, SLOTS, WAITER_LINES, LOCK_TICKETS>,
    ) -> Self {
        const {
            assert!(
                SLOTS <= MAX_SLOTS,
                "a queue's tail cannot name so many slots"
            );
            assert!(WAITER_LINES > 0, "paravirtual ticket locks need a line");
        }
        Tables {
            slots: &storage.slots,
            #[cfg(target_has_atomic = "64")]
            tickets: TicketTable::new(&storage.tickets, &storage.ticket_pool),
            waiters: &storage.waiters,
            lock_hash: &storage.lock_hash,
            reader_ids: &storage.reader_ids,
        }
    }

    /// How many slots there are: see [`Platform::slot`](crate::Platform::slot).
    #[inline(always)]
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Whether the thread of `slot` neither waits in a queue nor is entered as a reader, nor holds
    /// a lock that keeps its slot (`mcs`, `hemlock`). A thread that has forgotten such a guard
    /// exits with a slot that is not idle. A platform must not give that slot to another thread: a
    /// queue may still name its node.
    ///
    /// Called by that thread after its last use of the slot: the loads are Relaxed.
    /// [In a kernel](crate::platform#idle-unplugged-exited) says when a slot may get another owner.
    ///
    /// # Panics
    ///
    /// If there is no such slot.
    pub fn is_idle(&self, slot: usize) -> bool {
        self.slots[slot].is_idle()
    }

    /// The slot whose queue node has a word at `address`. `None` if it is not a word of a node:
    /// several threads may then halt on it.
    ///
    /// Only the thread of that slot halts on a word of its nodes. So a platform whose kick needs a
    /// CPU, as a hypercall does, kicks the CPU of this slot. Does not access the word, which may
    /// have been freed.
    pub fn slot_of(&self, address: usize) -> Option<usize> {
        let offset = address.checked_sub(self.slots.as_ptr().addr())?;
        let slot = self.slots.get(offset / size_of::<Slot<A>>())?;
        let nodes = slot.nodes.as_ptr_range();
        (nodes.start.addr()..nodes.end.addr())
            .contains(&address)
            .then_some(offset / size_of::<Slot<A>>())
    }
}

#[cfg(test)]
mod tests {
    use crate::node::NodeId;
    use crate::platform::Platform;
    use crate::raw::RawLock;
    use crate::spin::{Hemlock, Hybrid, Mcs, Queued, Ticket};
    use crate::toy::{SLOTS, Toy};

    /// Returns whether the owner of such a lock has an idle slot.
    fn is_idle_under<L: RawLock>() -> bool {
        let lock = L::create().unwrap();
        let token = lock.lock();
        let idle = Toy::tables().is_idle(0);
        // SAFETY: of the acquisition above.
        unsafe { lock.unlock(token) };
        idle
    }

    /// Fails where a lock's token keeps less of the slot than its release uses. The contract for a
    /// slot's next owner says that the check does not see the other locks.
    #[test]
    fn a_slot_is_idle_under_locks_that_keep_no_node() {
        assert!(!is_idle_under::<Mcs<Toy>>() && !is_idle_under::<Hemlock<Toy>>());
        assert!(is_idle_under::<Queued<Toy>>() && is_idle_under::<Hybrid<Toy>>());
        assert!(is_idle_under::<Ticket<Toy>>() && Toy::tables().is_idle(0));
    }

    #[test]
    fn a_word_of_a_node_leads_to_its_slot() {
        let tables = Toy::tables();
        for (slot, context) in [(0, 0), (3, 2), (SLOTS - 1, 3)] {
            let node = NodeId::new(slot, context).node::<Toy>();
            for word in [&node.kicks, &node.state] {
                assert_eq!(tables.slot_of(core::ptr::from_ref(word).addr()), Some(slot));
            }
        }
        // A reader's entry is a word of the slot on which others halt.
        let slots = tables.slots.as_ptr_range();
        let reading = core::ptr::from_ref(&tables.slots[2].reading).addr();
        for other in [0, slots.start.addr() - 4, slots.end.addr(), reading] {
            assert_eq!(tables.slot_of(other), None);
        }
    }
}
