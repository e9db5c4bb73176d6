//! Locks with names, by their addresses: their types have no room.

use core::ffi::{CStr, c_char, c_int};
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use libc::{EINVAL, ENOMEM};
use overlock_linux::__private::{Mapped, Zeroed};
use overlock_stat::ObjectKind;
use overlock_stat::lock::{Lock, Name, State};
use overlock_stat::mode::is_on;

/// The number of locks.
const LOCKS: usize = 8192;

/// The number of places that are tried for a lock.
const REACH: usize = 32;

#[derive(Debug)]
struct Named {
    /// 0 while it is free.
    address: AtomicUsize,
    state: State,
}

// SAFETY: it is made of atomics, of which zero bytes are a valid value.
unsafe impl Zeroed for Named {}

static ALL: Mapped<[Named; LOCKS]> = Mapped::new();

/// Whether a reader-writer lock has a name: their words have no mark.
static HAS_RWLOCKS: AtomicBool = AtomicBool::new(false);

fn near(all: &[Named; LOCKS], address: usize) -> impl Iterator<Item = &Named> {
    let start = ((address as u64 >> 2).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize;
    (0..REACH).map(move |step| &all[(start + step) % LOCKS])
}

/// The place of a lock, which is new or known.
fn place(all: &[Named; LOCKS], address: usize) -> Option<&Named> {
    // Relaxed, here and below: nobody else uses the lock, or by its address alone.
    let known = near(all, address).find(|named| named.address.load(Relaxed) == address);
    let take = |named: &&Named| {
        let taken = (named.address).compare_exchange(0, address, Relaxed, Relaxed);
        taken.is_ok()
    };
    known.or_else(|| near(all, address).find(take))
}

/// Gives a lock a name for acquisitions of these kinds. A lock that `is_new` has none yet: what is
/// known by its address is of another. Returns 0 or an errno; `Ok(false)` where nothing is counted.
///
/// # Safety
///
/// `name` is null, or a string.
unsafe fn name(
    address: usize,
    kinds: &[ObjectKind],
    name: *const c_char,
    is_new: bool,
) -> Result<bool, c_int> {
    if name.is_null() {
        return Err(EINVAL);
    }
    if !is_on() {
        return Ok(false);
    }
    // SAFETY: the caller's promise.
    let name = unsafe { CStr::from_ptr(name) };
    let named = ALL.get().and_then(|all| place(all, address));
    let named = named.ok_or(ENOMEM)?;
    if is_new {
        named.state.reset();
    }
    for &kind in kinds {
        named.state.name(kind, name.to_bytes());
    }
    Ok(true)
}

/// Gives a mutex a name.
///
/// # Safety
///
/// `text` is null, or a string.
pub(crate) unsafe fn mutex(
    address: usize,
    text: *const c_char,
    is_new: bool,
) -> Result<bool, c_int> {
    // SAFETY: the caller's promise.
    unsafe { name(address, &[ObjectKind::Mutex], text, is_new) }
}

/// Gives a reader-writer lock a name.
///
/// # Safety
///
/// `text` is null, or a string.
pub(crate) unsafe fn rwlock(address: usize, text: *const c_char) -> Result<bool, c_int> {
    // SAFETY: the caller's promise.
    let named = unsafe { name(address, &[ObjectKind::Read, ObjectKind::Write], text, false) }?;
    if named {
        HAS_RWLOCKS.store(true, Relaxed);
    }
    Ok(named)
}

/// Whether a reader-writer lock may be counted.
#[inline]
pub(crate) fn may_be_counted() -> bool {
    HAS_RWLOCKS.load(Relaxed) && is_on()
}

/// A lock with a name, for an acquisition of this kind; `None` of another, and where nothing is
/// counted.
#[cold]
pub(crate) fn lock<L>(lock: &L, kind: ObjectKind) -> Option<Lock<'static>> {
    if !is_on() {
        return None;
    }
    let object = ptr::from_ref(lock).addr();
    let named = near(ALL.mapped()?, object).find(|named| named.address.load(Relaxed) == object)?;
    Some(Lock {
        state: &named.state,
        object,
        kind,
        name: Name::Noted,
    })
}

/// The memory is another lock's from now on, or none's.
pub(crate) fn forget<L>(lock: *mut L) {
    if let Some(all) = ALL.mapped() {
        let mut known = near(all, lock.addr());
        if let Some(named) = known.find(|named| named.address.load(Relaxed) == lock.addr()) {
            named.state.reset();
            named.address.store(0, Relaxed);
        }
    }
}

/// Acquires a lock with a name by `attempt`, or else by `wait`, if there is that. Returns whether
/// it has the lock.
#[inline(always)]
pub(crate) fn acquire(
    lock: &Lock<'_>,
    is_contended: bool,
    attempt: impl FnOnce() -> bool,
    wait: Option<impl FnOnce() -> bool>,
) -> bool {
    // In the frame of the library's function: its caller is the program.
    let here = 0_u8;
    let frame = ptr::from_ref(&here).addr();
    let begun = lock.begins(is_contended, frame, 0);
    if attempt() {
        lock.taken(begun);
        return true;
    }
    let Some(wait) = wait else {
        return false;
    };
    let waiting = lock.waits(begun, frame);
    let acquired = wait();
    match acquired {
        true => lock.over(waiting),
        false => lock.gave_up(waiting),
    }
    acquired
}
