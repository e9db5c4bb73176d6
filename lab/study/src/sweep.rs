//! Many simulations: a grid of machines, hosts, workloads, vCPUs, locks and seeds, spread over the
//! cores of this machine, or over several.
//!
//! | module | what is there |
//! |---|---|
//! | [`grid`] | which simulations there are, and their order |
//! | [`load`] | how many vCPUs a simulation has |
//! | [`shard`] | the part of them that one of several machines takes |
//! | [`record`] | one simulation, and what it brings |
//! | [`build`] | the build of the program, which results depend on |
//! | [`store`] | the file of results, a line for each simulation |
//! | [`run`] | all that are left to do, on several threads |
//! | [`merge`] | several files made one |
//! | [`table`] | the results for people |

pub mod build;
pub mod error;
pub mod grid;
pub mod load;
pub mod merge;
pub mod record;
pub mod run;
pub mod shard;
pub mod store;
pub mod table;
#[cfg(test)]
pub(crate) mod tests;

pub use build::Build;
pub use error::Error;
pub use grid::{Grid, Key, Point};
pub use load::Load;
pub use record::{Measured, Outcome, Record, simulate};
pub use shard::Shard;
pub use store::{Part, Store};
