//! Ctrl-C while a report is made.

#[path = "common/attach.rs"]
mod attach;
#[path = "common/preload.rs"]
mod preload;

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// A pipe in the file system that is full: who writes to it waits.
fn full(dir: &TempDir) -> (PathBuf, File) {
    let path = dir.path().join("full");
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let mut both = OpenOptions::new();
    let both = both.read(true).write(true).custom_flags(libc::O_NONBLOCK);
    let mut pipe = both.open(&path).unwrap();
    while pipe.write(&[0; 4096]).is_ok() {}
    (path, pipe)
}

/// The status of one that gets this signal again and again. The first ones may be the program's.
fn interrupted(mut child: Child) -> ExitStatus {
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        assert!(
            begin.elapsed() < Duration::from_secs(300),
            "it does not end"
        );
        let pid = Pid::from_raw(child.id() as i32).unwrap();
        kill_process(pid, Signal::INT).unwrap();
        thread::sleep(Duration::from_millis(50));
    }
}

/// Fails where the signals stay blocked that were the program's, and where its tables stay.
#[test]
fn a_report_that_takes_long_can_be_interrupted() {
    let dir = tempfile::tempdir().unwrap();
    let (path, _pipe) = full(&dir);
    let report = |words: &[&str], option: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_overlock"));
        command.args(words).arg(option).arg(&path);
        command.arg("--library").arg(preload::library()).arg("--");
        command.args(["sh", "-c", "echo $OVERLOCK_STAT_DIR$OVERLOCK_LOCKDEP_TALLY"]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let stdout = child.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        let place = Path::new(line.trim_end()).to_owned();
        (interrupted(child), place)
    };
    for (words, option) in [
        (&["profile"][..], "--html"),
        (&["run", "--stat"], "--report"),
    ] {
        let (status, place) = report(words, option);
        assert_eq!(status.signal(), Some(2), "{words:?}: {status:?}");
        assert!(
            place.is_absolute() && !place.exists(),
            "{}",
            place.display()
        );
    }
    let (status, tally) = report(&["check"], "--report");
    assert_eq!(status.signal(), Some(2), "{status:?}");
    assert!(!tally.parent().unwrap().exists(), "{}", tally.display());
}

/// Fails where the first Ctrl-C, which ends the look, is the last that anything comes of.
#[test]
fn the_report_of_a_look_can_be_interrupted() {
    let Some(_one) = attach::allowed() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let (path, _pipe) = full(&dir);
    let mut sleep = Command::new("sleep").arg("600").spawn().unwrap();
    let html = format!("--html={}", path.display());
    let look = attach::look(&[&html], sleep.id());
    assert_eq!(interrupted(look).signal(), Some(2));
    sleep.kill().unwrap();
    sleep.wait().unwrap();
}
