//! Collection of what a program under the drop-in shows of its waits.

mod build;
mod collector;
mod holders;
mod kept;
mod owner;
mod parts;
mod quota;
mod ring;
mod shown;
mod tasks;
mod whole;

pub use build::build;
pub use collector::{Collector, Wanted};
pub use quota::{Quota, Throttled};
