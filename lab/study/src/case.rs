//! Simulations: what each is of, what it brings, and many of them at a time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use overlock_bench::error::Error;
use overlock_bench::interrupt::Interrupt;
use overlock_bench::probe::{Pass, Times};
use overlock_bench::registry::Entry;
use overlock_bench::report::simulation::Summary;
use overlock_bench::stats::jain;
use overlock_bench::workload::{Workload, qdisc};
use overlock_bench::world::sim::Simulated;
use overlock_bench::world::{Workers, World};
use overlock_sim::host::Host;
use overlock_sim::machine::Machine;
use overlock_sim::spec::{self, Spec};
use serde::{Deserialize, Serialize};

/// A lock with a load on a machine.
#[derive(Clone, Debug)]
pub struct Case {
    pub machine: Arc<Machine>,
    pub host: Arc<Host>,
    /// vCPUs of other guests beside them, which want a CPU all the time.
    pub others: usize,
    pub workload: Workload,
    pub lock: &'static Entry,
    /// Threads, or vCPUs of all guests.
    pub threads: usize,
    /// In how many guests of equal size, each of which runs the workload.
    pub guests: usize,
}

/// The result of a simulation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Outcome {
    /// The lock failed.
    Failed {
        /// How.
        error: String,
    },
    /// It brought this.
    Measured(Box<Measured>),
}

/// The figures of a simulation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Simulated seconds.
    pub elapsed_s: f64,
    /// Operations of all vCPUs a second.
    pub ops_per_sec: f64,
    /// Operations of all vCPUs.
    pub total: u64,
    /// Operations of the vCPU that had the fewest.
    pub min: u64,
    /// Operations of a vCPU, on average.
    pub avg: f64,
    /// Operations of the vCPU that had the most.
    pub max: u64,
    /// Jain's index of fairness over the vCPUs.
    pub jain: f64,
    /// CPU time in seconds for a million operations, if there were any.
    pub cpu_s_per_mop: Option<f64>,
    /// The waits for the lock.
    pub waits: Option<Times>,
    /// Those to read, where readers differ from writers.
    pub read: Option<Times>,
    /// Those to write.
    pub write: Option<Times>,
    /// Megabits of messages a second.
    pub mbit_per_sec: Option<f64>,
    /// Packets a second that found the queue full.
    pub dropped_per_sec: Option<f64>,
    /// Seconds that a build took, if it was finished.
    pub build_s: Option<f64>,
    /// Preemptions, and shares of the time.
    pub simulation: Summary,
}

/// How to simulate some cases.
#[derive(Clone, Debug)]
pub struct Options {
    pub round: Duration,
    pub seed: u64,
    /// So many at a time.
    pub jobs: usize,
    /// Ends all of them when raised.
    pub interrupt: Arc<Interrupt>,
}

/// In [`outcomes`] a build is so many times as long: it ends, and must be long against a slice.
const BUILD: u32 = 10;

impl Outcome {
    /// The figures, or how the lock failed.
    pub fn measured(&self) -> Result<&Measured, &str> {
        match self {
            Self::Measured(measured) => Ok(measured),
            Self::Failed { error } => Err(error),
        }
    }
}

impl Measured {
    /// Jain's index, if there were operations: none at all are not even.
    pub fn fairness(&self) -> Option<f64> {
        (self.total > 0).then_some(self.jain)
    }

    /// The percentage of the acquisitions on a slow path that went through the queue, if any did
    /// take that path.
    pub fn queued_percent(&self) -> Option<f64> {
        let (queued, unfair) = (self.simulation.queued, self.simulation.unfair);
        let all = queued + unfair;
        (all > 0).then(|| 100.0 * queued as f64 / all as f64)
    }

    /// The longest wait in nanoseconds, if waits were timed.
    pub fn longest_ns(&self) -> Option<f64> {
        self.waits.as_ref().map(|waits| waits.max_ns)
    }
}

impl Case {
    /// All of it, by names.
    pub fn key(&self) -> String {
        let (machine, cores) = (&self.machine.name, self.machine.all_cores());
        let (host, workload, lock) = (&self.host.name, &self.workload, self.lock.name);
        let (threads, guests, others) = (self.threads, self.guests, self.others);
        format!(
            "{machine} ({cores} cores), {host}, {workload}, {lock}, {threads} in {guests} beside \
             {others}"
        )
    }

    /// The same with another value of a key of its machine, or of its host.
    ///
    /// # Errors
    ///
    /// Says what is valid.
    pub fn with(&self, key: &str, value: &str) -> Result<Self, String> {
        let mut changed = self.clone();
        if Host::keys().any(|of_host| of_host.name == key) {
            changed.host = Arc::new(spec::with(Host::clone(&self.host), key, value)?);
        } else {
            changed.machine = Arc::new(spec::with(Machine::clone(&self.machine), key, value)?);
        }
        Ok(changed)
    }

    /// Simulates it for so long. The same case brings the same, whatever else this program does.
    ///
    /// # Panics
    ///
    /// If the lock panics, or does not run on a simulated machine.
    pub fn simulate(
        &self,
        seed: u64,
        round: Duration,
        interrupt: &Arc<Interrupt>,
    ) -> Result<Measured, Error> {
        let (machine, host) = (Machine::clone(&self.machine), Host::clone(&self.host));
        let cpus = machine.cpus() as f64;
        let world = Simulated::new(machine, host, seed, Arc::clone(interrupt));
        let world = world.beside(self.others).in_guests(self.guests);
        let rounds = self.lock.simulated.as_ref();
        let rounds = rounds.expect("the lock of a case runs on simulated machines");
        let workers = Workers {
            lock: self.lock.name,
            threads: self.threads,
            pin: false,
            stop_after: round,
            at_once: false,
        };
        world.begin(0);
        // Simulated clocks cost nothing to read, so one round counts operations and times waits.
        let prepared = self.workload.prepare(&world, cpus, round);
        let sample = prepared.round(rounds, &world, &workers, Pass::Latency)?;
        let simulation = Summary::new(world.report().as_slice()).expect("the round has run");

        let (operations, total) = (&sample.operations, sample.total());
        let roles = sample.roles.as_ref();
        Ok(Measured {
            elapsed_s: sample.elapsed.as_secs_f64(),
            ops_per_sec: sample.ops_per_sec(),
            total,
            min: operations.iter().copied().min().unwrap_or_default(),
            avg: total as f64 / operations.len() as f64,
            max: operations.iter().copied().max().unwrap_or_default(),
            jain: jain(operations),
            cpu_s_per_mop: (total > 0).then(|| sample.cpu.as_secs_f64() / total as f64 * 1e6),
            waits: sample.waits.as_ref().map(|waits| waits.times(&world)),
            read: roles.map(|roles| roles.readers.times(&world)),
            write: roles.map(|roles| roles.writers.times(&world)),
            mbit_per_sec: (self.workload == Workload::Qdisc)
                .then(|| qdisc::megabits(sample.ops_per_sec())),
            dropped_per_sec: sample.dropped_per_sec(),
            build_s: sample.build_s(),
            simulation,
        })
    }
}

/// Runs `simulate` for each of `numbers`, `jobs` of them at a time, until `interrupt` is raised.
/// Calls `ended` with how many have ended, and each number with its outcome, in the order in which
/// they end. That this machine has no room for a simulation says nothing about the lock, and is no
/// outcome.
///
/// # Errors
///
/// Those of `ended`. The simulations that run then are dropped.
pub fn run<E>(
    numbers: impl IntoIterator<Item = usize>,
    jobs: usize,
    interrupt: &Interrupt,
    simulate: impl Fn(usize) -> Result<Measured, Error> + Sync,
    mut ended: impl FnMut(usize, usize, Result<Outcome, Error>) -> Result<(), E>,
) -> Result<(), E> {
    let simulate = &simulate;
    thread::scope(|scope| {
        let (send, receive) = mpsc::channel();
        let mut waiting = numbers.into_iter().fuse();
        let (mut running, mut count) = (0, 0);
        loop {
            while running < jobs.max(1)
                && !interrupt.is_raised()
                && let Some(number) = waiting.next()
            {
                let send = send.clone();
                // A thread each: what a lock that panics has left on its thread is gone with it.
                scope.spawn(move || {
                    let result = catch_unwind(AssertUnwindSafe(|| simulate(number)));
                    // The receiver is gone if the others have been given up.
                    let _ = send.send((number, result));
                });
                running += 1;
            }
            if running == 0 {
                return Ok(());
            }
            running -= 1;
            let (number, result) = receive.recv().expect("the sender above is still there");
            let outcome = match result.unwrap_or_else(|panic| Err(Error::panicked(&*panic))) {
                Ok(measured) => Ok(Outcome::Measured(Box::new(measured))),
                Err(Error::Interrupted) => continue,
                Err(lacking @ Error::Spawn { .. }) => Err(lacking),
                Err(error) => Ok(Outcome::Failed {
                    error: error.to_string(),
                }),
            };
            count += 1;
            ended(count, number, outcome).inspect_err(|_| interrupt.raise())?;
        }
    })
}

/// The outcomes of all cases, in their order. Calls `done` after each with how many have ended, and
/// of how many.
pub fn outcomes(
    cases: &[Case],
    options: &Options,
    mut done: impl FnMut(usize, usize, &Case),
) -> Result<Vec<Outcome>, Error> {
    let simulate = |number: usize| {
        let case: &Case = &cases[number];
        let is_build = matches!(case.workload, Workload::Build { .. });
        let round = options.round * if is_build { BUILD } else { 1 };
        case.simulate(options.seed, round, &options.interrupt)
    };
    let mut outcomes = vec![None; cases.len()];
    let ended = |count, number: usize, outcome: Result<Outcome, Error>| {
        outcomes[number] = Some(outcome?);
        done(count, cases.len(), &cases[number]);
        Ok::<(), Error>(())
    };
    let all = 0..cases.len();
    run(all, options.jobs, &options.interrupt, simulate, ended)?;
    let all: Option<Vec<Outcome>> = outcomes.into_iter().collect();
    all.ok_or(Error::Interrupted)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use super::*;

    /// So many simulated operations a second.
    pub(crate) fn rate(ops_per_sec: f64) -> Measured {
        Measured {
            elapsed_s: 1.0,
            ops_per_sec,
            total: ops_per_sec as u64,
            jain: 1.0,
            simulation: Summary {
                settled: Some(true),
                ..Summary::default()
            },
            ..Measured::default()
        }
    }

    /// A lock with so many threads on four cores.
    pub(crate) fn case(workload: &str, lock: &str, threads: usize) -> Case {
        let workload: Workload = workload.parse().unwrap();
        Case {
            machine: Arc::new(Machine::named("graviton3:cores=4").unwrap()),
            host: Arc::new(Host::threads()),
            others: 0,
            workload,
            lock: crate::locks::named(workload.family(), lock).unwrap(),
            threads,
            guests: 1,
        }
    }

    /// Rounds of so many simulated microseconds.
    pub(crate) fn options(micros: u64) -> Options {
        Options {
            round: Duration::from_micros(micros),
            seed: 1,
            jobs: 2,
            interrupt: Arc::default(),
        }
    }

    /// The numbers of those that end, and their outcomes.
    fn ended(
        jobs: usize,
        simulate: impl Fn(usize) -> Result<Measured, Error> + Sync,
    ) -> Result<Vec<(usize, Outcome)>, Error> {
        let mut all = Vec::new();
        let ended = |count, number, outcome: Result<Outcome, Error>| {
            all.push((number, outcome?));
            assert_eq!(count, all.len());
            Ok::<(), Error>(())
        };
        run(0..12, jobs, &Interrupt::default(), simulate, ended).map(|()| all)
    }

    #[test]
    fn so_many_run_at_a_time_and_are_told_as_they_end() {
        let (here, most, second) = (AtomicUsize::new(0), AtomicUsize::new(0), Barrier::new(3));
        let simulate = |number: usize| {
            most.fetch_max(1 + here.fetch_add(1, Relaxed), Relaxed);
            // The first three wait for each other, and the first of them for the end of others.
            if number < 3 {
                second.wait();
            }
            if number == 0 {
                thread::sleep(Duration::from_millis(50));
            }
            here.fetch_sub(1, Relaxed);
            Ok(rate(number as f64))
        };
        let mut all = ended(3, simulate).unwrap();
        assert_eq!(most.load(Relaxed), 3);
        assert_ne!(all[0].0, 0, "the first is told as the first");
        all.sort_by_key(|(number, _)| *number);
        let each = (0..12).map(|number| (number, Outcome::Measured(Box::new(rate(number as f64)))));
        assert!(all.into_iter().eq(each));
    }

    #[test]
    fn cases_that_differ_in_a_number_have_other_keys() {
        let one = case("micro", "mcs", 4);
        let changes: [fn(&mut Case); 3] = [
            |case| case.threads = 8,
            |case| case.guests = 2,
            |case| case.others = 1,
        ];
        for change in changes {
            let mut other = one.clone();
            change(&mut other);
            assert_ne!(other.key(), one.key());
        }
    }

    /// A lock that fails does not end the others; a machine without room for a simulation does, and
    /// says nothing about the lock.
    #[test]
    fn failures_and_panics_are_outcomes_and_a_lack_of_room_is_not() {
        let simulate = |number: usize| match number {
            3 => Err(Error::Simulation("nobody is left".to_owned())),
            4 => panic!("the lock is held"),
            _ => Ok(rate(1.0)),
        };
        let all = ended(0, simulate).unwrap();
        let failures = all
            .iter()
            .filter_map(|(_, outcome)| outcome.measured().err());
        let failures: Vec<&str> = failures.collect();
        let both = ["did not end: nobody is left", "panicked: the lock is held"];
        assert_eq!((all.len(), failures), (12, both.to_vec()));
        let lacks = |_| {
            Err(Error::Spawn {
                wanted: 4,
                got: 3,
                why: "no room".to_owned(),
            })
        };
        let lacking = ended(1, lacks).unwrap_err().to_string();
        assert!(lacking.contains("3 of 4 threads"), "{lacking}");
    }
}
