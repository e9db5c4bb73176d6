//! What a fast path in another language has to know: overlock-capi's header takes and releases the lock without a call.

use core::mem::offset_of;

use super::{Overlock, Policy};
use crate::platform::Platform;

impl<P: Platform, Y: Policy> Overlock<P, Y> {
    /// Where the byte is that is 0 while the lock is free.
    pub const LOCKED_OFFSET: usize = offset_of!(Self, locked);
    /// Where the `u32` is to which an owner adds 1 when it has acquired the lock, if the policy learns.
    pub const DONE_OFFSET: usize = offset_of!(Self, done);
    /// What an owner whose CPU is not recorded writes to the byte.
    pub const HELD: u8 = super::HELD;
}
