//! Published measurements as data, and how well simulations agree with them.
//!
//! | module | what is there |
//! |---|---|
//! | [`class`] | classes of figures, their goals, and the score that the project's pages have |
//! | [`data`] | folders of figures, their units, and what it takes to simulate each |
//! | [`judge`] | orders, errors, and the skill over a null model |
//! | [`text`] | the score for people |

pub mod class;
pub mod data;
pub mod judge;
#[cfg(test)]
mod tests;
pub mod text;

pub use class::Class;
pub use data::{Figure, Folder, Half};
pub use judge::{Score, simulate_all};
