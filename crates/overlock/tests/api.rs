//! The types that parking_lot lacks, or that go beyond it (`parking_lot_api.rs` has the rest).
//! Covers the guards' acquisitions, `Send` and `Sync`, raw locks with data, cancellation, condition
//! variables with any lock, semaphores and `Once`.

// With the feature `lockdep` an acquisition tries first, then waits.
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
