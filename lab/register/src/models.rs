//! The models of other people's locks.

use crate::Registration;

/// All of them, in the order of their list.
pub fn all() -> Vec<Registration> {
    macro_rules! registrations {
        ($($lock:ident;)*) => {
            vec![$(crate::__registration!(Model, true, overlock_peers::$lock)),*]
        };
    }
    overlock_peers::peers!(registrations)
}
