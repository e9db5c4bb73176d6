//! The options, checked.

use std::fmt::Write;
use std::hash::{BuildHasher, RandomState};

use overlock_bench::machine::most_threads;
use overlock_torture::plan::Plan;
use overlock_torture::registry::{self, Entry};
use overlock_torture::run::{Machine, threads};
use overlock_torture::settings::Settings;

use super::args::Args;
use crate::exit::Exit;

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
            length: args.seconds,
            seed: args.seed.unwrap_or_else(any_seed),
            threads: args.threads,
            reads: args.reads,
            long_hold: args.long_hold,
            stutter: args.stutter,
            shuffle: args.shuffle,
            churn: args.churn,
            nest: args.nest,
            signals: !args.no_signals,
            boost: !args.no_boost,
            patience: args.patience,
        };
        let choice = Self {
            settings,
            locks: locks(args)?,
            plan: args.plan,
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
