//! `overlock run --lockdep`: the validator's reports, which programs write to a FIFO, with the
//! names and lines that their debug information has.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::mem;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

use serde::Serialize;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

use super::launch;
use crate::check::suppress::Suppressions;
use crate::check::{Report, named};
use crate::exit::Exit;
use crate::stat::{self, Symbols};

/// The reader of the reports.
#[derive(Debug)]
pub struct Reports {
    fifo: File,
    reader: JoinHandle<Shown>,
    dir: TempDir,
}

/// All that programs have said.
#[derive(Debug, Default)]
struct Shown {
    reports: Vec<Report>,
    /// The kinds of things that they did not look at, each once.
    unchecked: Vec<String>,
}

const FIFO: &str = "reports";
const TALLY: &str = "tally";

/// More than a FIFO holds.
const MOST_AT_ONCE: usize = 1 << 17;

/// The end mark, which no program writes. It may follow an unterminated line.
const END: &[u8] = b"\0\n";

impl Reports {
    /// Begins to read.
    pub fn start(suppressions: Suppressions) -> Result<Self, Exit> {
        let started = || -> io::Result<Self> {
            let dir = tempfile::Builder::new()
                .prefix("overlock-lockdep.")
                .tempdir()?;
            launch::leaves_with_us(dir.path());
            fs::write(dir.path().join(TALLY), [0; 24])?;
            let path = dir.path().join(FIFO);
            mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
            // Both ways: it does not end when a writer does.
            let fifo = OpenOptions::new().read(true).write(true).open(&path)?;
            let source = fifo.try_clone()?;
            let reader = launch::without_signals(|| {
                let (to, from) = mpsc::channel();
                thread::spawn(move || drain(source, &to));
                thread::spawn(move || show(Drained::new(from), &suppressions))
            })?;
            Ok(Self { fifo, reader, dir })
        };
        started().map_err(|error| Exit::Failed(format!("no place for reports: {error}")))
    }

    /// The FIFO that programs write them to.
    pub fn fifo(&self) -> PathBuf {
        self.dir.path().join(FIFO)
    }

    /// The file in which programs count what they meet.
    pub fn tally(&self) -> PathBuf {
        self.dir.path().join(TALLY)
    }

    /// Returns when all that was written by now has been shown.
    pub fn finish(mut self) -> (Tally, Vec<Report>) {
        let ended = self.fifo.write_all(END).is_ok();
        // It has no reason to panic.
        let shown = ended.then(|| self.reader.join().unwrap_or_default());
        let Shown { reports, unchecked } = shown.unwrap_or_default();
        let mut tally = Tally::read(&fs::read(self.dir.path().join(TALLY)).unwrap_or_default());
        for report in reports.iter().filter(|report| report.suppressed.is_some()) {
            let count = match report.warning {
                true => &mut tally.warnings,
                false => &mut tally.reports,
            };
            *count = count.saturating_sub(1);
            tally.suppressed += 1;
        }
        tally.unchecked = unchecked;
        (tally, reports)
    }
}

/// Counts of the validators in the program and its children.
#[derive(Debug, Default, PartialEq, Serialize)]
pub struct Tally {
    locks: u32,
    classes: u32,
    /// Possible deadlocks and other mistakes.
    pub reports: u32,
    warnings: u32,
    /// Cycles with a gate lock.
    gated: u32,
    /// Cycles of one thread, or of threads that do not exist at one time.
    alone: u32,
    /// Reports and warnings that were left out.
    suppressed: u32,
    /// The kinds of things that were not looked at.
    pub unchecked: Vec<String>,
}

impl Tally {
    /// Reads it, in the layout of `overlock_lockdep::Tally`.
    fn read(bytes: &[u8]) -> Self {
        let number = |at: usize| {
            let bytes = bytes.get(4 * at..).and_then(<[u8]>::first_chunk);
            bytes.map_or(0, |bytes| u32::from_ne_bytes(*bytes))
        };
        Self {
            locks: number(0),
            classes: number(1),
            reports: number(2),
            warnings: number(3),
            gated: number(4),
            alone: number(5),
            suppressed: 0,
            unchecked: Vec::new(),
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted =
            |number, one, more| format!("{number} {}", if number == 1 { one } else { more });
        write!(
            f,
            "{} of {}, {}",
            counted(self.locks, "lock", "locks"),
            counted(self.classes, "class", "classes"),
            counted(self.reports, "report", "reports")
        )?;
        if self.warnings > 0 {
            let warnings = counted(self.warnings, "warning", "warnings");
            write!(f, ", {warnings}")?;
        }
        if self.suppressed > 0 {
            write!(f, ", {} suppressed", self.suppressed)?;
        }
        if self.gated > 0 {
            let cycles = counted(self.gated, "cycle", "cycles");
            write!(f, "; {cycles} harmless, under a common lock")?;
        }
        if self.alone > 0 {
            let cycles = counted(self.alone, "cycle", "cycles");
            write!(
                f,
                "; {cycles} of one thread, or of threads that never met (--all)"
            )?;
        }
        if self.locks == 0 {
            f.write_str(
                "\noverlock: WARNING: nothing was checked. The program took no mutex and no \
                 reader-writer lock of the C library;\n\
                 overlock: the locks of Rust, Go and Java themselves are others, and are not seen",
            )?;
        }
        for what in &self.unchecked {
            write!(f, "\noverlock: WARNING: not all was checked: {what}")?;
        }
        Ok(())
    }
}

/// Takes what comes from the FIFO at once, however long the names of it take: a program waits for
/// room there, but not for long.
fn drain(mut source: impl Read, to: &Sender<Vec<u8>>) {
    let mut buffer = vec![0; MOST_AT_ONCE];
    while let Ok(length) = source.read(&mut buffer) {
        let came = buffer.get(..length).unwrap_or_default();
        let is_last = came.is_empty() || came.contains(&END[0]);
        if to.send(came.to_vec()).is_err() || is_last {
            break;
        }
    }
}

/// The bytes that [`drain`] has taken.
struct Drained {
    from: Receiver<Vec<u8>>,
    piece: Vec<u8>,
    read: usize,
}

impl Drained {
    fn new(from: Receiver<Vec<u8>>) -> Self {
        Self {
            from,
            piece: Vec::new(),
            read: 0,
        }
    }
}

impl Read for Drained {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.read == self.piece.len() {
            // At its end there is no more.
            self.piece = self.from.recv().unwrap_or_default();
            self.read = 0;
        }
        let length = (&self.piece[self.read..]).read(buffer)?;
        self.read += length;
        Ok(length)
    }
}

/// Begins the line of JSON behind a report.
const FOR_PROGRAMS: char = '\x1d';

/// Begins a line that belongs to no report.
const NOTICE: &str = "lockdep: ";

/// Prints what has come by now at once: a report is not mixed with the program's own output.
fn show(source: impl Read, suppressions: &Suppressions) -> Shown {
    let mut source = BufReader::with_capacity(MOST_AT_ONCE, source);
    let mut symbols = Symbols::new();
    let (mut line, mut shown, mut text) = (Vec::new(), String::new(), String::new());
    let (mut reports, mut unchecked) = (Vec::new(), Vec::new());
    while source
        .read_until(b'\n', &mut line)
        .is_ok_and(|length| length > 0)
    {
        let last = line.strip_suffix(END);
        let raw = String::from_utf8_lossy(last.unwrap_or(&line));
        let notice = raw.strip_prefix(NOTICE).filter(|_| text.is_empty());
        match (raw.strip_prefix(FOR_PROGRAMS), notice) {
            (Some(json), _) => {
                let text = mem::take(&mut text);
                shown += &text;
                if let Some(mut report) = Report::new(json, text, &mut symbols) {
                    report.suppressed = suppressions.matching(&report);
                    if report.suppressed.is_some() {
                        shown.truncate(shown.len() - report.text.len());
                    } else {
                        shown += &format!("suppress it with: {}\n", report.suppress_with);
                    }
                    reports.push(report);
                }
            }
            // The sum has it: each process may say the same.
            (None, Some(notice)) => {
                let notice = notice.trim_end().to_owned();
                if !unchecked.contains(&notice) {
                    unchecked.push(notice);
                }
            }
            (None, None) => text += &named(&raw, |path, at| symbols.at(path, at)),
        }
        if last.is_some() {
            break;
        }
        line.clear();
        if source.buffer().is_empty() {
            stat::say(&shown);
            shown.clear();
        }
    }
    stat::say(&(shown + &text));
    Shown { reports, unchecked }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails where the end is not found behind what a killed program has left.
    #[test]
    fn the_end_is_found_behind_an_unfinished_line() {
        show(
            &b"a line\nhalf of a l\0\nnot read"[..],
            &Suppressions::default(),
        );
        let reports = Reports::start(Suppressions::default()).unwrap();
        fs::write(reports.fifo(), "half").unwrap();
        assert_eq!(reports.finish().0, Tally::default());
    }

    /// Fails where a program waits while names are looked up: the FIFO holds less than this.
    #[test]
    fn what_comes_is_taken_before_it_is_shown() {
        let (to, from) = mpsc::channel();
        let long = [vec![b'x'; 1 << 20], END.to_vec()].concat();
        drain(&long[..], &to);
        drop(to);
        let mut taken = Vec::new();
        Drained::new(from).read_to_end(&mut taken).unwrap();
        assert_eq!(taken, long);
    }

    #[test]
    fn a_report_has_the_text_before_its_line_and_no_notice() {
        let json = r#"{"lockdep":"order","title":"t","warning":false,"thread":7,"held":[]}"#;
        let notice = "lockdep: too many\n";
        let came = format!("{notice}\n===\nthe text\n\x1d{json}\n{notice}\0\n");
        let Shown { reports, unchecked } = show(came.as_bytes(), &Suppressions::default());
        let texts: Vec<_> = reports.iter().map(|report| report.text.as_str()).collect();
        assert_eq!(texts, ["\n===\nthe text\n"]);
        assert_eq!(unchecked, ["too many"]);
        let tally = Tally {
            locks: 1,
            unchecked,
            ..Tally::default()
        };
        let sum = "1 lock of 0 classes, 0 reports\n\
                   overlock: WARNING: not all was checked: too many";
        assert_eq!(tally.to_string(), sum);
    }
}
