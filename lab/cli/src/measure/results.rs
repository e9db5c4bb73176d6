//! The files of a run's rows.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use overlock_bench::machine::Machine;
use overlock_bench::report::{Row, json, svg};
use overlock_bench::settings::Settings;
use overlock_report::csv;

use crate::exit::Exit;
use crate::files::{Promised, distinct, open};

/// The files for results.
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

/// The files to write at the end. Opened at the start, so that an error shows before the run.
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

    /// Writes each of them by its function.
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
