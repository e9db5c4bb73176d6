//! The types: their common part with parking_lot, the traits of lock_api, sizes, the guards'
//! acquisitions, what may be shared and sent, any raw lock with data, cancellation, condition
//! variables with any lock, semaphores, one-time execution.

// With the feature `lockdep` an acquisition is first tried, then waited for.
#[cfg(not(feature = "lockdep"))]
mod books;
#[path = "../common/caller.rs"]
mod caller;
mod family;
#[cfg(not(feature = "lockdep"))]
mod ledger;
mod lock_api;
mod names;
mod once;
mod parking_lot_api;
mod process;
mod recursive;
mod reports;
mod sent;
mod sharing;
mod sizes;
mod traits;
mod unwinding;
mod waits;

/// Does not compile where the crate's root has a name of std's prelude or of `std::time`.
#[test]
fn a_glob_import_hides_no_name_of_std() {
    use std::time::*;

    #[allow(unused_imports)] // its names are only there to collide
    use overlock::*;

    assert!(Instant::now() + Duration::from_secs(1) > Instant::now());
    assert_eq!(core::hint::black_box(1), 1);
}
