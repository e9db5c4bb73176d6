//! Published measurements as data, and how well simulations agree with them.
//!
//! | module | what is there |
//! |---|---|
//! | [`data`] | folders of figures, their units, and what it takes to simulate each |
//! | [`judge`] | orders, errors, and the skill over a null model |
//! | [`text`] | the score for people |
//! | [`known`] | the score that the project's pages have |

pub mod data;
pub mod judge;
pub mod known;
#[cfg(test)]
mod tests;
pub mod text;

pub use data::{Figure, Folder, Half};
pub use judge::{Class, Score, simulate_all};
