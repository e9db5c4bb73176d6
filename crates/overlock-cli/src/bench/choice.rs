//! What the options ask for, checked.

use std::time::Duration;

use clap::ValueEnum;

use overlock_bench::machine::{Machine, most_threads};
use overlock_bench::registry::{self, Entry};
use overlock_bench::workload::{Workload, condvar};

use super::args::{Args, Kind, Pattern};
use crate::exit::Exit;
use crate::number::{number, seconds, whole};

/// More arrays, records or threads for each CPU than any machine has a use for.
const MANY: f64 = 1e6;

/// What to measure.
#[derive(Debug)]
pub struct Choice {
    pub workload: Workload,
    pub locks: Vec<&'static Entry>,
    pub load: Load,
    pub seconds: Option<Duration>,
    pub budget: Duration,
    pub runs: usize,
    pub latency_runs: usize,
    /// In percent of one CPU.
    pub quota: Option<f64>,
}

/// How many threads.
#[derive(Debug)]
pub enum Load {
    Threads(Vec<usize>),
    /// For each CPU.
    Overcommit(Vec<f64>),
}

impl Choice {
    /// Checks everything that needs no look at the machine but its number of CPUs.
    pub fn new(args: &Args, machine: &Machine) -> Result<Self, Exit> {
        let latency_runs = if args.no_latency {
            0
        } else {
            whole("--latency-runs", &args.latency_runs, 0, 10_000)?
        };
        let most_quota = 100.0 * machine.cpus_online as f64;
        let quota =
            |text: &str| number("--quota", text, 1.0, most_quota, "a percentage of one CPU");
        let workload = workload(args)?;
        let locks = args.locks.iter().map(|name| name.trim());
        Ok(Self {
            workload,
            locks: registry::select(workload.family(), locks)
                .map_err(|error| Exit::usage(error.to_string()))?,
            load: Load::new(args)?,
            seconds: args
                .seconds
                .as_deref()
                .map(|text| seconds("--seconds", text))
                .transpose()?,
            budget: seconds("--budget", &args.budget)?,
            runs: whole("--runs", &args.runs, 1, 10_000)?,
            latency_runs,
            quota: args.quota.as_deref().map(quota).transpose()?,
        })
    }
}

impl Load {
    fn new(args: &Args) -> Result<Self, Exit> {
        if args.threads.is_empty() {
            args.overcommit
                .iter()
                .map(|text| level(text))
                .collect::<Result<_, _>>()
                .map(Self::Overcommit)
        } else {
            let threads = args
                .threads
                .iter()
                .map(|text| whole("--threads", text, 1, usize::MAX));
            threads.collect::<Result<_, _>>().map(Self::Threads)
        }
    }

    /// The numbers of threads on `cpus`: each once, in order, and no more than the machine has.
    pub fn threads(&self, cpus: f64) -> Result<Vec<usize>, Exit> {
        let mut threads = match self {
            Self::Threads(threads) => threads.clone(),
            Self::Overcommit(levels) => levels
                .iter()
                .map(|level| ((level * cpus).round() as usize).max(1))
                .collect(),
        };
        threads.sort_unstable();
        threads.dedup();
        let (most, reason) = most_threads();
        match threads.last() {
            Some(last) if *last > most => Err(Exit::usage(format!(
                "{last} threads are more than this machine allows: 1 to {most} ({reason})"
            ))),
            _ => Ok(threads),
        }
    }
}

fn workload(args: &Args) -> Result<Workload, Exit> {
    fits(args)?;
    let section = |option, text: &Option<String>| match text {
        Some(text) => number(option, text, 0.0, 1e9, "nanoseconds"),
        None => Ok(0.0),
    };
    let many = |option, text: &Option<String>, default| match text {
        Some(text) => whole(option, text, 1, MANY as usize),
        None => Ok(default),
    };
    Ok(match args.workload {
        Kind::Micro => Workload::Micro {
            cs: section("--cs", &args.cs)?,
            ncs: section("--ncs", &args.ncs)?,
        },
        Kind::Semop => Workload::Semop {
            arrays: many("--arrays", &args.arrays, 4)?,
        },
        Kind::Qdisc => Workload::Qdisc,
        Kind::Build => Workload::Build {
            cs: section("--cs", &args.cs)?,
            ncs: section("--ncs", &args.ncs)?,
        },
        Kind::Fserver => Workload::Fserver,
        Kind::Rw => Workload::Rw {
            cs: section("--cs", &args.cs)?,
            ncs: section("--ncs", &args.ncs)?,
            reads: args.reads.as_deref().map_or(Ok(90.0), |text| {
                number("--reads", text, 0.0, 100.0, "a percentage of operations")
            })?,
            records: many("--records", &args.records, 1)?,
        },
        Kind::Rwsem => Workload::Rwsem,
        Kind::Condvar => Workload::Condvar {
            pattern: match args.pattern {
                None | Some(Pattern::Queue) => condvar::Pattern::Queue,
                Some(Pattern::PingPong) => condvar::Pattern::PingPong,
                Some(Pattern::Broadcast) => condvar::Pattern::Broadcast,
            },
        },
    })
}

/// Options that only some workloads have must not be given to another.
fn fits(args: &Args) -> Result<(), Exit> {
    let options: [(&str, bool, &[Kind]); 7] = [
        ("--cs", args.cs.is_some(), &[Kind::Micro, Kind::Rw]),
        ("--ncs", args.ncs.is_some(), &[Kind::Micro, Kind::Rw]),
        ("--arrays", args.arrays.is_some(), &[Kind::Semop]),
        ("--reads", args.reads.is_some(), &[Kind::Rw]),
        ("--hot", args.hot, &[Kind::Rw]),
        ("--records", args.records.is_some(), &[Kind::Rw]),
        ("--pattern", args.pattern.is_some(), &[Kind::Condvar]),
    ];
    let Some((option, _, owners)) = options
        .into_iter()
        .find(|(_, given, owners)| *given && !owners.contains(&args.workload))
    else {
        return Ok(());
    };
    let names: Vec<String> = owners
        .iter()
        .filter_map(ValueEnum::to_possible_value)
        .map(|owner| format!("`bench {}`", owner.get_name()))
        .collect();
    let names = names.join(" and ");
    Err(Exit::usage(format!("{option} is for {names} only")))
}

/// A level of overcommit, with or without its x.
fn level(text: &str) -> Result<f64, Exit> {
    let bare = text.trim().trim_end_matches(['x', 'X']);
    match bare.parse() {
        Ok(level) if level > 0.0 && level <= MANY => Ok(level),
        _ => Err(Exit::usage(format!(
            "--overcommit {text}: must be threads for each CPU, above 0 and up to {MANY}, such as 1x or 2.5x"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(result: Result<impl std::fmt::Debug, Exit>) -> String {
        match result.unwrap_err() {
            Exit::Usage(message) => message,
            other => panic!("not bad use: {other:?}"),
        }
    }

    fn args(words: &[&str]) -> Args {
        use clap::Parser;
        let line = ["overlock", "bench"].iter().chain(words);
        match crate::Cli::try_parse_from(line).unwrap().command {
            crate::Command::Bench(args) => *args,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_workload_has_its_name_and_its_defaults() {
        let asked: Vec<Workload> = Kind::value_variants()
            .iter()
            .map(|kind| {
                let name = kind.to_possible_value().unwrap();
                let workload = workload(&args(&[name.get_name()])).unwrap();
                assert_eq!(workload.name(), name.get_name());
                workload
            })
            .collect();
        assert_eq!(asked, Workload::ALL);
    }

    #[test]
    fn every_pattern_has_its_name() {
        for pattern in condvar::Pattern::ALL {
            let words = ["condvar", "--pattern", pattern.name()];
            assert_eq!(
                workload(&args(&words)).unwrap(),
                Workload::Condvar { pattern }
            );
        }
    }

    #[test]
    fn levels_may_have_their_x() {
        assert_eq!(level("2x").unwrap(), 2.0);
        assert_eq!(level(" 0.5 ").unwrap(), 0.5);
        for nonsense in ["0x", "-1x", "x", "", "NaN", "inf", "two"] {
            assert!(message(level(nonsense)).contains("such as 1x or 2.5x"));
        }
    }

    #[test]
    fn overcommit_becomes_threads() {
        let load = Load::Overcommit(vec![2.0, 1.0, 1.0, 0.1]);
        assert_eq!(load.threads(2.0).unwrap(), [1, 2, 4]);
        assert_eq!(load.threads(0.5).unwrap(), [1]);
    }

    #[test]
    fn more_threads_than_the_machine_has_are_refused() {
        let text = message(Load::Threads(vec![usize::MAX]).threads(2.0));
        assert!(
            text.contains("more than this machine allows: 1 to "),
            "{text}"
        );
    }
}
