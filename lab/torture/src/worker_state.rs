//! The state of a worker, for others to see.
//!
//! All of it is Relaxed: it orders nothing, and the watchdog, which reads it, gives threads some
//! seconds.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use overlock::CancelToken;

use crate::plan::{How, Side};
use crate::settings::LOCKS;

macro_rules! ops {
    ($($op:ident $wait:literal $text:literal,)*) => {
        /// An operation of a thread.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Op { $($op,)* }

        impl Op {
            const ALL: &'static [Op] = &[$(Op::$op,)*];

            /// It as a part of a sentence.
            pub fn describe(self) -> &'static str {
                match self { $(Op::$op => $text,)* }
            }

            /// Whether the thread waits for others in it.
            pub fn is_wait(self) -> bool {
                match self { $(Op::$op => $wait,)* }
            }
        }
    };
}

ops! {
    Gone false "has left",
    Starting false "starts",
    Outside false "is outside",
    Resting false "rests",
    Inside false "is inside",
    Releasing false "releases",
    Lock true "waits in lock",
    TryLock false "is in try_lock",
    LockUntil true "waits in lock_until",
    LockCancellable true "waits in lock_cancellable",
    Read true "waits in read",
    TryRead false "is in try_read",
    ReadUntil true "waits in read_until",
    ReadCancellable true "waits, cancellable, to read",
    Write true "waits in write",
    TryWrite false "is in try_write",
    WriteUntil true "waits in write_until",
    WriteCancellable true "waits, cancellable, to write",
    Upgradable true "waits in upgradable",
    TryUpgradable false "is in try_upgradable",
    UpgradableUntil true "waits in upgradable_until",
    Upgrade true "waits in upgrade",
    TryUpgrade false "is in try_upgrade",
    UpgradeUntil true "waits in upgrade_until",
    Bump true "waits in bump",
    Call true "is in call_once",
    Wait true "waits for another thread's call_once",
    Arrive true "waits at the barrier",
    Condition true "waits for the condition",
    Notify false "notifies",
}

impl Op {
    /// How `side` asks for a lock that has sides. One that only excludes has writers only, see
    /// [`exclusive`](Self::exclusive).
    pub fn of(side: Side, how: How) -> Self {
        match (side, how) {
            (Side::Read, How::Wait) => Op::Read,
            (Side::Read, How::Try) => Op::TryRead,
            (Side::Read, How::Timed(_)) => Op::ReadUntil,
            (Side::Read, How::Cancel) => Op::ReadCancellable,
            (Side::Write, How::Wait) => Op::Write,
            (Side::Write, How::Try) => Op::TryWrite,
            (Side::Write, How::Timed(_)) => Op::WriteUntil,
            (Side::Write, How::Cancel) => Op::WriteCancellable,
            (Side::Upgradable, How::Try) => Op::TryUpgradable,
            (Side::Upgradable, How::Timed(_)) => Op::UpgradableUntil,
            (Side::Upgradable, _) => Op::Upgradable,
        }
    }

    /// How one asks for a lock that only excludes.
    pub fn exclusive(how: How) -> Self {
        match how {
            How::Wait => Op::Lock,
            How::Try => Op::TryLock,
            How::Timed(_) => Op::LockUntil,
            How::Cancel => Op::LockCancellable,
        }
    }
}

/// The operation of a thread at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Doing {
    pub op: Op,
    /// The number of the lock that it is on.
    pub lock: usize,
    /// The locks that the thread holds alone, a bit each.
    pub writes: u8,
    /// The locks that it holds otherwise.
    pub reads: u8,
    /// How many operations came before.
    pub sequence: u64,
}

impl Doing {
    const SEQUENCE: u32 = 24;

    fn pack(self) -> u64 {
        let holds = u64::from(self.writes) << 12 | u64::from(self.reads) << 18;
        self.op as u64 | (self.lock as u64) << 8 | holds | self.sequence << Self::SEQUENCE
    }

    fn unpack(bits: u64) -> Self {
        let field = |shift: u32, width: u32| bits >> shift & ((1 << width) - 1);
        Self {
            op: Op::ALL[field(0, 8) as usize],
            lock: field(8, 4) as usize,
            writes: field(12, 6) as u8,
            reads: field(18, 6) as u8,
            sequence: bits >> Self::SEQUENCE,
        }
    }

    /// Whether the thread holds lock `lock`, alone or with others.
    pub fn holds(self, lock: usize) -> bool {
        (self.writes | self.reads) >> lock & 1 != 0
    }
}

/// A number that one thread adds to and others read.
#[derive(Debug, Default)]
pub struct Tally(AtomicU64);

impl Tally {
    /// Adds 1. Only for the thread, or the handler, whose tally it is.
    pub fn add(&self) {
        self.0.store(self.get() + 1, Relaxed);
    }

    /// Makes it `value` where that is more; whether it was. Only as [`add`](Self::add).
    pub fn raise(&self, value: u64) -> bool {
        let more = value > self.get();
        if more {
            self.0.store(value, Relaxed);
        }
        more
    }

    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// The counts of a worker, over all its threads.
#[derive(Debug, Default)]
pub struct Tallies {
    /// Acquisitions to be alone.
    pub writes: Tally,
    pub reads: Tally,
    /// Attempts that did not wait, in vain.
    pub refused: Tally,
    /// Waits that ended at their deadline.
    pub timed_out: Tally,
    /// Waits that others ended.
    pub cancelled: Tally,
    /// The longest wait for an acquisition, in nanoseconds.
    pub longest: Tally,
    /// The operation of that wait: an [`Op`] as a number.
    pub longest_op: AtomicU32,
    /// How many others got the lock during a wait, at most.
    pub bypassed: Tally,
    /// How late a wait with a deadline ended, at most.
    pub late: Tally,
    /// Steps with a real-time priority.
    pub real_time: Tally,
    /// Steps with a better nice value.
    pub nicer: Tally,
    /// Steps that were to have one of the two, and may not.
    pub unboosted: Tally,
    /// Writes to each canary.
    pub written: [Tally; LOCKS],
}

/// The counts of signal handlers on the threads of a worker.
#[derive(Debug, Default)]
pub struct Handled {
    pub signals: Tally,
    /// Locks that were taken.
    pub taken: Tally,
    /// Writes to each canary.
    pub written: [Tally; LOCKS],
    /// The lock under which one found somebody else, + 1.
    pub torn: Tally,
}

/// The state of a worker: of its present thread, and of those before it.
#[derive(Debug)]
#[repr(align(128))]
pub struct WorkerState {
    doing: AtomicU64,
    since: AtomicU64,
    thread: AtomicU32,
    /// How many threads there have been before.
    pub generation: AtomicU64,
    pub tallies: Tallies,
    pub handled: Handled,
    token: Mutex<Option<Arc<CancelToken>>>,
}

impl Default for WorkerState {
    fn default() -> Self {
        Self {
            doing: AtomicU64::new(Op::Starting as u64),
            since: AtomicU64::new(0),
            thread: AtomicU32::new(0),
            generation: AtomicU64::new(0),
            tallies: Tallies::default(),
            handled: Handled::default(),
            token: Mutex::new(None),
        }
    }
}

impl WorkerState {
    /// Returns the present operation of its thread.
    pub fn doing(&self) -> Doing {
        Doing::unpack(self.doing.load(Relaxed))
    }

    /// Its thread begins something else, `now`.
    pub fn set(&self, doing: Doing, now: u64) {
        self.since.store(now, Relaxed);
        self.doing.store(doing.pack(), Relaxed);
    }

    /// When it began its present operation, on the clock of the locks.
    pub fn since(&self) -> u64 {
        self.since.load(Relaxed)
    }

    /// The thread's id; 0 before there is one, and after it has left.
    pub fn thread(&self) -> u32 {
        self.thread.load(Relaxed)
    }

    /// A thread with this id takes the state.
    pub fn set_thread(&self, id: u32) {
        self.thread.store(id, Relaxed);
    }

    /// Others can send the thread away with this token from now on, or no longer.
    pub fn set_token(&self, token: Option<Arc<CancelToken>>) {
        *self.token.lock().unwrap_or_else(PoisonError::into_inner) = token;
    }

    /// Sends the thread away, if it waits so that it can be.
    pub fn cancel(&self) {
        let token = self.token.lock().unwrap_or_else(PoisonError::into_inner);
        let token = token.clone();
        if let Some(token) = token {
            token.cancel();
        }
    }
}

/// The longest wait of all, and in what.
pub fn longest(workers: &[WorkerState]) -> (u64, Op) {
    let slowest = workers
        .iter()
        .max_by_key(|state| state.tallies.longest.get());
    slowest.map_or((0, Op::Gone), |state| {
        let op = state.tallies.longest_op.load(Relaxed) as usize;
        (state.tallies.longest.get(), Op::ALL[op])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_survives_packing() {
        for (index, &op) in Op::ALL.iter().enumerate() {
            let doing = Doing {
                op,
                lock: index % LOCKS,
                writes: 0b10_0001,
                reads: 0b01_1000,
                sequence: 0xff_0123_4567 + index as u64,
            };
            assert_eq!(Doing::unpack(doing.pack()), doing);
        }
    }

    #[test]
    fn holding_is_holding_in_any_way() {
        let doing = Doing {
            op: Op::Inside,
            lock: 0,
            writes: 1,
            reads: 0b100,
            sequence: 0,
        };
        assert!(doing.holds(0) && !doing.holds(1) && doing.holds(2));
    }

    #[test]
    fn the_longest_wait_is_named() {
        let workers: [WorkerState; 3] = std::array::from_fn(|_| WorkerState::default());
        workers[1].tallies.longest.raise(7);
        workers[1]
            .tallies
            .longest_op
            .store(Op::Bump as u32, Relaxed);
        assert_eq!(longest(&workers), (7, Op::Bump));
    }

    #[test]
    fn a_token_is_cancelled_while_it_is_there() {
        let state = WorkerState::default();
        state.cancel();
        let token = Arc::new(CancelToken::new());
        state.set_token(Some(Arc::clone(&token)));
        state.cancel();
        assert!(token.is_cancelled());
    }
}
