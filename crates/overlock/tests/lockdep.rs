//! The validator of lock order. Its records are process-wide, so each scene is a process of its
//! own: this program, started again.
#![cfg(feature = "lockdep")]

#[path = "lockdep/alone.rs"]
mod alone;
#[path = "lockdep/order.rs"]
mod order;
#[path = "lockdep/other.rs"]
mod other;
#[path = "lockdep/raw.rs"]
mod raw;
#[path = "lockdep/release.rs"]
mod release;
#[path = "lockdep/signal.rs"]
mod signal;
#[path = "lockdep/text.rs"]
mod text;
