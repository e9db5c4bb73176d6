//! A compile farm: workers on a task graph, as `make -j` builds a kernel.
//!
//! Compilations feed archives, and archives the one link at the end. A task is mostly private work,
//! with many short visits to shared structures between: the caches, lists and counters that the
//! kernel keeps for all its processes. Some of them are much hotter than others, so visits are
//! spread by Zipf's law. Ready tasks lie in a queue under a lock of its own. The work is fixed;
//! what counts is how long all of it takes.

use super::random::{Random, zipf};
use super::{Extra, InTime, Sample, Tally, Words, many};
use crate::error::Error;
use crate::lock::BenchLock;
use crate::probe::{Either, Pass, Probe};
use crate::world::{Word, Work, Worker, Workers, World};

/// Shared structures.
const STRUCTURES: u16 = 32;
/// Visits of a task.
const VISITS: usize = 100;
/// Compilations that an archive needs.
const FAN_IN: usize = 16;
/// As many compilations as memory has room for: visits may be as short as the user likes.
const MOST_COMPILATIONS: f64 = 1e7;

/// Private work before each visit, unless the user says otherwise.
pub const PRIVATE_NS: f64 = 2_000.0;
/// A visit's critical section, unless the user says otherwise.
pub const VISIT_NS: f64 = 100.0;

/// The work to do.
#[derive(Clone, Copy, Debug)]
pub struct Farm {
    /// Compilations. Archives and the link come on top.
    pub compilations: usize,
    /// Before each visit.
    pub private: Work,
    /// During each.
    pub visit: Work,
}

impl Farm {
    /// How many compilations keep one CPU busy for `seconds`, each visit with the work before it
    /// taking so many nanoseconds, locks that cost nothing provided.
    pub fn compilations(seconds: f64, visit_ns: f64) -> usize {
        let task = VISITS as f64 * visit_ns * 1e-9;
        let with_archives = task * (1.0 + 1.0 / FAN_IN as f64);
        (seconds / with_archives)
            .round()
            .clamp(1.0, MOST_COMPILATIONS) as usize
    }

    fn archives(&self) -> usize {
        self.compilations.div_ceil(FAN_IN)
    }

    /// All tasks: compilations, archives, the link.
    fn tasks(&self) -> usize {
        self.compilations + self.archives() + 1
    }

    /// The task that waits for `task`.
    fn dependent(&self, task: usize) -> Option<usize> {
        let link = self.tasks() - 1;
        match task {
            task if task < self.compilations => Some(self.compilations + task / FAN_IN),
            task if task < link => Some(link),
            _ => None,
        }
    }

    /// How many tasks `task` waits for.
    fn needs(&self, task: usize) -> usize {
        let link = self.tasks() - 1;
        match task {
            task if task < self.compilations => 0,
            task if task < link => {
                FAN_IN.min(self.compilations - (task - self.compilations) * FAN_IN)
            }
            _ => self.archives(),
        }
    }
}

/// A structure that all tasks visit.
#[repr(C, align(128))]
struct Structure<L, C> {
    lock: L,
    visits: C,
}

/// The queue of tasks. Its lock guards all of it; `ready` and `done` may be read without, as hints.
#[repr(C, align(128))]
struct Queue<L, C> {
    lock: L,
    taken: C,
    ready: C,
    done: C,
    order: Words<C>,
    needs: Words<C>,
}

struct Site<L, C> {
    queue: Queue<L, C>,
    structures: Vec<Structure<L, C>>,
    /// The structure of each of a few thousand visits, by Zipf's law.
    heat: Vec<u16>,
}

impl<L: BenchLock, C: Word> Site<L, C> {
    fn new(farm: &Farm) -> Result<Self, Error> {
        let tasks = farm.tasks();
        let queue = Queue {
            lock: L::create()?,
            taken: C::new(0),
            ready: C::new(farm.compilations as u64),
            done: C::new(0),
            order: Words::new(tasks, |task| task as u64),
            needs: Words::new(tasks, |task| farm.needs(task) as u64),
        };
        let structure = || {
            Ok(Structure {
                lock: L::create()?,
                visits: C::new(0),
            })
        };
        let structures = many(STRUCTURES.into(), structure)?;
        Ok(Self {
            queue,
            structures,
            heat: zipf(STRUCTURES, 4096),
        })
    }

    fn visits(&self) -> u64 {
        self.structures
            .iter()
            .map(|structure| structure.visits.get())
            .sum()
    }
}

impl<L, C: Word> Queue<L, C> {
    /// The next task, if one is ready. The lock is held.
    fn take(&self) -> Option<usize> {
        let taken = self.taken.get();
        (taken < self.ready.get()).then(|| {
            self.taken.set(taken + 1);
            self.order[taken as usize].get() as usize
        })
    }

    /// Ends `task`, and makes ready what waited for it alone. The lock is held.
    fn finish(&self, farm: &Farm, task: usize) {
        self.done.add(1);
        let Some(dependent) = farm.dependent(task) else {
            return;
        };
        let left = self.needs[dependent].get().wrapping_sub(1);
        self.needs[dependent].set(left);
        // A lock that does not exclude could lead beyond the end.
        if let Some(place) = self.order.get(self.ready.get() as usize)
            && left == 0
        {
            place.set(dependent as u64);
            self.ready.add(1);
        }
    }
}

/// One round. Operations are visits and visits to the queue that ended before the time was up.
///
/// A build that is stopped before it is done says so in its sample.
///
/// # Errors
///
/// [`Error::NotExclusive`] if visits or tasks got lost, and those of [`World::run`].
pub fn round<W: World, L: BenchLock>(
    world: &W,
    workers: &Workers,
    farm: &Farm,
    pass: Pass,
) -> Result<Sample, Error> {
    let sites: Vec<Site<L, W::Word>> = many(world.guests(), || Site::new(farm))?;
    let outcome = world.run(workers, &|worker| {
        let guest = worker.index() * sites.len() / workers.threads;
        let mut builder: Builder<'_, W, L> = Builder {
            worker,
            site: &sites[guest],
            farm,
            probe: Either::new(pass),
            operations: 0,
            in_time: InTime::default(),
            visits: 0,
        };
        builder.build();
        (
            Tally::new(builder.in_time.count(), builder.probe),
            builder.visits,
        )
    })?;
    let (outcome, visits) = outcome.split();
    let expected = visits.iter().sum();
    let found = sites.iter().map(Site::visits).sum();
    let done: u64 = sites.iter().map(|site| site.queue.done.get()).sum();
    let stopped = outcome.stopped;
    let sample = Sample::new(outcome, Extra::Built { all: !stopped });
    if L::EXCLUDES && (expected != found || !stopped && done != (farm.tasks() * sites.len()) as u64)
    {
        return Err(Error::NotExclusive { expected, found });
    }
    Ok(sample)
}

struct Builder<'a, W: World, L> {
    worker: &'a W::Worker,
    site: &'a Site<L, W::Word>,
    farm: &'a Farm,
    probe: Either,
    operations: u64,
    in_time: InTime,
    visits: u64,
}

impl<W: World, L: BenchLock> Builder<'_, W, L> {
    /// Works until all is built.
    fn build(&mut self) {
        let queue = &self.site.queue;
        let all = self.farm.tasks() as u64;
        while self.goes_on() && queue.done.get() < all {
            // Read without the lock, so that idle workers do not delay busy ones.
            if queue.taken.get() >= queue.ready.get() {
                self.worker.rest();
                continue;
            }
            if let Some(task) = self.locked(&queue.lock, || queue.take()) {
                self.perform(task);
                self.locked(&queue.lock, || queue.finish(self.farm, task));
            }
        }
    }

    fn goes_on(&mut self) -> bool {
        self.in_time.goes_on(self.worker, self.operations)
    }

    /// The visits of a task: the same ones, whichever worker performs it.
    fn perform(&mut self, task: usize) {
        let site = self.site;
        let mut random = Random::new(task as u64);
        for _ in 0..VISITS {
            if !self.goes_on() {
                return;
            }
            self.worker.work(self.farm.private);
            let structure = &site.structures[usize::from(site.heat[random.index(site.heat.len())])];
            let (worker, visit) = (self.worker, self.farm.visit);
            self.locked(&structure.lock, || {
                structure.visits.add(1);
                worker.work(visit);
            });
            self.visits += 1;
        }
    }

    #[inline]
    fn locked<R>(&mut self, lock: &L, section: impl FnOnce() -> R) -> R {
        let guard = self.probe.lock(self.worker, lock);
        let result = section();
        drop(guard);
        self.probe.released();
        self.operations += 1;
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn farm(compilations: usize) -> Farm {
        Farm {
            compilations,
            private: Work::NONE,
            visit: Work::NONE,
        }
    }

    #[test]
    fn the_graph_adds_up() {
        for compilations in [1, 15, 16, 17, 100] {
            let farm = farm(compilations);
            let mut needs = vec![0; farm.tasks()];
            for task in 0..farm.tasks() {
                if let Some(dependent) = farm.dependent(task) {
                    needs[dependent] += 1;
                }
            }
            let stated: Vec<usize> = (0..farm.tasks()).map(|task| farm.needs(task)).collect();
            assert_eq!(needs, stated, "{compilations} compilations");
        }
    }

    #[test]
    fn work_is_sized_by_time() {
        assert_eq!(Farm::compilations(0.0, 2_100.0), 1);
        assert_eq!(Farm::compilations(1.0, 0.0), 10_000_000);
        let (one, ten) = (
            Farm::compilations(1.0, 2_100.0),
            Farm::compilations(10.0, 2_100.0),
        );
        assert!((9 * one..11 * one).contains(&ten));
    }
}
