//! The options that set something about a workload.

use clap::ValueEnum;

use overlock_bench::workload::spec::{LONGEST_SECTION, MANY};
use overlock_bench::workload::{Workload, condvar};

use crate::exit::Exit;
use crate::number::{number, whole};

fn section() -> impl Fn(&str) -> Result<f64, String> + Clone + Send + Sync {
    number(0.0, LONGEST_SECTION, "nanoseconds")
}

/// The parameters of a workload.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct Options {
    /// micro, build, rw: length of the critical section, beside its access to the data [default:
    /// 100 in build, else 0]
    #[arg(long, value_name = "NS", value_parser = section())]
    pub cs: Option<f64>,

    /// micro, build, rw: length of the section between two acquisitions [default: 2000 in build,
    /// else 0]
    #[arg(long, value_name = "NS", value_parser = section())]
    pub ncs: Option<f64>,

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

    /// rw: one lock for all, which is the default
    #[arg(long, conflicts_with = "records")]
    pub hot: bool,

    /// rw: so many records, each under its own lock; threads pick one at random, so that with
    /// 100000 its line is cold
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1, MANY as u64))]
    pub records: Option<usize>,

    /// condvar: who waits for whom [default: queue]
    #[arg(long, value_enum)]
    pub pattern: Option<Pattern>,
}

/// The pattern of waits in the workload `condvar`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Pattern {
    /// Producers and consumers of a bounded queue
    Queue,
    /// Pairs, each thread for its turn
    PingPong,
    /// All others for one that wakes them all
    Broadcast,
}

impl Options {
    /// That workload with what they set about it, for the subcommand of that name.
    pub fn change(&self, mut workload: Workload, command: &str) -> Result<Workload, Exit> {
        self.fit(&workload, command)?;
        match &mut workload {
            Workload::Micro { cs, ncs } | Workload::Build { cs, ncs } => {
                *cs = self.cs.unwrap_or(*cs);
                *ncs = self.ncs.unwrap_or(*ncs);
            }
            Workload::Semop { arrays } => *arrays = self.arrays.unwrap_or(*arrays),
            Workload::Rw {
                cs,
                ncs,
                reads,
                records,
            } => {
                *cs = self.cs.unwrap_or(*cs);
                *ncs = self.ncs.unwrap_or(*ncs);
                *reads = self.reads.unwrap_or(*reads);
                let records_given = self.records.or(self.hot.then_some(1));
                *records = records_given.unwrap_or(*records);
            }
            Workload::Condvar { pattern } => match self.pattern {
                None => {}
                Some(Pattern::Queue) => *pattern = condvar::Pattern::Queue,
                Some(Pattern::PingPong) => *pattern = condvar::Pattern::PingPong,
                Some(Pattern::Broadcast) => *pattern = condvar::Pattern::Broadcast,
            },
            Workload::Qdisc | Workload::Fserver | Workload::Rwsem => {}
        }
        Ok(workload)
    }

    /// Options that only some workloads have must not be given to another.
    fn fit(&self, workload: &Workload, command: &str) -> Result<(), Exit> {
        let options = [
            ("--cs", self.cs.is_some(), "cs"),
            ("--ncs", self.ncs.is_some(), "ncs"),
            ("--arrays", self.arrays.is_some(), "arrays"),
            ("--reads", self.reads.is_some(), "reads"),
            ("--hot", self.hot, "records"),
            ("--records", self.records.is_some(), "records"),
            ("--pattern", self.pattern.is_some(), "pattern"),
        ];
        let Some((option, _, key)) = options
            .into_iter()
            .find(|(_, given, key)| *given && !workload.has(key))
        else {
            return Ok(());
        };
        let owners = Workload::ALL.into_iter().filter(|owner| owner.has(key));
        let names: Vec<String> = owners
            .map(|owner| format!("`{command} {}`", owner.name()))
            .collect();
        let names = match &names[..] {
            [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
            _ => names.concat(),
        };
        Err(Exit::usage(format!("{option} is for {names} only")))
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
        let hot = options(&["--hot"]).change(rw, "bench").unwrap();
        assert_eq!(hot.to_string(), "rw:ncs=5ns:reads=1");
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
