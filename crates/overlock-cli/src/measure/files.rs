//! The files that a run is to write.

use std::collections::HashSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use overlock_bench::machine::Machine;
use overlock_bench::report::{Output, Row, csv, json, svg};
use overlock_bench::settings::Settings;

use crate::exit::Exit;

/// Where results go.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct Args {
    /// Write everything as JSON; `-` is the standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Write a line for each row of the tables
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,

    /// Draw throughput over threads
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,

    /// Print neither progress nor tables
    #[arg(long, short)]
    pub quiet: bool,
}

impl Args {
    /// Checks that the files can be written.
    pub fn open(&self) -> Result<Files, Exit> {
        Files::open([&self.json, &self.csv, &self.svg].map(Option::as_deref))
    }
}

/// What is written at the end. Open at the start, so that a run does not end in a complaint.
#[derive(Debug)]
pub struct Files {
    json: Option<Promised>,
    csv: Option<Promised>,
    svg: Option<Promised>,
    use_stdout: bool,
}

impl Files {
    /// Checks that the files of --json, --csv and --svg can be written.
    pub fn open(given: [Option<&Path>; 3]) -> Result<Self, Exit> {
        let use_stdout = distinct("--json, --csv and --svg", &given)?;
        Ok(Self {
            json: open("--json", given[0])?,
            csv: open("--csv", given[1])?,
            svg: open("--svg", given[2])?,
            use_stdout,
        })
    }

    /// Whether one of them is the standard output, which then belongs to it alone.
    pub fn use_stdout(&self) -> bool {
        self.use_stdout
    }

    /// Writes all of them, each as it is told.
    pub fn write(
        self,
        json: impl FnOnce(&mut dyn Write) -> io::Result<()>,
        csv: impl FnOnce(&mut dyn Write) -> io::Result<()>,
        svg: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Exit> {
        let results = [
            self.json.map(|output| output.write(json)),
            self.csv.map(|output| output.write(csv)),
            self.svg.map(|output| output.write(svg)),
        ];
        results.into_iter().flatten().collect()
    }

    /// Writes the results of a run.
    pub fn write_rows(
        self,
        machine: &Machine,
        settings: &Settings,
        rows: &[Row],
    ) -> Result<(), Exit> {
        self.write(
            |out| json::write(out, machine, settings, rows),
            |out| csv::write(out, rows),
            |out| svg::write(out, machine, settings, rows),
        )
    }
}

/// Checks that no two of these `options` name the same file, and says whether one of them is the
/// standard output.
pub fn distinct(options: &str, given: &[Option<&Path>]) -> Result<bool, Exit> {
    let mut seen = HashSet::new();
    for path in given.iter().flatten() {
        if !seen.insert(path) {
            let name = name(path);
            return Err(Exit::usage(format!("two of {options} name {name}")));
        }
    }
    Ok(seen.contains(&Path::new("-")))
}

/// A file that an option names, which can be written, as far as one can tell.
#[derive(Debug)]
pub struct Promised {
    /// The option and the file.
    what: String,
    output: Output,
}

impl Promised {
    /// Checks that it can be.
    pub fn open(option: &str, path: &Path) -> Result<Self, Exit> {
        let what = format!("{option} {}", name(path));
        match Output::open(path) {
            Ok(output) => Ok(Self { what, output }),
            Err(error) => Err(Exit::usage(format!("cannot write {what}: {error}"))),
        }
    }

    /// Writes it. A reader that has left is no failure.
    pub fn write(self, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Exit> {
        match self.output.write(content) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(Exit::Failed(format!("cannot write {}: {error}", self.what)))
            }
            _ => Ok(()),
        }
    }
}

/// The same of an option that may be left out.
pub fn open(option: &str, path: Option<&Path>) -> Result<Option<Promised>, Exit> {
    path.map(|path| Promised::open(option, path)).transpose()
}

/// A file's name for people.
pub fn name(path: &Path) -> String {
    if path == Path::new("-") {
        "the standard output".to_owned()
    } else {
        path.display().to_string()
    }
}
