//! What people and programs get to see.

pub mod columns;
pub mod csv;
pub mod json;
pub mod output;
pub mod row;
pub mod simulation;
pub mod svg;
pub mod table;
pub mod text;
pub mod timeline;

pub use output::Output;
pub use row::{Row, rows};
