//! The material of the types: the real locks, or states of the checker that a test runs under.

#[cfg(any(all(loom, feature = "loom"), all(shuttle, feature = "shuttle")))]
mod model;
#[cfg(not(any(all(loom, feature = "loom"), all(shuttle, feature = "shuttle"))))]
mod real;

#[cfg(any(all(loom, feature = "loom"), all(shuttle, feature = "shuttle")))]
pub use model::*;
#[cfg(not(any(all(loom, feature = "loom"), all(shuttle, feature = "shuttle"))))]
pub use real::*;
