//! The options, checked.

use std::fmt::Write;
use std::time::Duration;

use overlock_bench::registry::{Entry, Family};
use overlock_bench::workload::Workload;

use crate::exit::Exit;
use crate::measure::load::Load;
use crate::vm::{Args, Hypervisor, Preempted};

/// The most vCPUs that take a lock. One more directs them.
const MOST_VCPUS: (usize, &str) = (
    63,
    "a guest has 64 vCPUs at most, and one directs the others",
);

/// The most numbers of vCPUs that the boot line takes.
const MOST_COUNTS: usize = 8;

/// Locks of the image that are broken on purpose. They are in no list.
const FAULTY: [&str; 3] = ["faulty_no_exclusion", "faulty_lost_kick", "faulty_readers"];

/// A lock to run.
#[derive(Clone, Copy, Debug)]
pub struct Lock {
    pub name: &'static str,
    /// Its entry in the lists. `None` if it is broken on purpose: it has no figures.
    pub entry: Option<&'static Entry>,
}

/// The run that the options ask for.
#[derive(Debug)]
pub struct Choice {
    pub locks: Vec<Lock>,
    /// Numbers of vCPUs that take the lock.
    pub counts: Vec<usize>,
    pub round: Duration,
    pub rounds: usize,
    /// How long the run may take.
    pub limit: Duration,
    /// How long the guest may make no progress.
    pub hang: Duration,
    cs: usize,
    ncs: usize,
    preempted: Preempted,
}

impl Choice {
    /// Checks everything that depends on nothing of the machine.
    pub fn new(args: &Args) -> Result<Self, Exit> {
        let counts = Load::new(&args.vcpus, &[]).threads(1.0, MOST_VCPUS)?;
        if counts.len() > MOST_COUNTS {
            return Err(Exit::usage(format!(
                "--vcpus: a guest takes {MOST_COUNTS} numbers at most"
            )));
        }
        let mut choice = Self {
            locks: select(args.locks.iter().map(|name| name.trim()))?,
            counts,
            round: Duration::from_millis(args.ms),
            rounds: args.rounds,
            limit: Duration::ZERO,
            hang: args.hang,
            cs: args.cs,
            ncs: args.ncs,
            preempted: args.preempted,
        };
        let default = 3 * choice.length() + Duration::from_secs(60);
        choice.limit = args.time_limit.unwrap_or(default);
        Ok(choice)
    }

    /// Refuses more vCPUs than the hypervisor gives.
    pub fn check_vcpus(&self, hypervisor: Hypervisor) -> Result<(), Exit> {
        let most = hypervisor.most_vcpus();
        match self.vcpus() > most {
            true => Err(Exit::usage(format!(
                "--vcpus: {} gives a guest {most} vCPUs, and one directs the others",
                hypervisor.name()
            ))),
            false => Ok(()),
        }
    }

    /// Rounds of all locks with all numbers of vCPUs.
    pub fn total(&self) -> usize {
        self.counts.len() * self.rounds * self.locks.len()
    }

    /// The vCPUs of the guest.
    pub fn vcpus(&self) -> usize {
        1 + self.counts.iter().max().copied().unwrap_or(1)
    }

    /// The boot line.
    pub fn line(&self, hypervisor: Hypervisor) -> String {
        let list = |words: Vec<String>| words.join(",");
        let mut line = format!(
            "workload=micro ms={} rounds={} vcpus={} locks={} cs={} ncs={} preempted={} hang={}",
            self.round.as_millis(),
            self.rounds,
            list(self.counts.iter().map(usize::to_string).collect()),
            list(self.names().map(str::to_owned).collect()),
            self.cs,
            self.ncs,
            self.preempted(),
            self.hang.as_millis(),
        );
        if let Some(cpus) = hypervisor.cpus() {
            let _ = write!(line, " cpus={cpus}");
        }
        line
    }

    /// The names of the locks.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.locks.iter().map(|lock| lock.name)
    }

    /// The option of that name.
    pub fn preempted(&self) -> &'static str {
        match self.preempted {
            Preempted::Known => "known",
            Preempted::Unknown => "unknown",
        }
    }

    /// The workload, as `overlock-lab bench` has it.
    pub fn workload(&self) -> Workload {
        Workload::micro(self.cs as f64, self.ncs as f64)
    }

    /// The time of all rounds, each with its warm-up, and a little for its beginning and end.
    fn length(&self) -> Duration {
        let round = self.round.mul_f64(1.25) + Duration::from_millis(20);
        round * u32::try_from(self.total()).unwrap_or(u32::MAX)
    }
}

/// The locks that guests run: those that are written against a platform.
fn entries() -> impl Iterator<Item = &'static Entry> {
    let all = Family::Exclusive.locks().iter();
    all.filter(|entry| entry.simulated.is_some())
}

/// The locks that `words` name, each once, in the order of the list.
fn select<'a>(words: impl Iterator<Item = &'a str>) -> Result<Vec<Lock>, Exit> {
    let words: Vec<String> = words.map(|word| word.replace('-', "_")).collect();
    let known = |word: &&String| {
        *word == "all" || FAULTY.contains(&word.as_str()) || entries().any(|e| e.name == **word)
    };
    if let Some(wrong) = words.iter().find(|word| !known(word)) {
        let names: Vec<&str> = entries().map(|entry| entry.name).collect();
        return Err(Exit::usage(format!(
            "no guest runs a lock '{wrong}'; the locks are all, {}",
            names.join(", ")
        )));
    }
    let named = |name: &str| words.iter().any(|word| word == name);
    let listed = entries().filter(|entry| named("all") || named(entry.name));
    let listed = listed.map(|entry| Lock {
        name: entry.name,
        entry: Some(entry),
    });
    let faulty = FAULTY.into_iter().filter(|name| named(name));
    let faulty = faulty.map(|name| Lock { name, entry: None });
    Ok(listed.chain(faulty).collect())
}

/// The locks for people.
pub fn describe() -> String {
    let mut text = "locks:\n".to_owned();
    for entry in entries() {
        let _ = writeln!(text, "  {:<22} {}", entry.name, entry.about);
    }
    text
}

#[cfg(test)]
pub mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    /// The choice of these options, or the complaint.
    pub fn choice(words: &[&str]) -> Result<Choice, String> {
        let line = Line::try_parse_from(["overlock-lab"].iter().chain(words));
        let line = line.map_err(|error| error.to_string())?;
        Choice::new(&line.args).map_err(|exit| match exit {
            Exit::Usage(message) => message,
            other => panic!("not bad use: {other:?}"),
        })
    }

    #[test]
    fn options_become_a_boot_line() {
        let words = ["--vcpus", "8,2,2", "--locks", "hybrid,mcs", "--cs", "65"];
        let choice = choice(&words).unwrap();
        assert_eq!((choice.vcpus(), choice.total()), (9, 2 * 5 * 2));
        assert_eq!(
            choice.line(Hypervisor::Xen),
            "workload=micro ms=100 rounds=5 vcpus=2,8 locks=mcs,hybrid cs=65 ncs=0 \
             preempted=known hang=10000 cpus=2"
        );
        assert!(!choice.line(Hypervisor::KvmRing3).contains("cpus=2 "));
        let words = ["--preempted", "unknown", "--time-limit", "7"];
        let choice = self::choice(&words).unwrap();
        assert!(choice.line(Hypervisor::Tcg).contains(" preempted=unknown "));
        assert_eq!(choice.limit, Duration::from_secs(7));
    }

    #[test]
    fn all_locks_fit_the_boot_line() {
        let choice = choice(&["--locks", "all"]).unwrap();
        assert!(choice.line(Hypervisor::Xen).len() < 1024);
        assert!(choice.locks.len() > 10);
    }

    #[test]
    fn what_no_guest_runs_is_refused() {
        for (words, says) in [
            (["--locks", "std"], "no guest runs a lock 'std'; the locks"),
            (["--vcpus", "64"], "1 to 63"),
            (["--vcpus", "1,2,3,4,5,6,7,8,9"], "8 numbers at most"),
            (["--ms", "0"], "must be a whole number from 1 to 86400000"),
            (
                ["--cs", "-1"],
                "must be a whole number from 0 to 1000000000",
            ),
        ] {
            let message = choice(&words).unwrap_err();
            assert!(message.contains(says), "{message}");
        }
        let choice = choice(&["--vcpus", "32"]).unwrap();
        assert!(choice.check_vcpus(Hypervisor::Xen).is_err());
        assert!(choice.check_vcpus(Hypervisor::KvmRing3).is_ok());
    }

    #[test]
    fn a_broken_lock_has_no_entry() {
        let choice = choice(&["--locks", "faulty-lost-kick,mcs"]).unwrap();
        let names: Vec<&str> = choice.names().collect();
        assert_eq!(names, ["mcs", "faulty_lost_kick"]);
        assert!(choice.locks[0].entry.is_some() && choice.locks[1].entry.is_none());
    }
}
