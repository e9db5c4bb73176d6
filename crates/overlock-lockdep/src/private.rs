//! For the types of crate overlock, beyond the functions of the [crate](super). A lock that moves
//! stays the same lock, so these calls identify it by more than its address. May change at any
//! time.

use std::ffi::c_void;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use super::class::{self, ClassId};
use super::gate::Quiet;
use super::{GATE, check, notice, signal, sweep, thread, trace, wait};

pub use super::thread::Held;

/// Sets the functions `_Unwind_Backtrace` and `_Unwind_GetIP`, before there is a second thread.
/// Those that the program's objects find may take locks that the validator sees.
///
/// # Safety
///
/// Both are functions of one library, of these names.
pub unsafe fn set_unwinder(backtrace: *mut c_void, get_ip: *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe { trace::set_unwinder(backtrace, get_ip) };
}

/// The calling thread is about to wait for the lock, if it is not free.
#[inline]
pub fn wanted(held: &Held) {
    if thread::is_idle() {
        return;
    }
    if let Some(me) = thread::enter() {
        check::wanted(&me, held);
    }
}

/// The class of the lock with this mark if the calling thread holds no lock, is in no handler, and
/// has taken this lock last. Then a call of [`acquire`](super::acquire) finds nothing.
#[inline]
pub fn class_if_last(lock: usize, mark: &AtomicU32) -> Option<ClassId> {
    // Relaxed: the mark is the only data.
    thread::last_class(lock, mark.load(Relaxed))
}

/// The calling thread has acquired the lock.
#[inline(always)]
pub fn holds(held: &Held) {
    let Some(me) = thread::enter() else {
        return unseen();
    };
    signal::acquired(&me, held);
    if !me.push(held) {
        notice::once(notice::DEPTH);
    }
}

#[cold]
fn unseen() {
    if thread::UNSEEN.load(Relaxed) != 0 {
        notice::once(notice::THREADS);
    }
}

/// Whether the calling thread was seen to hold the lock, and does not any more.
#[inline(always)]
pub fn releases(lock: usize) -> bool {
    thread::enter_known().is_some_and(|me| me.release(lock))
}

/// As [`release`](super::release), for an acquisition that will be resumed.
pub fn pause(lock: usize) -> Option<Held> {
    thread::enter_known()?.pop(lock)
}

/// Returns the number of the calling thread in [`deadlocks`](super::deadlocks); `None` if the
/// validator does not see it.
pub fn this_thread() -> Option<u32> {
    thread::enter().map(|me| me.id())
}

/// The calling thread begins to wait for the lock.
pub fn waits(held: &Held) {
    if let Some(me) = thread::enter() {
        wait::begin(&me, held);
    }
}

/// Returns the class for one lock of it, which keeps this, and ends by [`ends`].
pub fn single(class: ClassId) -> ClassId {
    ClassId::new(class.node(), class::new_number())
}

/// The lock is gone, with what is known of it alone.
pub fn ends(class: ClassId) {
    if !class::may_have_node(class.number()) {
        return;
    }
    let quiet = Quiet::begin();
    if let Some(inside) = GATE.enter(&quiet) {
        class::end(class.number(), &inside);
        sweep(&inside);
    }
}
