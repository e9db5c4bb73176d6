//! One of the threads that torture a lock.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

use overlock::{CancelToken, Linux};
use overlock_core::Instant;
use overlock_core::Platform;

use crate::canary::{Canary, Torn, WORDS};
use crate::job::{Command, Job};
use crate::plan::{How, Pause, Side};
use crate::violation::{Violation, ViolationKind};
use crate::worker_state::{Doing, Op, WorkerState};

/// One of the threads that torture a lock, while it lives.
#[derive(Debug)]
pub struct Worker {
    job: &'static Job,
    index: usize,
    doing: Cell<Doing>,
}

/// An acquisition that is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Ask {
    pub op: Op,
    pub lock: usize,
    pub side: Side,
    /// How long it may take.
    pub how: How,
}

/// The end of a wait before it is over.
#[derive(Clone, Debug, Default)]
pub struct Limit {
    pub deadline: Option<Instant>,
    pub token: Option<Arc<CancelToken>>,
}

impl Limit {
    /// So many nanoseconds from now.
    pub fn within(time: u64) -> Self {
        Self {
            deadline: Some(Linux::now().plus_nanos(time)),
            token: None,
        }
    }

    /// When the wait ends; for calls that need a moment.
    pub fn until(&self) -> Instant {
        self.deadline.unwrap_or(Instant::from_nanos(u64::MAX))
    }

    /// The token that ends the wait; for calls that need one.
    pub fn token(&self) -> &CancelToken {
        static NEVER: CancelToken = CancelToken::new();
        self.token.as_deref().unwrap_or(&NEVER)
    }
}

impl Worker {
    /// The calling thread, as worker `index` of the job.
    pub fn new(job: &'static Job, index: usize) -> Self {
        let state = &job.workers[index];
        Self {
            job,
            index,
            doing: Cell::new(state.doing()),
        }
    }

    pub fn index(&self) -> usize {
        self.index
    }

    pub fn name(&self) -> u64 {
        self.index as u64
    }

    pub fn command(&self) -> Command {
        self.job.command()
    }

    /// When it turned to what it does, in nanoseconds.
    pub fn since(&self) -> u64 {
        self.state().since()
    }

    /// Its state, which others see.
    pub fn state(&self) -> &'static WorkerState {
        &self.job.workers[self.index]
    }

    /// Says what it does from now on; when that is, in nanoseconds.
    pub fn set(&self, op: Op, lock: usize) -> u64 {
        let now = Linux::now().as_nanos();
        self.set_at(now, op, lock);
        now
    }

    fn set_at(&self, now: u64, op: Op, lock: usize) {
        let old = self.doing.get();
        let doing = Doing {
            op,
            lock,
            sequence: old.sequence + 1,
            ..old
        };
        self.doing.set(doing);
        self.state().set(doing, now);
    }

    /// Acquires a lock by `attempt`, and judges how that ends; `visits` says how often somebody had
    /// the lock.
    pub fn acquire<T>(
        &self,
        ask: Ask,
        visits: impl Fn() -> u64,
        attempt: impl FnOnce(&Limit) -> Option<T>,
    ) -> Option<T> {
        let limit = self.limit(ask.how);
        let bypassed = visits();
        let start = self.set(ask.op, ask.lock);
        let got = attempt(&limit);
        let now = Linux::now().as_nanos();
        if limit.token.is_some() {
            self.state().set_token(None);
        }
        let tallies = &self.state().tallies;
        if ask.op.is_wait() {
            tallies.bypassed.raise(visits().wrapping_sub(bypassed));
            self.waited(ask.op, now - start);
        }
        if got.is_some() {
            self.hold(ask.lock, ask.side);
            match ask.side {
                Side::Write => tallies.writes.add(),
                Side::Read | Side::Upgradable => tallies.reads.add(),
            }
            self.set_at(now, Op::Inside, ask.lock);
        } else {
            self.judge(ask.op, ask.how, &limit, now);
            self.set_at(now, self.between(), ask.lock);
        }
        got
    }

    /// An acquisition that must succeed, beside those that the tallies count: an upgrade, or the
    /// way back from a bump. `f` ends with the lock held as `side`.
    pub fn wait<T>(&self, op: Op, lock: usize, side: Side, f: impl FnOnce() -> T) -> T {
        let start = self.set(op, lock);
        let result = f();
        let now = Linux::now().as_nanos();
        self.waited(op, now - start);
        self.hold(lock, side);
        self.set_at(now, Op::Inside, lock);
        result
    }

    /// It has waited for so many nanoseconds.
    pub fn waited(&self, op: Op, time: u64) {
        let tallies = &self.state().tallies;
        if tallies.longest.raise(time) {
            tallies.longest_op.store(op as u32, Relaxed);
        }
    }

    /// A wait for something else than the lock, without it. `f` ends with the lock held again, and
    /// says whether what the thread waited for has come.
    pub fn wait_outside<T>(
        &self,
        op: Op,
        lock: usize,
        how: How,
        f: impl FnOnce(&Limit) -> (T, bool),
    ) -> T {
        // There is no attempt without waiting here.
        let how = if how == How::Try { How::Wait } else { how };
        let limit = self.limit(how);
        self.drop_hold(lock);
        let (result, came) = self.wait(op, lock, Side::Write, || f(&limit));
        self.state().set_token(None);
        if !came {
            self.judge(op, how, &limit, Linux::now().as_nanos());
        }
        result
    }

    pub fn release<T>(&self, lock: usize, f: impl FnOnce() -> T) -> T {
        self.set(Op::Releasing, lock);
        let result = f();
        self.drop_hold(lock);
        self.set(self.between(), lock);
        result
    }

    /// It holds a lock from now on, and as `side`.
    pub fn hold(&self, lock: usize, side: Side) {
        self.drop_hold(lock);
        let mut doing = self.doing.get();
        match side {
            Side::Write => doing.writes |= 1 << lock,
            Side::Read | Side::Upgradable => doing.reads |= 1 << lock,
        }
        self.doing.set(doing);
    }

    fn drop_hold(&self, lock: usize) {
        let mut doing = self.doing.get();
        doing.writes &= !(1 << lock);
        doing.reads &= !(1 << lock);
        self.doing.set(doing);
    }

    fn between(&self) -> Op {
        let doing = self.doing.get();
        if doing.writes | doing.reads == 0 {
            Op::Outside
        } else {
            Op::Inside
        }
    }

    fn limit(&self, how: How) -> Limit {
        match how {
            How::Wait | How::Try => Limit::default(),
            How::Timed(time) => Limit::within(time),
            How::Cancel => {
                let token = Arc::new(CancelToken::new());
                self.state().set_token(Some(Arc::clone(&token)));
                Limit {
                    deadline: None,
                    token: Some(token),
                }
            }
        }
    }

    /// A wait has ended at `now` without what it was for: is there a reason?
    fn judge(&self, op: Op, how: How, limit: &Limit, now: u64) {
        let tallies = &self.state().tallies;
        if how == How::Try {
            tallies.refused.add();
        } else if let Some(end) = limit.deadline {
            self.gave_up(op, end, now);
        } else if limit.token().is_cancelled() {
            tallies.cancelled.add();
        } else {
            let (index, what) = (self.index, op.describe());
            self.fail(Violation::new(
                ViolationKind::GaveUp,
                format!("gives up for no reason: thread {index} {what} and came back without it"),
            ));
        }
    }

    /// A wait that may take until `end` has ended at `now` without what it was for.
    pub fn gave_up(&self, op: Op, end: Instant, now: u64) {
        let now = Instant::from_nanos(now);
        let tallies = &self.state().tallies;
        tallies.timed_out.add();
        tallies.late.raise(now.nanos_since(end));
        let early = end.nanos_since(now);
        if early > 0 {
            let (index, what) = (self.index, op.describe());
            self.fail(Violation::new(
                ViolationKind::GaveUp,
                format!("gives up early: thread {index} {what} and came back {early} ns before its deadline"),
            ));
        }
    }

    /// Spends time.
    pub fn pause(&self, pause: Pause) {
        match pause {
            Pause::None => {}
            Pause::Spin(time) => spin(time),
            Pause::Yield => thread::yield_now(),
            Pause::Sleep(time) => thread::sleep(Duration::from_nanos(time)),
        }
    }

    /// Spends time while a canary's words are written: spread over them, or all of it at one of
    /// them.
    pub fn between_words(&self, pause: Pause, bits: u64) -> impl FnMut(usize) {
        let chosen = bits as usize % WORDS;
        move |word| match pause {
            Pause::Spin(time) => spin(time / WORDS as u64),
            _ if word == chosen => self.pause(pause),
            _ => {}
        }
    }

    /// Returns what was written or read under lock `lock`, if it was what it must be.
    pub fn check<T>(&self, lock: usize, result: Result<T, Torn>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(torn) => {
                let who = format!("thread {}", self.index);
                self.fail(Violation::torn(&who, lock, torn));
                None
            }
        }
    }

    /// Checks that what was seen under lock `lock`, held ever since, is still there.
    pub fn unchanged(&self, lock: usize, canary: &Canary, seen: Option<u64>) {
        let now = self.check(lock, canary.read(|| {}));
        if let (Some(seen), Some(now)) = (seen, now)
            && seen != now
        {
            self.check::<()>(lock, Err(Torn::Changed(seen, now)));
        }
    }

    /// Counts a write under lock `lock`, if it was what it must be. Returns what was written.
    pub fn written(&self, lock: usize, result: Result<u64, Torn>) -> Option<u64> {
        let value = self.check(lock, result)?;
        self.state().tallies.written[lock].add();
        Some(value)
    }

    /// The lock has failed: the run ends.
    pub fn fail(&self, violation: Violation) {
        self.job.fail(violation);
    }
}

fn spin(time: u64) {
    if time == 0 {
        return;
    }
    let end = Linux::now().plus_nanos(time);
    while Linux::now() < end {
        std::hint::spin_loop();
    }
}
