//! Something that is done once: the first to come does it, the others sleep until it is done. Where it panics, the next one
//! tries.
//!
//! # Layout
//!
//! 8 bytes; `state` is written under the guard of `list`.
//!
//! | field | who writes it |
//! |---|---|
//! | `state: u8` | 0 new: nobody is at it; 1 running: written by the runner; 2 done: by the runner, for good |
//! | `list` | those that find it running; the runner |
//!
//! # States
//!
//! ```text
//!          comes first                  returns
//!   new ----------------> running ------------------> done      all sleepers are woken
//!    ^                       |
//!    '-----------------------'
//!            panics                                             the first sleeper is woken, and tries
//! ```
//!
//! # Invariants
//!
//! - O1: there is at most one runner.
//! - O2: the list is not empty only while there is a runner, or while the first sleeper was woken and is on its way to the guard,
//!   where it becomes the runner or finds another one. Either wakes the rest, or the next, in the end.
//!
//! # Orderings
//!
//! OR, the release store of "done", pairs with OA, the acquire look of whoever need not wait. Sleepers have it by WS
//! of `sleep/wait_list.rs` and the guard.
//!
//! # Why no wake-up is lost
//!
//! "Running" is seen, and the list joined, under one guard; the runner changes the state, and empties the list, under another
//! that comes later.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::batch::Batch;
use super::wait_list::{Limit, WaitList, Waiter};
use crate::links::nap;
use crate::platform::{Atomic, ConstPlatform, Platform, Zero};
use crate::stat::{self, Event};

/// Does something once: see the [module's page](self). 8 bytes.
#[derive(Debug)]
pub struct Once<P: Platform> {
    list: WaitList<P>,
    state: P::U8,
}

const NEW: u8 = 0;
const RUNNING: u8 = 1;
const DONE: u8 = 2;

/// What sleepers are told.
const WOKEN: u32 = 1;
/// The one that runs. Dropped, it says how that ended.
struct Runner<'a, P: Platform> {
    once: &'a Once<P>,
    end: u8,
}

impl<P: ConstPlatform> Once<P> {
    /// Nothing was done yet.
    pub const fn new() -> Self {
        Once {
            list: WaitList::INIT,
            state: Zero::ZERO,
        }
    }
}

impl<P: ConstPlatform> Default for Once<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Platform> Once<P> {
    /// As `new`, for platforms whose atomics cannot be built in a `const`.
    pub fn create() -> Self {
        Once {
            list: WaitList::new(),
            state: P::U8::new(NEW),
        }
    }

    /// Calls `work`, unless that was done; waits where somebody is at it. What it did is visible afterwards. Where it
    /// panics so does this, and it counts as not done. `work` must not call this again: it would wait for itself.
    #[inline]
    pub fn call_once(&self, work: impl FnOnce()) {
        if !self.is_done()
            && let Some(mut runner) = self.become_runner()
        {
            work();
            runner.end = DONE;
        }
    }

    /// Whether it was done; if so, what it did is visible.
    #[inline]
    pub fn is_done(&self) -> bool {
        // OA: acquire, pairs with OR.
        self.state.load(Acquire) == DONE
    }

    /// Waits where somebody is at it; `None` once it is done.
    #[cold]
    fn become_runner(&self) -> Option<Runner<'_, P>> {
        loop {
            let waiters = self.list.lock();
            match self.state.load(Relaxed) {
                NEW => {
                    // new -> running
                    self.state.store(RUNNING, Relaxed);
                    return Some(Runner {
                        once: self,
                        end: NEW,
                    });
                }
                RUNNING => {}
                _ => return None,
            }
            if let Some(waiter) = Waiter::<P>::new() {
                waiter.prepare();
                waiters.push_back(waiter.id());
                drop(waiters);
                waiter.sleep(&Limit::NONE);
            } else {
                drop(waiters);
                stat::count::<P>(Event::LockNoNode);
                nap::<P>();
            }
        }
    }
}

impl<P: Platform> Drop for Runner<'_, P> {
    fn drop(&mut self) {
        let woken = Batch::<P>::new();
        let waiters = self.once.list.lock();
        // running -> done, running -> new. OR: release, pairs with OA.
        self.once.state.store(self.end, Release);
        if self.end == DONE {
            woken.take_all(&waiters);
        } else if let Some(first) = waiters.first() {
            waiters.unlink(first);
            woken.push(first);
        }
        drop(waiters);
        woken.wake(WOKEN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toy::stage::{Actor, actor};
    use crate::toy::{Point, SLOTS, Toy, as_thread, at, left};
    use std::boxed::Box;
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

    fn leak() -> &'static Once<Toy> {
        Box::leak(Box::new(Once::new()))
    }

    /// Stops inside the work, for the director to look around.
    fn work() {
        Toy::light_barrier();
    }

    fn caller(number: usize, once: &'static Once<Toy>) -> Actor {
        actor(number, move || once.call_once(work))
    }

    /// A caller that must find it done.
    fn idler(number: usize, once: &'static Once<Toy>) -> Actor {
        actor(number, move || {
            once.call_once(|| unreachable!("done twice"))
        })
    }

    #[test]
    fn those_that_come_while_it_runs_sleep_until_it_is_done() {
        let once = leak();
        let runner = caller(1, once);
        let [two, three] = [2, 3].map(|number| idler(number, once));
        runner.to(Point::Light);
        two.sleep();
        three.sleep();
        assert!(!once.is_done());
        runner.end();
        assert!(once.is_done());
        two.end();
        three.end();
        idler(4, once).end();
    }

    /// O2. Fails ("lost wake-up") where a runner that panics wakes nobody (the `push(first)`).
    #[test]
    fn where_it_panics_the_next_one_tries() {
        let once = leak();
        let first = actor(1, move || {
            let result = catch_unwind(AssertUnwindSafe(|| {
                once.call_once(|| {
                    work();
                    resume_unwind(Box::new("in vain"));
                });
            }));
            assert!(result.is_err());
        });
        let [second, third] = [caller(2, once), idler(3, once)];
        first.to(Point::Light);
        second.sleep();
        third.sleep();
        first.end();
        second.to(Point::Light);
        assert!(!once.is_done());
        second.end();
        third.end();
    }

    /// The first sleeper is woken to try, and a newcomer is quicker. Fails where `become_runner` does not look again.
    #[test]
    fn a_newcomer_may_be_quicker_than_who_was_woken() {
        let once = leak();
        once.state.store(RUNNING, Relaxed);
        let sleeper = idler(1, once);
        sleeper.sleep();
        drop(Runner { once, end: NEW });
        let newcomer = caller(2, once);
        newcomer.to(Point::Light);
        sleeper.sleep();
        newcomer.end();
        sleeper.end();
    }

    #[test]
    fn a_thread_without_a_node_looks_now_and_then() {
        let once = leak();
        once.state.store(RUNNING, Relaxed);
        at(Point::Halt, move || drop(Runner { once, end: DONE }));
        as_thread(SLOTS, || once.call_once(|| unreachable!("done twice")));
        assert_eq!(left(), 0);
    }

    #[test]
    fn it_has_this_size() {
        assert_eq!(size_of::<Once<Toy>>(), 8);
    }
}
