//! A condition variable: a bounded queue whose users each put an item in and take one out, again
//! and again.
//!
//! So there is always somebody to wake whoever waits: if all waited for items, the queue would hold
//! one for each of them; if all waited for room, it would be full of the items of others that are
//! still to take one. And while all rest it is empty.

use std::fmt::{self, Debug};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use overlock::Linux;
use overlock_core::raw::{CreateError, RawLock};
use overlock_core::sleep::condvar::Condvar;

use super::Subject;
use super::counts;
use crate::canary::Canary;
use crate::plan::{How, Side, Step};
use crate::violation::{Violation, ViolationKind};
use crate::worker::{Ask, Worker};
use crate::worker_state::Op;

/// Items that there is room for: few, so that threads wait for both.
const ROOM: u64 = 2;

/// A bounded queue under a lock of type `L`.
pub struct Queue<L: RawLock> {
    lock: L,
    canary: Canary,
    items: Condvar<Linux>,
    room: Condvar<Linux>,
    /// Put in and taken out so far. Under the lock; atomic for those that read it from outside.
    put: AtomicU64,
    taken: AtomicU64,
}

struct End<'a> {
    /// The condition that one waits for at this end, and that of the other end.
    mine: &'a Condvar<Linux>,
    theirs: &'a Condvar<Linux>,
    count: &'a AtomicU64,
    ready: &'a dyn Fn() -> bool,
}

impl<L: RawLock> Queue<L> {
    /// An empty queue.
    ///
    /// # Errors
    ///
    /// If the lock cannot be created.
    pub fn new() -> Result<Self, CreateError> {
        Ok(Self {
            lock: L::create()?,
            canary: Canary::default(),
            items: Condvar::new(),
            room: Condvar::new(),
            put: AtomicU64::new(0),
            taken: AtomicU64::new(0),
        })
    }

    fn length(&self) -> u64 {
        self.put.load(Relaxed) - self.taken.load(Relaxed)
    }

    /// Waits until the end is ready, moves one item, and tells those at the other end, by the bits:
    /// all or one of them, with the lock or after it.
    fn pass(&self, worker: &Worker, step: &Step, end: &End<'_>, bits: u64) {
        let ask = Ask {
            op: Op::Lock,
            lock: 0,
            side: Side::Write,
            how: How::Wait,
        };
        let visits = || self.canary.visits();
        let Some(mut token) = worker.acquire(ask, visits, |_| Some(self.lock.lock())) else {
            return;
        };
        let mut how = step.how;
        while !(end.ready)() {
            token = self.wait(worker, how, end, token);
            // A limit that is over would make a busy loop of this, and a real-time priority a long
            // one.
            how = How::Wait;
        }
        // Plain additions: the lock is held.
        end.count.store(end.count.load(Relaxed) + 1, Relaxed);
        let between = worker.between_words(step.hold, bits);
        worker.written(0, self.canary.write(worker.name(), between));
        let tell = || match bits & 7 {
            0 => _ = end.theirs.notify_all(),
            _ => _ = end.theirs.notify_one(),
        };
        let inside = bits & 8 == 0;
        if inside {
            worker.set(Op::Notify, 0);
            tell();
        }
        // SAFETY: the token is that of the acquisition, or of the last wait.
        worker.release(0, || unsafe { self.lock.unlock(token) });
        if !inside {
            worker.set(Op::Notify, 0);
            tell();
            worker.set(Op::Outside, 0);
        }
    }

    /// One wait, by one of the ways.
    fn wait(&self, worker: &Worker, how: How, end: &End<'_>, token: L::Token) -> L::Token {
        worker.wait_outside(Op::Condition, 0, how, |limit| {
            let (deadline, cancel) = (limit.deadline.map(Into::into), limit.token.as_deref());
            // SAFETY: the token is that of the last acquisition of this lock.
            unsafe { end.mine.wait_limited(&self.lock, token, deadline, cancel) }
        })
    }
}

impl<L: RawLock + Debug> Subject for Queue<L> {
    fn step(&self, worker: &Worker, step: &Step) {
        let put = End {
            mine: &self.room,
            theirs: &self.items,
            count: &self.put,
            ready: &|| self.length() < ROOM,
        };
        let take = End {
            mine: &self.items,
            theirs: &self.room,
            count: &self.taken,
            ready: &|| self.length() > 0,
        };
        self.pass(worker, step, &put, step.bits);
        self.pass(worker, step, &take, step.bits >> 16);
    }

    fn visits(&self, _: usize) -> u64 {
        self.canary.visits()
    }

    fn state(&self, _: usize) -> String {
        format!(
            "{} items, locked: {}, contended: {}, {:?}, items: {:?}, room: {:?}",
            self.length(),
            self.lock.is_locked(),
            self.lock.is_contended(),
            self.lock,
            self.items,
            self.room
        )
    }

    fn at_rest(&self, written: &dyn Fn(usize) -> u64) -> Result<(), Violation> {
        counts(0, &self.canary, written(0))?;
        let waits = self.items.is_in_use() || self.room.is_in_use();
        if self.length() != 0 || waits || self.lock.is_locked() || self.lock.is_contended() {
            return Err(Violation::new(
                ViolationKind::State,
                format!("nobody uses the queue: {}", self.state(0)),
            ));
        }
        Ok(())
    }
}

impl<L: RawLock + Debug> Debug for Queue<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue")
            .field("lock", &self.lock)
            .finish_non_exhaustive()
    }
}
