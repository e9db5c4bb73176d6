//! The validator of lock order. Its tables belong to the process, so each scene is a process of its
//! own: this program, started again.

#[path = "lockdep/alone.rs"]
mod alone;
#[path = "lockdep/raw.rs"]
mod raw;
#[path = "lockdep/release.rs"]
mod release;
#[path = "lockdep/signal.rs"]
mod signal;
#[path = "lockdep/text.rs"]
mod text;
