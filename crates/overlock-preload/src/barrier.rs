//! `pthread_barrier_t`: the barrier of overlock-core in glibc's objects.
//!
//! # Layout
//!
//! 32 bytes; there is no static initialiser.
//!
//! | offset | field | who writes it |
//! |---|---|
//! | 0 | `barrier`: the barrier of overlock-core, 20 bytes | its operations |
//! | 20 | `generation`: see [`crate::fork`] | its first user in a generation |
//! | 24 | `inside`: the number of threads in `pthread_barrier_wait` | those threads |
//! | 28 | `mark`: the barrier is ours | `pthread_barrier_init` |
//!
//! # Which objects are ours
//!
//! glibc's object has 20 bytes, and glibc never writes to the offset of our mark. A process-shared
//! barrier is glibc's, and may have been made by a process without this library, in memory with
//! arbitrary contents. So the mark is an odd number that depends on the address. Those that glibc
//! makes for us get a mark of 0.
//!
//! # The last access
//!
//! Each thread decrements `inside` as its last access (IR, release), and `pthread_barrier_destroy`
//! waits until it is 0 (IA, acquire). So any thread may destroy and free a barrier once its own
//! wait has returned, if no other thread is to arrive.

use core::ffi::{c_int, c_void};
use core::mem::offset_of;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use libc::{EINVAL, PTHREAD_PROCESS_PRIVATE};
use overlock::Linux;
use overlock_core::Platform;
use overlock_core::links::backoff_sleep;
use overlock_core::raw::RawFork;
use overlock_core::sleep::Barrier;
use overlock_shared::ObjectKind;

use crate::site::{Site, with_site};
use crate::{config, fork, order, real, stat};

/// The program's object: see the [module's page](self).
#[derive(Debug)]
#[repr(C)]
pub struct PthreadBarrier {
    barrier: Barrier<Linux>,
    generation: AtomicU32,
    inside: AtomicU32,
    mark: AtomicU32,
}

const _: () = assert!(size_of::<PthreadBarrier>() == size_of::<libc::pthread_barrier_t>());
const _: () = assert!(offset_of!(PthreadBarrier, mark) == 28);

/// The largest count, as in glibc.
const MOST: u32 = u32::MAX / 2 - 1;

/// `PTHREAD_BARRIER_SERIAL_THREAD`, the result of one of the threads.
const SERIAL_THREAD: c_int = -1;

/// The mark of a barrier of ours at this address.
fn mark(address: usize) -> u32 {
    Linux::spread(address) | 1
}

impl PthreadBarrier {
    fn is_ours(&self) -> bool {
        // Relaxed: written before the barrier is used.
        self.mark.load(Relaxed) == mark(core::ptr::from_ref(self).addr())
    }

    fn as_glibcs(&self) -> *mut c_void {
        core::ptr::from_ref(self).cast_mut().cast()
    }

    fn update(&self) {
        fork::update(&self.generation, || {
            self.inside.store(0, Relaxed);
            // SAFETY: no other thread of the earlier generation exists, and those of this one wait
            // until the update is done.
            unsafe { self.barrier.forget_waiters() };
        });
    }
}

with_site! {
    fn pthread_barrier_init(3) => init;
    fn pthread_barrier_wait(1) => wait;
}

unsafe extern "C" fn init(
    barrier: *mut PthreadBarrier,
    attr: *const c_int,
    count: u32,
    site: Site,
) -> c_int {
    if !(1..=MOST).contains(&count) {
        return EINVAL;
    }
    // SAFETY: the caller's promise: null, or an attributes object, which only says whether the
    // barrier is shared.
    let is_shared = !attr.is_null() && unsafe { *attr } != PTHREAD_PROCESS_PRIVATE;
    if is_shared || config::leaves_others() {
        let mark: *mut u32 = barrier
            .wrapping_byte_add(offset_of!(PthreadBarrier, mark))
            .cast();
        // SAFETY: the caller's promise: memory for a barrier.
        unsafe { mark.write(0) };
        // SAFETY: as above.
        return unsafe { real::pthread_barrier_init(barrier.cast(), attr.cast(), count) };
    }
    let new = PthreadBarrier {
        barrier: Barrier::new(count),
        generation: AtomicU32::new(fork::generation()),
        inside: AtomicU32::new(0),
        mark: AtomicU32::new(mark(barrier.addr())),
    };
    // SAFETY: the caller's promise: memory for a barrier that nobody uses.
    unsafe { barrier.write(new) };
    stat::initialised(barrier.addr(), site);
    0
}

unsafe extern "C" fn wait(barrier: *mut PthreadBarrier, site: Site) -> c_int {
    // SAFETY: the caller's promise: a barrier.
    let barrier = unsafe { &*barrier };
    order::sleeps();
    if !barrier.is_ours() {
        // SAFETY: as above; it is glibc's.
        return unsafe { real::pthread_barrier_wait(barrier.as_glibcs()) };
    }
    barrier.update();
    let address = core::ptr::from_ref(barrier).addr();
    let waits = stat::Event::begin();
    barrier.inside.fetch_add(1, Relaxed);
    let leads = barrier.barrier.wait();
    // IR: release, pairs with IA. From here on the barrier may be gone.
    barrier.inside.fetch_sub(1, Release);
    // The last thread to arrive does not wait.
    if let Some(waits) = waits.filter(|_| !leads) {
        waits.over(address, ObjectKind::Barrier, site, false);
    }
    if leads { SERIAL_THREAD } else { 0 }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
/// `pthread_barrier_destroy`: waits until all threads have left.
pub unsafe extern "C" fn pthread_barrier_destroy(barrier: *mut PthreadBarrier) -> c_int {
    // SAFETY: the caller's promise: a barrier.
    let barrier = unsafe { &*barrier };
    if !barrier.is_ours() {
        // SAFETY: as above; it is glibc's.
        return unsafe { real::pthread_barrier_destroy(barrier.as_glibcs()) };
    }
    barrier.update();
    // IA: acquire, pairs with IR.
    while barrier.inside.load(Acquire) != 0 {
        backoff_sleep::<Linux>();
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(count: u32) -> PthreadBarrier {
        PthreadBarrier {
            barrier: Barrier::new(count),
            generation: AtomicU32::new(fork::generation()),
            inside: AtomicU32::new(0),
            mark: AtomicU32::new(0),
        }
    }

    /// Fails where the mark does not depend on the address.
    #[test]
    fn a_copy_of_a_barrier_at_another_address_is_not_ours() {
        let [first, second] = [new(1), new(1)];
        let address = core::ptr::from_ref(&first).addr();
        first.mark.store(mark(address), Relaxed);
        second.mark.store(mark(address), Relaxed);
        assert!(first.is_ours() && !second.is_ours());
        second.mark.store(0, Relaxed);
        assert!(!second.is_ours());
    }

    /// Fails where a child counts threads that exist in the parent only.
    #[test]
    fn a_barrier_in_a_child_of_fork_has_no_waiters() {
        let barrier = new(1);
        barrier.inside.store(2, Relaxed);
        barrier.generation.store(fork::generation() + 1, Relaxed);
        barrier.update();
        assert!(barrier.barrier.wait());
        assert_eq!(barrier.inside.load(Relaxed), 0);
    }
}
