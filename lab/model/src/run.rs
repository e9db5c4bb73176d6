//! A run: scenarios of locks on checkers, on several operating-system threads, and what comes out.

use std::panic::{self, AssertUnwindSafe};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use clap::ValueEnum;
use serde::Serialize;

use crate::coverage::Coverage;
use crate::explore::Explorer;
use crate::explore::exec::Rules;
use crate::explore::search::{Mode, search};
use crate::failure::Failure;
use crate::list::{Added, Lock, added, locks, names};
use crate::scenario::{Length, Scenario};
use crate::shuttle::{self, Schedules, Shuttle};
use crate::world::World;

/// A checker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// Systematic executions of few threads, with weak memory
    Explore,
    /// Random schedules of many threads
    Shuttle,
}

impl Engine {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Explore, Self::Shuttle];

    /// Its name in tables and options.
    pub fn name(self) -> &'static str {
        match self {
            Self::Explore => Explorer::NAME,
            Self::Shuttle => Shuttle::NAME,
        }
    }

    /// The locks, in its world.
    pub fn locks(self) -> Vec<Lock> {
        let added = |make: fn(&Added) -> fn() -> Lock| added().iter().map(move |it| make(it)());
        match self {
            Self::Explore => {
                let all = locks::<Explorer>().into_iter();
                all.chain(added(|lock| lock.explore)).collect()
            }
            Self::Shuttle if const { !left_out("shuttle") } => {
                let all = locks::<Shuttle>().into_iter();
                all.chain(added(|lock| lock.shuttle)).collect()
            }
            Self::Shuttle => Vec::new(),
        }
    }

    /// Whether it can run the scenario of a lock.
    pub fn takes(self, scenario: &Scenario) -> bool {
        match self {
            Self::Explore => true,
            Self::Shuttle => !scenario.setting.signals && !scenario.setting.timed,
        }
    }
}

/// As for locks: `OVERLOCK_MODEL_ENGINES=explore`. The explorer is always there.
const fn left_out(engine: &str) -> bool {
    match option_env!("OVERLOCK_MODEL_ENGINES") {
        Some(list) => !names(list, engine),
        None => false,
    }
}

/// How far to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Effort {
    /// The explorer's exhaustive search: departures from the plain course, at most.
    pub departures: u32,
    /// The same search: executions of a scenario, at most.
    pub executions: u64,
    /// The explorer's random walks, and as many PCT schedules, of each scenario.
    pub walks: u64,
    /// Shuttle: schedules of each lock, shared among its scenarios, half of them random and half
    /// PCT.
    pub schedules: usize,
}

/// The start of the random numbers by default.
pub const SEED: u64 = 1;

impl Effort {
    /// For every change: a few minutes.
    pub const QUICK: Self = Effort {
        departures: 2,
        executions: 20_000,
        walks: 2_000,
        schedules: 4_000,
    };

    /// For releases: hours.
    pub const LONG: Self = Effort {
        departures: 3,
        executions: 400_000,
        walks: 20_000,
        schedules: 1_000_000,
    };

    /// The options of a run with this effort and this seed that are not the usual ones.
    pub(crate) fn options(self, seed: u64) -> String {
        let beyond = |usual: Self, mut text: String| {
            let mut say = |name: &str, mine: u64, usual: u64| {
                if mine != usual {
                    text += &format!(" --{name} {mine}");
                }
            };
            say(
                "departures",
                self.departures.into(),
                usual.departures.into(),
            );
            say("executions", self.executions, usual.executions);
            say("walks", self.walks, usual.walks);
            say("schedules", self.schedules as u64, usual.schedules as u64);
            say("seed", seed, SEED);
            text
        };
        let quick = beyond(Self::QUICK, String::new());
        let long = beyond(Self::LONG, " --long".to_owned());
        if long.len() < quick.len() {
            long
        } else {
            quick
        }
    }
}

/// The result of one checker on one scenario of one lock.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// The lock.
    pub lock: &'static str,
    /// The scenario.
    pub scenario: String,
    /// The checker.
    pub engine: Engine,
    /// Executions.
    pub executions: u64,
    /// The bound up to which all executions have been run: departures. None for
    /// random checkers.
    pub complete_to: Option<u64>,
    /// The scenario is too long for a search.
    pub long: bool,
    /// How long it took.
    pub seconds: f64,
    /// The first execution that failed.
    pub failure: Option<Failure>,
    /// Which places of the sources it has reached.
    #[serde(skip)]
    pub coverage: Coverage,
}

/// Runs what `chosen` says yes to, on `jobs` operating-system threads. `ended` is told of each
/// outcome as it comes.
pub fn run(
    engines: &[Engine],
    chosen: impl Fn(&Lock, &Scenario) -> bool,
    effort: Effort,
    seed: u64,
    jobs: usize,
    mut started: impl FnMut(usize),
    ended: impl Fn(&Outcome) -> bool + Sync,
) -> Vec<Outcome> {
    let mut tasks = Vec::new();
    for &engine in engines {
        for lock in engine.locks() {
            let taken = || (lock.scenarios.iter()).filter(|it| engine.takes(it));
            let scenarios = taken().count();
            for scenario in taken() {
                if chosen(&lock, scenario) {
                    tasks.push((engine, lock.name, scenarios, scenario.clone()));
                }
            }
        }
    }
    started(tasks.len());
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                while let Some((engine, lock, scenarios, scenario)) =
                    tasks.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    let outcome = check(*engine, lock, *scenarios, scenario, effort, seed);
                    if !ended(&outcome) {
                        next.store(tasks.len(), Ordering::Relaxed);
                    }
                    outcomes
                        .lock()
                        .unwrap_or_else(|poisoned| poisoned.into_inner())
                        .push(outcome);
                }
            });
        }
    });
    let mut outcomes = outcomes
        .into_inner()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    let place = |outcome: &Outcome| {
        tasks.iter().position(|(engine, lock, _, scenario)| {
            (*engine, *lock, &scenario.name) == (outcome.engine, outcome.lock, &outcome.scenario)
        })
    };
    outcomes.sort_by_key(place);
    outcomes
}

fn check(
    engine: Engine,
    lock: &'static str,
    scenarios: usize,
    scenario: &Scenario,
    effort: Effort,
    seed: u64,
) -> Outcome {
    let start = Instant::now();
    Coverage::take();
    let mut outcome = Outcome {
        lock,
        scenario: scenario.name.clone(),
        engine,
        executions: 0,
        complete_to: None,
        long: scenario.setting.length != Length::Short,
        seconds: 0.0,
        failure: None,
        coverage: Coverage::default(),
    };
    // A checker that fails in itself is a failure of the check, not of the run.
    let work = panic::catch_unwind(AssertUnwindSafe(|| match engine {
        Engine::Explore => explore(scenario, effort, seed, &mut outcome),
        Engine::Shuttle => walk(scenario, scenarios, effort, seed, &mut outcome),
    }));
    outcome.failure = match work {
        Ok(Ok(())) => None,
        Ok(Err(failure)) => Some(*failure),
        Err(_) => Some(Failure::new(
            crate::failure::Kind::Panic,
            "the checker panicked".to_owned(),
        )),
    };
    outcome.coverage = Coverage::take();
    outcome.seconds = start.elapsed().as_secs_f64();
    outcome
}

fn explore(
    scenario: &Scenario,
    effort: Effort,
    seed: u64,
    outcome: &mut Outcome,
) -> Result<(), Box<Failure>> {
    let rules = Rules::of(scenario.setting);
    let search_to = match scenario.setting.length {
        Length::Short => Some(effort.departures),
        Length::Course => Some(0),
        Length::Long => None,
    };
    let walks = match scenario.setting.length {
        Length::Course => effort.walks.div_ceil(100),
        Length::Short | Length::Long => effort.walks,
    };
    let mut run = |mode, executions| {
        let body = scenario.body.clone();
        let done = search(mode, rules, executions, move || body())?;
        outcome.executions += done.executions;
        Ok::<_, Box<Failure>>(done)
    };
    let mut complete = None;
    for departures in search_to.into_iter().flat_map(|most| 0..=most) {
        if !run(Mode::Exhaustive { departures }, effort.executions)?.complete {
            break;
        }
        complete = Some(u64::from(departures));
    }
    run(Mode::Random { seed }, walks)?;
    run(Mode::Pct { seed, depth: 3 }, walks)?;
    outcome.complete_to = complete;
    Ok(())
}

fn walk(
    scenario: &Scenario,
    scenarios: usize,
    effort: Effort,
    seed: u64,
    outcome: &mut Outcome,
) -> Result<(), Box<Failure>> {
    let each = effort.schedules.div_ceil(2 * scenarios);
    for schedules in [Schedules::Random, Schedules::Pct(3)] {
        shuttle::check(scenario, schedules, seed, each)?;
        outcome.executions += each as u64;
    }
    Ok(())
}
