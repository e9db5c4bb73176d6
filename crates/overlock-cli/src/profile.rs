//! Profiles of waits: making them, and the files that are made of them.

mod attach;
mod collect;
mod command;
pub mod files;
mod kept;
mod locks;

pub use command::{Args, run};
pub use kept::{is_profile, read};
pub use locks::describe;
