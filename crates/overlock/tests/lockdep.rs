//! The validator of lock order, by the types. Its tables belong to the process, so each scene is a
//! process of its own: this program, started again.
#![cfg(feature = "lockdep")]

// The validator's own tests use it too.
#[path = "../../overlock-lockdep/tests/lockdep/alone.rs"]
mod alone;
#[cfg(feature = "deadlock_detection")]
#[path = "lockdep/deadlock.rs"]
mod deadlock;
#[path = "lockdep/order.rs"]
mod order;
#[path = "lockdep/other.rs"]
mod other;
