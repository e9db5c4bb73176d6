//! Runs a grid and keeps what it brings.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::hogs::Hogs;
use super::plan::{Place, Plan, Step};
use super::shape::{Load, Setting, Shape};
use crate::error::Error;
use crate::probe::{Pass, Waits};
use crate::quota::InQuota;
use crate::registry::{Entry, Origin};
use crate::workload::grid::{Inside, Locks};
use crate::workload::{Prepared, Sample, grid};
use crate::world::native::Native;
use crate::world::{Part, Workers, World};

/// All rounds of one lock in one cell.
#[derive(Debug, Default)]
pub struct Results {
    /// The throughput rounds, in their order: those of one number were neighbours in time.
    pub samples: Vec<Sample>,
    /// The waits of all latency rounds.
    pub waits: Option<Waits>,
}

/// The measurements of one cell.
#[derive(Debug)]
pub struct Cell {
    /// The cell.
    pub place: Place,
    /// By lock, as in [`Place::locks`].
    pub results: Vec<Results>,
    /// The most operations a second that any lock allows there, by the length of its section.
    pub cap: Option<f64>,
}

/// How a run ended.
#[derive(Debug)]
pub enum End {
    /// With its plan.
    Complete,
    /// By Ctrl-C.
    Interrupted,
    /// By a lock that failed.
    Failed(Failure),
}

/// A lock that failed.
#[derive(Debug)]
pub struct Failure {
    /// The lock.
    pub entry: &'static Entry,
    /// Where.
    pub shape: &'static Shape,
    /// With how many threads.
    pub threads: usize,
    /// How.
    pub error: Error,
}

/// The result of a run.
#[derive(Debug)]
pub struct Outcome {
    /// The cells, those left out that have no whole round.
    pub cells: Vec<Cell>,
    /// Shapes that this machine does not allow, and why.
    pub skipped: Vec<(&'static Shape, String)>,
    /// How it ended.
    pub end: End,
    /// How long it took.
    pub elapsed: Duration,
}

/// A calibrated workload or shape.
enum Ready {
    Exclusive(grid::Shape),
    Workload(Prepared),
}

/// The load around the rounds, until dropped.
#[expect(dead_code, reason = "each is there for what its end does")]
enum Around {
    Nothing,
    Hogs(Hogs),
    Quota(InQuota),
}

/// Runs `plan`. Calls `progress` before each step with the part of the plan's time that is done.
pub fn run(
    world: &Native,
    plan: &Plan,
    cpus: f64,
    mut progress: impl FnMut(Duration, &Place, &Entry),
) -> Outcome {
    let mut run = Run {
        world,
        plan,
        ready: plan
            .places
            .iter()
            .map(|place| ready(place, world, plan, cpus))
            .collect(),
        results: plan
            .places
            .iter()
            .map(|place| empty(place.locks.len()))
            .collect(),
        skipped: BTreeMap::new(),
        setting: Setting::Alone,
        around: Around::Nothing,
    };
    let start = Instant::now();
    let end = run.all(start, &mut progress);
    drop(run.around);
    let cells = plan.places.iter().zip(run.results).zip(&run.ready);
    let cells = cells.map(|((place, results), ready)| Cell {
        cap: cap(place, ready, world, cpus),
        place: place.clone(),
        results,
    });
    let skipped = run.skipped.into_values();
    Outcome {
        cells: cells.filter(Cell::has_a_round).collect(),
        skipped: skipped.collect(),
        end,
        elapsed: start.elapsed(),
    }
}

impl Cell {
    /// Whether all its locks have one.
    fn has_a_round(&self) -> bool {
        self.results.iter().all(|one| !one.samples.is_empty())
    }
}

fn empty(count: usize) -> Vec<Results> {
    std::iter::repeat_with(Results::default)
        .take(count)
        .collect()
}

fn ready(place: &Place, world: &Native, plan: &Plan, cpus: f64) -> Ready {
    match place.shape.load {
        Load::Workload(workload) => {
            Ready::Workload(workload.prepare(world, cpus, plan.length(place)))
        }
        Load::Exclusive {
            critical,
            between,
            inside,
            locks,
            pause,
        } => Ready::Exclusive(grid::Shape {
            critical: world.work(critical),
            between: world.work(between),
            inside,
            locks,
            pause,
            seed: plan.seed,
        }),
    }
}

/// The most operations a second that the sections allow, where they only compute.
fn cap(place: &Place, ready: &Ready, world: &Native, cpus: f64) -> Option<f64> {
    let cap = match (ready, place.shape.load) {
        (Ready::Exclusive(shape), _)
            if shape.inside == Inside::Nothing && shape.locks == Locks::One =>
        {
            1e9 / world.measure(shape.critical)
        }
        (Ready::Workload(prepared), Load::Workload(workload)) => {
            let critical = prepared.sections(world)?.critical;
            workload.cap(critical, place.threads, cpus.ceil() as usize)
        }
        _ => return None,
    };
    cap.is_finite().then_some(cap)
}

struct Run<'a> {
    world: &'a Native,
    plan: &'a Plan,
    ready: Vec<Ready>,
    results: Vec<Vec<Results>>,
    /// By the shape's name.
    skipped: BTreeMap<&'static str, (&'static Shape, String)>,
    setting: Setting,
    around: Around,
}

impl Run<'_> {
    fn all(&mut self, start: Instant, progress: &mut impl FnMut(Duration, &Place, &Entry)) -> End {
        let mut done = Duration::ZERO;
        let mut began: Option<(usize, Instant)> = None;
        for step in self.plan.steps() {
            let place = &self.plan.places[step.place];
            if began.is_none_or(|(sweep, _)| sweep != step.sweep) {
                // The next round of all cells takes about as long as the last.
                let last = began.map_or(Duration::ZERO, |(_, began)| began.elapsed());
                let late = |deadline| start.elapsed() + last > deadline;
                if step.sweep > 0 && self.plan.deadline.is_some_and(late) {
                    break;
                }
                began = Some((step.sweep, Instant::now()));
            }
            progress(done, place, place.locks[step.lock]);
            done += self.plan.cost(step);
            if self.skipped.contains_key(place.shape.name) {
                continue;
            }
            if let Err(why) = self.surround(place.shape.setting) {
                self.skipped.insert(place.shape.name, (place.shape, why));
                continue;
            }
            match self.step(step) {
                Ok(()) => {}
                Err(Error::Interrupted) => return End::Interrupted,
                Err(error) => {
                    return End::Failed(Failure {
                        entry: place.locks[step.lock],
                        shape: place.shape,
                        threads: place.threads,
                        error,
                    });
                }
            }
        }
        End::Complete
    }

    /// Starts the load around the next round.
    fn surround(&mut self, setting: Setting) -> Result<(), String> {
        if self.setting == setting {
            return Ok(());
        }
        // The old load ends first.
        self.around = Around::Nothing;
        self.setting = Setting::Alone;
        self.around = match setting {
            Setting::Alone => Around::Nothing,
            Setting::Hogs(count) => Hogs::start(count)
                .map(Around::Hogs)
                .map_err(|error| format!("cannot start other processes: {error}"))?,
            Setting::Quota(percent) => InQuota::enter(percent)
                .map(Around::Quota)
                .map_err(|error| error.to_string())?,
        };
        self.setting = setting;
        Ok(())
    }

    fn step(&mut self, step: Step) -> Result<(), Error> {
        let place = &self.plan.places[step.place];
        let entry = place.locks[step.lock];
        let workers = Workers {
            lock: entry.origin.title(entry.name),
            threads: place.threads,
            pin: false,
            stop_after: self.plan.length(place),
            measured: Part::Warm,
        };
        let sample = match &self.ready[step.place] {
            Ready::Exclusive(shape) => {
                let round = entry.shapes.expect("every lock of the family has them");
                round(self.world, &workers, shape, step.pass)?
            }
            Ready::Workload(prepared) => {
                prepared.round(&entry.rounds, self.world, &workers, step.pass)?
            }
        };
        let results = &mut self.results[step.place][step.lock];
        match (step.pass, sample.waits.as_ref()) {
            (Pass::Throughput, _) => results.samples.push(sample),
            (Pass::Latency, Some(waits)) => match &mut results.waits {
                Some(sum) => sum.add(waits),
                none => *none = Some(waits.clone()),
            },
            (Pass::Latency, None) => {}
        }
        Ok(())
    }
}

impl Place {
    /// Which of the locks is the limit.
    pub fn limit(&self) -> Option<usize> {
        let is_limit = |entry: &&Entry| entry.origin == Origin::Limit;
        self.locks.iter().position(is_limit)
    }
}
