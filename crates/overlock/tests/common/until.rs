//! `lock_until` of the locks that have it. The compiler finds it, since the registry does not list
//! it.

use overlock::Instant;
use overlock::spin::{RawLock, RawTimedLock};

pub type Until<L> = fn(&L, Instant) -> Option<<L as RawLock>::Token>;

::overlock::core::abilities! {
    [L: RawLock]
    Timed, Untimed, until, RawTimedLock, Until<L>, L::lock_until;
}

/// The `Option<Until>` of a lock type that is named, not a parameter.
macro_rules! until_of {
    ($lock:ty) => {{
        #[allow(unused_imports)] // each lock needs one of the two
        use crate::until::{Timed as _, Untimed as _};
        #[allow(clippy::needless_borrow)] // the second reference makes method lookup try twice
        (&::overlock::core::registry::Probe::<$lock>::new()).until()
    }};
}
pub(crate) use until_of;
