//! The tables that a platform of a checker brings: small, since a scenario has few threads.

use std::ptr;

use overlock_core::lock_hash::Line;
use overlock_core::node::{CONTEXTS, Slot};
use overlock_core::platform::{Atomic, Platform};
use overlock_core::pool::{QueueTicket, TicketPool};
use overlock_core::waiters::{WaiterLine, WaiterTable};

/// Threads with queue nodes, at most.
pub const SLOTS: usize = 5;

/// Threads, at most.
const THREADS: usize = 8;

/// Fast queue spinlocks that may live at a time.
const FAST_QUEUES: usize = 8;

/// See [`Platform`] for each.
#[derive(Debug)]
pub struct Tables<P: Platform> {
    slots: Vec<Slot<P>>,
    tickets: Vec<QueueTicket<P>>,
    pool: TicketPool<P>,
    waiters: WaiterTable<P>,
    /// The lines that `waiters` refers to; they go with the tables.
    _lines: Box<[WaiterLine<P>]>,
    lock_hash: Vec<Line<P>>,
    reader_ids: P::U32,
    granted: Vec<P::U32>,
    /// How many atomics were made before and with these tables, where the platform counts them.
    pub(crate) keys: u32,
}

impl<P: Platform> Tables<P> {
    /// Empty tables.
    pub fn new() -> Self {
        let lines: Box<[_]> = Box::new([WaiterLine::new()]);
        // SAFETY: the table wants lines that live for ever. These live as long as the tables, and
        // nobody gets at the table but through them.
        let forever: &'static [WaiterLine<P>] = unsafe { &*ptr::from_ref(&*lines) };
        Tables {
            slots: (0..SLOTS).map(|_| Slot::new()).collect(),
            tickets: (0..SLOTS * CONTEXTS + 2 * FAST_QUEUES)
                .map(|_| QueueTicket::new())
                .collect(),
            pool: TicketPool::new(),
            waiters: WaiterTable::new(forever),
            _lines: lines,
            lock_hash: (0..SLOTS).map(|_| Line::new()).collect(),
            reader_ids: P::U32::new(0),
            granted: (0..THREADS).map(|_| P::U32::new(0)).collect(),
            keys: 0,
        }
    }

    /// See [`Platform::slots`].
    pub fn slots(&self) -> &[Slot<P>] {
        &self.slots
    }

    /// See [`Platform::tickets`].
    pub fn tickets(&self) -> &[QueueTicket<P>] {
        &self.tickets
    }

    /// See [`Platform::ticket_pool`].
    pub fn ticket_pool(&self) -> &TicketPool<P> {
        &self.pool
    }

    /// See [`Platform::waiters`].
    pub fn waiters(&self) -> &WaiterTable<P> {
        &self.waiters
    }

    /// See [`Platform::lock_hash`].
    pub fn lock_hash(&self) -> &[Line<P>] {
        &self.lock_hash
    }

    /// See [`Platform::reader_ids`].
    pub fn reader_ids(&self) -> &P::U32 {
        &self.reader_ids
    }

    /// A count for each thread, for the kernel's part of a PI futex.
    pub fn granted(&self, thread: usize) -> &P::U32 {
        &self.granted[thread]
    }
}

impl<P: Platform> Default for Tables<P> {
    fn default() -> Self {
        Self::new()
    }
}
