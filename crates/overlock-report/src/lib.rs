//! Common parts of the programs and of their reports.
//!
//! | module | what is there |
//! |---|---|
//! | [`numbers`] | numbers as people read them |
//! | [`columns`] | tables whose columns are rows of data |
//! | [`csv`] | rows for other programs |
//! | [`picture`] | font, colours and canvas of the SVG files |
//! | [`output`] | files that are there whole or not at all |
//! | [`program`] | exits, options that name files, help, completions, manual pages |

pub mod columns;
pub mod csv;
pub mod numbers;
pub mod output;
pub mod picture;
pub mod program;

pub use output::Output;
