//! The tables that locks get from their platform: one set for each thread of the operating system
//! that simulates.
//!
//! A simulation must not see the contents that the one before has left. So all tables lie in one
//! mapping whose pages are released in between: then they are all zero again, as every new table
//! is.

use std::cell::Cell;
use std::mem::size_of;
use std::ptr;
use std::sync::Mutex;

use overlock_core::lock_hash::Line;
use overlock_core::node::{CONTEXTS, Slot};
use overlock_core::pool::{QueueTicket, TicketPool};
use overlock_core::waiters::{WaiterLine, WaiterTable};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};

use crate::platform::Sim;
use crate::word::U32;

/// The largest number of vCPUs of a simulation.
pub const MOST_VCPUS: usize = 4096;
/// The largest number of fast queue spinlocks of a simulation.
const FAST_QUEUES: usize = 4096;
const WAITERS: usize = MOST_VCPUS / 8;

/// All tables.
#[repr(C, align(4096))]
pub struct Tables {
    pub slots: [Slot<Sim>; MOST_VCPUS],
    pub tickets: [QueueTicket<Sim>; MOST_VCPUS * CONTEXTS + 2 * FAST_QUEUES],
    pub pool: TicketPool<Sim>,
    waiter_lines: [WaiterLine<Sim>; WAITERS],
    pub lock_hash: [Line<Sim>; MOST_VCPUS],
    pub reader_ids: OwnLines<U32>,
}

/// Shares its cache lines with no other data.
#[repr(align(128))]
pub struct OwnLines<T>(pub T);

/// The tables, and the objects that need their address.
pub struct Set {
    pub tables: &'static Tables,
    pub waiters: WaiterTable<Sim>,
}

/// Sets of threads that have exited.
static FREE: Mutex<Vec<&'static Set>> = Mutex::new(Vec::new());

/// The set of a thread, which returns to [`FREE`] when the thread exits.
struct Own(&'static Set);

impl Drop for Own {
    fn drop(&mut self) {
        if let Ok(mut free) = FREE.lock() {
            free.push(self.0);
        }
    }
}

thread_local! {
    static OWN: Own = Own(claim());
    /// The same, found faster.
    static SET: Cell<Option<&'static Set>> = const { Cell::new(None) };
}

fn claim() -> &'static Set {
    let free = FREE.lock().ok().and_then(|mut free| free.pop());
    free.unwrap_or_else(|| {
        // SAFETY: a new private mapping, at an address of the kernel's choice, overlaps no other.
        let pages = unsafe {
            mmap_anonymous(
                ptr::null_mut(),
                size_of::<Tables>(),
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
        };
        let pages = pages.expect("there is memory for the locks' tables");
        // SAFETY: the mapping is large enough, aligned to pages as `Tables` is, never unmapped, and
        // all zero, which is a valid value of every table: each offers a constant of zero bytes for
        // statics.
        let tables: &'static Tables = unsafe { &*pages.cast::<Tables>() };
        Box::leak(Box::new(Set {
            tables,
            waiters: WaiterTable::new(&tables.waiter_lines),
        }))
    })
}

/// Returns the tables of this thread.
#[inline]
pub fn set() -> &'static Set {
    SET.get().unwrap_or_else(|| {
        let set = OWN.with(|own| own.0);
        SET.set(Some(set));
        set
    })
}

/// Clears all tables of this thread: contents that locks of earlier simulations have left there
/// would change the next one. To be called while no simulation runs on this thread and no lock of
/// one exists.
///
/// # Panics
///
/// If a simulation runs on this thread.
pub fn forget() {
    assert!(
        crate::engine::current().is_none(),
        "the simulation that runs needs its tables"
    );
    let tables = ptr::from_ref(set().tables).cast_mut();
    // SAFETY: the range is the whole of our private mapping. Its pages read as zero afterwards,
    // which is a valid value, through atomics only; the only thread that uses them is this one.
    let forgotten = unsafe { madvise(tables.cast(), size_of::<Tables>(), Advice::LinuxDontNeed) };
    forgotten.expect("the mapping is ours");
}
