//! The world that a workload runs in: its clock, its threads, its words of memory.
//!
//! Workloads ask for all of it here and touch neither `std::thread` nor `Instant`, so that they run
//! unchanged on the machine ([`native::Native`]) and in a simulator of another one.

pub mod calibrate;
pub mod clock;
pub mod here;
pub mod native;
pub mod sim;

use std::time::Duration;

use crate::error::Error;

/// A machine that runs threads.
pub trait World {
    /// Whether a test in the shortest loop takes time. If so, the loop is compiled for each pass,
    /// and once more without work.
    const TESTS_COUNT: bool = true;

    /// A build that takes so many times as long as one without waits is stopped, a second later: a
    /// lock that has collapsed may take hours for what others do in a second.
    const BUILD_LIMIT: u32 = 10;

    /// A round without a lock is shorter by this factor: it says the same, and would take most of
    /// the time of a run where each operation has to be simulated.
    const LIMIT_SHORTER: u32 = 1;

    /// A word that workers share.
    type Word: Word;

    /// A worker's handle on this world.
    type Worker: Worker;

    /// Begins the round of this number, among those of its lock with its number of threads. Earlier
    /// rounds leave nothing in this world that changes it.
    fn begin(&self, _round: usize) {}

    /// Starts the workers together, asks them to stop when their time is up, and returns when the
    /// last has ended.
    ///
    /// One indirect call for each worker: a body that were a type of its own would compile the
    /// threads' start and end again for each lock and workload.
    ///
    /// # Errors
    ///
    /// [`Error::Spawn`] where a thread cannot be created, and [`Error::Interrupted`]; then no
    /// result is left and no thread either.
    fn run<T: Send>(
        &self,
        workers: &Workers,
        body: &(dyn Fn(&Self::Worker) -> T + Sync),
    ) -> Result<Outcome<T>, Error>;

    /// In how many guests the workers of a round are, each as many, one after the other. Workers of
    /// different guests share no locks and no data.
    fn guests(&self) -> usize {
        1
    }

    /// The report of the last round, where this world is a simulated one. Each report is returned
    /// once.
    fn report(&self) -> Option<sim::Report> {
        None
    }

    /// Private computation that takes about `nanoseconds` on an otherwise idle CPU.
    fn work(&self, nanoseconds: f64) -> Work;

    /// How many nanoseconds `work` takes now.
    fn measure(&self, work: Work) -> f64;

    /// A difference of [`Worker::ticks`] in nanoseconds.
    fn nanoseconds(&self, ticks: u64) -> f64;
}

/// A thread that runs a workload's loop.
pub trait Worker {
    /// Its number, from 0.
    fn index(&self) -> usize;

    /// Whether it is time to end.
    fn stopped(&self) -> bool;

    /// Whether the measured time has begun: what a worker has done before does not count.
    #[inline]
    fn counts(&self) -> bool {
        true
    }

    /// Says that it has performed so many operations since its start.
    #[inline]
    fn has_performed(&self, _operations: u64) {}

    /// Computes privately.
    fn work(&self, work: Work);

    /// Yields its CPU: there is no work for the moment.
    fn rest(&self);

    /// The cheapest clock of this world.
    fn ticks(&self) -> u64;
}

/// A shared word, read and written whole, without ordering and never both at once.
pub trait Word: Send + Sync {
    /// A word that holds `value`.
    fn new(value: u64) -> Self;

    /// Its value.
    fn get(&self) -> u64;

    /// Replaces its value.
    fn set(&self, value: u64);

    /// Adds without atomicity: two threads at once lose one of the two.
    #[inline]
    fn add(&self, difference: u64) {
        self.set(self.get().wrapping_add(difference));
    }
}

/// An amount of private computation, in a unit that its world knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work(pub u64);

impl Work {
    /// Nothing to do.
    pub const NONE: Self = Self(0);
}

/// The threads of a round.
#[derive(Clone, Copy, Debug)]
pub struct Workers {
    /// The name of the lock that they use, for messages.
    pub lock: &'static str,
    /// How many threads.
    pub threads: usize,
    /// Whether each is bound to a CPU, round robin.
    pub pin: bool,
    /// The time of the stop, unless they have ended by themselves.
    pub stop_after: Duration,
    /// The part of the round that is measured.
    pub measured: Part,
}

/// The part of a simulated round that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The time after a warm-up.
    Warm,
    /// All of it, without a warm-up: nobody waits where there is no lock.
    AtOnce,
    /// All of it, until it ends by itself.
    Whole,
}

/// The results of a round's workers.
#[derive(Clone, Debug)]
pub struct Outcome<T> {
    /// The threads' results, by their index.
    pub results: Vec<T>,
    /// From the start of all to the stop, or to the end of the last if they ended by themselves.
    pub elapsed: Duration,
    /// Whether they had to be stopped.
    pub stopped: bool,
    /// CPU time that the threads used from start to end, in user space and in the kernel.
    pub cpu: Duration,
    /// How often they left their CPUs meanwhile, of their own will or not.
    pub switches: u64,
    /// Operations a second in each window of the measured time, if it was divided into any.
    pub windows: Vec<f64>,
}

impl<T, U> Outcome<(T, U)> {
    /// Takes the second half of each worker's result out.
    pub fn split(self) -> (Outcome<T>, Vec<U>) {
        let (results, others) = self.results.into_iter().unzip();
        let outcome = Outcome {
            results,
            elapsed: self.elapsed,
            stopped: self.stopped,
            cpu: self.cpu,
            switches: self.switches,
            windows: self.windows,
        };
        (outcome, others)
    }
}
