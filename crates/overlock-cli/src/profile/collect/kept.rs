//! Waits of a program that runs: sums of all, and some by themselves.

use std::collections::HashMap;

use overlock_profile::{Distribution, Parts};

use super::ring::Ended;

/// The number of single waits, at most.
const MOST: usize = 100_000;

/// Waits of one entry of a process's table, for one holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// The index of the process.
    pub process: usize,
    pub entry: u32,
    /// As in [`Ended`].
    pub held_at: (u32, u32),
}

/// Their sum.
#[derive(Debug, Default)]
pub struct Total {
    pub waits: u64,
    pub wait_ns: u64,
    pub max_ns: u64,
    pub gave_up: u64,
    pub passed: u64,
    pub parts: Parts,
}

/// A wait with its parts.
#[derive(Debug)]
pub struct Single {
    pub process: usize,
    pub ended: Ended,
    pub parts: Parts,
}

/// All of it.
#[derive(Debug, Default)]
pub struct Kept {
    pub totals: HashMap<Key, Total>,
    /// The lengths of waits by process and entry.
    pub lengths: HashMap<(usize, u32), Distribution>,
    /// The time in waits for locks by process and thread.
    pub threads: HashMap<(usize, u32), u64>,
    pub singles: Vec<Single>,
    /// Waits that are in the sums alone.
    pub lost: u64,
}

impl Kept {
    /// Adds a wait.
    pub fn add(&mut self, process: usize, ended: Ended, parts: Parts) {
        let key = Key {
            process,
            entry: ended.entry,
            held_at: ended.held_at,
        };
        let total = self.totals.entry(key).or_default();
        total.waits += 1;
        total.wait_ns += ended.ns();
        total.max_ns = total.max_ns.max(ended.ns());
        total.gave_up += u64::from(ended.gave_up);
        total.passed += u64::from(ended.passed);
        total.parts.add(&parts);
        let lengths = self.lengths.entry((process, ended.entry)).or_default();
        lengths.record(ended.ns());
        // Threads that wait for work would drown the others.
        if ended.is_event() {
            return;
        }
        *self.threads.entry((process, ended.tid)).or_default() += ended.ns();
        self.singles.push(Single {
            process,
            ended,
            parts,
        });
        if self.singles.len() >= 2 * MOST {
            self.thin();
        }
    }

    /// Keeps the longest single waits, and a sample of the others, in the order of their ends.
    pub fn thin(&mut self) {
        let many = self.singles.len();
        if many <= MOST {
            return;
        }
        let mut lengths: Vec<u64> = self.singles.iter().map(|one| one.ended.ns()).collect();
        let (_, &mut least, _) = lengths.select_nth_unstable(many - MOST / 2);
        let others = self.singles.iter().filter(|one| one.ended.ns() <= least);
        let stride = others.count().div_ceil(MOST / 2).max(1);
        let mut number = 0;
        self.singles.retain(|one| {
            if one.ended.ns() > least {
                return true;
            }
            number += 1;
            number % stride == 0
        });
        self.lost += (many - self.singles.len()) as u64;
    }
}

#[cfg(test)]
pub mod tests {
    use overlock_shared::ObjectKind;

    use super::*;

    /// A wait of the thread 1 for a mutex that the thread 2 holds.
    pub fn wait(began_ns: u64, ended_ns: u64) -> Ended {
        Ended {
            entry: 3,
            kind: ObjectKind::Mutex,
            tid: 1,
            holder: 2,
            held_at: (0, 0),
            passed: 0,
            gave_up: false,
            is_lock: false,
            object: 0x1000,
            began_ns,
            ended_ns,
            released_ns: None,
            ran_ns: None,
        }
    }

    #[test]
    fn the_longest_waits_stay_and_all_are_in_the_sums() {
        let mut kept = Kept::default();
        let all = 5 * MOST as u64;
        for number in 0..all {
            let ns = if number % 1000 == 0 {
                1_000_000
            } else {
                number % 100
            };
            kept.add(0, wait(number, number + ns), Parts::default());
        }
        kept.thin();
        assert!(kept.singles.len() <= MOST + 1);
        let long = |one: &&Single| one.ended.ns() == 1_000_000;
        assert_eq!(kept.singles.iter().filter(long).count() as u64, all / 1000);
        assert_eq!(kept.lost + kept.singles.len() as u64, all);
        let total = kept.totals.values().next().unwrap();
        assert_eq!(total.waits, all);
        assert_eq!(kept.lengths[&(0, 3)].count(), all);
        let ends: Vec<u64> = kept.singles.iter().map(|one| one.ended.began_ns).collect();
        assert!(ends.is_sorted());
    }

    #[test]
    fn waits_for_events_are_in_sums_only() {
        let mut kept = Kept::default();
        let event = Ended {
            kind: ObjectKind::Cond,
            ..wait(0, 10)
        };
        let as_lock = Ended {
            is_lock: true,
            ..event.clone()
        };
        kept.add(0, event, Parts::default());
        kept.add(0, as_lock, Parts::default());
        assert_eq!((kept.singles.len(), kept.lost), (1, 0));
        assert_eq!(kept.threads[&(0, 1)], 10);
    }
}
