//! The options, checked.

use std::fmt::Write;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use overlock_bench::machine::most_threads;
use overlock_torture::plan::Plan;
use overlock_torture::registry::{self, Entry};
use overlock_torture::run::{Machine, threads};
use overlock_torture::settings::{LOCKS, Settings};

use super::args::Args;
use crate::exit::Exit;
use crate::number::{number, seconds, whole};

/// The locks to torture, and how.
#[derive(Debug)]
pub struct Choice {
    pub settings: Settings,
    pub locks: Vec<&'static Entry>,
    /// Steps to print instead.
    pub plan: Option<usize>,
}

impl Choice {
    /// Checks everything.
    pub fn new(args: &Args, cpus: f64) -> Result<Self, Exit> {
        let settings = Settings {
            length: seconds("--seconds", &args.seconds)?,
            seed: args.seed.as_deref().map_or_else(|| Ok(any_seed()), seed)?,
            threads: args.threads.as_deref().map(count_threads).transpose()?,
            reads: small("--reads", &args.reads, 0, 100)?,
            long_hold: milliseconds("--long-hold", &args.long_hold)?,
            stutter: milliseconds("--stutter", &args.stutter)?,
            shuffle: milliseconds("--shuffle", &args.shuffle)?,
            churn: small("--churn", &args.churn, 0, 1_000_000_000)?,
            nest: whole("--nest", &args.nest, 1, LOCKS)?,
            signals: !args.no_signals,
            boost: !args.no_boost,
            patience: seconds("--patience", &args.patience)?,
        };
        let locks = locks(args)?;
        let plan = args.plan.as_deref();
        let steps = |text| whole("--plan", text, 1, 1_000_000);
        let choice = Self {
            settings,
            locks,
            plan: plan.map(steps).transpose()?,
        };
        choice.fits(cpus)?;
        Ok(choice)
    }

    /// Threads that a lock cannot have, or the machine.
    fn fits(&self, cpus: f64) -> Result<(), Exit> {
        let (most, reason) = most_threads();
        let machine = Machine {
            cpus,
            allowed: Vec::new(),
        };
        if let (Some((name, most)), 1) = (self.fewer().next(), self.locks.len()) {
            return Err(Exit::usage(format!("{name} takes at most {most} threads")));
        }
        for entry in &self.locks {
            let threads = threads(&self.settings, entry, &machine);
            if threads > most {
                return Err(Exit::usage(format!(
                    "{threads} threads are more than this machine allows: 1 to {most} ({reason})"
                )));
            }
        }
        Ok(())
    }

    /// The locks that get fewer threads than `--threads`, and how many.
    pub fn fewer(&self) -> impl Iterator<Item = (&'static str, usize)> {
        let wanted = self.settings.threads.unwrap_or_default();
        self.locks.iter().filter_map(move |entry| {
            let most = entry.facts.most_threads.filter(|most| wanted > *most)?;
            Some((entry.name, most))
        })
    }

    /// The first steps of each thread.
    pub fn describe(&self, steps: usize, machine: &Machine) -> String {
        let mut text = format!("seed {}\n", self.settings.seed);
        for entry in &self.locks {
            let threads = threads(&self.settings, entry, machine);
            for index in 0..threads {
                let mut plan = Plan::new(&self.settings, entry, threads, index, 0);
                let life = plan
                    .life()
                    .map_or_else(String::new, |life| format!(", {life} steps"));
                let _ = writeln!(text, "{}, thread {index}{life}:", entry.name);
                for _ in 0..steps {
                    let _ = writeln!(text, "  {}", plan.step());
                }
            }
        }
        text
    }
}

fn locks(args: &Args) -> Result<Vec<&'static Entry>, Exit> {
    if let Some(name) = &args.inject {
        let flaws = registry::flaws();
        let flaw = flaws.iter().find(|(flaw, _)| flaw == name);
        return flaw.map(|(_, entry)| vec![entry]).ok_or_else(|| {
            let names: Vec<&str> = flaws.iter().map(|(flaw, _)| *flaw).collect();
            Exit::usage(format!(
                "unknown flaw '{name}'; the flaws are {}",
                names.join(", ")
            ))
        });
    }
    registry::select(args.locks.iter().map(String::as_str))
        .map_err(|error| Exit::usage(error.to_string()))
}

/// Another one each time: std's hash maps have a random one for each process.
fn any_seed() -> u64 {
    // Short enough to type.
    RandomState::new().hash_one(std::process::id()) >> 32
}

fn seed(text: &str) -> Result<u64, Exit> {
    text.trim().parse().map_err(|_| {
        Exit::usage(format!(
            "--seed {text}: must be a whole number from 0 to {}",
            u64::MAX
        ))
    })
}

fn count_threads(text: &str) -> Result<usize, Exit> {
    whole("--threads", text, 1, usize::MAX)
}

fn small(option: &str, text: &str, least: usize, most: usize) -> Result<u32, Exit> {
    whole(option, text, least, most).map(|number| number as u32)
}

fn milliseconds(option: &str, text: &str) -> Result<Duration, Exit> {
    number(option, text, 0.0, 86_400_000.0, "milliseconds")
        .map(|number| Duration::from_secs_f64(number / 1e3))
}
