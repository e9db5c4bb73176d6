//! `pthread_spinlock_t`: glibc's format, with other waiting.
//!
//! The object has 4 bytes: no room for anything but the lock, nor for a mark that says which
//! library has made it. A process-shared spinlock may have been made, or be used, by a process
//! without this library. So all of them have glibc's format, and only the waiting differs: polls,
//! then backoff sleeps of growing length, so that a preempted holder gets a CPU.
//!
//! glibc has two formats. On x86 a free lock is 1 and a taken one 0 or less, as glibc's waiters
//! count down. Elsewhere a free lock is 0 and a taken one 1. A call of glibc's `pthread_spin_init`
//! tells which, once.
//!
//! LA, acquire, takes the lock, and pairs with UL, release, of the unlock, which is the last
//! access.

use core::ffi::c_int;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use libc::EBUSY;
use overlock::Linux;
use overlock_core::platform::backoff_sleep;
use overlock_core::{Platform, Spin};
use overlock_shared::ObjectKind;

use crate::site::{Site, with_site};
use crate::{config, real, stat};

/// The program's object.
pub type SpinLock = AtomicU32;

/// How long a waiter polls before it sleeps: critical sections of spinlocks should be far shorter.
const SPIN_NS: u64 = 20_000;

/// The first backoff sleep, and the longest.
const BACKOFF_SLEEP_NS: (u64, u64) = (20_000, 1_000_000);

/// Not the free value of either format: it is not known yet, or acquisitions are noted.
const UNKNOWN: u32 = u32::MAX;

/// The value of a free lock for the fast paths.
static FREE: AtomicU32 = AtomicU32::new(UNKNOWN);

/// The value of a free lock: 1 or 0.
#[inline]
fn free() -> u32 {
    // Relaxed: no other data depends on the value, and determining it twice is harmless.
    match FREE.load(Relaxed) {
        UNKNOWN => glibcs_free_value(),
        free => free,
    }
}

#[cold]
fn glibcs_free_value() -> u32 {
    static KNOWN: AtomicU32 = AtomicU32::new(UNKNOWN);
    let mut free = KNOWN.load(Relaxed);
    if free == UNKNOWN {
        let lock = SpinLock::new(UNKNOWN);
        // SAFETY: a spinlock that no other thread sees, and valid for the write.
        unsafe { real::pthread_spin_init(lock.as_ptr().cast(), libc::PTHREAD_PROCESS_PRIVATE) };
        free = lock.load(Relaxed);
        KNOWN.store(free, Relaxed);
    }
    if !is_noted() {
        FREE.store(free, Relaxed);
    }
    free
}

/// Whether statistics note each owner, which the fast paths do not.
fn is_noted() -> bool {
    config::get().stat && !config::leaves_others()
}

#[inline]
fn take_if(lock: &SpinLock, free: u32) -> bool {
    // LA: acquire, pairs with UL.
    lock.compare_exchange(free, 1 - free, Acquire, Relaxed)
        .is_ok()
}

fn try_take(lock: &SpinLock) -> bool {
    take_if(lock, free())
}

#[cold]
fn take_slow(lock: &SpinLock, site: Site) {
    let address = core::ptr::from_ref(lock).addr();
    let waits = stat::Event::begin_held(address, ObjectKind::Spin, site);
    let mut sleep_ns = BACKOFF_SLEEP_NS.0;
    while !try_take(lock) {
        let limit = Spin::Until(Linux::now().plus_nanos(SPIN_NS));
        // Relaxed: the attempt that follows acquires.
        let seen = Linux::wait_until(lock, Relaxed, limit, |word: u32| word == free());
        if seen.is_err() {
            backoff_sleep::<Linux>(sleep_ns);
            // A real-time thread expects to have the lock as soon as it is free.
            if Linux::rank() == 0 {
                sleep_ns = (sleep_ns * 2).min(BACKOFF_SLEEP_NS.1);
            }
        }
    }
    if let Some(waits) = waits {
        waits.over(address, ObjectKind::Spin, site, false);
    }
}

with_site! {
    fn pthread_spin_init(2) => init;
    fn pthread_spin_lock(1) => take;
}

unsafe extern "C" fn init(lock: *mut SpinLock, _shared: c_int, site: Site) -> c_int {
    // SAFETY: the caller's promise: memory for a lock that nobody uses.
    unsafe { lock.write(SpinLock::new(free())) };
    stat::initialised(lock.addr(), site);
    0
}

#[cfg_attr(not(test), unsafe(no_mangle))]
/// `pthread_spin_destroy`: nothing, as in glibc.
pub unsafe extern "C" fn pthread_spin_destroy(_lock: *mut SpinLock) -> c_int {
    0
}

unsafe extern "C" fn take(lock: *mut SpinLock, site: Site) -> c_int {
    // SAFETY: the caller's promise: a lock.
    let lock = unsafe { &*lock };
    match FREE.load(Relaxed) {
        UNKNOWN => take_noted(lock, site),
        free if take_if(lock, free) => 0,
        _ => take_held(lock, site),
    }
}

fn take_held(lock: &SpinLock, site: Site) -> c_int {
    if config::leaves_others() {
        // SAFETY: the reference is to a lock, in glibc's format.
        return unsafe { real::pthread_spin_lock(lock.as_ptr().cast()) };
    }
    take_slow(lock, site);
    0
}

#[cold]
fn take_noted(lock: &SpinLock, site: Site) -> c_int {
    let error = match try_take(lock) {
        true => 0,
        false => take_held(lock, site),
    };
    if is_noted() {
        stat::usage::is_held(core::ptr::from_ref(lock).addr(), site);
    }
    error
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn pthread_spin_trylock(lock: *mut SpinLock) -> c_int {
    // SAFETY: the caller's promise: a lock.
    let lock = unsafe { &*lock };
    let is_taken = match FREE.load(Relaxed) {
        UNKNOWN => try_take_noted(lock),
        free => take_if(lock, free),
    };
    if is_taken { 0 } else { EBUSY }
}

#[cold]
fn try_take_noted(lock: &SpinLock) -> bool {
    let is_taken = try_take(lock);
    if is_taken && is_noted() {
        stat::usage::is_held(core::ptr::from_ref(lock).addr(), 0);
    }
    is_taken
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn pthread_spin_unlock(lock: *mut SpinLock) -> c_int {
    // SAFETY: the caller's promise: a lock.
    let lock = unsafe { &*lock };
    match FREE.load(Relaxed) {
        UNKNOWN => release_noted(lock),
        // UL: release, pairs with LA.
        free => lock.store(free, Release),
    }
    0
}

#[cold]
fn release_noted(lock: &SpinLock) {
    let address = core::ptr::from_ref(lock).addr();
    // UL: as above. After this the lock may have been freed.
    lock.store(glibcs_free_value(), Release);
    if is_noted() {
        stat::has_released(address);
    }
}
