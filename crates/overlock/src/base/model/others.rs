//! The condition variable, one-time initialisation, the barrier, the semaphore.

use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::AtomicU8;

use overlock_core::Deadline;
use overlock_core::raw::RawLock;
use overlock_core::sleep::once::OnceState;
use overlock_core::sleep::semaphore::MAX_PERMITS;

use super::monitor::{Limit, Monitor};
use crate::cancel::CancelToken;

/// In the place of [`overlock_core::sleep::Condvar`].
pub struct Condvar<P>(Monitor<Queue>, PhantomData<fn() -> P>);

/// The waiters that nobody has notified, the longest first.
#[derive(Clone)]
struct Queue {
    waiters: VecDeque<u64>,
    next: u64,
}

impl Queue {
    const fn new() -> Self {
        Queue {
            waiters: VecDeque::new(),
            next: 0,
        }
    }

    /// Joins, and returns the waiter's number.
    fn join(&mut self) -> u64 {
        self.next += 1;
        self.waiters.push_back(self.next);
        self.next
    }

    /// Leaves, and returns whether the waiter was there.
    fn leave(&mut self, waiter: u64) -> bool {
        let waiters = self.waiters.len();
        self.waiters.retain(|&other| other != waiter);
        self.waiters.len() != waiters
    }
}

impl<P> Condvar<P> {
    pub const fn new() -> Self {
        Condvar(Monitor::new(Queue::new()), PhantomData)
    }

    pub fn notify_one(&self) -> bool {
        self.0.change(|queue| queue.waiters.pop_front().is_some())
    }

    pub fn notify_all(&self) -> usize {
        self.0
            .change(|queue| std::mem::take(&mut queue.waiters).len())
    }

    /// # Safety
    ///
    /// As for [`RawLock::unlock`].
    pub unsafe fn wait_limited<L: RawLock>(
        &self,
        lock: &L,
        token: L::Token,
        deadline: Option<Deadline>,
        cancel: Option<&CancelToken>,
    ) -> (L::Token, bool) {
        let me = self.0.look(Queue::join);
        // SAFETY: the caller's promise.
        unsafe { lock.unlock(token) };
        let limit = Limit { deadline, cancel };
        let is_notified = |queue: &mut Queue| (!queue.waiters.contains(&me)).then_some(());
        let notified = self.0.until_limit(limit, is_notified).is_some()
            || !self.0.look(|queue| queue.leave(me));
        (lock.lock(), notified)
    }
}

impl<P> Default for Condvar<P> {
    fn default() -> Self {
        Self::new()
    }
}

/// In the place of [`overlock_core::sleep::Once`].
#[derive(Debug)]
pub struct Once<P>(Monitor<OnceState>, PhantomData<fn() -> P>);

/// The runner. Its drop ends the run with this state.
struct Runner<'a>(&'a Monitor<OnceState>, OnceState);

impl Drop for Runner<'_> {
    fn drop(&mut self) {
        self.0.change(|state| *state = self.1);
    }
}

impl<P> Once<P> {
    pub const fn new() -> Self {
        Once(Monitor::new(OnceState::New), PhantomData)
    }

    pub const fn with_state(state: AtomicU8) -> Self {
        let is_done = state.into_inner() == OnceState::Done as u8;
        let state = if is_done {
            OnceState::Done
        } else {
            OnceState::New
        };
        Once(Monitor::new(state), PhantomData)
    }

    #[track_caller]
    pub fn call_once(&self, work: impl FnOnce()) {
        self.run(false, |_| work());
    }

    pub fn call_once_force(&self, work: impl FnOnce(OnceState)) {
        self.run(true, work);
    }

    #[track_caller]
    fn run(&self, force: bool, work: impl FnOnce(OnceState)) {
        let found = self.0.until(|state| match *state {
            OnceState::InProgress => None,
            OnceState::Poisoned if !force => Some(OnceState::Poisoned),
            OnceState::Done => Some(OnceState::Done),
            found => {
                *state = OnceState::InProgress;
                Some(found)
            }
        });
        match found {
            OnceState::Done => return,
            OnceState::Poisoned if !force => poisoned(),
            _ => {}
        }
        let mut runner = Runner(&self.0, OnceState::Poisoned);
        work(found);
        runner.1 = OnceState::Done;
    }

    #[track_caller]
    pub fn wait(&self) {
        let end = |state: &mut OnceState| match *state {
            OnceState::Done | OnceState::Poisoned => Some(*state),
            _ => None,
        };
        if self.0.until(end) == OnceState::Poisoned {
            poisoned();
        }
    }

    pub fn wait_force(&self) {
        self.0.until(|state| state.is_completed().then_some(()));
    }

    pub fn is_done(&self) -> bool {
        self.state().is_completed()
    }

    pub fn state(&self) -> OnceState {
        self.0.look(|state| *state)
    }
}

#[track_caller]
fn poisoned() -> ! {
    panic!("an earlier call of this Once has panicked");
}

impl<P> Default for Once<P> {
    fn default() -> Self {
        Self::new()
    }
}

/// In the place of [`overlock_core::sleep::Barrier`].
pub struct Barrier<P> {
    threads: u32,
    /// Threads that have arrived, and rounds that are over.
    state: Monitor<(u32, u64)>,
    platform: PhantomData<fn() -> P>,
}

impl<P> Barrier<P> {
    pub const fn new(threads: u32) -> Self {
        Barrier {
            threads,
            state: Monitor::new((0, 0)),
            platform: PhantomData,
        }
    }

    pub fn wait(&self) -> bool {
        let (is_last, mine) = self.state.change(|(arrived, round)| {
            let mine = *round;
            *arrived += 1;
            let is_last = *arrived >= self.threads;
            if is_last {
                (*arrived, *round) = (0, mine + 1);
            }
            (is_last, mine)
        });
        if !is_last {
            self.state
                .until(|&mut (_, round)| (round > mine).then_some(()));
        }
        is_last
    }
}

/// In the place of [`overlock_core::sleep::Semaphore`].
pub struct Semaphore<P>(Monitor<Permits>, PhantomData<fn() -> P>);

/// The threads that wait are served in the order of their coming.
#[derive(Clone)]
struct Permits {
    free: u32,
    queue: Queue,
}

impl<P> Semaphore<P> {
    pub const fn new(permits: u32) -> Self {
        let permits = Permits {
            free: permits,
            queue: Queue::new(),
        };
        Semaphore(Monitor::new(permits), PhantomData)
    }

    fn take(permits: &mut Permits, n: u32) -> bool {
        let left = permits.free.checked_sub(n);
        permits.free = left.unwrap_or(permits.free);
        left.is_some()
    }

    pub fn acquire_many(&self, n: u32) {
        self.acquire_many_limited(n, None, None);
    }

    pub fn try_acquire_many(&self, n: u32) -> bool {
        self.0
            .look(|permits| permits.queue.waiters.is_empty() && Self::take(permits, n))
    }

    pub fn acquire_cancellable(&self, cancel: &CancelToken, deadline: Option<Deadline>) -> bool {
        self.acquire_many_limited(1, deadline, Some(cancel))
    }

    pub fn acquire_many_limited(
        &self,
        n: u32,
        deadline: Option<Deadline>,
        cancel: Option<&CancelToken>,
    ) -> bool {
        let mut me = None;
        if n == 0 {
            return true;
        }
        let step = |permits: &mut Permits| {
            let first = permits.queue.waiters.front().copied();
            if first == me && Self::take(permits, n) {
                return Some(());
            }
            me.get_or_insert_with(|| permits.queue.join());
            None
        };
        let limit = Limit { deadline, cancel };
        let acquired = self.0.until_limit(limit, step).is_some();
        if let Some(me) = me {
            // The next in the queue may be served now.
            self.0.change(|permits| permits.queue.leave(me));
        }
        acquired
    }

    pub fn release_many(&self, n: u32) {
        self.0
            .change(|permits| permits.free = permits.free.saturating_add(n).min(MAX_PERMITS));
    }

    pub fn available(&self) -> u32 {
        self.0.look(|permits| permits.free)
    }

    pub fn is_contended(&self) -> bool {
        self.0.has_sleepers()
    }
}

impl<P> fmt::Debug for Condvar<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
