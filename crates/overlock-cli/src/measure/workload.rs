//! Which workload, and what may be set about it.

use clap::ValueEnum;

use overlock_bench::workload::spec::{LONGEST_SECTION, MANY};
use overlock_bench::workload::{Workload, build, condvar};

use crate::exit::Exit;
use crate::number::{number, whole};

/// The workload and its own options.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct Args {
    /// The workload
    #[arg(value_enum, default_value_t = Kind::Micro)]
    pub workload: Kind,

    #[command(flatten)]
    pub options: Options,
}

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

/// The workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Lock, critical section, unlock, non-critical section, over and over
    Micro,
    /// Semaphore arrays, each under its own lock
    Semop,
    /// A network queue: a busy lock in front of a root lock, one dequeuer at a time
    Qdisc,
    /// A compile farm: fixed work, mostly private, with many short critical sections
    Build,
    /// A file server: a tree of directories, each under its own mutex, with short sections and long
    /// ones
    Fserver,
    /// A small record under a reader-writer lock
    Rw,
    /// Reader-writer locks, every thread reading and writing in turn
    Rwsem,
    /// Condition variables: threads that wait for each other
    Condvar,
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

impl Args {
    /// The workload that they ask for, of the subcommand of that name.
    #[cfg(feature = "sim")]
    pub fn workload(&self, command: &str) -> Result<Workload, Exit> {
        self.options.workload(self.workload, command)
    }
}

impl Options {
    /// That workload with what they set about it, for the subcommand of that name.
    pub fn workload(&self, kind: Kind, command: &str) -> Result<Workload, Exit> {
        self.fit(kind, command)?;
        let section = |option, text: &Option<String>, default| match text {
            Some(text) => number(option, text, 0.0, LONGEST_SECTION, "nanoseconds"),
            None => Ok(default),
        };
        let many = |option, text: &Option<String>, default| match text {
            Some(text) => whole(option, text, 1, MANY),
            None => Ok(default),
        };
        Ok(match kind {
            Kind::Micro => Workload::Micro {
                cs: section("--cs", &self.cs, 0.0)?,
                ncs: section("--ncs", &self.ncs, 0.0)?,
            },
            Kind::Semop => Workload::Semop {
                arrays: many("--arrays", &self.arrays, 4)?,
            },
            Kind::Qdisc => Workload::Qdisc,
            Kind::Build => Workload::Build {
                cs: section("--cs", &self.cs, build::VISIT_NS)?,
                ncs: section("--ncs", &self.ncs, build::PRIVATE_NS)?,
            },
            Kind::Fserver => Workload::Fserver,
            Kind::Rw => Workload::Rw {
                cs: section("--cs", &self.cs, 0.0)?,
                ncs: section("--ncs", &self.ncs, 0.0)?,
                reads: self.reads.as_deref().map_or(Ok(90.0), |text| {
                    number("--reads", text, 0.0, 100.0, "a percentage of operations")
                })?,
                records: many("--records", &self.records, 1)?,
            },
            Kind::Rwsem => Workload::Rwsem,
            Kind::Condvar => Workload::Condvar {
                pattern: match self.pattern {
                    None | Some(Pattern::Queue) => condvar::Pattern::Queue,
                    Some(Pattern::PingPong) => condvar::Pattern::PingPong,
                    Some(Pattern::Broadcast) => condvar::Pattern::Broadcast,
                },
            },
        })
    }

    /// Options that only some workloads have must not be given to another.
    fn fit(&self, kind: Kind, command: &str) -> Result<(), Exit> {
        let sections = &[Kind::Micro, Kind::Build, Kind::Rw];
        let options: [(&str, bool, &[Kind]); 7] = [
            ("--cs", self.cs.is_some(), sections),
            ("--ncs", self.ncs.is_some(), sections),
            ("--arrays", self.arrays.is_some(), &[Kind::Semop]),
            ("--reads", self.reads.is_some(), &[Kind::Rw]),
            ("--hot", self.hot, &[Kind::Rw]),
            ("--records", self.records.is_some(), &[Kind::Rw]),
            ("--pattern", self.pattern.is_some(), &[Kind::Condvar]),
        ];
        let Some((option, _, owners)) = options
            .into_iter()
            .find(|(_, given, owners)| *given && !owners.contains(&kind))
        else {
            return Ok(());
        };
        let names: Vec<String> = owners
            .iter()
            .filter_map(ValueEnum::to_possible_value)
            .map(|owner| format!("`{command} {}`", owner.get_name()))
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

    fn workload(words: &[&str]) -> Workload {
        use clap::Parser;
        #[derive(Debug, Parser)]
        struct Line {
            #[command(flatten)]
            args: Args,
        }
        let line = ["overlock"].iter().chain(words);
        Line::try_parse_from(line)
            .unwrap()
            .args
            .workload("sim")
            .unwrap()
    }

    #[test]
    fn every_workload_has_its_name_and_its_defaults() {
        let all: Vec<Workload> = Kind::value_variants()
            .iter()
            .map(|kind| {
                let name = kind.to_possible_value().unwrap();
                let workload = workload(&[name.get_name()]);
                assert_eq!(workload.name(), name.get_name());
                workload
            })
            .collect();
        assert_eq!(all, Workload::ALL);
    }

    #[test]
    fn every_pattern_has_its_name() {
        for pattern in condvar::Pattern::ALL {
            let words = ["condvar", "--pattern", pattern.name()];
            assert_eq!(workload(&words), Workload::Condvar { pattern });
        }
    }
}
