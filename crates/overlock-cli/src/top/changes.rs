//! Changes between two readings of a table.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::time::Instant;

use super::Sort;
use crate::stat::{Event, Process, Row};

/// The identity of a row: the lock's name, its kind, and the call site.
type Key = (String, &'static str, String);

/// A lock or an event at a call site, and what it has counted so far.
#[derive(Debug)]
pub struct Line {
    key: Key,
    pub is_event: bool,
    pub name: String,
    pub site: String,
    pub counts: Counts,
    pub wait_avg_ns: f64,
    pub wait_max_ns: u64,
    pub hold_avg_ns: f64,
}

/// Counts of a line at a moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub acquisitions: u64,
    pub waits: u64,
    pub wait_ns: u64,
}

impl Line {
    fn of_lock(row: Row) -> Self {
        Self {
            key: (row.lock.clone(), row.kind.name(), row.site.to_string()),
            is_event: false,
            name: row.lock,
            site: row.site.to_string(),
            counts: Counts {
                acquisitions: row.acquisitions.unwrap_or_default(),
                waits: row.contentions,
                wait_ns: row.wait.total_ns,
            },
            wait_avg_ns: row.wait.avg_ns.unwrap_or_default(),
            wait_max_ns: row.wait.max_ns,
            hold_avg_ns: row.hold.avg_ns.unwrap_or_default(),
        }
    }

    fn of_event(event: Event) -> Self {
        let site = event
            .site
            .as_ref()
            .map_or_else(String::new, ToString::to_string);
        Self {
            key: (event.name.clone(), event.kind.name(), site),
            is_event: true,
            name: event.name,
            site: event.site.map(|site| site.to_string()).unwrap_or_default(),
            counts: Counts {
                acquisitions: 0,
                waits: event.waits,
                wait_ns: event.wait.total_ns,
            },
            wait_avg_ns: event.wait.avg_ns.unwrap_or_default(),
            wait_max_ns: event.wait.max_ns,
            hold_avg_ns: 0.0,
        }
    }
}

impl Counts {
    fn since(self, before: Self) -> Self {
        Self {
            acquisitions: self.acquisitions.saturating_sub(before.acquisitions),
            waits: self.waits.saturating_sub(before.waits),
            wait_ns: self.wait_ns.saturating_sub(before.wait_ns),
        }
    }
}

/// A line, with what happened in the last interval, by the second, and since the last reset.
#[derive(Debug)]
pub struct Change {
    pub line: Line,
    pub last: Counts,
    pub sum: Counts,
}

/// All lines.
#[derive(Debug)]
pub struct Changes {
    rows: Vec<Change>,
    pub shows_events: bool,
    pub pid: u32,
    pub program: String,
    pub sort: Sort,
    before: HashMap<Key, Counts>,
    reset: HashMap<Key, Counts>,
    at: Instant,
}

impl Changes {
    pub fn new(sort: Sort) -> Self {
        Self {
            rows: Vec::new(),
            shows_events: false,
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
        let locks = process.locks.into_iter().map(Line::of_lock);
        let lines = locks.chain(process.events.into_iter().map(Line::of_event));
        let mut rows = Vec::new();
        for line in lines {
            let (key, now) = (line.key.clone(), line.counts);
            // Waits before the first reading have no duration.
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
                line,
            });
        }
        self.rows = rows;
        self.order();
    }

    /// Those that are to be seen: locks, or events.
    pub fn shown(&self) -> impl Iterator<Item = &Change> {
        let shown = |change: &&Change| change.line.is_event == self.shows_events;
        self.rows.iter().filter(shown)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stat::tests::process;

    /// Fails where events are among the locks: those that wait for them wait for longest.
    #[test]
    fn events_are_seen_when_asked_for() {
        let mut changes = Changes::new(Sort::Total);
        changes.update(process());
        let names = |changes: &Changes| -> Vec<String> {
            let lines = changes.shown().map(|change| &change.line);
            lines.map(|line| line.name.clone()).collect()
        };
        assert_eq!(names(&changes), ["hot", "cold"]);
        changes.shows_events = true;
        assert_eq!(names(&changes), ["ready"]);
    }

    #[test]
    fn sums_begin_anew_and_rates_are_of_what_came_since() {
        let mut changes = Changes::new(Sort::Wait);
        changes.update(process());
        let first = |changes: &Changes| {
            let change = changes.shown().next().unwrap();
            (change.last.waits, change.sum.waits)
        };
        assert_eq!(first(&changes), (0, 10));
        changes.reset();
        let mut later = process();
        later.locks[0].contentions += 5;
        later.locks[0].wait.total_ns += 1;
        changes.update(later);
        let (last, sum) = first(&changes);
        assert!(last > 5, "{last} in a second that has hardly begun");
        assert_eq!(sum, 5);
    }
}
