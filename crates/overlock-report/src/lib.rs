//! Common parts of the reports of all subcommands.
//!
//! | module | what is there |
//! |---|---|
//! | [`numbers`] | numbers as people read them |
//! | [`columns`] | tables whose columns are rows of data |
//! | [`csv`] | rows for other programs |
//! | [`picture`] | font, colours and canvas of the SVG files |
//! | [`output`] | files that are there whole or not at all |

pub mod columns;
pub mod csv;
pub mod numbers;
pub mod output;
pub mod picture;

pub use output::Output;
