//! The tables that locks of the family keep outside of themselves, for threads and for waiters.
//!
//! Most locks need none, and run on every [`Platform`]. A platform for the others has a static
//! [`Storage`], and hands it out by [`FamilyPlatform::family_tables`]:
//!
//! ```ignore
//! static STORAGE: Storage<MyKernel, THREADS, { THREADS.div_ceil(8) }, LOCK_TICKETS> = Storage::new();
//!
//! impl FamilyPlatform for MyKernel {
//!     fn family_tables() -> Tables<MyKernel> {
//!         Tables::new(&STORAGE)
//!     }
//! }
//! ```
//!
//! Each table lies beside its lock:
//!
//! | table | of | where |
//! |---|---|---|
//! | tickets and their pool | [`fast_queue`](crate::spin::fast_queue) | `spin/fast_queue/tickets.rs` |
//! | grants of each thread | [`hemlock`](crate::spin::hemlock) | `spin/hemlock/grants.rs` |
//! | sleepers by ticket | [`pv_ticket`](crate::spin::pv_ticket) | `spin/pv_ticket/waiters.rs` |
//! | the lock hash | [`pv_queued`](crate::spin::pv_queued), [`hybrid`](crate::spin::hybrid) | `spin/pv/lock_hash.rs` |

use overlock_core::node::MAX_SLOTS;
use overlock_core::platform::{Atomics, Platform};

#[cfg(target_has_atomic = "64")]
use crate::spin::fast_queue::tickets::{Contexts, TicketPool, TicketTable, Tickets};
use crate::spin::hemlock::grants::Grants;
use crate::spin::pv::lock_hash::line::Line;
use crate::spin::pv_ticket::waiters::line::WaiterLine;

/// A platform with tables for the locks that need some.
pub trait FamilyPlatform: Platform {
    /// The tables. There is a place for each [slot](Platform::slot).
    fn family_tables() -> Tables<Self>;
}

/// The entries of a thread, on a cache line that others read seldom.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct PerThread<A: Atomics> {
    pub(crate) grants: Grants<A>,
    #[cfg(target_has_atomic = "64")]
    pub(crate) contexts: Contexts<A>,
}

impl<A: Atomics> PerThread<A> {
    const fn new() -> Self {
        PerThread {
            grants: Grants::new(),
            #[cfg(target_has_atomic = "64")]
            contexts: Contexts::new(),
        }
    }

    /// After fork() in the child: forgets the handoffs of a thread that exists only in the parent.
    /// Returns whether another thread may have its slot: not if it was in the middle of acquiring a
    /// fast queue lock, which still names its ticket.
    pub(crate) fn forget(&self) -> bool {
        self.grants.forget();
        #[cfg(target_has_atomic = "64")]
        return !self.contexts.is_in_use();
        #[cfg(not(target_has_atomic = "64"))]
        return true;
    }
}

/// Room for the tables of a platform. All zero bytes at first: a static takes no space in the
/// program's file, and a page of it no memory until it is used.
///
/// - `SLOTS`: as many as in [`overlock_core::tables::Storage`].
/// - `WAITER_LINES`: cache lines for sleepers of paravirtual ticket locks, of 16 each. They work
///   best with a line for every eight slots. At least 1.
/// - `LOCK_TICKETS`: two for each [fast queue spinlock](crate::spin::fast_queue) that may live at a
///   time.
#[derive(Debug)]
#[repr(C)]
pub struct Storage<
    A: Atomics,
    const SLOTS: usize,
    const WAITER_LINES: usize,
    const LOCK_TICKETS: usize,
> {
    threads: [PerThread<A>; SLOTS],
    #[cfg(target_has_atomic = "64")]
    tickets: Tickets<A, SLOTS, LOCK_TICKETS>,
    waiters: [WaiterLine<A>; WAITER_LINES],
    lock_hash: [Line<A>; SLOTS],
    #[cfg(target_has_atomic = "64")]
    ticket_pool: TicketPool<A>,
}

impl<A: Atomics, const SLOTS: usize, const WAITER_LINES: usize, const LOCK_TICKETS: usize>
    Storage<A, SLOTS, WAITER_LINES, LOCK_TICKETS>
{
    /// Empty tables.
    pub const fn new() -> Self {
        Storage {
            threads: [const { PerThread::new() }; SLOTS],
            #[cfg(target_has_atomic = "64")]
            tickets: Tickets::new(),
            waiters: [const { WaiterLine::new() }; WAITER_LINES],
            lock_hash: [const { Line::new() }; SLOTS],
            #[cfg(target_has_atomic = "64")]
            ticket_pool: TicketPool::new(),
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
    pub(crate) threads: &'static [PerThread<A>],
    #[cfg(target_has_atomic = "64")]
    pub(crate) tickets: TicketTable<A>,
    pub(crate) waiters: &'static [WaiterLine<A>],
    /// With as many buckets as there are nodes, since a node is in at most one.
    pub(crate) lock_hash: &'static [Line<A>],
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
            threads: &storage.threads,
            #[cfg(target_has_atomic = "64")]
            tickets: TicketTable::new(&storage.tickets, &storage.ticket_pool),
            waiters: &storage.waiters,
            lock_hash: &storage.lock_hash,
        }
    }
}

#[cfg(test)]
mod tests {
    use overlock_core::Platform;
    use overlock_core::raw::RawLock;
    use overlock_core::toy::Toy;

    use crate::spin::{Hemlock, Hybrid, Mcs, Queued, Ticket};

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
}
