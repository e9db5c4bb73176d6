//! The files that are made of a profile.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use overlock_profile::{By, Profile, Shown, firefox, flame, folded, html, json, perfetto, pprof};

use crate::exit::Exit;
use crate::files;
use crate::stat::{self, say};

/// The files for a profile.
#[derive(Clone, Debug, Default, clap::Args)]
#[group(skip)]
pub struct Args {
    /// Keep the profile as JSON, for `report`, `diff`, `merge`; `-` is the standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Draw one page for a browser: timeline, flame graph, causes, lengths, who waits for whom
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,

    /// Draw a flame graph of the time in waits, as SVG
    #[arg(long, value_name = "FILE")]
    pub flame: Option<PathBuf>,

    /// Write folded stacks, each with its nanoseconds in waits
    #[arg(long, value_name = "FILE")]
    pub folded: Option<PathBuf>,

    /// Write for `go tool pprof`, speedscope, Pyroscope, Parca: contentions and delay
    #[arg(long, value_name = "FILE")]
    pub pprof: Option<PathBuf>,

    /// Write for the Firefox Profiler (profiler.firefox.com): waits as markers
    #[arg(long, value_name = "FILE")]
    pub firefox: Option<PathBuf>,

    /// Write for Perfetto (ui.perfetto.dev): waits, and flows from releases to wake-ups
    #[arg(long, value_name = "FILE")]
    pub perfetto: Option<PathBuf>,

    /// Whose stacks the flame graph, --folded and --pprof have
    #[arg(long, value_enum, value_name = "WHO", default_value_t)]
    pub by: Who,

    /// Show also frames that only pass calls on to a lock
    #[arg(long)]
    pub all_frames: bool,

    /// Show also waits for events, which are no contention; a profile that is made keeps single
    /// ones
    #[arg(long)]
    pub events: bool,
}

/// Whose stacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Who {
    /// Those of the threads that waited
    #[default]
    Waiter,
    /// Those of the threads that held the locks meanwhile
    Holder,
}

impl Args {
    /// The choice of waits and frames.
    pub fn shown(&self) -> Shown {
        Shown {
            by: match self.by {
                Who::Waiter => By::Waiter,
                Who::Holder => By::Holder,
            },
            wrappers: self.all_frames,
            events: self.events,
        }
    }

    fn given(&self) -> [(&'static str, &Option<PathBuf>); 7] {
        [
            ("--json", &self.json),
            ("--html", &self.html),
            ("--flame", &self.flame),
            ("--folded", &self.folded),
            ("--pprof", &self.pprof),
            ("--firefox", &self.firefox),
            ("--perfetto", &self.perfetto),
        ]
    }

    /// The first option that is given, for a message.
    pub fn first(&self) -> Option<&'static str> {
        let given = self.given().into_iter();
        let mut named = given.filter_map(|(option, path)| path.is_some().then_some(option));
        named.next()
    }

    /// Whether any option is given.
    pub fn is_given(&self) -> bool {
        let is_choice = self.by != Who::default() || self.all_frames || self.events;
        is_choice || self.first().is_some()
    }

    /// Checks that no file is named for a table too.
    pub fn differ_from(&self, tables: &stat::Args) -> Result<(), Exit> {
        for (option, path) in tables.given() {
            let one = path.as_deref().map(files::whole);
            let same = self.given().into_iter();
            let mut same = same
                .filter(|(_, other)| one.is_some() && other.as_deref().map(files::whole) == one);
            if let (Some((other, _)), Some(path)) = (same.next(), path) {
                let name = files::name(path);
                return Err(Exit::usage(format!(
                    "{name} is named by both {option} and {other}"
                )));
            }
        }
        Ok(())
    }

    /// Says which files were written.
    pub fn say_written(&self) {
        let paths = self
            .given()
            .into_iter()
            .filter_map(|(_, path)| path.as_deref());
        let named = paths.filter(|path| *path != Path::new("-"));
        let names: Vec<String> = named.map(files::name).collect();
        if !names.is_empty() {
            say(&format!("overlock: wrote {}\n", names.join(", ")));
        }
    }
}

/// The files, open since the start.
#[derive(Debug)]
pub struct Files {
    files: files::Files<7>,
    shown: Shown,
}

impl Files {
    /// Checks that they can be written.
    pub fn open(args: &Args) -> Result<Self, Exit> {
        Ok(Self {
            files: files::Files::open(args.given())?,
            shown: args.shown(),
        })
    }

    /// Whether one of them is the standard output, which then belongs to it alone.
    pub fn use_stdout(&self) -> bool {
        self.files.use_stdout()
    }

    /// Writes them.
    pub fn write(self, profile: &Profile) -> Result<(), Exit> {
        type Writer = fn(&mut dyn Write, &Profile, Shown) -> io::Result<()>;
        let shown = self.shown;
        let of = |write: Writer| move |out: &mut dyn Write| write(out, profile, shown);
        self.files.write([
            &|out| json::write(out, profile),
            &of(html::write),
            &of(flame::write),
            &of(folded::write),
            &of(pprof::write),
            &of(firefox::write),
            &of(perfetto::write),
        ])
    }
}
