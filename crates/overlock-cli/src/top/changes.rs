//! What has changed between two looks at a table.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::time::Instant;

use super::Sort;
use crate::stat::{Process, Row};

/// What is told apart: the lock, what it is, and the call site.
type Key = (String, &'static str, String);

/// Counts of a row at a moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub acquisitions: u64,
    pub waits: u64,
    pub wait_ns: u64,
}

impl Counts {
    fn of(row: &Row) -> Self {
        Self {
            acquisitions: row.acquisitions,
            waits: row.contentions,
            wait_ns: row.wait.total_ns,
        }
    }

    fn since(self, before: Self) -> Self {
        Self {
            acquisitions: self.acquisitions.saturating_sub(before.acquisitions),
            waits: self.waits.saturating_sub(before.waits),
            wait_ns: self.wait_ns.saturating_sub(before.wait_ns),
        }
    }
}

/// A row, with what happened in the last interval, by the second, and since the last reset.
#[derive(Debug)]
pub struct Change {
    pub row: Row,
    pub last: Counts,
    pub sum: Counts,
}

/// All rows.
#[derive(Debug)]
pub struct Changes {
    pub rows: Vec<Change>,
    pub pid: u32,
    pub program: String,
    pub sort: Sort,
    before: HashMap<Key, Counts>,
    reset: HashMap<Key, Counts>,
    at: Instant,
}

fn key(row: &Row) -> Key {
    let init = row.init.as_ref().map_or("", |init| &init.address);
    let site = format!("{} {init}", row.site.address);
    (row.object.clone(), row.kind.0.name(), site)
}

impl Changes {
    pub fn new(sort: Sort) -> Self {
        Self {
            rows: Vec::new(),
            pid: 0,
            program: String::new(),
            sort,
            before: HashMap::new(),
            reset: HashMap::new(),
            at: Instant::now(),
        }
    }

    /// The table was read again.
    pub fn update(&mut self, process: Process) {
        let first = self.program.is_empty();
        let seconds = self.at.elapsed().as_secs_f64();
        self.at = Instant::now();
        self.pid = process.pid;
        self.program = process.program;
        let mut rows = Vec::with_capacity(process.locks.len());
        for row in process.locks {
            let (key, now) = (key(&row), Counts::of(&row));
            // What came before the first look has no time that it took.
            let before = self.before.insert(key.clone(), now);
            let before = before.unwrap_or(if first { now } else { Counts::default() });
            let last = now.since(before);
            let by_second = |count: u64| (count as f64 / seconds) as u64;
            rows.push(Change {
                last: Counts {
                    acquisitions: by_second(last.acquisitions),
                    waits: by_second(last.waits),
                    wait_ns: by_second(last.wait_ns),
                },
                sum: now.since(self.reset.get(&key).copied().unwrap_or_default()),
                row,
            });
        }
        self.rows = rows;
        self.order();
    }

    pub fn sort_by_next(&mut self) {
        self.sort = match self.sort {
            Sort::Wait => Sort::Waits,
            Sort::Waits => Sort::Acquired,
            Sort::Acquired => Sort::Total,
            Sort::Total => Sort::Wait,
        };
        self.order();
    }

    /// Sums begin anew.
    pub fn reset(&mut self) {
        self.reset = self.before.clone();
        for change in &mut self.rows {
            change.sum = Counts::default();
        }
    }

    fn order(&mut self) {
        let sort = self.sort;
        self.rows.sort_by_key(|change| {
            let Change { last, sum, .. } = change;
            let first = match sort {
                Sort::Wait => last.wait_ns,
                Sort::Waits => last.waits,
                Sort::Acquired => last.acquisitions,
                Sort::Total => sum.wait_ns,
            };
            Reverse((first, sum.wait_ns, sum.acquisitions))
        });
    }
}
