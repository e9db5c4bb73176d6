//! Waits of a program that runs: sums of all, and some by themselves.

use std::collections::HashMap;

use overlock_profile::{Blocked, Distribution, Parts};

use super::ring::Ended;
use crate::stat::{divided, without_callers};

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

impl Total {
    pub fn add(&mut self, other: Total) {
        self.waits += other.waits;
        self.wait_ns += other.wait_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
        self.gave_up += other.gave_up;
        self.passed += other.passed;
        self.parts.add(&other.parts);
    }

    /// Divides it in proportion to numbers of waits, and to their times.
    pub fn divided(&self, counts: &[u64], times: &[u64]) -> Vec<Total> {
        let by_count = |whole| divided(whole, counts);
        let by_time = |whole| divided(whole, times);
        let (waits, wait_ns) = (by_count(self.waits), by_time(self.wait_ns));
        let (gave_up, passed) = (by_count(self.gave_up), by_count(self.passed));
        let Parts {
            ran_ns,
            preempted_ns,
            throttled_ns,
            ref blocked,
            handover_ns,
            no_cpu_ns,
            unknown_ns,
        } = self.parts;
        let [ran, preempted, throttled, handover, no_cpu, unknown] = [
            ran_ns,
            preempted_ns,
            throttled_ns,
            handover_ns,
            no_cpu_ns,
            unknown_ns,
        ]
        .map(by_time);
        let blocked: Vec<_> = (blocked.iter())
            .map(|blocked| (&blocked.by, by_time(blocked.ns)))
            .collect();
        let longest = times.iter().max();
        let share = |index: usize| Total {
            waits: waits[index],
            wait_ns: wait_ns[index],
            // Whose it is nobody knows: the likeliest's.
            max_ns: match longest == Some(&times[index]) {
                true => self.max_ns,
                false => 0,
            },
            gave_up: gave_up[index],
            passed: passed[index],
            parts: Parts {
                ran_ns: ran[index],
                preempted_ns: preempted[index],
                throttled_ns: throttled[index],
                blocked: (blocked.iter())
                    .map(|(by, shares)| Blocked {
                        by: by.to_string(),
                        ns: shares[index],
                    })
                    .collect(),
                handover_ns: handover[index],
                no_cpu_ns: no_cpu[index],
                unknown_ns: unknown[index],
            },
        };
        (0..counts.len()).map(share).collect()
    }
}

/// A wait with its parts.
#[derive(Debug)]
pub struct Single {
    pub process: usize,
    pub ended: Ended,
    pub parts: Parts,
}

impl Single {
    /// That of the sum which it is in.
    pub fn key(&self) -> Key {
        Key {
            process: self.process,
            entry: self.ended.entry,
            held_at: self.ended.held_at,
        }
    }
}

/// All of it.
#[derive(Debug, Default)]
pub struct Kept {
    pub totals: HashMap<Key, Total>,
    /// The lengths of waits by process and entry.
    pub lengths: HashMap<(usize, u32), Distribution>,
    /// The longest that one thread held the lock while another waited, by process and entry.
    pub held: HashMap<(usize, u32), u64>,
    /// The time in waits for locks by process and thread.
    pub threads: HashMap<(usize, u32), u64>,
    pub singles: Singles,
    /// Waits for events, where they are asked for. They are apart, so that they crowd no others
    /// out.
    pub events: Option<Singles>,
}

/// Single waits, of which there may be too many.
#[derive(Debug, Default)]
pub struct Singles {
    pub kept: Vec<Single>,
    /// Waits that are in the sums alone.
    pub lost: u64,
}

impl Kept {
    /// With single waits for events, or without.
    pub fn new(has_events: bool) -> Self {
        Self {
            events: has_events.then(Singles::default),
            ..Self::default()
        }
    }

    /// All single waits.
    pub fn all(&self) -> impl Iterator<Item = &Single> {
        let events = self.events.iter().flat_map(|events| &events.kept);
        self.singles.kept.iter().chain(events)
    }

    /// Adds a wait.
    pub fn add(&mut self, process: usize, ended: Ended, parts: Parts) {
        let key = Key {
            process,
            entry: ended.entry,
            held_at: ended.held_at,
        };
        let total = self.totals.entry(key).or_default();
        if let Some((waits, wait_ns)) = ended.summed {
            total.waits += waits;
            total.wait_ns += wait_ns;
            total.max_ns = total.max_ns.max(ended.ns());
            total.passed += u64::from(ended.passed);
            total.parts.unknown_ns += wait_ns;
            let lengths = self.lengths.entry((process, ended.entry)).or_default();
            lengths.record_many(wait_ns.checked_div(waits).unwrap_or(0), waits);
            *self.threads.entry((process, ended.tid)).or_default() += wait_ns;
            self.singles.lost += waits;
            return;
        }
        total.waits += 1;
        total.wait_ns += ended.ns();
        total.max_ns = total.max_ns.max(ended.ns());
        total.gave_up += u64::from(ended.gave_up);
        total.passed += u64::from(ended.passed);
        total.parts.add(&parts);
        let lengths = self.lengths.entry((process, ended.entry)).or_default();
        lengths.record(ended.ns());
        if let Some(ns) = ended.held_ns() {
            let held = self.held.entry((process, ended.entry)).or_default();
            *held = ns.max(*held);
        }
        let singles = match ended.is_event() {
            // Threads that wait for work would drown the others.
            true => self.events.as_mut(),
            false => {
                *self.threads.entry((process, ended.tid)).or_default() += ended.ns();
                Some(&mut self.singles)
            }
        };
        let single = Single {
            process,
            ended,
            parts,
        };
        if let Some(singles) = singles {
            singles.add(single);
        }
    }

    /// Gives the waits for holders whose callers are not known to those at the same call site.
    pub fn attribute(&mut self) {
        let mut totals: Vec<(Key, Total)> = self.totals.drain().collect();
        let holder = |key: &Key| ((key.process, key.entry), key.held_at.0, key.held_at.1);
        let holders: Vec<_> = totals.iter().map(|(key, _)| holder(key)).collect();
        without_callers(&holders, |unknown, known| {
            let whole = std::mem::take(&mut totals[unknown].1);
            let of = |what: fn(&Total) -> u64| -> Vec<u64> {
                known.iter().map(|&index| what(&totals[index].1)).collect()
            };
            let (counts, times) = (of(|total| total.waits), of(|total| total.wait_ns));
            let shares = whole.divided(&counts, &times);
            for (&index, share) in known.iter().zip(shares) {
                totals[index].1.add(share);
            }
        });
        totals.retain(|(_, total)| total.waits > 0);
        self.totals = totals.into_iter().collect();
    }

    /// The end: not too many single waits.
    pub fn thin(&mut self) {
        self.singles.thin();
        self.events.iter_mut().for_each(Singles::thin);
    }
}

impl Singles {
    fn add(&mut self, single: Single) {
        self.kept.push(single);
        if self.kept.len() >= 2 * MOST {
            self.thin();
        }
    }

    /// Keeps the longest single waits, and a sample of the others, in the order of their ends.
    fn thin(&mut self) {
        let many = self.kept.len();
        if many <= MOST {
            return;
        }
        let mut lengths: Vec<u64> = self.kept.iter().map(|one| one.ended.ns()).collect();
        let (_, &mut least, _) = lengths.select_nth_unstable(many - MOST / 2);
        let others = self.kept.iter().filter(|one| one.ended.ns() <= least);
        let stride = others.count().div_ceil(MOST / 2).max(1);
        let mut number = 0;
        self.kept.retain(|one| {
            if one.ended.ns() > least {
                return true;
            }
            number += 1;
            number % stride == 0
        });
        self.lost += (many - self.kept.len()) as u64;
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
            has_spun: false,
            object: 0x1000,
            began_ns,
            ended_ns,
            released_ns: None,
            ran_ns: None,
            summed: None,
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
        let singles = &kept.singles;
        assert!(singles.kept.len() <= MOST + 1);
        let long = |one: &&Single| one.ended.ns() == 1_000_000;
        assert_eq!(singles.kept.iter().filter(long).count() as u64, all / 1000);
        assert_eq!(singles.lost + singles.kept.len() as u64, all);
        let total = kept.totals.values().next().unwrap();
        assert_eq!(total.waits, all);
        assert_eq!(kept.lengths[&(0, 3)].count(), all);
        let ends: Vec<u64> = singles.kept.iter().map(|one| one.ended.began_ns).collect();
        assert!(ends.is_sorted());
    }

    #[test]
    fn short_waits_are_in_the_sums() {
        let mut kept = Kept::default();
        let summed = Ended {
            summed: Some((10, 5000)),
            ..wait(0, 900)
        };
        kept.add(0, summed, Parts::default());
        let total = kept.totals.values().next().unwrap();
        assert_eq!((total.waits, total.wait_ns, total.max_ns), (10, 5000, 900));
        assert_eq!(total.parts.unknown_ns, 5000);
        assert_eq!(kept.lengths[&(0, 3)].count(), 10);
        assert_eq!(kept.threads[&(0, 1)], 5000);
        assert_eq!((kept.all().count(), kept.singles.lost), (0, 10));
    }

    #[test]
    fn waits_for_a_holder_without_callers_are_those_of_the_others_at_its_site() {
        let mut kept = Kept::default();
        let mut add = |stack, ns| {
            let ended = Ended {
                held_at: (7, stack),
                ..wait(0, ns)
            };
            let parts = Parts {
                ran_ns: ns / 2,
                blocked: vec![Blocked {
                    by: "write".to_owned(),
                    ns: ns / 2,
                }],
                ..Parts::default()
            };
            kept.add(0, ended, parts);
        };
        add(1, 300);
        add(2, 100);
        add(0, 800);
        kept.attribute();
        let mut totals: Vec<_> = kept.totals.iter().collect();
        totals.sort_by_key(|(key, _)| key.held_at);
        let of = |(key, total): &(&Key, &Total)| {
            let parts = &total.parts;
            (
                key.held_at.1,
                total.wait_ns,
                parts.ran_ns,
                parts.blocked[0].ns,
                total.max_ns,
            )
        };
        let found: Vec<_> = totals.iter().map(of).collect();
        assert_eq!(found, [(1, 900, 450, 450, 800), (2, 300, 150, 150, 100)]);
    }

    #[test]
    fn waits_for_events_are_single_only_where_that_is_asked_for() {
        for has_events in [false, true] {
            let mut kept = Kept::new(has_events);
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
            assert_eq!((kept.singles.kept.len(), kept.singles.lost), (1, 0));
            assert_eq!(kept.all().count(), 1 + usize::from(has_events));
            assert_eq!(kept.threads[&(0, 1)], 10);
        }
    }
}
