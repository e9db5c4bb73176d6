//! Interference with the threads from outside: signals, and other CPUs.

use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use overlock::Linux;
use overlock_core::Platform;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::job::{Command, Job};
use crate::signal;
use crate::worker_state::WorkerState;
use overlock_report::random::{Random, of_name};

/// A thread that waits for longer gets no signal: it would wake a waiter that nobody kicks, and
/// hide that.
const PATIENT: u64 = 20_000_000;

/// Signals come in bursts.
const BURST: Duration = Duration::from_millis(20);

/// The interference that was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// How often the threads were given other CPUs.
    pub shuffles: u64,
}

/// Starts a thread that does all that, until the job's threads are asked to leave. `cpus` are those
/// that there are.
///
/// # Errors
///
/// If the machine does not give it.
pub fn start(job: &'static Job, cpus: Vec<usize>) -> std::io::Result<JoinHandle<Done>> {
    thread::Builder::new()
        .name("interference".to_owned())
        .spawn(move || interference(job, &cpus))
}

fn interference(job: &'static Job, cpus: &[usize]) -> Done {
    let mut random = Random::of(&[job.settings.seed, of_name(job.entry.name), u64::MAX]);
    let mut done = Done::default();
    let (mut shuffled, mut burst) = (Instant::now(), Instant::now());
    let mut sending = false;
    while job.command() != Command::Stop {
        thread::sleep(Duration::from_nanos(random.scaled(15, 19)));
        if job.command() == Command::Rest {
            continue;
        }
        if burst.elapsed() >= BURST {
            burst = Instant::now();
            sending = random.once_in(2);
        }
        let state = &job.workers[random.index(job.workers.len())];
        if sending && job.settings.signals && !waits_long(state) {
            signal::send(state.thread());
        }
        let due = job.settings.shuffle;
        if !due.is_zero() && shuffled.elapsed() >= due {
            shuffled = Instant::now();
            shuffle(job, cpus, &mut random);
            done.shuffles += 1;
        }
    }
    done
}

fn waits_long(state: &WorkerState) -> bool {
    let age = Linux::now().as_nanos().saturating_sub(state.since());
    state.doing().op.is_wait() && age > PATIENT
}

/// Each thread on a CPU of its own, all on one, or all wherever they like.
fn shuffle(job: &Job, cpus: &[usize], random: &mut Random) {
    let all = set(cpus);
    let one = random.index(cpus.len());
    let kind = random.below(4);
    for state in &job.workers {
        let any = random.index(cpus.len());
        let chosen = match kind {
            0 => all,
            1 => set(&cpus[one..=one]),
            _ => set(&cpus[any..=any]),
        };
        // One that has left meanwhile needs no CPU, and a CPU that was taken away costs the
        // shuffle, no more.
        if let Some(thread) = Pid::from_raw(state.thread() as i32) {
            let _ = sched_setaffinity(Some(thread), &chosen);
        }
    }
}

fn set(cpus: &[usize]) -> CpuSet {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        set.set(cpu);
    }
    set
}
