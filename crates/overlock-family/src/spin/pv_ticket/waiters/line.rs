//! The table's cache lines: plain data.

use overlock_core::platform::{Atomic, Atomics, clear};

/// Cells in a line.
pub(super) const CELLS: usize = 16;

/// One cache line of the table: names of nodes, 0 for an empty cell.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct WaiterLine<A: Atomics> {
    pub(super) cells: [A::U32; CELLS],
}

impl<A: Atomics> WaiterLine<A> {
    /// An empty line: all zero bytes.
    pub(crate) const fn new() -> Self {
        WaiterLine {
            cells: [const { Atomic::ZERO }; CELLS],
        }
    }

    /// After fork() in the child: forgets waiters, which exist only in the parent.
    pub(crate) fn forget(&self) {
        clear(self.cells.iter());
    }
}
