//! The locks' ordering pairs as litmus tests for Arm and RISC-V, and a checker of such tests.
//!
//! A *litmus test* is a few threads of a few instructions, and an outcome. The [checker](execution)
//! builds each candidate execution, and asks a machine's [axioms](model) whether the machine may
//! run the test so. It reads [herd7's format](parse), so herd7 can check the checker.

pub mod classics;
pub mod emit;
pub mod execution;
pub mod isa;
pub mod model;
pub mod pairs;
pub mod parse;
pub mod program;
pub mod relation;
pub mod report;
pub mod test;

#[cfg(test)]
mod tests;

use test::Test;

/// Whether the machine of `test` may show its outcome.
pub fn is_allowed(test: &Test) -> bool {
    execution::is_allowed(test, |execution| model::allows(test.machine, execution))
}
