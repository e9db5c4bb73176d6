//! Contexts of a thread.

/// Contexts in which a thread can wait for locks at a time: its ordinary code, and three signal
/// handlers (or, in a kernel, interrupt levels) that nest in it.
pub const CONTEXTS: usize = 4;
