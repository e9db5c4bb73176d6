//! Helpers of the tests of several subcommands.

#![allow(dead_code, unused_imports)] // each test program uses a part of it

mod program;

use std::ffi::OsStr;
use std::process::Output;

use assert_cmd::Command;

pub use program::*;

/// The program.
pub fn overlock() -> Command {
    Command::cargo_bin("overlock").unwrap()
}

/// Runs the program with these arguments, which goes well. Its CPU time, in seconds: by the clock a
/// busy machine takes any time.
pub fn cpu_time(arguments: &[impl AsRef<OsStr>]) -> (f64, Output) {
    let output = std::process::Command::new("sh")
        .args(["-c", "\"$0\" \"$@\" && times >&2"])
        .arg(assert_cmd::cargo::cargo_bin!("overlock"))
        .args(arguments)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    // Of the children, the time in user mode and in the kernel.
    let times = said.lines().last().unwrap().split_whitespace();
    let seconds = times.map(|time| {
        let (minutes, seconds) = time.trim_end_matches('s').split_once('m').unwrap();
        minutes.parse::<f64>().unwrap() * 60.0 + seconds.parse::<f64>().unwrap()
    });
    (seconds.sum(), output)
}
