//! The work of holders while others waited, from the times at which threads had no CPU.
//!
//! A thread that wakes a waiter by a futex call has released the lock. So the calls for one futex
//! are a list of releases. Between two of them the thread of the later one held the lock, from the
//! moment on at which it did not wait for it itself.

use std::collections::HashMap;

use super::super::collect::Throttled;
use super::records::{Leave, Off, Wait};

/// A holder's time, by its causes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spent {
    pub ran_ns: u64,
    pub preempted_ns: u64,
    /// The same while the quota was used up.
    pub throttled_ns: u64,
    pub blocked: Vec<(By, u64)>,
    pub handover_ns: u64,
    pub unknown_ns: u64,
}

/// The cause for which a holder was blocked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum By {
    Stopped,
    /// By number; negative for a page fault.
    Syscall(i32),
    /// A wait for the futex at this address.
    Futex(u64),
}

impl Spent {
    fn add(&mut self, other: &Self) {
        self.ran_ns += other.ran_ns;
        self.preempted_ns += other.preempted_ns;
        self.throttled_ns += other.throttled_ns;
        self.handover_ns += other.handover_ns;
        self.unknown_ns += other.unknown_ns;
        for &(by, ns) in &other.blocked {
            self.block(by, ns);
        }
    }

    fn block(&mut self, by: By, ns: u64) {
        if ns == 0 {
            return;
        }
        match self.blocked.iter_mut().find(|(known, _)| *known == by) {
            Some((_, sum)) => *sum += ns,
            None => self.blocked.push((by, ns)),
        }
    }
}

/// One wait, explained.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Explained {
    /// The thread that held the lock when the wait began.
    pub holder: Option<u32>,
    /// How often other threads got the lock meanwhile.
    pub passed: u64,
    /// Up to the wake-up.
    pub spent: Spent,
    /// From the wake-up on.
    pub no_cpu_ns: u64,
    /// The index of the holder's wait that overlaps this one the longest.
    pub behind: Option<usize>,
}

/// Times of one thread without a CPU, in their order, and which wait each is.
type Offs = Vec<(Off, Option<usize>)>;

/// The lock's release by a thread, and what that thread did since the release before.
#[derive(Clone, Debug)]
struct Release {
    ns: u64,
    tid: u32,
    tenure: Option<Spent>,
}

/// All that was seen.
#[derive(Debug, Default)]
pub struct Timeline {
    threads: HashMap<u32, Offs>,
    waits: Vec<Wait>,
    releases: HashMap<u64, Vec<Release>>,
    throttled: Throttled,
    until_ns: u64,
}

impl Timeline {
    /// Puts it together. Times without an end last until `until_ns`. A thread of these `tids` that
    /// never left its CPU ran all the time.
    pub fn new(tids: &[u32], offs: Vec<Off>, mut waits: Vec<Wait>, until_ns: u64) -> Self {
        waits.sort_by_key(|wait| wait.off.out_ns);
        let all = tids.iter().map(|&tid| (tid, Offs::new()));
        let mut threads: HashMap<u32, Offs> = all.collect();
        let mut releases: HashMap<u64, Vec<Release>> = HashMap::new();
        for off in offs {
            threads.entry(off.tid).or_default().push((off, None));
        }
        for (at, wait) in waits.iter().enumerate() {
            let thread = threads.entry(wait.off.tid).or_default();
            thread.push((wait.off, Some(at)));
            if wait.waker != 0 {
                releases.entry(wait.address).or_default().push(Release {
                    ns: wait.off.wake_ns,
                    tid: wait.waker,
                    tenure: None,
                });
            }
        }
        for offs in threads.values_mut() {
            offs.sort_by_key(|(off, _)| off.out_ns);
        }
        for all in releases.values_mut() {
            all.sort_by_key(|release| release.ns);
        }
        Self {
            threads,
            waits,
            releases,
            throttled: Throttled::default(),
            until_ns,
        }
    }

    /// With the times in which a quota was used up.
    pub fn throttled(self, throttled: Throttled) -> Self {
        Self { throttled, ..self }
    }

    /// All waits, in the order of their beginnings.
    pub fn waits(&self) -> &[Wait] {
        &self.waits
    }

    /// When a time without a CPU ended.
    pub fn end(&self, off: &Off) -> u64 {
        match off.in_ns {
            0 => self.until_ns.max(off.out_ns),
            ns => ns,
        }
    }

    /// Explains a wait. `owner` is the thread that the lock's memory named as it began.
    pub fn explain(&mut self, at: usize, owner: Option<u32>) -> Explained {
        let wait = self.waits[at];
        let begin = wait.off.out_ns;
        let end = self.end(&wait.off);
        let woken = match wait.off.wake_ns {
            0 => end,
            ns => ns.clamp(begin, end),
        };
        let mut explained = Explained {
            no_cpu_ns: end - woken,
            ..Explained::default()
        };
        let mut releases = self.releases.remove(&wait.address).unwrap_or_default();
        let first = releases.partition_point(|release| release.ns <= begin);
        let last = releases.partition_point(|release| release.ns <= woken);
        let mut from = begin;
        for (index, release) in releases[..last].iter_mut().enumerate().skip(first) {
            let spent = || self.spent(release.tid, wait.address, from, release.ns);
            // The holder had the first part before the wait began.
            if index == first {
                explained.spent.add(&spent());
                explained.holder = Some(owner.unwrap_or(release.tid));
            } else {
                let tenure = release.tenure.take().unwrap_or_else(spent);
                explained.spent.add(release.tenure.insert(tenure));
            }
            from = release.ns;
        }
        explained.passed = (last - first).saturating_sub(1) as u64;
        if from < woken {
            // Nobody was seen to release it: the thread that the memory names, or that releases it
            // next.
            let next = releases.get(last).map(|release| release.tid);
            let holder = owner.filter(|_| last == first).or(next);
            match holder.filter(|&tid| tid != wait.off.tid) {
                Some(tid) => {
                    let part = self.spent(tid, wait.address, from, woken);
                    explained.spent.add(&part);
                    explained.holder = explained.holder.or(Some(tid));
                }
                None => explained.spent.unknown_ns += woken - from,
            }
        }
        self.releases.insert(wait.address, releases);
        explained.behind = explained
            .holder
            .and_then(|holder| self.longest_wait(holder, wait.address, begin, woken));
        explained
    }

    /// The time of a thread that had the lock, or was about to get it.
    fn spent(&self, tid: u32, address: u64, from: u64, until: u64) -> Spent {
        let mut spent = Spent::default();
        let Some(offs) = self.threads.get(&tid) else {
            spent.unknown_ns = until - from;
            return spent;
        };
        let mut rest = until - from;
        for (off, wait) in self.overlapping(offs, from, until) {
            let clip = |ns: u64| ns.clamp(from, until);
            let (out, end) = (clip(off.out_ns), clip(self.end(off)));
            let woken = match off.wake_ns {
                0 => end,
                ns => clip(ns).clamp(out, end),
            };
            rest -= end - out;
            let futex = wait.map(|at| self.waits[at].address);
            match (off.leave, futex) {
                // It did not have it yet.
                (_, Some(futex)) if futex == address => spent.handover_ns += end - out,
                (Leave::Preempted, _) => self.wants_cpu(&mut spent, out, end),
                (leave, futex) => {
                    let by = match (leave, futex) {
                        (Leave::Stopped, _) => By::Stopped,
                        (_, Some(futex)) => By::Futex(futex),
                        _ => By::Syscall(off.syscall),
                    };
                    spent.block(by, woken - out);
                    self.wants_cpu(&mut spent, woken, end);
                }
            }
        }
        spent.ran_ns = rest;
        spent
    }

    /// Adds a time in which a holder could run and had no CPU.
    fn wants_cpu(&self, spent: &mut Spent, from: u64, until: u64) {
        let throttled = self.throttled.within(from, until);
        spent.throttled_ns += throttled;
        spent.preempted_ns += until - from - throttled;
    }

    fn overlapping<'a>(
        &'a self,
        offs: &'a Offs,
        from: u64,
        until: u64,
    ) -> impl Iterator<Item = &'a (Off, Option<usize>)> {
        let first = offs.partition_point(|(off, _)| self.end(off) <= from);
        offs[first..]
            .iter()
            .take_while(move |(off, _)| off.out_ns < until)
    }

    fn longest_wait(&self, tid: u32, address: u64, from: u64, until: u64) -> Option<usize> {
        let offs = self.threads.get(&tid)?;
        let waits = self.overlapping(offs, from, until).filter_map(|(off, at)| {
            let overlap = self.end(off).min(until) - off.out_ns.max(from);
            let at = (*at)?;
            (self.waits[at].address != address).then_some((overlap, at))
        });
        waits.max().map(|(_, at)| at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: u64 = 0x1000;

    fn off(tid: u32, times: [u64; 3], leave: Leave, syscall: i32) -> Off {
        let [out_ns, wake_ns, in_ns] = times;
        Off {
            tid,
            out_ns,
            wake_ns,
            in_ns,
            syscall,
            leave,
        }
    }

    fn wait(tid: u32, address: u64, times: [u64; 3], waker: u32) -> Wait {
        Wait {
            off: off(tid, times, Leave::Blocked, 202),
            address,
            waker,
            ..Wait::default()
        }
    }

    #[test]
    fn each_part_of_a_wait_has_its_cause() {
        let offs = vec![
            off(2, [10, 30, 35], Leave::Blocked, 1),
            off(2, [40, 0, 47], Leave::Preempted, -1),
            off(2, [50, 58, 58], Leave::Stopped, -1),
        ];
        let mut throttled = Throttled::default();
        throttled.add(0, 7);
        throttled.add(33, 43);
        let waits = vec![wait(1, LOCK, [0, 60, 63], 2)];
        let mut timeline = Timeline::new(&[1, 2], offs, waits, 100).throttled(throttled);
        let explained = timeline.explain(0, None);
        let spent = Spent {
            ran_ns: 10 + 5 + 3 + 2,
            preempted_ns: 3 + 4,
            throttled_ns: 2 + 3,
            blocked: vec![(By::Syscall(1), 20), (By::Stopped, 8)],
            ..Spent::default()
        };
        assert_eq!(explained.spent, spent);
        assert_eq!((explained.no_cpu_ns, explained.holder), (3, Some(2)));
        assert_eq!(explained.passed, 0);
    }

    #[test]
    fn between_two_releases_the_later_thread_had_the_lock_once_it_was_awake() {
        // 2 had it until 10, then 3, which got a CPU at 14, until 30; then 1.
        let waits = vec![wait(3, LOCK, [0, 10, 14], 2), wait(1, LOCK, [5, 30, 31], 3)];
        let mut timeline = Timeline::new(&[], vec![], waits, 100);
        let explained = timeline.explain(1, None);
        // 2 is a thread of another process.
        assert_eq!(explained.spent.unknown_ns, 5);
        assert_eq!(explained.spent.handover_ns, 4);
        assert_eq!(explained.spent.ran_ns, 16);
        assert_eq!((explained.passed, explained.holder), (1, Some(2)));
    }

    #[test]
    fn a_wait_without_a_release_goes_to_the_thread_that_memory_names() {
        let waits = vec![
            wait(1, LOCK, [0, 0, 0], 0),
            wait(2, 0x2000, [10, 0, 0], 0),
            wait(3, 0x3000, [20, 0, 0], 0),
        ];
        let mut timeline = Timeline::new(&[], vec![], waits, 100);
        let explained = timeline.explain(0, Some(2));
        assert_eq!(explained.spent.blocked, [(By::Futex(0x2000), 90)]);
        assert_eq!((explained.spent.ran_ns, explained.behind), (10, Some(1)));
        let unknown = timeline.explain(2, None);
        assert_eq!((unknown.spent.unknown_ns, unknown.holder), (80, None));
    }
}
