//! Simulations: what each is of, what it brings, and many of them at a time.

use std::sync::{Arc, Mutex};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use itertools::Itertools;
use overlock_bench::error::Error;
use overlock_bench::interrupt::Interrupt;
use overlock_bench::probe::{Pass, Times};
use overlock_bench::registry::Entry;
use overlock_bench::report::simulation::Summary;
use overlock_bench::stats::jain;
use overlock_bench::workload::{Workload, qdisc};
use overlock_bench::world::sim::Simulated;
use overlock_bench::world::{Part, Workers, World};
use overlock_sim::host::Host;
use overlock_sim::machine::Machine;
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

/// The figures of a simulation, or how the lock failed.
pub type Outcome = Result<Measured, String>;

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
    /// Jain's index of fairness over the vCPUs, if there were operations: none at all are not even.
    pub jain: Option<f64>,
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

impl Measured {
    /// The percentage of the acquisitions on a slow path that went through the queue, if any did
    /// take that path.
    pub fn queued_percent(&self) -> Option<f64> {
        let (queued, unfair) = (self.simulation.queued, self.simulation.unfair);
        let all = queued + unfair;
        (all > 0).then(|| 100.0 * queued as f64 / all as f64)
    }

    /// Whether longer simulations may bring other figures.
    pub fn is_unsettled(&self) -> bool {
        self.simulation.settled == Some(false)
    }
}

impl PartialEq for Case {
    fn eq(&self, other: &Self) -> bool {
        let numbers = |case: &Self| (case.threads, case.guests, case.others, case.workload);
        numbers(self) == numbers(other)
            && self.lock.name == other.lock.name
            && (&self.machine, &self.host) == (&other.machine, &other.host)
    }
}

impl Case {
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
            measured: Part::Warm,
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
            jain: (total > 0).then(|| jain(operations)),
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

/// Runs `simulate` for each of `numbers`, at most `jobs` of them at a time, until `interrupt` is
/// raised. Calls `ended` for each with its number and outcome, in the order in which they end. That
/// this machine has no room for a simulation says nothing about the lock, and is no outcome.
///
/// # Errors
///
/// Those of `ended`. The simulations that run then are dropped.
pub fn run<E: Send>(
    numbers: impl ExactSizeIterator<Item = usize> + Send,
    jobs: usize,
    interrupt: &Interrupt,
    simulate: impl Fn(usize) -> Result<Measured, Error> + Sync,
    ended: impl FnMut(usize, Result<Outcome, Error>) -> Result<(), E> + Send,
) -> Result<(), E> {
    let jobs = jobs.min(numbers.len());
    let (numbers, ended) = (Mutex::new(numbers), Mutex::new(ended));
    let next = || numbers.lock().expect("an iterator does not panic").next();
    let work = || {
        while !interrupt.is_raised()
            && let Some(number) = next()
        {
            // A thread each: what a lock that panics has left on its thread is gone with it.
            let result = thread::scope(|scope| {
                let thread = thread::Builder::new().spawn_scoped(scope, || simulate(number));
                let thread = thread.map_err(|why| Error::Spawn {
                    wanted: 1,
                    got: 0,
                    why: why.to_string(),
                })?;
                let ended = thread.join();
                ended.unwrap_or_else(|panic| Err(Error::panicked(&*panic)))
            });
            let outcome = match result {
                Ok(measured) => Ok(Ok(measured)),
                Err(Error::Interrupted) => break,
                Err(lacking @ Error::Spawn { .. }) => Err(lacking),
                Err(error) => Ok(Err(error.to_string())),
            };
            let mut ended = ended.lock().expect("another worker has not panicked");
            ended(number, outcome).inspect_err(|_| interrupt.raise())?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        // This thread works, too. If no other can be started, the simulation has none either.
        let others = (1..jobs).map_while(|_| thread::Builder::new().spawn_scoped(scope, work).ok());
        let others = others.collect_vec();
        let joined = |worker: ScopedJoinHandle<_>| worker.join().expect("a worker does not panic");
        let first = work();
        first.and(others.into_iter().try_for_each(joined))
    })
}

/// The outcomes of all cases, in their order; equal ones are simulated once. Calls `done` after
/// each simulation with how many have ended, and of how many.
pub fn outcomes(
    cases: &[Case],
    options: &Options,
    mut done: impl FnMut(usize, usize, &Case) + Send,
) -> Result<Vec<Outcome>, Error> {
    let simulate = |number: usize| {
        let case = &cases[number];
        let is_build = matches!(case.workload, Workload::Build { .. });
        let round = options.round * if is_build { BUILD } else { 1 };
        case.simulate(options.seed, round, &options.interrupt)
    };
    let first = |case| {
        cases
            .iter()
            .position(|other| other == case)
            .expect("itself")
    };
    let firsts = cases.iter().map(first).collect_vec();
    let numbers = firsts.iter().copied().unique().collect_vec();
    let (all, mut count) = (numbers.len(), 0);
    let mut outcomes = vec![None; cases.len()];
    let ended = |number: usize, outcome: Result<Outcome, Error>| {
        outcomes[number] = Some(outcome?);
        count += 1;
        done(count, all, &cases[number]);
        Ok(())
    };
    let (jobs, interrupt) = (options.jobs, &options.interrupt);
    run::<Error>(numbers.into_iter(), jobs, interrupt, simulate, ended)?;
    let outcomes = firsts.into_iter().map(|first| outcomes[first].clone());
    outcomes.collect::<Option<_>>().ok_or(Error::Interrupted)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use super::*;

    /// So many simulated operations a second.
    pub(crate) fn rate(ops_per_sec: f64) -> Measured {
        let mut rate = Measured {
            ops_per_sec,
            total: ops_per_sec as u64,
            jain: Some(1.0),
            ..Measured::default()
        };
        rate.simulation.settled = Some(true);
        rate
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

    /// Three wait for each other. A lock that fails does not end the others; a machine without room
    /// for a simulation does, and says nothing about the lock.
    #[test]
    fn so_many_run_at_a_time_and_failures_are_outcomes() {
        let (here, most, all) = (AtomicUsize::new(0), AtomicUsize::new(0), Barrier::new(3));
        let ended = |lacks: usize| {
            let mut outcomes = vec![None; 12];
            let simulate = |number: usize| {
                most.fetch_max(1 + here.fetch_add(1, Relaxed), Relaxed);
                if number < 3 {
                    all.wait();
                }
                here.fetch_sub(1, Relaxed);
                match number {
                    3 => Err(Error::Simulation("nobody is left".to_owned())),
                    4 => panic!("the lock is held"),
                    _ if number == lacks => Err(Error::Spawn {
                        wanted: 4,
                        got: 3,
                        why: "no room".to_owned(),
                    }),
                    _ => Ok(rate(number as f64)),
                }
            };
            let ended = |number: usize, outcome: Result<Outcome, Error>| {
                outcomes[number] = Some(outcome.map_err(|error| error.to_string())?);
                Ok::<(), String>(())
            };
            run(0..12, 3, &Interrupt::default(), simulate, ended).map(|()| outcomes)
        };
        for (number, outcome) in ended(99).unwrap().into_iter().enumerate() {
            match (number, outcome.unwrap()) {
                (3, outcome) => assert_eq!(outcome.unwrap_err(), "did not end: nobody is left"),
                (4, outcome) => assert_eq!(outcome.unwrap_err(), "panicked: the lock is held"),
                (_, outcome) => assert_eq!(outcome, Ok(rate(number as f64))),
            }
        }
        assert_eq!(most.load(Relaxed), 3);
        // No more threads start than there are simulations.
        let one = |_: usize, outcome: Result<Outcome, Error>| outcome.map(drop);
        run(
            0..1,
            usize::MAX,
            &Interrupt::default(),
            |_| Ok(rate(1.0)),
            one,
        )
        .unwrap();
        let lacking = ended(5).unwrap_err();
        assert!(lacking.contains("3 of 4 threads"), "{lacking}");
    }

    #[test]
    fn equal_cases_are_simulated_once() {
        let one = case("micro:cs=50", "mcs", 4);
        let changes: [fn(&mut Case); 5] = [
            |_| (),
            |case| case.threads = 3,
            |case| case.guests = 2,
            |case| case.others = 1,
            |case| Arc::make_mut(&mut case.machine).costs.turn = overlock_sim::Time::ns(40),
        ];
        let mut cases = vec![one; 6];
        for (case, change) in cases.iter_mut().zip(changes) {
            change(case);
        }
        let mut told = Vec::new();
        let outcomes = outcomes(&cases, &options(200), |count, all, _| {
            told.push((count, all))
        });
        let outcomes = outcomes.unwrap();
        assert_eq!(told, [(1, 5), (2, 5), (3, 5), (4, 5), (5, 5)]);
        assert_eq!(outcomes[0], outcomes[5]);
        assert_ne!(outcomes[0], outcomes[1]);
    }
}
