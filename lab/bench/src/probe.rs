//! Timing of acquisitions, in a pass of its own.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::lock::BenchLock;
use crate::world::{Worker, World};

/// Which of the two kinds of rounds is on. A clock in the loop changes the throughput, so the waits
/// have rounds of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// Operations are counted.
    Throughput,
    /// Every acquisition is timed.
    Latency,
}

/// A timer around every acquisition of a workload; one type for each pass.
pub trait Probe: Send {
    /// A probe for rounds of this kind, without a wait yet.
    fn new(pass: Pass) -> Self;

    /// The wait begins.
    fn begin(&mut self, worker: &impl Worker);

    /// The lock is held.
    fn acquired(&mut self, worker: &impl Worker);

    /// The lock is released: the wait may be written down without making the section longer.
    fn released(&mut self);

    /// The recorded waits.
    fn waits(self) -> Option<Waits>;

    /// Acquires one lock.
    #[inline]
    fn lock<'a, L: BenchLock>(&mut self, worker: &impl Worker, lock: &'a L) -> L::Guard<'a> {
        self.around(worker, || lock.lock())
    }

    /// Acquires whatever `acquire` does, in any way.
    #[inline]
    fn around<G>(&mut self, worker: &impl Worker, acquire: impl FnOnce() -> G) -> G {
        self.begin(worker);
        let guard = acquire();
        self.acquired(worker);
        guard
    }
}

/// Records nothing and costs nothing.
#[derive(Debug)]
pub struct Untimed;

impl Probe for Untimed {
    fn new(_: Pass) -> Self {
        Self
    }

    #[inline]
    fn begin(&mut self, _: &impl Worker) {}

    #[inline]
    fn acquired(&mut self, _: &impl Worker) {}

    #[inline]
    fn released(&mut self) {}

    fn waits(self) -> Option<Waits> {
        None
    }
}

/// Times every acquisition: the longest wait of all must not fall between samples.
#[derive(Debug)]
pub struct Timed {
    started: u64,
    /// The wait to be written down, unless it ended before the measured time.
    wait: Option<u64>,
    waits: Waits,
}

impl Probe for Timed {
    fn new(_: Pass) -> Self {
        Self {
            started: 0,
            wait: None,
            waits: Waits::new(),
        }
    }

    #[inline]
    fn begin(&mut self, worker: &impl Worker) {
        self.started = worker.ticks();
    }

    #[inline]
    fn acquired(&mut self, worker: &impl Worker) {
        // Counters of two CPUs may differ by a few ticks when the thread moves in between.
        let wait = worker.ticks().saturating_sub(self.started);
        self.wait = worker.counts().then_some(wait);
    }

    #[inline]
    fn released(&mut self) {
        if let Some(wait) = self.wait {
            self.waits.record(wait);
        }
    }

    fn waits(self) -> Option<Waits> {
        Some(self.waits)
    }
}

/// [`Timed`] in the latency pass only, by a test. It is for loops in which a test does not show in
/// the figures: they are compiled once for both passes.
#[derive(Debug)]
pub struct Either(Option<Timed>);

impl Probe for Either {
    fn new(pass: Pass) -> Self {
        Self((pass == Pass::Latency).then(|| Timed::new(pass)))
    }

    #[inline]
    fn begin(&mut self, worker: &impl Worker) {
        if let Some(timed) = &mut self.0 {
            timed.begin(worker);
        }
    }

    #[inline]
    fn acquired(&mut self, worker: &impl Worker) {
        if let Some(timed) = &mut self.0 {
            timed.acquired(worker);
        }
    }

    #[inline]
    fn released(&mut self) {
        if let Some(timed) = &mut self.0 {
            timed.released();
        }
    }

    fn waits(self) -> Option<Waits> {
        self.0.and_then(Timed::waits)
    }
}

/// The waits of one or more threads, in ticks.
#[derive(Clone, Debug)]
pub struct Waits {
    histogram: Histogram<u64>,
    longest: u64,
}

impl Waits {
    /// Two digits keep a thread's histogram in its CPU's own cache.
    const DIGITS: u8 = 2;
    /// Minutes, whatever the tick. Longer waits count as this one in the histogram; `longest` has
    /// them.
    const HIGHEST: u64 = 1 << 40;

    /// No waits.
    pub fn new() -> Self {
        let histogram =
            Histogram::new_with_max(Self::HIGHEST, Self::DIGITS).expect("constants are valid");
        Self {
            histogram,
            longest: 0,
        }
    }

    /// Adds a wait.
    #[inline]
    pub fn record(&mut self, ticks: u64) {
        self.histogram.saturating_record(ticks);
        self.longest = self.longest.max(ticks);
    }

    /// Adds the waits of another.
    pub fn add(&mut self, other: &Self) {
        self.histogram
            .add(&other.histogram)
            .expect("all histograms have the same bounds");
        self.longest = self.longest.max(other.longest);
    }

    /// How many waits were seen.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The wait that the given part of all does not exceed.
    pub fn quantile(&self, quantile: f64) -> u64 {
        // The histogram answers with the upper end of a class, which may lie above the longest
        // wait.
        self.histogram.value_at_quantile(quantile).min(self.longest)
    }

    /// The longest wait of all.
    pub fn longest(&self) -> u64 {
        self.longest
    }

    /// The waits in the form of reports; they are from `world`.
    pub fn times(&self, world: &impl World) -> Times {
        let at = |quantile| world.nanoseconds(self.quantile(quantile));
        Times {
            p50_ns: at(0.5),
            p99_ns: at(0.99),
            p999_ns: at(0.999),
            max_ns: world.nanoseconds(self.longest),
            count: self.count(),
        }
    }
}

/// Waits in the form of reports.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// Half of the waits were no longer.
    pub p50_ns: f64,
    /// 99 of 100 were no longer.
    pub p99_ns: f64,
    /// 999 of 1000 were no longer.
    pub p999_ns: f64,
    /// The longest of all.
    pub max_ns: f64,
    /// How many there were.
    pub count: u64,
}

impl Default for Waits {
    fn default() -> Self {
        Self::new()
    }
}

/// The waits of readers and those of writers: a lock may treat the two very differently.
#[derive(Clone, Debug, Default)]
pub struct Roles {
    /// To read.
    pub readers: Waits,
    /// To write.
    pub writers: Waits,
}

impl Roles {
    /// Adds the waits of another.
    pub fn add(&mut self, other: &Self) {
        self.readers.add(&other.readers);
        self.writers.add(&other.writers);
    }

    /// All of them together.
    pub fn all(&self) -> Waits {
        let mut all = self.readers.clone();
        all.add(&self.writers);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_wait_is_exact_and_quantiles_are_near() {
        let mut waits = Waits::new();
        for wait in 1..=1000 {
            waits.record(wait);
        }
        let mut other = Waits::new();
        other.record(123_457);
        waits.add(&other);
        assert_eq!(waits.count(), 1001);
        assert_eq!(waits.longest(), 123_457);
        assert!(
            (495..=510).contains(&waits.quantile(0.5)),
            "{}",
            waits.quantile(0.5)
        );
        assert_eq!(waits.quantile(1.0), 123_457);
    }
}
