//! The reports of a run, for people and programs.

pub mod json;
pub mod row;
pub mod simulation;
pub mod svg;
pub mod table;
pub mod timeline;

pub use row::{Row, guest_rows, rows};
