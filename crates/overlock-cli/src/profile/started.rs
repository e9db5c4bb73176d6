//! A program that is started to be profiled, from its beginning to the files.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::{Duration, SystemTime};

use overlock_profile::{Profile, Run};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::collect::{self, Collector, Wanted};
use super::command::Options;
use super::files::Files;
use super::why;
use crate::exit::Exit;
use crate::run::{self, Tables, Watch};
use crate::stat::{self, Document};
use crate::terminal::width_of;

/// The program, and what is to be made of it.
#[derive(Debug)]
pub struct Plan<'a> {
    /// It and its arguments.
    pub words: &'a [OsString],
    /// Whose mutexes it has.
    pub mutex: String,
    /// Whose reader-writer locks.
    pub rwlock: String,
    pub options: &'a Options,
    /// Whether the table is printed even if a file is the standard output.
    pub is_shown: bool,
}

/// Runs the program to its end, and reports.
pub fn run(plan: &Plan<'_>, path: &Path, mut command: Command) -> Result<ExitStatus, Exit> {
    let Options { files, tables, .. } = plan.options;
    files.differ_from(tables)?;
    let (named, profile_files) = (files, Files::open(files)?);
    let table_files = stat::Files::open(tables)?;
    let use_stdout = profile_files.use_stdout() || table_files.use_stdout();
    let is_shown = plan.is_shown || !use_stdout;
    let objects = tables.objects;
    let tables = Tables::new(objects)?;
    tables.count(&mut command);
    let threshold_ns = plan.options.threshold_ns();
    command.env("OVERLOCK_PROFILE", threshold_ns.to_string());
    let wanted = Wanted {
        events: files.events,
        is_glibc: plan.mutex == "glibc",
    };
    let collector = Collector::start(tables.dir(), tables.taken(), wanted)
        .map_err(|error| Exit::Failed(format!("signals: {error}")))?;
    let date = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let words = plan.words.iter();
    let words: Vec<String> = words
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let is_glibc = plan.mutex == "glibc" && plan.rwlock == "glibc";
    let mut about = Run {
        command: words.clone(),
        date_s: date.map_or(0, |date| date.as_secs()),
        began_ns: stat::now_ns(),
        source: "drop-in".to_owned(),
        locks: if is_glibc { "glibc" } else { "overlock" }.to_owned(),
        threshold_ns,
        cpus: std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32),
        ..Run::default()
    };
    let mut watching = Watching {
        tables,
        seconds: plan.options.seconds,
    };
    let status = run::launch(path, command, &mut watching);
    run::end_at_signals().map_err(|error| Exit::Failed(format!("signals: {error}")))?;
    about.seconds = (stat::now_ns() - about.began_ns) as f64 / 1e9;
    let collected = collector.finish();
    let status = status?;
    let tables = watching.tables;
    let processes = tables.processes()?;
    if is_shown {
        run::print(&processes, objects);
    }
    tables.say_lost();
    about.quota = collected.quota;
    about.known = collected.known();
    let seconds = about.seconds;
    let profile = Profile {
        run: about,
        ..collect::build(collected)
    };
    tables.leave();
    if is_shown {
        let width = width_of(io::stderr()).map_or(stat::WIDTH, usize::from);
        stat::say(&why::describe(&profile, named.shown(), width));
    }
    let written = profile_files.write(&profile);
    table_files.write(&Document {
        command: words,
        mutex: Some(plan.mutex.clone()),
        rwlock: Some(plan.rwlock.clone()),
        seconds: Some(seconds),
        ..Document::of(processes)
    })?;
    written?;
    named.say_written();
    Ok(status)
}

/// The tables, and the end that the user has set.
#[derive(Debug)]
struct Watching {
    tables: Tables,
    seconds: Option<Duration>,
}

impl Watch for Watching {
    fn started(&mut self, pid: u32) {
        self.tables.started(pid);
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let process = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        if let (Some(seconds), Some(process)) = (self.seconds, process) {
            std::thread::spawn(move || {
                std::thread::sleep(seconds);
                // It may have ended by itself.
                let _ = pidfd_send_signal(process, Signal::TERM);
            });
        }
    }

    fn look(&mut self) -> Option<Duration> {
        self.tables.look()
    }

    fn ended(&mut self, usage: &libc::rusage) {
        self.tables.ended(usage);
    }

    fn signalled(&mut self) -> bool {
        self.tables.signalled()
    }
}
