//! Helpers of the tests of programs.

#![allow(dead_code)] // each test program uses a part of it

use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};
use std::{fs, thread};

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use predicates::prelude::*;
use rustix::process::{Pid, Signal, kill_process};

/// The output of a run that goes well.
pub fn text(command: &mut Command) -> String {
    let output = command.assert().success().get_output().clone();
    String::from_utf8(output.stdout).unwrap()
}

/// Bad use: exit code 2, nothing on the standard output, and one line that says what.
pub fn refused(assert: Assert, says: &[&str]) {
    let one_line = predicate::function(|text: &str| text.lines().count() == 1);
    let mut assert = assert.code(2).stdout("").stderr(one_line);
    for part in says {
        assert = assert.stderr(predicate::str::contains(*part));
    }
}

/// Does nothing to a child that has ended: it is not reaped before its handle is.
pub fn signal(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    let _ = kill_process(pid, signal);
}

/// Waits for a child that was signalled to end.
pub fn ends(child: &mut Child) -> ExitStatus {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(120) {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    panic!("it does not end");
}

/// The files in a directory.
pub fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}
