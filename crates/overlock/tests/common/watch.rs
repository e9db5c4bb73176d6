//! Joins threads, and fails instead of hanging if they make no more progress.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Without an acquisition for so long, the threads are stuck, on the busiest machine.
const STUCK: Duration = Duration::from_secs(120);

const LOCK: u64 = 1;
const LOCK_UNTIL: u64 = 2;
const INSIDE: u64 = 3;

/// The progress of one thread, for others to see.
#[derive(Default)]
pub struct ThreadState {
    doing: AtomicU64,
    /// Acquisitions, and waits that ended at their deadline.
    done: AtomicU64,
}

impl ThreadState {
    pub fn waits(&self, with_deadline: bool) {
        let doing = if with_deadline { LOCK_UNTIL } else { LOCK };
        self.doing.store(doing, Relaxed);
    }

    pub fn is_inside(&self) {
        self.doing.store(INSIDE, Relaxed);
    }

    pub fn is_outside(&self) {
        self.doing.store(0, Relaxed);
        self.done.store(self.done.load(Relaxed) + 1, Relaxed);
    }

    pub fn done(&self) -> u64 {
        self.done.load(Relaxed)
    }

    fn describe(&self) -> Option<&'static str> {
        match self.doing.load(Relaxed) {
            LOCK => Some("waits in lock"),
            LOCK_UNTIL => Some("waits in lock_until"),
            INSIDE => Some("is inside"),
            _ => None,
        }
    }
}

/// Joins the threads, and panics with one of them, or if none makes progress. They are not scoped:
/// a scope would wait for a stuck one for ever.
pub fn join(lock: &str, states: &[ThreadState], mut threads: Vec<JoinHandle<()>>) {
    let mut last = 0;
    let mut since = Instant::now();
    while !threads.is_empty() {
        let (ended, running): (Vec<_>, Vec<_>) =
            threads.into_iter().partition(JoinHandle::is_finished);
        threads = running;
        for thread in ended {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
        let done = states.iter().map(ThreadState::done).sum();
        if done != last {
            (last, since) = (done, Instant::now());
        } else if since.elapsed() > STUCK {
            panic!("{lock}: {}", report(states, done, threads.len()));
        }
        thread::sleep(Duration::from_millis(1));
    }
}

fn report(states: &[ThreadState], done: u64, left: usize) -> String {
    let states: Vec<_> = states
        .iter()
        .enumerate()
        .filter_map(|(thread, state)| {
            let done = state.done();
            let doing = state.describe()?;
            Some(format!("thread {thread} {doing} after {done} sections"))
        })
        .collect();
    format!(
        "no progress for {STUCK:?} after {done} sections, {left} threads left: {}",
        states.join(", ")
    )
}
