//! How far the run is.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use overlock_bench::plan::Plan;
use overlock_bench::registry::Entry;

/// How often a line says where the run is, when there is no terminal for a bar.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// The unit of a run whose steps are not alike: what counts is the part of its time.
const PERCENT: &str = "%";

/// A bar on a terminal, a line now and then elsewhere, nothing with `--quiet`.
#[derive(Debug)]
pub enum Progress {
    Bar(ProgressBar),
    Lines {
        unit: &'static str,
        total: usize,
        start: Instant,
        last: Mutex<Instant>,
    },
    Hidden,
}

impl Progress {
    pub fn new(plan: &Plan, quiet: bool) -> Self {
        Self::of(plan.steps().count(), "round", quiet)
    }

    /// Of so many things of a kind.
    pub fn of(total: usize, unit: &'static str, quiet: bool) -> Self {
        if quiet {
            return Self::Hidden;
        }
        if !std::io::stderr().is_terminal() {
            let now = Instant::now();
            return Self::Lines {
                unit,
                total,
                start: now,
                last: Mutex::new(now),
            };
        }
        let bar = ProgressBar::new(total as u64);
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg:<32} {eta} left")
            .expect("a constant template")
            .progress_chars("=> ");
        bar.set_style(style);
        Self::Bar(bar)
    }

    /// Of a run that takes about so long.
    pub fn timed(total: Duration, quiet: bool) -> Self {
        let total = total.as_millis().try_into().unwrap_or(usize::MAX);
        let progress = Self::of(total, PERCENT, quiet);
        if let Self::Bar(bar) = &progress {
            let style = "{bar:30} {percent:>3} % {msg:<44} {eta} left";
            let style = ProgressStyle::with_template(style).expect("a constant template");
            bar.set_style(style.progress_chars("=> "));
        }
        progress
    }

    /// That round begins.
    pub fn begin(&self, index: usize, entry: &'static Entry, threads: usize) {
        let name = entry.origin.title(entry.name);
        self.at(index, &format!("{name}, {threads} threads"));
    }

    /// So much of its time is done, by the plan, and this is what comes.
    pub fn at_time(&self, done: Duration, what: &str) {
        self.at(done.as_millis().try_into().unwrap_or(usize::MAX), what);
    }

    /// So many steps are done, and this one is the latest.
    pub fn at(&self, index: usize, what: &str) {
        match self {
            Self::Bar(bar) => {
                bar.set_message(what.to_owned());
                bar.set_position(index as u64);
            }
            Self::Lines {
                unit,
                total,
                start,
                last,
            } => {
                let Ok(mut last) = last.lock() else { return };
                if last.elapsed() < LINE_INTERVAL {
                    return;
                }
                *last = Instant::now();
                let left = start
                    .elapsed()
                    .mul_f64(total.saturating_sub(index) as f64 / index.max(1) as f64);
                let left = left.as_secs_f64();
                if *unit == PERCENT {
                    let percent = 100 * index / (*total).max(1);
                    crate::tell!("overlock-lab: {percent} % done, about {left:.0} s left: {what}");
                } else {
                    crate::tell!("overlock-lab: {unit} {index} of {total}, about {left:.0} s left");
                }
            }
            Self::Hidden => {}
        }
    }

    pub fn finish(&self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}
