//! Initialisation, once: chunks of cells that all threads race to fill.
//!
//! The first thread that is through with a chunk makes the next one and fills all of it, so whoever
//! just waits for a cell waits for a thread that comes.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use overlock::{Once, OnceLock};

use super::Subject;
use crate::canary::Canary;
use crate::plan::Step;
use crate::violation::{Violation, ViolationKind};
use crate::worker::Worker;
use crate::worker_state::Op;

const CELLS: usize = 8;

/// The chunk that is being filled.
#[derive(Debug)]
pub struct Cells {
    current: Mutex<Arc<Chunk>>,
    filled: AtomicU64,
}

#[derive(Debug, Default)]
struct Chunk {
    cells: [Cell; CELLS],
    /// Whether some of those that fill a cell panic first.
    poisoned: bool,
    /// Whether somebody sees to the next chunk.
    replaced: AtomicBool,
}

#[derive(Debug, Default)]
struct Cell {
    once: Once,
    canary: Canary,
    value: OnceLock<Canary>,
}

impl Cells {
    /// A first chunk.
    pub fn new() -> Self {
        let first = Chunk::default();
        for cell in &first.cells {
            cell.once.call_once(|| _ = cell.canary.write(0, |_| {}));
            cell.value.get_or_init(written);
        }
        Self {
            current: Mutex::new(Arc::new(first)),
            filled: AtomicU64::new(0),
        }
    }

    fn current(&self) -> Arc<Chunk> {
        let current = self.current.lock();
        Arc::clone(&current.unwrap_or_else(PoisonError::into_inner))
    }

    /// Fills cell `index` unless somebody has, or waits for that, and reads it then.
    fn fill(&self, worker: &Worker, step: &Step, chunk: &Chunk, index: usize, wait: bool) {
        let cell = &chunk.cells[index];
        let bits = step.bits >> index;
        let op = if wait { Op::Wait } else { Op::Call };
        let start = worker.set(op, 0);
        match (wait, chunk.poisoned) {
            (true, true) => cell.once.wait_force(),
            (true, false) => cell.once.wait(),
            (false, true) => {
                if bits & 1 == 0 {
                    // Without a message on the standard error.
                    let panic = || cell.once.call_once_force(|_| resume_unwind(Box::new(())));
                    let _ = catch_unwind(AssertUnwindSafe(panic));
                }
                cell.once.call_once_force(|_| self.run(worker, step, cell));
            }
            (false, false) if bits & 1 == 0 => {
                cell.once.call_once_force(|_| self.run(worker, step, cell));
            }
            (false, false) => cell.once.call_once(|| self.run(worker, step, cell)),
        }
        let value = if wait {
            cell.value.wait()
        } else {
            cell.value.get_or_init(written)
        };
        worker.waited(op, worker.set(Op::Outside, 0) - start);
        for canary in [&cell.canary, value] {
            let seen = worker.check(0, canary.read(|| {}));
            if seen.is_some_and(|runs| runs != 1) {
                worker.fail(Violation::new(
                    ViolationKind::Count,
                    format!(
                        "does not run once: thread {} sees {seen:?} runs",
                        worker.index()
                    ),
                ));
            }
        }
    }

    fn run(&self, worker: &Worker, step: &Step, cell: &Cell) {
        let between = worker.between_words(step.hold, step.bits);
        worker.check(0, cell.canary.write(worker.name(), between));
        worker.state().tallies.writes.add();
        self.filled.fetch_add(1, Relaxed);
    }
}

fn written() -> Canary {
    let canary = Canary::default();
    let _ = canary.write(0, |_| {});
    canary
}

impl Subject for Cells {
    fn step(&self, worker: &Worker, step: &Step) {
        let chunk = self.current();
        for index in 0..CELLS {
            let wait = step.bits >> (16 + 2 * index) & 3 == 0;
            self.fill(worker, step, &chunk, index, wait);
            worker.state().tallies.reads.add();
        }
        if chunk.replaced.swap(true, Relaxed) {
            return;
        }
        let next = Arc::new(Chunk {
            poisoned: step.bits >> 40 & 1 == 0,
            ..Chunk::default()
        });
        let current = self.current.lock();
        *current.unwrap_or_else(PoisonError::into_inner) = Arc::clone(&next);
        for index in 0..CELLS {
            self.fill(worker, step, &next, index, false);
        }
    }

    fn visits(&self, _: usize) -> u64 {
        self.filled.load(Relaxed)
    }

    fn state(&self, _: usize) -> String {
        let chunk = self.current();
        let states: Vec<_> = chunk.cells.iter().map(|cell| cell.once.state()).collect();
        format!("the cells are {states:?}")
    }

    fn at_rest(&self, _: &dyn Fn(usize) -> u64) -> Result<(), Violation> {
        let chunk = self.current();
        if chunk.cells.iter().all(|cell| cell.once.is_completed()) {
            return Ok(());
        }
        Err(Violation::new(
            ViolationKind::State,
            format!("all have called it: {}", self.state(0)),
        ))
    }
}
