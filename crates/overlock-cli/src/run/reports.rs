//! `overlock run --lockdep`: the validator's reports, which programs write to a FIFO, with the
//! names and lines that their debug information has.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

use super::launch;
use crate::exit::Exit;
use crate::stat::{self, Symbols};

/// The reader of the reports.
#[derive(Debug)]
pub struct Reports {
    fifo: File,
    reader: JoinHandle<()>,
    dir: TempDir,
}

/// The end mark, which no program writes. It may follow an unterminated line.
const END: &[u8] = b"\0\n";

impl Reports {
    /// Begins to read.
    pub fn start() -> Result<Self, Exit> {
        let started = || -> io::Result<Self> {
            let dir = tempfile::Builder::new()
                .prefix("overlock-lockdep.")
                .tempdir()?;
            let path = dir.path().join("reports");
            mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
            // Both ways: it does not end when a writer does.
            let fifo = OpenOptions::new().read(true).write(true).open(&path)?;
            let source = BufReader::new(fifo.try_clone()?);
            Ok(Self {
                fifo,
                reader: without_signals(|| thread::spawn(move || show(source)))?,
                dir,
            })
        };
        started().map_err(|error| Exit::Failed(format!("no place for reports: {error}")))
    }

    /// The FIFO that programs write them to.
    pub fn path(&self) -> PathBuf {
        self.dir.path().join("reports")
    }

    /// Returns when all that was written by now has been shown.
    pub fn finish(mut self) {
        let ended = self.fifo.write_all(END).is_ok();
        if ended {
            // It has no reason to panic.
            let _ = self.reader.join();
        }
    }
}

/// Threads that `start` starts get none of the signals that [`launch`] passes on.
fn without_signals<T>(start: impl FnOnce() -> T) -> io::Result<T> {
    let (_, before) = launch::block()?;
    let started = start();
    launch::restore(&before)?;
    Ok(started)
}

fn show(mut source: impl BufRead) {
    let mut symbols = Symbols::new();
    let mut line = Vec::new();
    while source
        .read_until(b'\n', &mut line)
        .is_ok_and(|length| length > 0)
    {
        let last = line.strip_suffix(END);
        let text = String::from_utf8_lossy(last.unwrap_or(&line));
        stat::say(&named(&text, |path, at| symbols.at(path, at)));
        if last.is_some() {
            return;
        }
        line.clear();
    }
}

/// A line with what `name` knows of the addresses that are marked in it:
/// [`set_reader`](overlock::lockdep::set_reader) says how.
fn named(line: &str, mut name: impl FnMut(&Path, u64) -> Option<String>) -> String {
    let mut parts = line.split('\x1f');
    let mut text = parts.next().unwrap_or_default().to_owned();
    while let Some(path) = parts.next() {
        let distance = parts
            .next()
            .and_then(|hex| u64::from_str_radix(hex, 16).ok());
        let (otherwise, rest) = match parts.next() {
            Some(part) => part.split_once('\x1e').unwrap_or((part, "")),
            None => ("", ""),
        };
        let known = distance.and_then(|distance| name(Path::new(path), distance));
        text += known.as_deref().unwrap_or(otherwise);
        text += rest;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails where the end is not found behind what a killed program has left.
    #[test]
    fn the_end_is_found_behind_an_unfinished_line() {
        show(&b"a line\nhalf of a l\0\nnot read"[..]);
        let reports = Reports::start().unwrap();
        std::fs::write(reports.path(), "half").unwrap();
        reports.finish();
    }

    #[test]
    fn marked_addresses_get_names_where_there_are_any() {
        let name = |path: &Path, distance: u64| {
            (path == Path::new("/a") && distance == 0x2f).then(|| "f() a.c:3".to_owned())
        };
        let marked = "at \x1f/a\x1f2f\x1fa(_Z1fv+0x2f)\x1e, then \x1f/b\x1f0\x1fb+0x0\x1e;\n";
        assert_eq!(named(marked, name), "at f() a.c:3, then b+0x0;\n");
        assert_eq!(named("plain\n", name), "plain\n");
        for cut in ["\x1f/a", "\x1f/a\x1f2f", "x\x1f/a\x1f2f\x1fa"] {
            assert!(!named(cut, name).contains('\x1f'));
        }
    }
}
