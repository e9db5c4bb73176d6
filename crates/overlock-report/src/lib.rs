//! Common parts of the programs and of their reports.
//!
//! | module | what is there |
//! |---|---|
//! | [`numbers`] | numbers as people read them |
//! | [`columns`] | tables whose columns are rows of data |
//! | [`csv`] | rows for other programs |
//! | [`json`] | documents for other programs |
//! | [`trace_events`] | events for viewers of traces |
//! | [`picture`] | font, colours and canvas of the SVG files |
//! | [`output`] | files that are there whole or not at all |
//! | [`random`] | pseudo-random numbers that a seed brings back |
//! | [`program`] | exits, options that name files, help, completions, manual pages |

pub mod columns;
pub mod csv;
pub mod json;
pub mod numbers;
pub mod output;
pub mod picture;
pub mod program;
pub mod random;
pub mod trace_events;

pub use output::Output;

/// The examples of the crate's page are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
