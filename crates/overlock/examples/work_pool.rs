//! A pool of threads that run jobs, and that a thread can wait for.
//!
//! ```text
//! cargo run --release --example work_pool -- --bench
//! ```

mod common;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};

use overlock::{Condvar, Mutex};

type Job = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    running: usize,
    /// Threads that wait for a job.
    idle: usize,
    /// One of them is on its way.
    wakes: bool,
    closed: bool,
}

impl State {
    /// Whether the caller has to wake a thread. One at a time is on its way, and wakes the next if
    /// there are more jobs: by then those that run may have taken them.
    fn needs_another(&mut self) -> bool {
        let needs = !self.jobs.is_empty() && self.idle > 0 && !self.wakes;
        self.wakes |= needs;
        needs
    }
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    all_done: Condvar,
}

struct Pool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Pool {
    fn new(threads: usize) -> Self {
        let shared = Arc::new(Shared::default());
        let work = |_| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || run(&shared))
        };
        Pool {
            threads: (0..threads).map(work).collect(),
            shared,
        }
    }

    fn spawn(&self, job: impl FnOnce() + Send + 'static) {
        let mut state = self.shared.state.lock();
        state.jobs.push_back(Box::new(job));
        let needs_another = state.needs_another();
        drop(state);
        if needs_another {
            self.shared.changed.notify_one();
        }
    }

    /// Waits until no job is left.
    fn wait(&self) {
        let mut state = self.shared.state.lock();
        let busy = |state: &mut State| state.running > 0 || !state.jobs.is_empty();
        self.shared.all_done.wait_while(&mut state, busy);
    }
}

/// A thread of the pool.
fn run(shared: &Shared) {
    let mut state = shared.state.lock();
    loop {
        if let Some(job) = state.jobs.pop_front() {
            state.running += 1;
            let needs_another = state.needs_another();
            drop(state);
            if needs_another {
                shared.changed.notify_one();
            }
            job();
            state = shared.state.lock();
            state.running -= 1;
            if state.running == 0 && state.jobs.is_empty() {
                shared.all_done.notify_all();
            }
        } else if state.closed {
            return;
        } else {
            state.idle += 1;
            shared.changed.wait(&mut state);
            state.idle -= 1;
            state.wakes = false;
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.state.lock().closed = true;
        self.shared.changed.notify_all();
        for thread in self.threads.drain(..) {
            thread.join().expect("no job panics");
        }
    }
}

static DONE: AtomicU64 = AtomicU64::new(0);

fn job() {
    DONE.fetch_add((0..100).sum::<u64>(), Relaxed);
}

fn main() {
    let pool = Pool::new(4);
    (0..1000).for_each(|_| pool.spawn(job));
    pool.wait();
    assert_eq!(DONE.load(Relaxed), 1000 * 4950);
    println!("1000 jobs are done");

    if common::wants_bench() {
        let (sender, receiver) = std::sync::mpsc::channel::<Job>();
        let receiver = Arc::new(std::sync::Mutex::new(receiver));
        for _ in 0..4 {
            let receiver = Arc::clone(&receiver);
            thread::spawn(move || {
                loop {
                    let job = receiver.lock().unwrap().recv();
                    let Ok(job) = job else { return };
                    job();
                }
            });
        }
        common::compare(
            ["the pool", "std's channel with its receiver in a Mutex"],
            || {
                (0..10_000).for_each(|_| pool.spawn(job));
                pool.wait();
            },
            || {
                let end = DONE.load(Relaxed) + 10_000 * 4950;
                for _ in 0..10_000 {
                    sender.send(Box::new(job)).unwrap();
                }
                while DONE.load(Relaxed) < end {
                    thread::yield_now();
                }
            },
        );
    }
}
