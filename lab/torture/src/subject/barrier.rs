//! A barrier for all threads, twice a round: nobody is ahead of another one by more than that.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

use overlock::Linux;
use overlock_core::sleep::barrier::Barrier;

use super::Subject;
use crate::job::Command;
use crate::plan::Step;
use crate::violation::{Violation, ViolationKind};
use crate::worker::Worker;
use crate::worker_state::Op;

/// A barrier, and what each thread writes before it and reads of the others after it.
#[derive(Debug)]
pub struct Gathering {
    barrier: Barrier<Linux>,
    marks: Vec<Mark>,
    rounds: AtomicU64,
    /// The command that the leader of the round has found.
    command: AtomicU8,
}

/// The rounds of one thread; plain memory, as a [`Canary`](crate::canary::Canary)'s words are.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Mark(UnsafeCell<u64>);

// SAFETY: written by its thread before one `wait` of each round, and read by others between that
// one and the next.
unsafe impl Sync for Mark {}

impl Mark {
    fn get(&self) -> u64 {
        // SAFETY: as in `Sync`.
        unsafe { self.0.get().read_volatile() }
    }

    fn set(&self, value: u64) {
        // SAFETY: as in `Sync`.
        unsafe { self.0.get().write_volatile(value) };
    }
}

impl Gathering {
    /// A barrier for so many threads.
    pub fn new(threads: usize) -> Self {
        Self {
            barrier: Barrier::new(u32::try_from(threads).unwrap_or(u32::MAX)),
            marks: (0..threads).map(|_| Mark::default()).collect(),
            rounds: AtomicU64::new(0),
            command: AtomicU8::new(0),
        }
    }

    /// Waits for all; whether this thread leads.
    fn arrive(&self, worker: &Worker) -> bool {
        let start = worker.set(Op::Arrive, 0);
        let leads = self.barrier.wait();
        let now = worker.set(Op::Inside, 0);
        worker.waited(Op::Arrive, now - start);
        worker.state().tallies.writes.add();
        leads
    }
}

impl Subject for Gathering {
    fn step(&self, worker: &Worker, step: &Step) {
        let mine = &self.marks[worker.index()];
        let round = mine.get() + 1;
        mine.set(round);
        let leads = self.arrive(worker);
        worker.pause(step.hold);
        let strays = self.marks.iter().filter(|mark| mark.get() != round).count();
        if strays > 0 {
            worker.fail(Violation::new(
                ViolationKind::Exclusion,
                format!(
                    "does not keep together: thread {} is in round {round}, and {strays} of {} are not",
                    worker.index(),
                    self.marks.len()
                ),
            ));
        }
        if leads {
            // Relaxed: only the leader writes it, before the barrier that all pass before they
            // look.
            self.command.store(worker.command() as u8, Relaxed);
            if self.rounds.fetch_add(1, Relaxed) + 1 != round {
                worker.fail(Violation::new(
                    ViolationKind::Count,
                    format!("round {round} has no leader of its own, or two"),
                ));
            }
        }
        self.arrive(worker);
        worker.set(Op::Outside, 0);
    }

    fn visits(&self, _: usize) -> u64 {
        self.rounds.load(Relaxed)
    }

    fn state(&self, _: usize) -> String {
        format!("round {}, {:?}", self.visits(0), self.barrier)
    }

    fn at_rest(&self, _: &dyn Fn(usize) -> u64) -> Result<(), Violation> {
        let round = self.visits(0);
        if self.marks.iter().all(|mark| mark.get() == round) {
            return Ok(());
        }
        Err(Violation::new(
            ViolationKind::Count,
            format!(
                "after {round} rounds not all threads have been through them: {:?}",
                self.marks
            ),
        ))
    }

    /// All must leave in the same round, or some would wait for ever.
    fn agree(&self, _: usize, _: Command) -> Command {
        Command::of(self.command.load(Relaxed))
    }
}
