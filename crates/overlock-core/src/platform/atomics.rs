//! The atomic types of a platform.

use core::fmt::Debug;

use super::atomic::Atomic;
use super::lanes::{ByteLanes, Lanes};

/// The atomic types of a [`Platform`](super::Platform): all that the layout of a lock, and of what
/// it keeps in [tables](crate::tables), depends on.
pub trait Atomics: Sized + Send + Sync + Debug + 'static {
    /// An 8-bit atomic.
    type U8: Atomic<u8>;
    /// A 16-bit atomic with operations on its two bytes.
    type U16: Lanes<u16, u8>;
    /// A 32-bit atomic with operations on its halves and its low bytes.
    type U32: ByteLanes;
    /// A 64-bit atomic, on targets that have one. Few locks need it.
    #[cfg(target_has_atomic = "64")]
    type U64: Atomic<u64>;
    /// A pointer-sized atomic.
    type Usize: Atomic<usize>;
}
