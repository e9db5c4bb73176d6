//! Contention that a program under `overlock run --stat` has counted: reading its tables, and
//! saying what is in them.

mod binary;
mod debug;
mod document;
mod ended;
mod holders;
mod jitdump;
mod layout;
mod living;
mod mapping;
mod perf_map;
mod process;
mod rows;
mod sums;
mod svg;
mod symbols;
mod text;
mod watched;
mod wrappers;

pub use binary::set_module;
pub use document::Document;
pub use ended::{Ended, SHM, excess, has_ended};
pub use holders::{Sampled, divided, without_callers};
pub use layout::{Column, WIDTH, fitting, shortened};
pub use living::{Living, living};
pub use mapping::{Compact, Mapping};
pub use process::{Process, is_alive, meet, now_ns, processes, program, without_table};
pub use rows::{Event, Row, addresses};
pub use sums::Sum;
pub use symbols::{Module, Symbols, caller_of, plain};
pub use text::describe;
pub use watched::Watched;
pub use wrappers::{begins_thread, built_in, extend};

use std::io::{self, Write};
use std::path::PathBuf;

use crate::exit::Exit;
use crate::files;

/// The files for a report.
#[derive(Clone, Debug, Default, clap::Args)]
#[group(skip)]
pub struct Args {
    /// Write all that was counted as JSON; `-` is the standard output
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,

    /// Show also the single locks of rows that have several, the longest waits first
    #[arg(long)]
    pub objects: bool,

    /// Draw the time spent in waits, by lock and call site
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,

    /// Rules by which more functions are wrappers of locks, which name no row: `overlock report
    /// --list-wrappers` prints those that are built in, and how they are written
    #[arg(long, value_name = "FILE")]
    pub wrappers: Vec<PathBuf>,
}

impl Args {
    /// The files, with their options.
    pub fn given(&self) -> [(&'static str, &Option<PathBuf>); 2] {
        [("--report", &self.report), ("--svg", &self.svg)]
    }

    /// The first option that is given of those that need a table, for a message.
    pub fn of_a_table(&self) -> Option<&'static str> {
        let named = self.given().into_iter();
        let mut named = named.filter_map(|(option, path)| path.is_some().then_some(option));
        named.next().or(self.objects.then_some("--objects"))
    }

    /// Whether any option is given.
    pub fn is_given(&self) -> bool {
        self.of_a_table().is_some() || !self.wrappers.is_empty()
    }
}

/// The files, open since the start.
#[derive(Debug)]
pub struct Files(files::Files<2>);

impl Files {
    /// Checks that they can be written.
    pub fn open(args: &Args) -> Result<Self, Exit> {
        extend(&args.wrappers)?;
        files::Files::open(args.given()).map(Self)
    }

    /// Whether one of them is the standard output, which then belongs to it alone.
    pub fn use_stdout(&self) -> bool {
        self.0.use_stdout()
    }

    /// Writes them.
    pub fn write(self, document: &Document) -> Result<(), Exit> {
        self.0.write(
            [&|out| overlock_report::json::write(out, document), &|out| {
                svg::write(out, document)
            }],
        )
    }
}

/// Prints to the standard error and ignores errors: the program's own end counts for more.
pub fn say(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

#[cfg(test)]
pub mod tests {
    use super::rows::{Spins, Times};
    use super::symbols::Place;
    use super::*;

    fn place(function: &str) -> Place {
        Place {
            address: "0x1".to_owned(),
            function: Some(function.to_owned()),
            file: None,
            line: None,
            inlined_into: Vec::new(),
            module: None,
            offset: None,
            is_script: false,
            is_wrapper: false,
        }
    }

    fn times(total_ns: u64, of: u64) -> Times {
        Times {
            total_ns,
            avg_ns: (of > 0).then(|| total_ns as f64 / of as f64),
            max_ns: total_ns,
        }
    }

    fn row(lock: &str, waits: u64) -> Row {
        Row {
            lock: lock.to_owned(),
            object: lock.to_owned(),
            objects: Vec::new(),
            stack: Vec::new(),
            sampled: true,
            kind: overlock_shared::ObjectKind::Mutex,
            init: None,
            site: place("section"),
            acquisitions: Some(1000),
            contentions: waits,
            gave_up: 0,
            wait: times(waits * 1000, waits),
            lengths: Default::default(),
            hold: times(0, 0),
            queued: waits,
            unfair: Some(30),
            unfair_share: Some(30.0 / (30 + waits) as f64),
            passed_avg: None,
            passed_max: None,
            holders: Vec::new(),
        }
    }

    /// Two locks, and an event with longer waits than theirs.
    pub fn process() -> Process {
        Process {
            pid: 7,
            program: "program".to_owned(),
            locks: vec![row("hot", 10), row("cold", 0)],
            events: vec![Event {
                name: "ready".to_owned(),
                object: "ready".to_owned(),
                objects: Vec::new(),
                stack: Vec::new(),
                kind: overlock_shared::ObjectKind::Cond,
                init: None,
                site: Some(place("idle")),
                waits: 3,
                gave_up: 1,
                wait: times(9_000_000_000, 3),
                spins: Spins {
                    count: 2,
                    in_time: 1,
                    total_ns: 60_000,
                    saved_ns: 20_000,
                },
                wake_avg_ns: Some(20_000.0),
            }],
            kept: Vec::new(),
            threads: 2,
            thread_ns: Some(9_000_020_000),
            is_go: false,
            took_locks: true,
            lost_objects: 0,
            lost: 0,
            walks: 0,
            lost_holders: 0,
            lost_modules: 0,
        }
    }

    #[test]
    fn a_picture_without_waits_says_so() {
        let draw = |processes| {
            let mut picture = Vec::new();
            svg::write(&mut picture, &Document::of(processes)).unwrap();
            String::from_utf8(picture).unwrap()
        };
        assert!(draw(Vec::new()).contains("No thread waited for a lock of the C library."));
        let some = draw(vec![process()]);
        assert!(!some.contains("No thread waited"));
        assert!(some.contains("10 us: 10 waits, 1.0 us each"), "{some}");
    }

    /// Fails where threads that wait for work make waits for locks seem to be few.
    #[test]
    fn the_share_is_one_of_the_time_without_waits_for_events() {
        let text = |process: Process| describe(&[process], None, false);
        let idle = text(process());
        assert!(!idle.contains("not your problem"));
        // Each thread may have begun a hundredth of a second earlier.
        assert!(idle.contains("waited for locks\n"), "{idle}");
        let worked = text(Process {
            thread_ns: Some(9_040_000_000),
            ..process()
        });
        assert!(worked.contains(", 0.0 % of 2 threads' time"), "{worked}");
        let mut busy = process();
        busy.events.clear();
        assert!(text(busy).contains("not your problem"));
        let unknown = Process {
            thread_ns: None,
            ..process()
        };
        assert!(!text(unknown).contains("threads' time"));
    }

    #[test]
    fn a_process_without_rows_says_whether_it_took_a_lock() {
        let empty = |took_locks| Process {
            locks: Vec::new(),
            events: Vec::new(),
            took_locks,
            ..process()
        };
        let text = describe(&[empty(false)], None, false);
        assert!(
            text.starts_with("program (process 7) took no mutex"),
            "{text}"
        );
        let text = describe(&[empty(true)], None, false);
        assert!(text.contains("no thread waited for a lock"), "{text}");
    }

    #[test]
    fn events_stand_below_locks_and_are_not_in_their_sum() {
        let text = describe(&[process()], None, false);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "program (process 7): 10 us waited for locks");
        assert!(lines[2].starts_with(" hot"), "{text}");
        assert!(text.contains(" 75 %"), "{text}");
        let events = "9.0 s waited for events, which is no contention";
        let at = lines.iter().position(|line| *line == events);
        assert!(
            at.is_some_and(|at| at > 3 && lines[at + 2].contains(" cond ")),
            "{text}"
        );
        let mut picture = Vec::new();
        svg::write(&mut picture, &Document::of(vec![process()])).unwrap();
        let picture = String::from_utf8(picture).unwrap();
        let at = |text| picture.find(text);
        assert!(at("hot").unwrap() < at("Waits for events").unwrap());
        assert!(at("Waits for events").unwrap() < at("ready").unwrap());
        assert_eq!(at("cold"), None);
    }
}
