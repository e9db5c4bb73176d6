//! Profiles of waits: making them, and the files that are made of them.

mod attach;
mod collect;
mod command;
pub mod diff;
pub mod files;
mod kept;
mod locks;
pub mod merge;
mod started;
pub mod why;

pub use command::{Args, Options, run};
pub use kept::{is_profile, read};
pub use locks::describe;
pub use started::{Plan, run as start};
