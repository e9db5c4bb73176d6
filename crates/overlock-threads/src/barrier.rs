//! The asymmetric fence.
//!
//! On Windows `FlushProcessWriteBuffers` makes every processor that runs a thread of this process
//! pass a full fence, and a thread that does not run passed one when it lost its processor. So the
//! light half is a compiler fence there, and elsewhere both halves are full fences.

use std::sync::atomic::Ordering::SeqCst;
#[cfg(not(all(windows, not(miri))))]
use std::sync::atomic::fence;

#[cfg(all(windows, not(miri)))]
#[inline(always)]
pub(crate) fn light() {
    std::sync::atomic::compiler_fence(SeqCst);
}

#[cfg(all(windows, not(miri)))]
pub(crate) fn heavy() {
    #[link(name = "kernel32")]
    unsafe extern "system" {
        safe fn FlushProcessWriteBuffers();
    }
    FlushProcessWriteBuffers();
    std::sync::atomic::fence(SeqCst);
}

#[cfg(not(all(windows, not(miri))))]
#[inline(always)]
pub(crate) fn light() {
    fence(SeqCst);
}

#[cfg(not(all(windows, not(miri))))]
pub(crate) fn heavy() {
    fence(SeqCst);
}
