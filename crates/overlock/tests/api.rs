//! The types beyond their common part with parking_lot (`parking_lot_api.rs`): the guards'
//! acquisitions, what may be shared and sent, any raw lock with data, cancellation, condition
//! variables with any lock, semaphores, one-time execution.

// With the feature `lockdep` an acquisition is first tried, then waited for.
#[cfg(not(feature = "lockdep"))]
#[path = "api/books.rs"]
mod books;
#[path = "api/family.rs"]
mod family;
#[cfg(not(feature = "lockdep"))]
#[path = "api/ledger.rs"]
mod ledger;
#[path = "api/once.rs"]
mod once;
#[path = "api/sharing.rs"]
mod sharing;
#[path = "api/unwinding.rs"]
mod unwinding;
#[path = "api/waits.rs"]
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
