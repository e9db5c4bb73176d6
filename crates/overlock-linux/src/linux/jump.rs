//! Waits that a signal handler jumps out of.

use std::cell::Cell;
use std::ptr;

use overlock_core::rw::OverlockRw;

use super::Linux;

thread_local! {
    /// The lock whose gate the thread owns in a wait, or 0. Only the thread and the handlers that
    /// interrupt it use it.
    pub(super) static GATE: Cell<usize> = const { Cell::new(0) };
}

/// The calling thread is about to jump, from a signal handler perhaps: it passes on what it owns
/// only while it waits. Others would wait for that for ever.
pub fn jump_out() {
    let gate = GATE.replace(0);
    if gate == 0 {
        return;
    }
    let lock = ptr::with_exposed_provenance::<OverlockRw<Linux>>(gate);
    // SAFETY: noted by a wait for this lock, which the handler has interrupted: until the jump the
    // lock is there.
    let lock = unsafe { &*lock };
    // SAFETY: and the thread owns its gate.
    unsafe { lock.abandon_gate() };
}
