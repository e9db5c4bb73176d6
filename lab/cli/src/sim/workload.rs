//! Which workload runs, and what is set about it.

use std::collections::HashSet;
use std::ffi::OsStr;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Command};

use overlock_bench::registry::{self, Family};
use overlock_bench::workload::Workload;
use overlock_bench::world::sim::Simulated;

use super::machine::read;
use crate::exit::Exit;
use crate::measure::workload::Options;

/// The workload and its own options.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct Args {
    /// The workload: a name, perhaps with changed keys (micro:cs=95:ncs=1us), or a file in TOML;
    /// --show shows the keys
    #[arg(default_value = "micro", value_parser = Hints(workloads))]
    pub workload: String,

    #[command(flatten)]
    pub options: Options,
}

/// Takes any text. These values are for completions, and those with a description for the help.
#[derive(Clone, Debug)]
pub struct Hints(pub fn() -> Vec<PossibleValue>);

impl TypedValueParser for Hints {
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
        Some(Box::new(self.0().into_iter()))
    }
}

fn workloads() -> Vec<PossibleValue> {
    let named = |workload: Workload| PossibleValue::new(workload.name()).help(workload.about());
    Workload::ALL.into_iter().map(named).collect()
}

/// The locks that can be simulated, of all families.
pub fn locks() -> Vec<PossibleValue> {
    let mut names = Family::ALL.map(registry::names::<Simulated>).concat();
    let mut seen = HashSet::new();
    names.retain(|name| seen.insert(*name));
    names.into_iter().map(PossibleValue::new).collect()
}

/// The same without the words for several.
pub fn single() -> Vec<PossibleValue> {
    let is_one = |name: &PossibleValue| {
        let mut families = Family::ALL.into_iter();
        families.any(|family| registry::simulated(family, name.get_name()).is_ok())
    };
    locks().into_iter().filter(is_one).collect()
}

/// Those of mutual exclusion.
pub fn mutexes() -> Vec<PossibleValue> {
    let names = registry::names::<Simulated>(Family::Exclusive);
    names.into_iter().map(PossibleValue::new).collect()
}

impl Args {
    /// The workload that they ask for, of the subcommand of that name.
    pub fn workload(&self, command: &str) -> Result<Workload, Exit> {
        let workload = read(&self.workload, &[])?;
        self.options.change(workload, command)
    }
}
