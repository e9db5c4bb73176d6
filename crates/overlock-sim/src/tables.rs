//! The tables that the locks ask their platform for, a set for each thread of the operating system
//! that simulates.
//!
//! A simulation must not see what the one before has left, so all tables lie in one mapping whose
//! pages are given back in between: they are all zero again then, which is how every table begins.

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

/// The most vCPUs of a simulation.
pub const MOST_VCPUS: usize = 4096;
/// The most fast queue spinlocks of a simulation.
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

/// Shares its cache lines with nothing else.
#[repr(align(128))]
pub struct OwnLines<T>(pub T);

/// The tables and what needs their address.
pub struct Set {
    pub tables: &'static Tables,
    pub waiters: WaiterTable<Sim>,
}

/// Sets that belonged to threads which have ended.
static FREE: Mutex<Vec<&'static Set>> = Mutex::new(Vec::new());

/// The set of a thread, given back when the thread ends.
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
        // SAFETY: a new private mapping, at an address of the kernel's choice, disturbs nobody.
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
        // all zero, which is a valid value of every table: each offers a constant of zero
        // bytes for statics.
        let tables: &'static Tables = unsafe { &*pages.cast::<Tables>() };
        Box::leak(Box::new(Set {
            tables,
            waiters: WaiterTable::new(&tables.waiter_lines),
        }))
    })
}

/// The tables of this thread.
#[inline]
pub fn set() -> &'static Set {
    SET.get().unwrap_or_else(|| {
        let set = OWN.with(|own| own.0);
        SET.set(Some(set));
        set
    })
}

/// Makes all tables of this thread new: what the locks of earlier simulations have left there would
/// change the next one. To be called while no simulation runs on this thread and no lock of one is
/// left.
///
/// # Panics
///
/// Where a simulation runs.
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
