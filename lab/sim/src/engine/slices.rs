//! Time slices of spinning threads: the rule of threads on Linux. The rule itself costs nothing; a
//! yield costs what a system call does.

use overlock_core::platform::slices::{SLICE, next_length};

use super::state::Engine;
use super::{calls, current, with};

/// The time slice on a CPU, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slice {
    began: u64,
    length: u64,
    /// The thread that was last seen spinning here, and how often that has changed.
    thread: usize,
    changes: u64,
}

impl Slice {
    pub const NEW: Self = Self {
        began: 0,
        length: SLICE,
        thread: usize::MAX,
        changes: 0,
    };
}

/// Begins a slice: the caller has just got its CPU.
pub(crate) fn begin_slice() {
    if let Some(me) = current() {
        with(|engine| {
            let now = engine.now.as_ns();
            engine.slice_of(me).began = now;
        });
    }
}

/// Yields the CPU of the caller, if its slice is over. Returns whether it has.
pub(crate) fn yield_slice(now: u64) -> bool {
    let Some(me) = current() else { return false };
    let Some(changes) = with(|engine| engine.gives_slice(me, now)) else {
        return false;
    };
    calls::rest();
    with(|engine| engine.has_slice_again(me, now, changes));
    true
}

impl Engine {
    /// That of the CPU of `vcpu`.
    fn slice_of(&mut self, vcpu: usize) -> &mut Slice {
        &mut self.slices[self.schedule.cpu(vcpu)]
    }

    /// `vcpu` spins. If its slice is over, begins that of the next thread, and returns how often
    /// the thread on the CPU has changed so far.
    fn gives_slice(&mut self, vcpu: usize, now: u64) -> Option<u64> {
        if self.host.hypervisor {
            return None;
        }
        let slice = self.slice_of(vcpu);
        if slice.thread != vcpu {
            slice.thread = vcpu;
            slice.changes += 1;
        }
        (now.saturating_sub(slice.began) >= slice.length).then(|| {
            slice.began = now;
            slice.changes
        })
    }

    /// `vcpu` has yielded at that time, and has a CPU again.
    fn has_slice_again(&mut self, vcpu: usize, yielded: u64, changes: u64) {
        let back = self.now.as_ns();
        let slice = self.slice_of(vcpu);
        // It may have come to another CPU, with more or fewer changes.
        let others = slice.changes.wrapping_sub(changes);
        slice.length = next_length(slice.length, back - yielded, others);
        slice.began = back;
    }
}
