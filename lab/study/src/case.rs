//! Simulations: what each is of, what it brings, and many of them at a time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use itertools::Itertools;
use overlock_bench::error::Error;
use overlock_bench::interrupt::Interrupt;
use overlock_bench::registry::Entry;
use overlock_bench::simulated;
pub use overlock_bench::simulated::Measured;
use overlock_bench::workload::Workload;
use overlock_bench::world::sim::Simulated;
use overlock_sim::host::Host;
use overlock_sim::machine::Machine;

/// A load on a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    pub machine: Arc<Machine>,
    pub host: Arc<Host>,
    /// vCPUs of other guests beside them, which want a CPU all the time.
    pub others: usize,
    pub workload: Workload,
    /// Threads, or vCPUs of all guests.
    pub threads: usize,
    /// In how many guests of equal size, each of which runs the workload.
    pub guests: usize,
}

/// A lock there.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    pub lock: &'static Entry,
    pub place: Place,
}

/// The figures of a simulation, or how the lock failed.
pub type Outcome = Result<Measured, String>;

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

impl Place {
    /// One guest with so many threads, beside no other.
    pub fn new(machine: Machine, host: Host, workload: Workload, threads: usize) -> Self {
        let (machine, host) = (Arc::new(machine), Arc::new(host));
        let (others, guests) = (0, 1);
        Self {
            machine,
            host,
            others,
            workload,
            threads,
            guests,
        }
    }

    /// A lock there.
    pub fn with(&self, lock: &'static Entry) -> Case {
        let place = self.clone();
        Case { lock, place }
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
        let Place {
            workload, threads, ..
        } = &self.place;
        let (machine, host) = (&*self.place.machine, &*self.place.host);
        let world = Simulated::new(machine.clone(), host.clone(), seed, Arc::clone(interrupt));
        let world = world.beside(self.place.others).in_guests(self.place.guests);
        simulated::round(&world, self.lock, workload, *threads, round)
    }
}

/// Simulates each of `things`, at most `jobs` of them at a time, until `interrupt` is raised. Calls
/// `ended` for each with its outcome, in the order in which they end. That this machine has no room
/// for a simulation says nothing about the lock, and is no outcome.
///
/// # Errors
///
/// Those of `ended`. The simulations that run then are dropped.
pub fn run<T: Clone + Send, E>(
    things: impl IntoIterator<Item = T>,
    jobs: usize,
    interrupt: &Interrupt,
    simulate: impl Fn(&T) -> Result<Measured, Error> + Sync,
    mut ended: impl FnMut(T, Result<Outcome, Error>) -> Result<(), E>,
) -> Result<(), E> {
    let (mut things, simulate, mut running) = (things.into_iter(), &simulate, 0);
    let (tell, told) = mpsc::channel();
    thread::scope(|scope| {
        loop {
            while running < jobs
                && !interrupt.is_raised()
                && let Some(thing) = things.next()
            {
                let (ended, own) = (tell.clone(), thing.clone());
                let work = move || {
                    let simulated = catch_unwind(AssertUnwindSafe(|| simulate(&own)));
                    let simulated = simulated.unwrap_or_else(|panic| Err(Error::panicked(&*panic)));
                    ended.send((own, simulated)).unwrap_or_default();
                };
                // A thread each: what a lock that panics has left on its thread is gone with it.
                if let Err(why) = thread::Builder::new().spawn_scoped(scope, work) {
                    let (wanted, got, why) = (1, 0, why.to_string());
                    let lacking = Err(Error::Spawn { wanted, got, why });
                    tell.send((thing, lacking)).unwrap_or_default();
                }
                running += 1;
            }
            if running == 0 {
                return Ok(());
            }
            let (thing, simulated) = told.recv().expect("one that runs tells its outcome");
            running -= 1;
            let outcome = match simulated {
                Ok(measured) => Ok(Ok(measured)),
                Err(Error::Interrupted) => continue,
                Err(lacking @ Error::Spawn { .. }) => Err(lacking),
                Err(error) => Ok(Err(error.to_string())),
            };
            ended(thing, outcome).inspect_err(|_| interrupt.raise())?;
        }
    })
}

/// The outcomes of all cases, in their order; equal ones are simulated once. Calls `done` after
/// each simulation with how many have ended, and of how many.
pub fn outcomes(
    cases: &[Case],
    options: &Options,
    mut done: impl FnMut(usize, usize, &Case),
) -> Result<Vec<Outcome>, Error> {
    let simulate = |&number: &usize| {
        let case: &Case = &cases[number];
        let is_build = matches!(case.place.workload, Workload::Build { .. });
        let round = options.round * if is_build { BUILD } else { 1 };
        case.simulate(options.seed, round, &options.interrupt)
    };
    let first = |case| cases.iter().position(|other| other == case);
    let firsts = cases.iter().filter_map(first).collect_vec();
    let numbers = firsts.iter().copied().unique().collect_vec();
    let (all, mut count) = (numbers.len(), 0);
    let mut outcomes = vec![None; cases.len()];
    let ended = |number: usize, outcome: Result<Outcome, Error>| {
        outcomes[number] = Some(outcome?);
        count += 1;
        done(count, all, &cases[number]);
        Ok::<(), Error>(())
    };
    run(numbers, options.jobs, &options.interrupt, simulate, ended)?;
    let outcomes = firsts.into_iter().map(|first| outcomes[first].clone());
    outcomes.collect::<Option<_>>().ok_or(Error::Interrupted)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use overlock_bench::registry;

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
        let machine = Machine::named("graviton3:cores=4").unwrap();
        let place = Place::new(machine, Host::threads(), workload, threads);
        place.with(registry::simulated(workload.family(), lock).unwrap())
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
            let simulate = |&number: &usize| {
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
        let lacking = ended(5).unwrap_err();
        assert!(lacking.contains("3 of 4 threads"), "{lacking}");
    }

    #[test]
    fn equal_cases_are_simulated_once() {
        let one = case("micro:cs=50", "mcs", 4);
        let changes: [fn(&mut Place); 5] = [
            |_| (),
            |place| place.threads = 3,
            |place| place.guests = 2,
            |place| place.others = 1,
            |place| Arc::make_mut(&mut place.machine).costs.turn = overlock_sim::Time::ns(40),
        ];
        let mut cases = vec![one; 6];
        for (case, change) in cases.iter_mut().zip(changes) {
            change(&mut case.place);
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
