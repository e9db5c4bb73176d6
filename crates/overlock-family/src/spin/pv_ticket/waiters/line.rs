//! The table's cache lines: plain data.

use overlock_core::platform::{Atomic, Zero, clear};
use overlock_core::platform::{Atomics, ConstAtomics};

/// Cells in a line.
pub(super) const CELLS: usize = 16;

/// One cache line of the table: names of nodes, 0 for an empty cell.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct WaiterLine<A: Atomics> {
    pub(super) cells: [A::U32; CELLS],
}

impl<A: Atomics> WaiterLine<A> {
    /// An empty line.
    pub(crate) fn new() -> Self {
        WaiterLine {
            cells: core::array::from_fn(|_| A::U32::new(0)),
        }
    }
}

impl<A: Atomics> WaiterLine<A> {
    /// After fork() in the child: forgets waiters, which exist only in the parent.
    pub(crate) fn forget(&self) {
        clear(self.cells.iter());
    }
}

impl<A: ConstAtomics> WaiterLine<A> {
    /// An empty line, for statics: all zero bytes.
    #[allow(clippy::declare_interior_mutable_const)] // each use is a new line, as intended
    pub(crate) const INIT: Self = WaiterLine {
        cells: [const { Zero::ZERO }; CELLS],
    };
}
