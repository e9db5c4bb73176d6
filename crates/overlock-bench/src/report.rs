//! What people and programs get to see.

pub mod json;
pub mod row;
pub mod simulation;
pub mod svg;
pub mod table;
pub mod timeline;

pub use row::{Row, rows};
