//! Flights: recorded acquisitions whose lock has not been released yet.
//!
//! A flight belongs to its lock's owner, and its number is in the lock (`Mutex::observed`). The
//! lock orders its accesses, except for one: another thread may reuse a flight that has ended, so
//! F-end (release) pairs with F-begin (acquire).

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize};

use overlock_shared::NOT_MEASURED;

use crate::spot::Spot;

/// The number of flights at a time. Beyond it, recorded acquisitions have no hold time.
const FLIGHTS: usize = 1024;

/// The number of flights that are tried to find a free one.
const REACH: usize = 32;

/// In place of the number of a flight: there is none, and the release is noted for a waiter.
pub const NOTED: u32 = u32::MAX;

const FREE: u32 = 0;
const TAKEN: u32 = 1;

#[derive(Debug)]
#[repr(align(64))]
struct Slot {
    state: AtomicU32,
    entry: AtomicU32,
    stack: AtomicU32,
    object: AtomicUsize,
    site: AtomicUsize,
    began_ns: AtomicU64,
    /// The wait time; all ones without a wait.
    wait_ns: AtomicU64,
    holder: AtomicU64,
    passed: AtomicU32,
    weight: AtomicU32,
    holder_tid: AtomicU32,
    released_ns: AtomicU64,
    ran_ns: AtomicU64,
    has_spun: AtomicBool,
}

const NO_WAIT: u64 = u64::MAX;

static SLOTS: [Slot; FLIGHTS] = [const {
    Slot {
        state: AtomicU32::new(FREE),
        entry: AtomicU32::new(0),
        stack: AtomicU32::new(0),
        object: AtomicUsize::new(0),
        site: AtomicUsize::new(0),
        began_ns: AtomicU64::new(0),
        wait_ns: AtomicU64::new(0),
        holder: AtomicU64::new(0),
        passed: AtomicU32::new(0),
        weight: AtomicU32::new(0),
        holder_tid: AtomicU32::new(0),
        released_ns: AtomicU64::new(0),
        ran_ns: AtomicU64::new(0),
        has_spun: AtomicBool::new(false),
    }
}; FLIGHTS];

/// The owner that a waiter finds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holder {
    /// The lower half of its call site; or 0.
    pub site: u32,
    /// The number of its stack, from 1 on; 0 where that is not known.
    pub stack: u32,
    /// The thread's id; 0 where that is not known.
    pub tid: u32,
}

/// The result of a wait.
#[derive(Debug)]
pub struct Waited {
    /// Its length in nanoseconds.
    pub ns: u64,
    /// The thread that has caused it.
    pub holder: Holder,
    /// How often others acquired the lock meanwhile.
    pub passed: u32,
    /// When the lock was released to it; 0 where that is not known.
    pub released_ns: u64,
    /// The holder's CPU time during the wait; [`NOT_MEASURED`] where that is not known.
    pub ran_ns: u64,
    /// The waiter never slept.
    pub has_spun: bool,
}

impl Waited {
    /// A wait of this length.
    pub fn new(ns: u64, holder: Holder, passed: u32) -> Self {
        Waited {
            ns,
            holder,
            passed,
            released_ns: 0,
            ran_ns: NOT_MEASURED,
            has_spun: false,
        }
    }
}

/// A flight that has ended.
#[derive(Debug)]
pub struct Flight {
    pub at: Spot,
    pub began_ns: u64,
    pub weight: u32,
    pub waited: Option<Waited>,
}

/// Begins a flight of the calling thread, which has acquired the lock. Returns its number; 0 if no
/// flight is free, and then records the acquisition without it.
pub fn begin(at: Spot, now_ns: u64, weight: u32, waited: Option<Waited>) -> u32 {
    // Threads begin at different flights: their stacks are far apart.
    let here = 0_u8;
    let start = (core::ptr::from_ref(&here).addr() >> 12).wrapping_mul(0x9e37_79b1) >> 8;
    let free = (0..REACH).find_map(|step| {
        let index = (start + step) % FLIGHTS;
        let slot = &SLOTS[index];
        // F-begin: acquire, pairs with F-end.
        let taken = slot.state.load(Relaxed) == FREE
            && slot
                .state
                .compare_exchange(FREE, TAKEN, Acquire, Relaxed)
                .is_ok();
        taken.then_some((index, slot))
    });
    let Some((index, slot)) = free else {
        let waited = waited.as_ref().map(|waited| (now_ns, waited));
        crate::record::without_flight(&at, weight, waited);
        return 0;
    };
    slot.entry.store(at.entry, Relaxed);
    slot.stack.store(at.stack, Relaxed);
    slot.object.store(at.object, Relaxed);
    slot.site.store(at.site, Relaxed);
    slot.began_ns.store(now_ns, Relaxed);
    slot.weight.store(weight, Relaxed);
    let waited = waited.unwrap_or_else(|| Waited::new(NO_WAIT, Holder::default(), 0));
    slot.wait_ns.store(waited.ns, Relaxed);
    let holder = u64::from(waited.holder.stack) << 32 | u64::from(waited.holder.site);
    slot.holder.store(holder, Relaxed);
    slot.holder_tid.store(waited.holder.tid, Relaxed);
    slot.passed.store(waited.passed, Relaxed);
    slot.released_ns.store(waited.released_ns, Relaxed);
    slot.ran_ns.store(waited.ran_ns, Relaxed);
    slot.has_spun.store(waited.has_spun, Relaxed);
    index as u32 + 1
}

/// Ends a flight. Returns `None` if the number is invalid, of an object that was overwritten.
pub fn end(number: u32) -> Option<Flight> {
    let slot = SLOTS.get((number as usize).wrapping_sub(1))?;
    if slot.state.load(Relaxed) == FREE {
        return None;
    }
    let ns = slot.wait_ns.load(Relaxed);
    let waited = (ns != NO_WAIT).then(|| Waited {
        ns,
        holder: Holder {
            tid: slot.holder_tid.load(Relaxed),
            ..holder_of(slot.holder.load(Relaxed))
        },
        passed: slot.passed.load(Relaxed),
        released_ns: slot.released_ns.load(Relaxed),
        ran_ns: slot.ran_ns.load(Relaxed),
        has_spun: slot.has_spun.load(Relaxed),
    });
    let flight = Flight {
        at: Spot {
            entry: slot.entry.load(Relaxed),
            object: slot.object.load(Relaxed),
            site: slot.site.load(Relaxed),
            stack: slot.stack.load(Relaxed),
        },
        began_ns: slot.began_ns.load(Relaxed),
        weight: slot.weight.load(Relaxed),
        waited,
    };
    // F-end: release, pairs with F-begin.
    slot.state.store(FREE, Release);
    Some(flight)
}

fn holder_of(both: u64) -> Holder {
    Holder {
        site: both as u32,
        stack: (both >> 32) as u32,
        tid: 0,
    }
}

/// The number of the stack of the owner at `site` whose flight this is, or was: 0 if the flight is
/// another's by now.
pub fn stack(number: u32, site: u32) -> u32 {
    let slot = SLOTS.get((number as usize).wrapping_sub(1));
    let slot = slot.filter(|slot| slot.site.load(Relaxed) as u32 == site);
    slot.map_or(0, |slot| slot.stack.load(Relaxed))
}

/// Frees all flights after fork() in the child: those of other threads never end there.
pub fn after_fork() {
    for slot in &SLOTS {
        // Avoids stores that are not needed: most of the memory has never been touched.
        if slot.state.load(Relaxed) != FREE {
            slot.state.store(FREE, Relaxed);
        }
    }
}
