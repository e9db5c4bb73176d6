//! Threads that wait for each other now: real deadlocks.
//!
//! A thread publishes its wait before it checks whether that closes a cycle. All publish in one
//! total order, so the last thread of a cycle sees all the others. A deadlock is found as it
//! happens, by the thread that completes it, and without a clock.
//!
//! There are no false alarms. A lock shown as held is held (T1 of [`thread`](super::thread)). A
//! waiting thread's locks do not change (unless another thread releases them, which is a mistake of
//! its own). The numbers of the waits were the same before and after, so at one moment all of them
//! waited.

use std::ptr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, SeqCst};

use overlock_core::Platform;

use super::class::ClassId;
use super::report::{self, Finding};
use super::site::{How, Site};
use super::thread::{self, Entered, Held, THREADS, Thread};
use overlock_linux::Linux;

/// The largest number of threads in a cycle.
const LONGEST: usize = 32;

/// A cycle of threads: each waits for the next, the last for the first.
pub(super) struct Circle {
    /// The thread, and the number of its wait.
    threads: [(u16, u32); LONGEST],
    length: usize,
}

/// A thread of a cycle.
pub(super) struct Blocked {
    pub(super) thread: &'static Thread,
    pub(super) wants: Held,
    pub(super) nanos: u64,
    /// The number of the thread that it waits for.
    pub(super) holder: u32,
}

impl Thread {
    /// Returns the lock that it waits for, and the number of the wait.
    fn waits_for(&self) -> Option<(Held, u32)> {
        let number = self.wait.number.load(Acquire); // pairs with `begin`: the rest is that wait's, or a later one's
        // SeqCst: pairs with `begin` in the other threads of a cycle: one of them sees all.
        match self.wait.lock.load(SeqCst) {
            0 => None,
            lock => Some((
                Held {
                    lock,
                    class: ClassId::from_bits(self.wait.class.load(Relaxed)),
                    how: How::from_bits(self.wait.how.load(Relaxed)),
                    site: Site::from_bits(self.wait.site.load(Relaxed)),
                },
                number,
            )),
        }
    }

    /// Whether `self` has to act before a thread gets its lock that waits as `wanted` says since
    /// `since`.
    fn blocks(&self, wanted: &Held, since: u64) -> bool {
        if self.excludes(wanted) {
            return true;
        }
        // Readers wait behind a writer that arrived before.
        (wanted.how.is_shared() || wanted.how.is_upgradable())
            && !wanted.how.is_recursive()
            && self.waits_for().is_some_and(|(other, _)| {
                other.lock == wanted.lock
                    && !(other.how.is_shared() || other.how.is_upgradable())
                    && self.wait.since.load(Relaxed) < since
            })
    }

    /// Whether `self` holds the lock, and keeps a thread out that wants it so.
    fn excludes(&self, wanted: &Held) -> bool {
        self.held_by_other()
            .any(|held| held.is_same(wanted) && held.how.excludes(wanted.how))
    }

    /// Whether it waits for what it holds itself, and not to become the writer.
    fn blocks_itself(&self) -> bool {
        self.waits_for()
            .is_some_and(|(wanted, _)| !wanted.how.is_reentrant() && self.excludes(&wanted))
    }
}

pub(super) fn begin(me: &Entered, wanted: &Held) {
    let wait = &me.wait;
    if wait.lock.load(Relaxed) != 0 {
        return; // a handler's wait within another
    }
    wait.since.store(Linux::now().as_nanos(), Relaxed);
    wait.class.store(wanted.class.to_bits(), Relaxed);
    wait.how.store(wanted.how.to_bits(), Relaxed);
    wait.site.store(wanted.site.to_bits(), Relaxed);
    // AcqRel: pairs with `waits_for`.
    wait.number.fetch_add(1, AcqRel);
    // SeqCst: pairs with `waits_for`.
    wait.lock.store(wanted.lock, SeqCst);
    // A thread without locks blocks nobody.
    if me.depth() == 0 {
        return;
    }
    if let Some(circle) = search(me) {
        report::make(me, &Finding::Deadlock(&circle));
    }
}

pub(super) fn end(me: &Entered, lock: usize) {
    if me.wait.lock.load(Relaxed) == lock {
        me.wait.lock.store(0, Relaxed);
        me.wait.number.fetch_add(1, Relaxed);
    }
}

/// Searches for cycles through any thread. Returns whether there was one.
pub(super) fn check(me: &Entered) -> bool {
    let mut found = false;
    for thread in thread::all() {
        if thread.waits_for().is_none() {
            continue;
        }
        if let Some(circle) = search(thread) {
            report::make(me, &Finding::Deadlock(&circle));
            found = true;
        }
    }
    found
}

/// The threads that wait for each other, each deadlock once.
pub(super) fn untold() -> Vec<Vec<u32>> {
    let all = thread::all();
    // Relaxed, as below: the mark is all that those share who ask at a time.
    let is_told =
        |&(index, number): &(u16, u32)| all[usize::from(index)].wait.told.load(Relaxed) == number;
    let mut deadlocks: Vec<Vec<(u16, u32)>> = Vec::new();
    for (index, thread) in all.iter().enumerate() {
        let Some((_, number)) = thread.waits_for() else {
            continue;
        };
        if is_told(&(index as u16, number)) {
            continue;
        }
        let Some(circle) = itself(all, index, number).or_else(|| search(thread)) else {
            continue;
        };
        let threads = circle.threads();
        // Cycles with a thread in common are one deadlock.
        let known =
            (deadlocks.iter_mut()).find(|known| threads.iter().any(|it| known.contains(it)));
        match known {
            Some(known) => known.extend(threads.iter().filter(|it| !is_told(it))),
            None if threads.iter().any(is_told) => {}
            None => deadlocks.push(threads.to_vec()),
        }
        for &(index, number) in threads {
            all[usize::from(index)].wait.told.store(number, Relaxed);
        }
    }
    let ids = |threads: Vec<(u16, u32)>| {
        let ids = (threads.iter()).map(|(index, _)| all[usize::from(*index)].id());
        ids.collect()
    };
    deadlocks.into_iter().map(ids).collect()
}

/// The cycle of a thread that waits for itself.
fn itself(all: &[Thread], index: usize, number: u32) -> Option<Circle> {
    let mut circle = Circle {
        threads: [(0, 0); LONGEST],
        length: 1,
    };
    circle.threads[0] = (index as u16, number);
    (all[index].blocks_itself() && circle.is_still_so(all)).then_some(circle)
}

/// Searches for a cycle of waits through `first`, depth first.
fn search(first: &Thread) -> Option<Circle> {
    let all = thread::all();
    let mut seen = [0u64; THREADS.div_ceil(64)];
    let mut circle = Circle {
        threads: [(0, 0); LONGEST],
        length: 0,
    };
    // The next candidate among those that block each thread.
    let mut next = [0u16; LONGEST];
    let start = all.iter().position(|thread| ptr::eq(thread, first))?;
    circle.threads[0] = (start as u16, first.waits_for()?.1);
    circle.length = 1;
    while circle.length > 0 {
        let last = circle.length - 1;
        let waiting = &all[usize::from(circle.threads[last].0)];
        let since = waiting.wait.since.load(Relaxed);
        let wanted = waiting.waits_for().map(|(wanted, _)| wanted);
        let from = usize::from(next[last]);
        let blocker = wanted.and_then(|wanted| {
            (from..all.len())
                .find(|index| !ptr::eq(&all[*index], waiting) && all[*index].blocks(&wanted, since))
        });
        let Some(blocker) = blocker else {
            circle.length = last;
            continue;
        };
        next[last] = blocker as u16 + 1;
        if blocker == start {
            return circle.is_still_so(all).then_some(circle);
        }
        let bit = 1 << (blocker % 64);
        if seen[blocker / 64] & bit != 0 || circle.length == LONGEST {
            continue;
        }
        seen[blocker / 64] |= bit;
        if let Some((_, number)) = all[blocker].waits_for() {
            circle.threads[circle.length] = (blocker as u16, number);
            next[circle.length] = 0;
            circle.length += 1;
        }
    }
    None
}

impl Circle {
    fn threads(&self) -> &[(u16, u32)] {
        &self.threads[..self.length]
    }

    fn is_still_so(&self, all: &[Thread]) -> bool {
        self.threads().iter().all(|(index, number)| {
            let wait = &all[usize::from(*index)].wait;
            wait.number.load(SeqCst) == *number && wait.lock.load(SeqCst) != 0
        })
    }

    pub(super) fn waiters(&self) -> impl Iterator<Item = Blocked> {
        let all = thread::all();
        let now = Linux::now().as_nanos();
        let thread = move |place: usize| &all[usize::from(self.threads[place % self.length].0)];
        (0..self.length).filter_map(move |place| {
            let waiting = thread(place);
            Some(Blocked {
                thread: waiting,
                wants: waiting.waits_for()?.0,
                nanos: now.saturating_sub(waiting.wait.since.load(Relaxed)),
                holder: thread(place + 1).id(),
            })
        })
    }

    /// The same for the same threads and waits, whichever thread finds it.
    pub(super) fn about(&self) -> (usize, usize) {
        let all = self.threads().iter();
        all.fold((0, 0), |(a, b), (thread, number)| {
            (
                a ^ (usize::from(*thread) + 1) << 8,
                b.wrapping_add(*number as usize),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread that waited when it was read, and waits again: in between it may have released the
    /// lock that blocked another.
    #[test]
    fn a_circle_counts_only_if_all_its_threads_waited_all_the_time() {
        let lock = 0x7000;
        let wanted = Held {
            lock,
            class: ClassId::NONE,
            how: How::EXCLUSIVE,
            site: Site::NONE,
        };
        let me = thread::enter().unwrap();
        begin(&me, &wanted);
        let all = thread::all();
        let index = all.iter().position(|thread| ptr::eq(thread, &*me)).unwrap();
        let number = me.waits_for().unwrap().1;
        let mut circle = Circle {
            threads: [(0, 0); LONGEST],
            length: 1,
        };
        circle.threads[0] = (index as u16, number);
        assert!(circle.is_still_so(all));
        end(&me, lock);
        assert!(!circle.is_still_so(all));
        begin(&me, &wanted);
        assert!(!circle.is_still_so(all));
        end(&me, lock);
    }
}
