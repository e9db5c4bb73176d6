//! The tables that locks get from their platform: one set for each thread of the operating system
//! that simulates.
//!
//! A simulation must not see the contents that the one before has left. So all tables lie in one
//! mapping whose pages are released in between: then they are all zero again, as every new table
//! is.

use std::ptr;
use std::sync::Mutex;

use overlock_core::tables;
use overlock_family::tables as family;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};

use crate::Sim;

/// The largest number of vCPUs of a simulation.
pub const MOST_VCPUS: usize = 4096;
/// The largest number of fast queue spinlocks of a simulation.
const FAST_QUEUES: usize = 4096;

/// All tables, on pages of their own.
#[repr(C, align(4096))]
struct Pages(Storage, FamilyStorage);

type Storage = tables::Storage<Sim, MOST_VCPUS>;
type FamilyStorage = family::Storage<Sim, MOST_VCPUS, { MOST_VCPUS / 8 }, { 2 * FAST_QUEUES }>;

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
    static OWN: Own = Own({
        let free = FREE.lock().ok().and_then(|mut free| free.pop());
        free.unwrap_or_else(mapped)
    });
}

fn mapped() -> &'static Pages {
    let (access, length) = (ProtFlags::READ | ProtFlags::WRITE, size_of::<Pages>());
    // SAFETY: a new private mapping, at an address of the kernel's choice, overlaps no other.
    let pages = unsafe { mmap_anonymous(ptr::null_mut(), length, access, MapFlags::PRIVATE) };
    let pages = pages.expect("there is memory for the locks' tables");
    // SAFETY: the mapping is large enough, aligned to pages as `Pages` is, never unmapped, and all
    // zero, which is a valid value of every table: each offers a constant of zero bytes for
    // statics.
    unsafe { &*pages.cast::<Pages>() }
}

/// Returns the tables of this thread.
#[inline]
pub fn storage() -> &'static Storage {
    &pages().0
}

/// Returns those of the kernel's lock family.
#[inline]
pub fn family_storage() -> &'static FamilyStorage {
    &pages().1
}

#[inline]
fn pages() -> &'static Pages {
    OWN.with(|own| own.0)
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
    let tables = ptr::from_ref(pages()).cast_mut();
    // SAFETY: the range is the whole of our private mapping. Its pages read as zero afterwards,
    // which is a valid value, through atomics only; the only thread that uses them is this one.
    let forgotten = unsafe { madvise(tables.cast(), size_of::<Pages>(), Advice::LinuxDontNeed) };
    forgotten.expect("the mapping is ours");
}
