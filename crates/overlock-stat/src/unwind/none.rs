//! Processors whose frames are not known: there are no callers.

use core::ffi::c_void;

pub use crate::call::{Frame, From, OWN_FRAMES};

/// The bits of an address.
pub const ADDRESS: usize = usize::MAX;

/// Begins.
pub fn start(_: *mut c_void) {}

/// Whether callers, and variables, can be found.
pub fn is_able() -> bool {
    false
}

/// Whether the address is of a variable.
pub fn is_static(_: usize) -> bool {
    false
}

/// Calls `each` with no frame.
pub fn callers(_: From, _: &mut dyn FnMut(Frame) -> bool) {}

/// An address that the stack ends below, and whether it is one of its own.
pub fn end_of_stack(sp: usize) -> (usize, bool) {
    (sp, false)
}
