//! `lock_until` of the locks that have it.

use overlock::spin::RawLock;
use overlock_core::Instant;

pub type Until<L> = fn(&L, Instant) -> Option<<L as RawLock>::Token>;

/// The `Option<Until>` of a lock with these abilities.
macro_rules! until_of {
    (basic, $lock:ty) => {
        None::<crate::until::Until<$lock>>
    };
    ($can:ident, $lock:ty) => {
        Some(<$lock as overlock::spin::RawTimedLock>::lock_until)
    };
}
pub(crate) use until_of;
