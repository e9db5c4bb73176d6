//! The files that a run is to write.

use std::collections::HashSet;
use std::path::Path;

use overlock_bench::machine::Machine;
use overlock_bench::report::{Output, Row, csv, json, svg};
use overlock_bench::settings::Settings;

use super::args::Args;
use crate::exit::Exit;

/// What is written at the end. Open at the start, so that a run does not end in a complaint.
#[derive(Debug)]
pub struct Files {
    json: Option<Output>,
    csv: Option<Output>,
    svg: Option<Output>,
    use_stdout: bool,
}

impl Files {
    /// Checks that the files can be written.
    pub fn open(args: &Args) -> Result<Self, Exit> {
        let given = [&args.json, &args.csv, &args.svg].map(Option::as_deref);
        let mut seen = HashSet::new();
        for path in given.into_iter().flatten() {
            if !seen.insert(path) {
                return Err(Exit::usage(format!(
                    "two of --json, --csv and --svg name {}",
                    name(path)
                )));
            }
        }
        Ok(Self {
            json: open("--json", given[0])?,
            csv: open("--csv", given[1])?,
            svg: open("--svg", given[2])?,
            use_stdout: seen.contains(Path::new("-")),
        })
    }

    /// Whether one of them is the standard output, which then belongs to it alone.
    pub fn use_stdout(&self) -> bool {
        self.use_stdout
    }

    /// Writes all of them.
    pub fn write(self, machine: &Machine, settings: &Settings, rows: &[Row]) -> Result<(), Exit> {
        let results = [
            self.json
                .map(|output| output.write(|out| json::write(out, machine, settings, rows))),
            self.csv
                .map(|output| output.write(|out| csv::write(out, rows))),
            self.svg
                .map(|output| output.write(|out| svg::write(out, machine, settings, rows))),
        ];
        match results.into_iter().flatten().find_map(Result::err) {
            Some(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
                Err(Exit::Failed(format!("cannot write the result: {error}")))
            }
            _ => Ok(()),
        }
    }
}

fn open(option: &str, path: Option<&Path>) -> Result<Option<Output>, Exit> {
    path.map(Output::open).transpose().map_err(|error| {
        Exit::usage(format!(
            "cannot write {option} {}: {error}",
            name(path.unwrap_or(Path::new("")))
        ))
    })
}

fn name(path: &Path) -> String {
    if path == Path::new("-") {
        "the standard output".to_owned()
    } else {
        path.display().to_string()
    }
}
