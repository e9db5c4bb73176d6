//! Contention that a program under `overlock run --stat` has counted: reading its tables, and saying what is in them.

mod json;
mod mapping;
mod process;
mod rows;
mod svg;
mod symbols;
mod text;

pub use json::Document;
pub use mapping::Mapping;
pub use process::{Process, find, processes};
pub use rows::Row;
pub use symbols::Symbols;
pub use text::{describe, name};

use std::path::{Path, PathBuf};

use overlock_bench::report::Output;

use crate::exit::Exit;
use crate::measure::files;

/// Where a report goes beside the terminal.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct Args {
    /// Write all that was counted as JSON; `-` is the standard output
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,

    /// Draw the time spent in waits, by lock and call site
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

/// The files, open since the start, so that a long run does not end in a complaint.
#[derive(Debug)]
pub struct Files {
    report: Option<Output>,
    svg: Option<Output>,
    use_stdout: bool,
}

impl Files {
    /// Checks that they can be written.
    pub fn open(args: &Args) -> Result<Self, Exit> {
        let given = [&args.report, &args.svg].map(Option::as_deref);
        if given[0].is_some() && given[0] == given[1] {
            let name = given[0].map(files::name).unwrap_or_default();
            return Err(Exit::usage(format!("--report and --svg both name {name}")));
        }
        Ok(Self {
            report: files::open("--report", given[0])?,
            svg: files::open("--svg", given[1])?,
            use_stdout: given.contains(&Some(Path::new("-"))),
        })
    }

    /// Whether one of them is the standard output, which then belongs to it alone.
    pub fn use_stdout(&self) -> bool {
        self.use_stdout
    }

    /// Writes them.
    pub fn write(self, document: &Document) -> Result<(), Exit> {
        if let Some(output) = self.report {
            files::written(output.write(|out| json::write(out, document)))?;
        }
        if let Some(output) = self.svg {
            files::written(output.write(|out| svg::write(out, document)))?;
        }
        Ok(())
    }
}
