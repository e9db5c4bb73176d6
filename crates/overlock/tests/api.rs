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
