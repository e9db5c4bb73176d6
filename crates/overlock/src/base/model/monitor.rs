//! A state that threads change, and wait for, one at a time.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

#[cfg(all(loom, feature = "loom"))]
use loom as checker;
use overlock_core::Deadline;
#[cfg(not(all(loom, feature = "loom")))]
use shuttle as checker;

use crate::cancel::CancelToken;

/// When a wait ends without what it waits for.
#[derive(Clone, Copy)]
pub(super) struct Limit<'a> {
    pub(super) deadline: Option<Deadline>,
    pub(super) cancel: Option<&'a CancelToken>,
}

impl Limit<'_> {
    pub(super) const NONE: Self = Limit {
        deadline: None,
        cancel: None,
    };
}

/// The checker's part: the order of the changes, and the threads that wait for one.
struct Order {
    turn: checker::sync::Mutex<()>,
    changed: checker::sync::Condvar,
}

struct Inner<S> {
    initial: S,
    /// The state in the execution to which `order` belongs; none before its first use.
    state: Option<S>,
    sleepers: usize,
    /// The thread that runs the checker, its execution, and what belongs to that.
    order: Option<(ThreadId, u64, Arc<Order>)>,
}

/// The state. No switch of threads happens while `inner` is locked.
pub(super) struct Monitor<S> {
    inner: Mutex<Inner<S>>,
}

/// The number of the checker's execution, of all in this process.
fn execution() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    static EXECUTIONS: AtomicU64 = AtomicU64::new(0);

    #[cfg(all(loom, feature = "loom"))]
    {
        loom::lazy_static! {
            static ref NUMBER: u64 = EXECUTIONS.fetch_add(1, Relaxed);
        }
        *NUMBER
    }
    #[cfg(not(all(loom, feature = "loom")))]
    {
        std::thread_local! {
            static NUMBER: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
        }
        static FIRST: shuttle::sync::Once = shuttle::sync::Once::new();
        FIRST.call_once(|| NUMBER.set(EXECUTIONS.fetch_add(1, Relaxed)));
        NUMBER.get()
    }
}

checker::thread_local!(static OWN: u8 = 0);

/// Calls `f` with a variable of the calling thread's own.
pub fn with_own<T>(f: impl FnOnce(&u8) -> T) -> T {
    OWN.with(f)
}

/// A wait ends by a panic of the checker's, which has found a deadlock. It runs no other thread any
/// more, and a token here is nothing, so the guard may be dropped.
pub fn unwound() {}

impl<S: Clone> Inner<S> {
    fn state(&mut self) -> &mut S {
        self.state.get_or_insert_with(|| self.initial.clone())
    }
}

impl<S: Clone> Monitor<S> {
    pub(super) const fn new(initial: S) -> Self {
        Monitor {
            inner: Mutex::new(Inner {
                initial,
                state: None,
                sleepers: 0,
                order: None,
            }),
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner<S>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the checker's part, for this execution.
    fn order(&self) -> Arc<Order> {
        let (here, execution) = (thread::current().id(), execution());
        let mut inner = self.inner();
        if let Some((home, of, order)) = &inner.order {
            // Both might hold the lock at a time.
            assert!(
                *home == here,
                "a lock that lives longer than a model belongs to the models of one test"
            );
            if *of == execution {
                return Arc::clone(order);
            }
        }
        let order = Arc::new(Order {
            turn: checker::sync::Mutex::new(()),
            changed: checker::sync::Condvar::new(),
        });
        (inner.state, inner.sleepers) = (None, 0);
        inner.order = Some((here, execution, Arc::clone(&order)));
        order
    }

    /// Waits until `step` has done something, and returns what.
    pub(super) fn until<T>(&self, mut step: impl FnMut(&mut S) -> Option<T>) -> T {
        let order = self.order();
        let mut turn = order.turn.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let mut inner = self.inner();
            if let Some(done) = step(inner.state()) {
                return done;
            }
            inner.sleepers += 1;
            drop(inner);
            let woken = order.changed.wait(turn);
            turn = woken.unwrap_or_else(PoisonError::into_inner);
            self.inner().sleepers -= 1;
        }
    }

    /// As [`until`](Self::until), within the limit.
    pub(super) fn until_limit<T>(
        &self,
        limit: Limit<'_>,
        mut step: impl FnMut(&mut S) -> Option<T>,
    ) -> Option<T> {
        if limit.deadline.is_none() && limit.cancel.is_none() {
            return Some(self.until(step));
        }
        let mut turns = 0;
        loop {
            if let Some(done) = self.look(&mut step) {
                return Some(done);
            }
            let is_over = limit.deadline.is_some() && turns > 0;
            if is_over || limit.cancel.is_some_and(|cancel| cancel.is_cancelled()) {
                return None;
            }
            turns += 1;
            checker::thread::yield_now();
        }
    }

    /// Does something that no thread waits for.
    pub(super) fn look<T>(&self, step: impl FnOnce(&mut S) -> T) -> T {
        // A failed test unwinds, and takes no turns any more.
        if thread::panicking() {
            return step(self.inner().state());
        }
        let order = self.order();
        let _turn = order.turn.lock().unwrap_or_else(PoisonError::into_inner);
        step(self.inner().state())
    }

    /// Does something that threads may wait for.
    pub(super) fn change<T>(&self, step: impl FnOnce(&mut S) -> T) -> T {
        if thread::panicking() {
            return step(self.inner().state());
        }
        let order = self.order();
        let _turn = order.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let done = step(self.inner().state());
        if self.inner().sleepers > 0 {
            order.changed.notify_all();
        }
        done
    }

    /// Whether threads wait.
    pub(super) fn has_sleepers(&self) -> bool {
        self.inner().sleepers > 0
    }
}

impl<S> fmt::Debug for Monitor<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("Monitor { .. }")
    }
}
