//! `lock_until` of the locks that have it. The compiler finds these, as the registry does not list
//! them.

use overlock::spin::{RawLock, RawTimedLock};
use overlock_core::Instant;

pub type Until<L> = fn(&L, Instant) -> Option<<L as RawLock>::Token>;

::overlock_family::abilities! {
    [L: RawLock]
    Timed, Untimed, until, RawTimedLock, Until<L>, L::lock_until;
}

/// The `Option<Until>` of a lock type that is named, not a parameter.
macro_rules! until_of {
    ($lock:ty) => {{
        #[allow(unused_imports)] // each lock needs one of the two
        use crate::until::{Timed as _, Untimed as _};
        #[allow(clippy::needless_borrow)] // the second reference is what makes it look twice
        (&::overlock_family::registry::Probe::<$lock>::new()).until()
    }};
}
pub(crate) use until_of;
