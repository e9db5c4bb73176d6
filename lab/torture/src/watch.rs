//! The watchdog: notices threads that stand still, and waiters that are bypassed without end.
//!
//! # Hangs
//!
//! A thread that is in one operation for longer than its lock's bound plus the patience has lost
//! its wake-up, or waits in a circle. Only time during which the watchdog itself ran counts, so a
//! machine that stood still, or a debugger, is not taken for a hang. If others still acquire the
//! lock it is starvation, which some locks may do ([`Bound::ends`]).
//!
//! # Starvation
//!
//! Time alone says little of a waiter on a crowded machine: it may not have had a CPU. So the
//! watchdog asks the kernel how much a waiter ran. It judges a waiter in three steps. The waiter's
//! bound is over. After that the waiter runs long enough to do what the lock makes it do. From then
//! until it has run that long again, others may acquire the lock four times the number of threads
//! at most. The scheduler cannot explain more: the waiter did run.
//!
//! Only the patience (`--patience`) is left if the kernel does not tell how much a waiter ran. The
//! same holds for a lock whose waiters may be bypassed although they run, while a thread before
//! them does not run: only the lock knows which thread that is.

use std::time::{Duration, Instant};

use overlock::Linux;
use overlock_core::Platform;

use crate::job::Job;
use crate::proc::{self, Ran};
use crate::violation::{Violation, ViolationKind};
use crate::worker_state::{Doing, Op, WorkerState};
#[cfg(doc)]
use overlock_core::facts::Bound;

/// The time between two checks of the watchdog, about.
pub const TICK: Duration = Duration::from_millis(10);

/// A tick that took longer counts as this: somebody kept the watchdog from running, and the threads
/// too.
const LONGEST_TICK: Duration = Duration::from_millis(100);

/// A waiter that has had so much of a CPU has done all that its lock asks of it. Waiters that sleep
/// have a few microseconds each time that they wake; those that spin have whole slices.
const AWAKE_FOR: u64 = 5_000_000;

/// As good: it was given a CPU so often.
const AWAKE_TIMES: u64 = 32;

/// A waiter that is in line and runs is bypassed by each of the others once; readers count more
/// than once in a visit.
const BYPASSES: u64 = 4;

/// The watchdog of one job.
#[derive(Debug)]
pub struct Watch {
    job: &'static Job,
    patience: Duration,
    last: Instant,
    suspects: Vec<Suspect>,
    overtaken: u64,
}

/// The history of one thread's operation.
#[derive(Clone, Copy, Debug, Default)]
struct Suspect {
    sequence: u64,
    /// How long it has gone on, on the watchdog's clock.
    age: Duration,
    /// For how long nobody has got the lock, and how often they had until then.
    quiet: Duration,
    visits: u64,
    /// How far the case against the lock is.
    case: Case,
}

#[derive(Clone, Copy, Debug, Default)]
enum Case {
    /// The bound is not over.
    #[default]
    None,
    /// It is over since the thread had run so much.
    Over(Ran),
    /// The thread has run since; visits and what it had run at that time.
    Ran(u64, Ran),
}

impl Watch {
    /// A watchdog for `job`, which waits for `patience` beyond the lock's bound.
    pub fn new(job: &'static Job, patience: Duration) -> Self {
        Self {
            job,
            patience,
            last: Instant::now(),
            suspects: vec![Suspect::default(); job.workers.len()],
            overtaken: 0,
        }
    }

    /// Checks all threads. Returns the error of the lock, if there is one.
    pub fn check(&mut self) -> Option<Violation> {
        let tick = self.last.elapsed().min(LONGEST_TICK);
        self.last = Instant::now();
        if let Some(violation) = self.handlers() {
            return Some(violation);
        }
        (0..self.suspects.len()).find_map(|index| self.look_at(index, tick))
    }

    /// How often a waiter was bypassed after its bound, while it ran, at most.
    pub fn overtaken(&self) -> u64 {
        self.overtaken
    }

    fn handlers(&self) -> Option<Violation> {
        let workers = self.job.workers.iter().enumerate();
        workers.into_iter().find_map(|(index, state)| {
            let lock = state.handled.torn.get().checked_sub(1)?;
            Some(Violation::new(
                ViolationKind::Exclusion,
                format!("does not exclude: a signal handler on thread {index} got lock {lock} and found somebody inside"),
            ))
        })
    }

    fn look_at(&mut self, index: usize, tick: Duration) -> Option<Violation> {
        let state = &self.job.workers[index];
        let doing = state.doing();
        let visits = self.job.subject.visits(doing.lock);
        let suspect = &mut self.suspects[index];
        if doing.sequence != suspect.sequence || matches!(doing.op, Op::Gone | Op::Resting) {
            *suspect = Suspect {
                sequence: doing.sequence,
                visits,
                ..Suspect::default()
            };
            return None;
        }
        suspect.age += tick;
        suspect.quiet += tick;
        if visits != suspect.visits {
            suspect.visits = visits;
            suspect.quiet = Duration::ZERO;
        }
        let threads = self.job.workers.len();
        let bound = self.job.entry.facts.bound.time(threads);
        let limit = self.patience + bound.unwrap_or_default();
        let others_pass = suspect.quiet < limit / 2;
        let ends = self.job.entry.facts.bound.ends();
        if suspect.age > limit && (!others_pass || ends || !doing.op.is_wait()) {
            let bypassed = (others_pass && doing.op.is_wait()).then_some(());
            return Some(self.report(
                index,
                bypassed.map_or(ViolationKind::Hang, |()| ViolationKind::Starvation),
            ));
        }
        if doing.op.is_wait() && bound.is_some_and(|bound| suspect.age > bound + TICK) {
            let ran = proc::ran(state.thread())?;
            let bypassed = suspect.case.hear(ran, visits)?;
            self.overtaken = self.overtaken.max(bypassed);
            if bypassed > BYPASSES * threads as u64 {
                return Some(self.starved(index, bypassed));
            }
        }
        None
    }

    /// Several threads stand still, one of them for too long.
    fn report(&self, index: usize, kind: ViolationKind) -> Violation {
        let state = &self.job.workers[index];
        let doing = state.doing();
        let (age, what) = (seconds(self.suspects[index].age), doing.op.describe());
        let verb = if kind == ViolationKind::Hang {
            "hangs"
        } else {
            "starves"
        };
        self.with_details(Violation::new(
            kind,
            format!(
                "{verb}: thread {index} {what} of lock {} since {age} s",
                doing.lock
            ),
        ))
    }

    fn starved(&self, index: usize, bypassed: u64) -> Violation {
        let doing = self.job.workers[index].doing();
        let age = seconds(self.suspects[index].age);
        self.with_details(Violation::new(
            ViolationKind::Starvation,
            format!(
                "starves: thread {index} {} of lock {} since {age} s, and was bypassed {bypassed} times after its bound \
                 ({}) though it ran",
                doing.op.describe(),
                doing.lock,
                self.job.entry.facts.bound,
            ),
        ))
    }

    /// Adds the threads' operations and the locks' states.
    fn with_details(&self, mut violation: Violation) -> Violation {
        let now = Linux::now().as_nanos();
        let mut locks = Vec::new();
        for (index, state) in self.job.workers.iter().enumerate() {
            let doing = state.doing();
            if !matches!(doing.op, Op::Gone | Op::Resting) {
                violation.details.push(line(index, state, doing, now));
                locks.push(doing.lock);
            }
        }
        locks.sort_unstable();
        locks.dedup();
        for lock in locks {
            let state = self.job.subject.state(lock);
            violation.details.push(format!("lock {lock}: {state}"));
        }
        violation
    }
}

impl Case {
    /// The case moves on: how often others got the lock since the waiter was certainly in line,
    /// once it has run since.
    fn hear(&mut self, ran: Ran, visits: u64) -> Option<u64> {
        match *self {
            Case::None => *self = Case::Over(ran),
            Case::Over(since) if awake(since, ran) => *self = Case::Ran(visits, ran),
            Case::Ran(before, since) if awake(since, ran) => {
                return Some(visits.wrapping_sub(before));
            }
            Case::Over(_) | Case::Ran(..) => {}
        }
        None
    }
}

fn awake(since: Ran, now: Ran) -> bool {
    now.time.saturating_sub(since.time) >= AWAKE_FOR
        || now.slices.saturating_sub(since.slices) >= AWAKE_TIMES
}

/// The operation of one thread, for people.
fn line(index: usize, state: &WorkerState, doing: Doing, now: u64) -> String {
    let since = seconds(Duration::from_nanos(now.saturating_sub(state.since())));
    let held: Vec<String> = (0..u8::BITS as usize)
        .filter(|&lock| doing.holds(lock))
        .map(|lock| {
            let alone = doing.writes >> lock & 1 != 0;
            format!("{lock} {}", if alone { "alone" } else { "as a reader" })
        })
        .collect();
    let holds = if held.is_empty() {
        "holds nothing".to_owned()
    } else {
        format!("holds {}", held.join(", "))
    };
    format!(
        "thread {index} ({}, {}) {} of lock {} since {since} s, {holds}",
        state.thread(),
        proc::state(state.thread()),
        doing.op.describe(),
        doing.lock,
    )
}

fn seconds(time: Duration) -> String {
    format!("{:.3}", time.as_secs_f64())
}

#[cfg(test)]
mod tests;
