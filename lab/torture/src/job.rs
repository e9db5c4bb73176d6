//! The threads that torture one lock: how they come, rest, and leave.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{
    AtomicU8, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::boost::Boost;
use crate::error::Error;
use crate::plan::Plan;
use crate::registry::Entry;
use crate::settings::Settings;
use crate::signal;
use crate::subject::Subject;
use crate::violation::{Violation, ViolationKind};
use crate::worker::Worker;
use crate::worker_state::{Op, WorkerState};

/// Enough for what the threads do, and little enough for many of them.
const STACK: usize = 256 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    Go,
    /// Stop between two steps, and wait.
    Rest,
    Stop,
}

impl Command {
    pub fn of(number: u8) -> Self {
        match number {
            0 => Command::Go,
            1 => Command::Rest,
            _ => Command::Stop,
        }
    }
}

/// The threads that torture one lock, and the lock. Never freed: a thread that hangs goes on using
/// it.
#[derive(Debug)]
pub struct Job {
    pub entry: &'static Entry,
    /// It, and what is done with it.
    pub subject: Box<dyn Subject>,
    pub settings: Settings,
    pub workers: Vec<WorkerState>,
    /// Threads that could not be replaced.
    pub unborn: AtomicU64,
    command: AtomicU8,
    gate: Mutex<Gate>,
    opened: Condvar,
    arrived: Condvar,
    verdict: Mutex<Option<Violation>>,
}

/// The workers that have followed a command.
#[derive(Debug, Default)]
struct Gate {
    /// Rests so far: one that has ended counts for nobody who has not noticed yet.
    rests: u64,
    resting: usize,
    gone: usize,
}

impl Job {
    /// The threads and the lock; nobody runs yet.
    ///
    /// # Errors
    ///
    /// If the lock cannot be created.
    pub fn new(
        entry: &'static Entry,
        settings: &Settings,
        threads: usize,
    ) -> Result<&'static Self, Error> {
        Ok(Box::leak(Box::new(Self {
            entry,
            subject: (entry.make)(threads)?,
            settings: settings.clone(),
            workers: (0..threads).map(|_| WorkerState::default()).collect(),
            unborn: AtomicU64::new(0),
            command: AtomicU8::new(Command::Go as u8),
            gate: Mutex::default(),
            opened: Condvar::new(),
            arrived: Condvar::new(),
            verdict: Mutex::default(),
        })))
    }

    /// Starts the threads.
    ///
    /// # Errors
    ///
    /// If the machine does not give them.
    pub fn start(&'static self) -> Result<(), Error> {
        for index in 0..self.workers.len() {
            self.spawn(index, 0).map_err(|source| Error::Spawn {
                wanted: self.workers.len(),
                got: index,
                why: source.to_string(),
            })?;
        }
        Ok(())
    }

    /// Returns the present command. Acquire, pairs with the release in [`ask`](Self::ask): a
    /// handler that goes on after a rest must not touch what is still being checked.
    pub fn command(&self) -> Command {
        Command::of(self.command.load(Acquire))
    }

    /// Asks the threads to rest, or to leave. A worker that was asked to leave gets no further
    /// command.
    pub fn ask(&self, command: Command) {
        let mut gate = self.gate();
        if self.command() != Command::Stop {
            // Release, pairs with the acquire in `command`.
            self.command.store(command as u8, Release);
        }
        gate.rests += 1;
        gate.resting = 0;
        drop(gate);
        self.opened.notify_all();
    }

    /// Whether all threads do what they were asked to: rest, or be gone. Waits for that, for
    /// `limit` at most.
    pub fn all(&self, command: Command, limit: Duration) -> bool {
        let there = |gate: &mut Gate| match command {
            Command::Go => false,
            Command::Rest => gate.resting == self.workers.len(),
            Command::Stop => gate.gone == self.workers.len(),
        };
        let wait = self
            .arrived
            .wait_timeout_while(self.gate(), limit, |gate| !there(gate));
        let (mut gate, _) = wait.unwrap_or_else(PoisonError::into_inner);
        there(&mut gate)
    }

    /// The lock has failed: the threads leave, those that can. The first one counts.
    pub fn fail(&self, violation: Violation) {
        self.verdict().get_or_insert(violation);
        self.ask(Command::Stop);
    }

    /// How the lock has failed, if it has.
    pub fn verdict(&self) -> MutexGuard<'_, Option<Violation>> {
        self.verdict.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How often the threads and their handlers wrote under lock `lock`.
    pub fn written(&self, lock: usize) -> u64 {
        let one = |state: &WorkerState| {
            state.tallies.written[lock].get() + state.handled.written[lock].get()
        };
        self.workers.iter().map(one).sum()
    }

    fn gate(&self) -> MutexGuard<'_, Gate> {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spawn(&'static self, index: usize, generation: u64) -> std::io::Result<()> {
        thread::Builder::new()
            .name(format!("{}-{index}", self.entry.name))
            .stack_size(STACK)
            .spawn(move || self.live(index, generation))
            .map(drop)
    }

    /// The life of a thread.
    fn live(&'static self, index: usize, generation: u64) {
        let worker = Worker::new(self, index);
        let state = worker.state();
        state.set_thread(rustix::thread::gettid().as_raw_pid() as u32);
        state.generation.store(generation, Relaxed);
        signal::accept(self, index);
        let life = AssertUnwindSafe(|| self.work(&worker, generation));
        let replaced = panic::catch_unwind(life).unwrap_or_else(|panic| {
            self.fail(panicked(&worker, &*panic));
            false
        });
        if replaced {
            return;
        }
        signal::refuse();
        worker.set(Op::Gone, 0);
        state.set_thread(0);
        self.gate().gone += 1;
        self.arrived.notify_all();
    }

    /// Works until asked to leave (false), or until another thread goes on in its place (true).
    fn work(&'static self, worker: &Worker, mut generation: u64) -> bool {
        let (entry, threads) = (self.entry, self.workers.len());
        loop {
            let mut plan = Plan::new(&self.settings, entry, threads, worker.index(), generation);
            for _ in 0..plan.life().unwrap_or(u64::MAX) {
                let step = plan.step();
                let boost = (self.settings.boost && step.boost)
                    .then(|| Boost::new(worker, self.entry.facts.waiting));
                self.subject.step(worker, &step);
                drop(boost);
                if let Some(other) = step.cancel {
                    self.workers[other].cancel();
                }
                worker.pause(step.rest);
                match self.subject.agree(worker.index(), self.command()) {
                    Command::Go => {}
                    Command::Rest => self.rest(worker),
                    Command::Stop => return false,
                }
            }
            generation += 1;
            // The next thread is the worker as soon as it runs.
            signal::refuse();
            worker.set(Op::Starting, 0);
            if self.spawn(worker.index(), generation).is_ok() {
                return true;
            }
            self.unborn.fetch_add(1, Relaxed);
            signal::accept(self, worker.index());
        }
    }

    fn rest(&self, worker: &Worker) {
        worker.set(Op::Resting, 0);
        let mut gate = self.gate();
        let rest = gate.rests;
        gate.resting += 1;
        if gate.resting == self.workers.len() {
            self.arrived.notify_all();
        }
        let rested = self.opened.wait_while(gate, |gate| {
            gate.rests == rest && self.command() == Command::Rest
        });
        drop(rested);
        worker.set(Op::Outside, 0);
    }
}

fn panicked(worker: &Worker, panic: &(dyn Any + Send)) -> Violation {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message");
    let doing = worker.state().doing();
    let (index, lock) = (worker.index(), doing.lock);
    Violation::new(
        ViolationKind::Panic,
        format!(
            "panics: thread {index} {} of lock {lock}: {text}",
            doing.op.describe()
        ),
    )
}

#[cfg(test)]
mod tests;
