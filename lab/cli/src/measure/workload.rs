//! The options that set something about a workload.

use clap::Arg;
use clap::builder::PossibleValuesParser;

use overlock_bench::workload::spec::{LONGEST_SECTION, MANY, MOST_LINES};
use overlock_bench::workload::{Workload, condvar};
use overlock_sim::{Time, spec};

use crate::exit::Exit;
use crate::number::{number, whole};

/// A section in nanoseconds, read as the keys of workloads are.
pub fn section(text: &str) -> Result<f64, String> {
    let time = text.trim().parse().ok().map(Time::as_ns_f64);
    let time = time.filter(|time| *time <= LONGEST_SECTION);
    time.ok_or_else(|| {
        "must be a time from 0 to 1s, such as 200ns or 1.5us; a bare number is nanoseconds"
            .to_owned()
    })
}

/// The parameters of a workload.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct Options {
    /// micro, build, rw: length of the critical section (200ns, 1.5us; a bare number is ns), beside
    /// its access to the data [default: 100 in build, else 0]
    #[arg(long, value_name = "TIME", value_parser = section)]
    pub cs: Option<f64>,

    /// micro, build, rw: length of the section between two acquisitions, likewise [default: 2000 in
    /// build, else 0]
    #[arg(long, value_name = "TIME", value_parser = section)]
    pub ncs: Option<f64>,

    /// micro: cache lines that the critical section writes, beside that of the lock [default: 0]
    #[arg(long, value_name = "N", value_parser = whole::<usize>(0, MOST_LINES as u64))]
    pub lines: Option<usize>,

    /// micro: cache lines that the critical section reads [default: 0]
    #[arg(long, value_name = "N", value_parser = whole::<usize>(0, MOST_LINES as u64))]
    pub lines_read: Option<usize>,

    /// micro: in how many places the written lines may be, as in a table: sections take turns
    /// [default: 1]
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1, MOST_LINES as u64))]
    pub places: Option<usize>,

    /// micro: locks, each with its own lines; threads pick one at random [default: 1]
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1, MOST_LINES as u64))]
    pub choices: Option<usize>,

    /// semop: semaphore arrays, each under its own lock [default: 4]
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1, MANY as u64))]
    pub arrays: Option<usize>,

    /// rw: how many of the operations read [default: 90]
    #[arg(
        long,
        value_name = "PERCENT",
        value_parser = number(0.0, 100.0, "a percentage of operations")
    )]
    pub reads: Option<f64>,

    /// rw: so many records, each under its own lock [default: 1]; threads pick one at random, so
    /// that with 100000 its line is cold
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1, MANY as u64))]
    pub records: Option<usize>,

    /// condvar: producers and consumers of a bounded queue wait for each other, or pairs, or all
    /// others for one that wakes them all [default: queue]
    #[arg(long, value_parser = PossibleValuesParser::new(condvar::Pattern::NAMES))]
    pub pattern: Option<String>,
}

impl Options {
    /// That workload with what they set about it, for the subcommand of that name.
    pub fn change(&self, mut workload: Workload, command: &str) -> Result<Workload, Exit> {
        let text = |figure: Option<f64>| figure.map(|figure| figure.to_string());
        let count = |count: Option<usize>| count.map(|count| count.to_string());
        let given = [
            ("cs", text(self.cs)),
            ("ncs", text(self.ncs)),
            ("lines", count(self.lines)),
            ("lines_read", count(self.lines_read)),
            ("places", count(self.places)),
            ("choices", count(self.choices)),
            ("arrays", count(self.arrays)),
            ("reads", text(self.reads)),
            ("records", count(self.records)),
            ("pattern", self.pattern.clone()),
        ];
        for (key, value) in given {
            let Some(value) = value else { continue };
            if !workload.has(key) {
                return Err(Exit::usage(format!(
                    "--{} is for {} only",
                    key.replace('_', "-"),
                    owners(key, command)
                )));
            }
            workload = spec::with(&workload, key, &value)
                .map_err(|error| Exit::usage(format!("--{error}")))?;
        }
        Ok(workload)
    }
}

/// The option, hidden in the help of the workload of that name if it sets something of others only.
pub fn shown(arg: Arg, name: &str) -> Arg {
    let key = arg.get_id().as_str();
    let of_others = Workload::ALL.into_iter().any(|other| other.has(key));
    let is_own = Workload::named(name).is_some_and(|own| own.has(key));
    let is_hidden = of_others && !is_own;
    arg.hide(is_hidden)
}

/// The subcommands of `command` whose workloads have the key.
fn owners(key: &str, command: &str) -> String {
    let owners = Workload::ALL.into_iter().filter(|owner| owner.has(key));
    let names: Vec<String> = owners
        .map(|owner| format!("`{command} {}`", owner.name()))
        .collect();
    match &names[..] {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => names.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(words: &[&str]) -> Options {
        use clap::Parser;
        #[derive(Debug, Parser)]
        struct Line {
            #[command(flatten)]
            options: Options,
        }
        let line = ["overlock-lab"].iter().chain(words);
        Line::try_parse_from(line).unwrap().options
    }

    #[test]
    fn options_change_what_they_name_alone() {
        for workload in Workload::ALL {
            let same = options(&[]).change(workload, "bench").unwrap();
            assert_eq!(same, workload);
        }
        let rw = options(&["--ncs=5", "--reads=1", "--records=7"]);
        let rw = rw.change(Workload::named("rw").unwrap(), "bench").unwrap();
        assert_eq!(rw.to_string(), "rw:ncs=5ns:reads=1:records=7");
    }

    #[test]
    fn every_pattern_has_its_name() {
        for pattern in condvar::Pattern::ALL {
            let words = ["--pattern", pattern.name()];
            let workload = options(&words).change(Workload::named("condvar").unwrap(), "bench");
            assert_eq!(workload.unwrap(), Workload::Condvar { pattern });
        }
    }
}
