//! Model checkers for overlock's locks: the very code that ships, on platforms where a checker
//! decides who runs when.

pub mod arena;
pub mod coverage;
pub mod explore;
pub mod failure;
pub mod list;
mod pi;
pub mod program;
pub mod report;
pub mod run;
pub mod scenario;
pub mod shuttle;
pub mod sources;
pub mod tables;
pub mod world;

/// The names that [`lock`] expands to.
#[doc(hidden)]
pub mod __private {
    pub use crate::scenario::exclusive::Abilities;
    pub use overlock_core::raw::RawLock;
}
