//! The name of the calling thread, for reentrant mutexes.

use std::num::NonZeroUsize;
use std::ptr::NonNull;

/// Tells threads apart.
#[derive(Debug)]
pub struct RawThreadId;

// SAFETY: no two threads that are alive have this variable at the same address, and it does not
// move.
unsafe impl lock_api::GetThreadId for RawThreadId {
    const INIT: Self = RawThreadId;

    #[inline]
    fn nonzero_thread_id(&self) -> NonZeroUsize {
        thread_local!(static HERE: u8 = const { 0 });
        HERE.with(|here| NonNull::from(here).addr())
    }
}
