//! Published measurements as data, and how well simulations agree with them.
//!
//! | module | what is there |
//! |---|---|
//! | [`data`] | folders of figures, and what it takes to simulate each |
//! | [`unit`](mod@unit) | the units of figures |
//! | [`run`] | the simulations |
//! | [`judge`] | orders, errors, and the skill over a null model |
//! | [`text`] | the score for people |
//! | [`known`] | the score that the project's pages have |

pub mod data;
pub mod judge;
pub mod known;
pub mod run;
#[cfg(test)]
mod tests;
pub mod text;
pub mod unit;

pub use data::{BadFolder, Case, Figure, Folder, Half};
pub use judge::{Class, Score};
pub use known::Known;
pub use run::{Options, simulate_all};
