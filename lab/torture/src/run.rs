//! A run: one lock after the other.

use std::time::{Duration, Instant};

use crate::error::Error;
use crate::interference;
use crate::job::{Command, Job};
use crate::registry::Entry;
use crate::report::{LockReport, Pace};
use crate::settings::{LOCKS, Settings};
use crate::signal;
use crate::violation::Violation;
use crate::watch::{TICK, Watch};

/// Called now and then with the lock that is tortured, and how often its threads have had it.
pub type Observer<'a> = &'a mut dyn FnMut(&'static Entry, u64);

/// Whether the run is to end before its time.
pub type Interrupted<'a> = &'a dyn Fn() -> bool;

/// The machine, as far as a run needs to know it.
#[derive(Clone, Debug)]
pub struct Machine {
    /// CPUs' worth of time that the process has.
    pub cpus: f64,
    /// The numbers of those that it may run on.
    pub allowed: Vec<usize>,
}

/// Tortures the locks, one after the other, until one of them fails. They share the time.
///
/// # Errors
///
/// If the run could not go on: for no fault of a lock.
pub fn run(
    settings: &Settings,
    locks: &[&'static Entry],
    machine: &Machine,
    interrupted: Interrupted<'_>,
    observer: Observer<'_>,
) -> Result<Vec<LockReport>, Error> {
    if settings.signals {
        signal::install();
    }
    let mut reports = Vec::new();
    let start = Instant::now();
    for (index, entry) in locks.iter().enumerate() {
        // All locks left share what the locks before took too long for.
        let left = settings.length.saturating_sub(start.elapsed());
        let share = left / u32::try_from(locks.len() - index).unwrap_or(u32::MAX);
        let report = torture(settings, entry, machine, share, interrupted, observer)?;
        let failed = report.violation.is_some();
        reports.push(report);
        if failed {
            break;
        }
    }
    Ok(reports)
}

pub fn threads(settings: &Settings, entry: &Entry, machine: &Machine) -> usize {
    let most = entry.facts.most_threads.unwrap_or(usize::MAX);
    settings
        .threads
        .map_or_else(|| entry.threads(machine.cpus), |threads| threads.min(most))
}

/// How long a thread may stand still where so many share the CPUs: the patience is for eight a CPU.
/// Long sections come on top, one inside the other at worst.
fn patience(settings: &Settings, threads: usize, cpus: f64) -> Duration {
    let overcommit = threads as f64 / cpus;
    let patience = settings.patience.mul_f64((overcommit / 8.0).max(1.0));
    patience + settings.long_hold * LOCKS as u32
}

/// The run of one lock.
struct Session<'a> {
    job: &'static Job,
    watch: Watch,
    start: Instant,
    interrupted: Interrupted<'a>,
    observer: Observer<'a>,
}

/// The reason of a session that ends before its time.
enum End {
    Failed,
    Interrupted,
}

fn torture(
    settings: &Settings,
    entry: &'static Entry,
    machine: &Machine,
    length: Duration,
    interrupted: Interrupted<'_>,
    observer: Observer<'_>,
) -> Result<LockReport, Error> {
    let threads = threads(settings, entry, machine);
    let job = Job::new(entry, settings, threads)?;
    let mut session = Session {
        job,
        watch: Watch::new(job, patience(settings, threads, machine.cpus)),
        start: Instant::now(),
        interrupted,
        observer,
    };
    job.start()?;
    let interference =
        interference::start(job, machine.allowed.clone()).map_err(|source| Error::Spawn {
            wanted: threads + 1,
            got: threads,
            why: source.to_string(),
        })?;
    let (rests, end) = session.go(length);
    job.ask(Command::Stop);
    // It never waits for a lock.
    let done = interference.join().unwrap_or_default();
    if matches!(end, Err(End::Interrupted)) {
        return Err(Error::Interrupted);
    }
    let pace = Pace {
        elapsed: session.start.elapsed(),
        rests,
        shuffles: done.shuffles,
        overtaken: session.watch.overtaken(),
    };
    Ok(LockReport::new(job, pace))
}

impl Session<'_> {
    /// Lets the threads go on for so long, with rests in between and at the end; how many there
    /// were.
    fn go(&mut self, length: Duration) -> (u64, Result<(), End>) {
        let stutter = self.job.settings.stutter;
        let mut rests = 0;
        loop {
            let left = length.saturating_sub(self.start.elapsed());
            let last = stutter.is_zero() || left <= stutter;
            let stretch = if last { left } else { stutter };
            let command = if last { Command::Stop } else { Command::Rest };
            let end = self.go_on(stretch).and_then(|()| self.halt(command));
            rests += u64::from(end.is_ok());
            if last || end.is_err() {
                return (rests, end);
            }
            self.job.ask(Command::Go);
        }
    }

    /// Watches the threads for so long.
    fn go_on(&mut self, length: Duration) -> Result<(), End> {
        let end = Instant::now() + length;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            // Some have left only where the lock has failed.
            self.job.all(Command::Stop, left.min(TICK));
            self.tick()?;
            if left.is_zero() {
                return Ok(());
            }
        }
    }

    /// Makes all threads rest, or leave, and checks that all is as it must be then.
    fn halt(&mut self, command: Command) -> Result<(), End> {
        self.job.ask(command);
        while !self.job.all(command, TICK) {
            self.tick()?;
        }
        self.tick()?;
        let written = |lock| self.job.written(lock);
        match self.job.subject.at_rest(&written) {
            Ok(()) => Ok(()),
            Err(violation) => self.fail(violation),
        }
    }

    fn tick(&mut self) -> Result<(), End> {
        (self.observer)(self.job.entry, crate::report::operations(self.job));
        if let Some(violation) = self.watch.check() {
            return self.fail(violation);
        }
        if self.job.verdict().is_some() {
            return Err(End::Failed);
        }
        if (self.interrupted)() {
            return Err(End::Interrupted);
        }
        Ok(())
    }

    fn fail(&self, violation: Violation) -> Result<(), End> {
        self.job.fail(violation);
        Err(End::Failed)
    }
}
