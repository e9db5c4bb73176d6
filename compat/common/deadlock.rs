//! Detection of deadlocks: threads that wait for each other in a cycle.
//!
//! Each thread's acquisitions and waits are in one table, so a program that uses this is slow. A
//! report is final: its threads are not reported again. A wait with a limit is none, as it ends.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use backtrace::Backtrace;

use crate::locks::Limit;

/// The part of a lock that a thread holds, or waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    /// A reader that passes waiting writers. It holds what any reader does.
    Recursive,
    Upgradable,
    Write,
}

struct Thread {
    id: ThreadId,
    holds: Vec<(usize, Kind)>,
    waits: Option<Wait>,
    reported: bool,
}

struct Wait {
    key: usize,
    kind: Kind,
    place: Backtrace,
}

/// The threads that hold or wait for something.
static THREADS: Mutex<Vec<Thread>> = Mutex::new(Vec::new());

fn threads() -> MutexGuard<'static, Vec<Thread>> {
    THREADS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Changes the entry of the calling thread.
fn update(change: impl FnOnce(&mut Thread)) {
    let id = thread::current().id();
    let mut threads = threads();
    let place = threads.iter().position(|thread| thread.id == id);
    let place = place.unwrap_or_else(|| {
        threads.push(Thread {
            id,
            holds: Vec::new(),
            waits: None,
            reported: false,
        });
        threads.len() - 1
    });
    change(&mut threads[place]);
    if threads[place].holds.is_empty() && threads[place].waits.is_none() {
        threads.swap_remove(place);
    }
}

/// Acquires by `quick`, or else by `wait`, which the table shows.
pub(crate) fn acquire(
    key: usize,
    kind: Kind,
    limit: Limit,
    quick: impl FnOnce() -> bool,
    wait: impl FnOnce() -> bool,
) -> bool {
    struct Ends;

    impl Drop for Ends {
        fn drop(&mut self) {
            update(|thread| thread.waits = None);
        }
    }

    if quick() {
        return acquired(key, kind, true);
    }
    let success = if limit.is_none() {
        let place = Backtrace::new_unresolved();
        update(|thread| thread.waits = Some(Wait { key, kind, place }));
        let _ends = Ends;
        wait()
    } else {
        wait()
    };
    acquired(key, kind, success)
}

/// Notes an acquisition, if it succeeded.
pub(crate) fn acquired(key: usize, kind: Kind, success: bool) -> bool {
    if success {
        let kind = if kind == Kind::Recursive {
            Kind::Read
        } else {
            kind
        };
        update(|thread| thread.holds.push((key, kind)));
    }
    success
}

/// Notes a release. That of another thread's acquisition changes nothing.
pub(crate) fn released(key: usize, kind: Kind) {
    update(|thread| {
        let place = thread.holds.iter().rposition(|held| *held == (key, kind));
        if let Some(place) = place {
            thread.holds.remove(place);
        }
    });
}

pub(crate) fn changed(key: usize, from: Kind, to: Kind) {
    released(key, from);
    acquired(key, to, true);
}

/// Runs the function of a [`Once`](crate::Once), which its thread holds meanwhile.
pub(crate) fn run(key: usize, f: impl FnOnce()) {
    struct Released(usize);

    impl Drop for Released {
        fn drop(&mut self) {
            released(self.0, Kind::Write);
        }
    }

    update(|thread| {
        thread.waits = None;
        thread.holds.push((key, Kind::Write));
    });
    let _released = Released(key);
    f();
}

/// A thread of a deadlock.
#[derive(Debug)]
pub struct DeadlockedThread {
    thread_id: ThreadId,
    backtrace: Backtrace,
}

impl DeadlockedThread {
    /// Its name.
    pub fn thread_id(&self) -> ThreadId {
        self.thread_id
    }

    /// The place at which it waits.
    pub fn backtrace(&self) -> &Backtrace {
        &self.backtrace
    }
}

/// Returns the deadlocks that have not been returned before, each as its threads. Cycles with a
/// thread in common are one deadlock.
pub fn check_deadlock() -> Vec<Vec<DeadlockedThread>> {
    let mut threads = threads();
    let reaches = reach(&threads);
    let mut deadlocks = Vec::new();
    for first in 0..threads.len() {
        if threads[first].reported || !reaches[first][first] {
            continue;
        }
        let mut cycle = Vec::new();
        for other in 0..threads.len() {
            if reaches[first][other] && reaches[other][first] {
                let thread = &mut threads[other];
                thread.reported = true;
                let place = thread.waits.as_ref().map(|wait| wait.place.clone());
                let mut backtrace = place.unwrap_or_else(|| Vec::new().into());
                backtrace.resolve();
                cycle.push(DeadlockedThread {
                    thread_id: thread.id,
                    backtrace,
                });
            }
        }
        deadlocks.push(cycle);
    }
    deadlocks
}

/// For each thread, those that it waits for, directly or through others.
fn reach(threads: &[Thread]) -> Vec<Vec<bool>> {
    let row = |waiter: &Thread| {
        let waits_for = |holder: &Thread| {
            let wait = waiter.waits.as_ref()?;
            (!waiter.reported && blocks(holder, wait, waiter.id != holder.id)).then_some(())
        };
        threads
            .iter()
            .map(|holder| waits_for(holder).is_some())
            .collect()
    };
    let mut reaches: Vec<Vec<bool>> = threads.iter().map(row).collect();
    // Warshall's transitive closure.
    for through in 0..threads.len() {
        let onward = reaches[through].clone();
        for row in &mut reaches {
            if row[through] {
                for (reached, further) in row.iter_mut().zip(&onward) {
                    *reached |= further;
                }
            }
        }
    }
    reaches
}

/// Whether a wait lasts for as long as a thread holds what it holds. A writer that waits keeps
/// others out already.
fn blocks(holder: &Thread, wait: &Wait, is_other: bool) -> bool {
    let held = holder.holds.iter().any(|&(key, kind)| {
        key == wait.key
            && match wait.kind {
                Kind::Write => true,
                Kind::Upgradable => kind != Kind::Read,
                Kind::Read | Kind::Recursive => kind == Kind::Write,
            }
    });
    let pending = || {
        is_other
            && matches!(wait.kind, Kind::Read | Kind::Upgradable)
            && (holder.waits.as_ref())
                .is_some_and(|other| other.key == wait.key && other.kind == Kind::Write)
    };
    held || pending()
}
