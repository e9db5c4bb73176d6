//! Profiles of waits, and the files that are made of them.

pub mod files;
mod kept;
mod locks;

pub use kept::{is_profile, read};
pub use locks::describe;
