//! Waits that a signal handler jumps out of.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::compiler_fence;

use overlock_core::node::{CONTEXTS, NodeId};
use overlock_core::rw::OverlockRw;
use overlock_core::sleep::condvar;

use super::{Linux, slot};

/// Waits that nest: in ordinary code, and in handlers that interrupt it. Those beyond are not
/// noted, and keep their gate.
const NESTED: usize = 4;

thread_local! {
    /// The locks whose gates the thread owns in waits, the innermost last. Only the thread and the
    /// handlers that interrupt it use them.
    static GATES: [Cell<usize>; NESTED] = const { [const { Cell::new(0) }; NESTED] };
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

#[inline(never)]
pub(super) fn begin_gate(gate: usize) {
    let depth = DEPTH.get();
    // The place is taken before it names the gate: a handler between the two uses the next.
    GATES.with(|gates| {
        let place = gates.get(depth);
        place.inspect(|place| place.set(0));
        compiler_fence(SeqCst);
        DEPTH.set(depth + 1);
        compiler_fence(SeqCst);
        place.inspect(|place| place.set(gate));
    });
}

#[inline(never)]
pub(super) fn owns_gate(gate: usize) -> bool {
    match DEPTH.get() {
        0 => false,
        depth => GATES.with(|gates| gates.get(depth - 1).is_none_or(|place| place.get() == gate)),
    }
}

#[inline(never)]
pub(super) fn end_gate(gate: usize) -> bool {
    let owns = owns_gate(gate);
    if owns {
        DEPTH.set(DEPTH.get() - 1);
    }
    owns
}

/// The calling thread is about to jump, from a signal handler perhaps: it passes on what it owns
/// only while it waits. Others would wait for that for ever.
pub fn jump_out() {
    if let Some(slot) = slot::mine() {
        for context in 0..CONTEXTS {
            condvar::jump_out::<Linux>(NodeId::new(slot, context));
        }
    }
    let depth = DEPTH.replace(0);
    GATES.with(|gates| {
        gates
            .iter()
            .take(depth)
            .filter(|gate| gate.get() != 0)
            .for_each(|gate| abandon(gate.get()))
    });
}

fn abandon(gate: usize) {
    let lock = ptr::with_exposed_provenance::<OverlockRw<Linux>>(gate);
    // SAFETY: noted by a wait for this lock, which a handler has interrupted: until the jump the
    // lock is there.
    let lock = unsafe { &*lock };
    // SAFETY: and the thread owns its gate.
    unsafe { lock.abandon_gate() };
}
