//! The tables that the locks ask their platform for, a set for each thread of the operating system
//! that simulates.
//!
//! A simulation must not see what the one before has left, so all tables lie in one mapping whose
//! pages are given back in between: they are all zero again then, which is how every table begins.

use std::cell::Cell;
use std::mem::size_of;
use std::ptr;
use std::sync::Mutex;

use overlock_core::tables;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};

use crate::platform::Sim;

/// The most vCPUs of a simulation.
pub const MOST_VCPUS: usize = 4096;
/// The most fast queue spinlocks of a simulation.
const FAST_QUEUES: usize = 4096;

/// All tables, on pages of their own.
#[repr(C, align(4096))]
struct Pages(Storage);

type Storage = tables::Storage<Sim, MOST_VCPUS, { MOST_VCPUS / 8 }, { 2 * FAST_QUEUES }>;

/// Sets that belonged to threads which have ended.
static FREE: Mutex<Vec<&'static Pages>> = Mutex::new(Vec::new());

/// The set of a thread, given back when the thread ends.
struct Own(&'static Pages);

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
    static SET: Cell<Option<&'static Pages>> = const { Cell::new(None) };
}

fn claim() -> &'static Pages {
    let free = FREE.lock().ok().and_then(|mut free| free.pop());
    free.unwrap_or_else(|| {
        // SAFETY: a new private mapping, at an address of the kernel's choice, disturbs nobody.
        let pages = unsafe {
            mmap_anonymous(
                ptr::null_mut(),
                size_of::<Pages>(),
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
        };
        let pages = pages.expect("there is memory for the locks' tables");
        // SAFETY: the mapping is large enough, aligned to pages as `Pages` is, never unmapped, and
        // all zero, which is a valid value of every table: each offers a constant of zero
        // bytes for statics.
        unsafe { &*pages.cast::<Pages>() }
    })
}

/// The tables of this thread.
#[inline]
pub fn storage() -> &'static Storage {
    &pages().0
}

#[inline]
fn pages() -> &'static Pages {
    SET.get().unwrap_or_else(|| {
        let pages = OWN.with(|own| own.0);
        SET.set(Some(pages));
        pages
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
    let tables = ptr::from_ref(pages()).cast_mut();
    // SAFETY: the range is the whole of our private mapping. Its pages read as zero afterwards,
    // which is a valid value, through atomics only; the only thread that uses them is this one.
    let forgotten = unsafe { madvise(tables.cast(), size_of::<Pages>(), Advice::LinuxDontNeed) };
    forgotten.expect("the mapping is ours");
}
