//! Helpers of the tests of several subcommands.

#![allow(dead_code, unused_imports)] // each test program uses a part of it

mod program;

use assert_cmd::Command;

pub use program::*;

/// The program.
pub fn overlock() -> Command {
    Command::cargo_bin("overlock").unwrap()
}
