//! The files of a run's rows.

use std::path::PathBuf;

use overlock_bench::machine::Machine;
use overlock_bench::report::{Row, json, svg};
use overlock_bench::settings::Settings;
use overlock_report::csv;

use crate::exit::Exit;
use crate::files::Files;

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
    pub fn open(&self) -> Result<Files<3>, Exit> {
        Files::open([
            ("--json", &self.json),
            ("--csv", &self.csv),
            ("--svg", &self.svg),
        ])
    }
}

/// Writes the results of a run.
pub fn write(
    files: Files<3>,
    machine: &Machine,
    settings: &Settings,
    rows: &[Row],
) -> Result<(), Exit> {
    files.write([
        &|out| json::write(out, machine, settings, rows),
        &|out| csv::write(out, rows),
        &|out| svg::write(out, machine, settings, rows),
    ])
}
