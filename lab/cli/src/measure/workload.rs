//! The options that set something about a workload.

use clap::ValueEnum;

use overlock_bench::workload::spec::{LONGEST_SECTION, MANY};
use overlock_bench::workload::{Workload, condvar};

use crate::exit::Exit;
use crate::number::{number, whole};

/// The parameters of a workload.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct Options {
    /// micro, build, rw: length of the critical section, beside its access to the data [default:
    /// 100 in build, else 0]
    #[arg(long, value_name = "NS")]
    pub cs: Option<String>,

    /// micro, build, rw: length of the section between two acquisitions [default: 2000 in build,
    /// else 0]
    #[arg(long, value_name = "NS")]
    pub ncs: Option<String>,

    /// semop: semaphore arrays, each under its own lock [default: 4]
    #[arg(long, value_name = "N")]
    pub arrays: Option<String>,

    /// rw: how many of the operations read [default: 90]
    #[arg(long, value_name = "PERCENT")]
    pub reads: Option<String>,

    /// rw: one lock for all, which is the default
    #[arg(long, conflicts_with = "records")]
    pub hot: bool,

    /// rw: so many records, each under its own lock; threads pick one at random, so that with
    /// 100000 its line is cold
    #[arg(long, value_name = "N")]
    pub records: Option<String>,

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
        let section = |option, text: &Option<String>, place: &mut f64| {
            if let Some(text) = text {
                *place = number(option, text, 0.0, LONGEST_SECTION, "nanoseconds")?;
            }
            Ok(())
        };
        let many = |option, text: &Option<String>, place: &mut usize| {
            if let Some(text) = text {
                *place = whole(option, text, 1, MANY)?;
            }
            Ok(())
        };
        match &mut workload {
            Workload::Micro { cs, ncs } | Workload::Build { cs, ncs } => {
                section("--cs", &self.cs, cs)?;
                section("--ncs", &self.ncs, ncs)?;
            }
            Workload::Semop { arrays } => many("--arrays", &self.arrays, arrays)?,
            Workload::Rw {
                cs,
                ncs,
                reads,
                records,
            } => {
                section("--cs", &self.cs, cs)?;
                section("--ncs", &self.ncs, ncs)?;
                if let Some(text) = &self.reads {
                    *reads = number("--reads", text, 0.0, 100.0, "a percentage of operations")?;
                }
                if self.hot {
                    *records = 1;
                }
                many("--records", &self.records, records)?;
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
