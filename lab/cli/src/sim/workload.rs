//! Which workload runs, and what is set about it.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Command};

use overlock_bench::workload::Workload;

use super::machine::read;
use crate::exit::Exit;
use crate::measure::workload::Options;

/// The workload and its own options.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct Args {
    /// The workload: a name, perhaps with changed keys (micro:cs=95:ncs=1us), or a file in TOML;
    /// --show shows the keys
    #[arg(default_value = "micro", value_parser = Known)]
    pub workload: String,

    #[command(flatten)]
    pub options: Options,
}

/// Takes any text. The names of the workloads are for the help and for completions.
#[derive(Clone, Debug)]
struct Known;

impl TypedValueParser for Known {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let named = |workload: Workload| PossibleValue::new(workload.name()).help(workload.about());
        Some(Box::new(Workload::ALL.into_iter().map(named)))
    }
}

impl Args {
    /// The workload that they ask for, of the subcommand of that name.
    pub fn workload(&self, command: &str) -> Result<Workload, Exit> {
        let workload = read(&self.workload, &[])?;
        self.options.change(workload, command)
    }
}
