//! Counts of events in our locks, by the names of the kernel's QUEUED_LOCK_STAT.

use std::fmt::Write;

use overlock_core::stat::{self, BUCKETS, Event, Histogram, Latency};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use overlock_report::numbers::{count, time};

/// Counters and latencies over any number of rounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counters {
    events: Vec<(Event, u64)>,
    latencies: Vec<(Latency, Histogram)>,
}

impl Default for Counters {
    /// Nothing has happened.
    fn default() -> Self {
        let none = Histogram {
            buckets: [0; BUCKETS],
            total_ns: 0,
        };
        Self {
            events: Event::ALL.iter().map(|&event| (event, 0)).collect(),
            latencies: Latency::ALL
                .iter()
                .map(|&latency| (latency, none))
                .collect(),
        }
    }
}

impl Counters {
    /// Counts from 0, everywhere in the program.
    pub fn start() {
        stat::reset();
        stat::enable(true);
    }

    /// Adds what was counted since [`start`](Self::start), and counts no more.
    pub fn stop(&mut self) {
        stat::enable(false);
        let counted = stat::snapshot();
        for (event, times) in &mut self.events {
            *times += counted.count(*event);
        }
        for (latency, sum) in &mut self.latencies {
            let more = counted.histogram(*latency);
            sum.total_ns = sum.total_ns.wrapping_add(more.total_ns);
            for (bucket, more) in sum.buckets.iter_mut().zip(more.buckets) {
                *bucket += more;
            }
        }
    }

    /// Acquisitions in the queue, and past it. Those that found the lock free are in neither.
    pub fn modes(&self) -> (u64, u64) {
        (self.of(Event::LockSlowpath), self.of(Event::PvLockStealing))
    }

    fn of(&self, event: Event) -> u64 {
        self.events
            .iter()
            .find(|(known, _)| *known == event)
            .map_or(0, |(_, times)| *times)
    }

    /// The events that happened at least once.
    fn events(&self) -> impl Iterator<Item = &(Event, u64)> {
        self.events.iter().filter(|(_, times)| *times > 0)
    }

    fn latencies(&self) -> impl Iterator<Item = &(Latency, Histogram)> {
        self.latencies
            .iter()
            .filter(|(_, histogram)| histogram.count() > 0)
    }

    /// For people: the split between the modes, then all counters that are not 0.
    pub fn describe(&self) -> String {
        let mut text = String::new();
        let (queued, unfair) = self.modes();
        let number = |times: u64| count(times as f64);
        // Strictly fair locks show a queue and no unfair mode; ticket locks have other counters.
        let slow = queued + unfair;
        if slow > 0 {
            for (mode, times) in [("queued mode", queued), ("unfair mode", unfair)] {
                let share = times as f64 * 100.0 / slow as f64;
                let _ = writeln!(text, "  {mode:<22} {:>15}  {share:5.1} %", number(times));
            }
        }
        for (event, times) in self.events() {
            let _ = writeln!(text, "  {:<22} {:>15}", event.name(), number(*times));
        }
        for (latency, histogram) in self.latencies() {
            let _ = writeln!(
                text,
                "  {:<22} {:>15}  mean {}, p50 below {}, p99 below {}",
                latency.name(),
                number(histogram.count()),
                time(histogram.mean_ns() as f64),
                time(histogram.quantile_ns(0.5) as f64),
                time(histogram.quantile_ns(0.99) as f64),
            );
        }
        if text.is_empty() {
            text.push_str("  nothing to count\n");
        }
        text
    }
}

/// The modes, and whatever is not 0.
impl Serialize for Counters {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (queued, unfair) = self.modes();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("queued", &queued)?;
        map.serialize_entry("unfair", &unfair)?;
        for (event, times) in self.events() {
            map.serialize_entry(event.name(), times)?;
        }
        for (latency, histogram) in self.latencies() {
            map.serialize_entry(&format!("{}_mean_ns", latency.name()), &histogram.mean_ns())?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters() -> Counters {
        let mut counters = Counters::default();
        for (event, times) in &mut counters.events {
            *times = match event {
                Event::LockSlowpath => 9_130_518,
                Event::PvLockStealing => 294_954,
                _ => 0,
            };
        }
        counters
    }

    #[test]
    fn the_split_comes_first() {
        let text = counters().describe();
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[0].contains("queued mode") && lines[0].ends_with("9,130,518   96.9 %"),
            "{text}"
        );
        assert!(
            lines[1].contains("unfair mode") && lines[1].ends_with("294,954    3.1 %"),
            "{text}"
        );
        assert!(lines[2].contains("pv_lock_stealing"), "{text}");
        assert_eq!(lines.len(), 4, "{text}");
    }

    #[test]
    fn json_leaves_out_what_did_not_happen() {
        let json = serde_json::to_value(counters()).unwrap();
        let keys: Vec<&str> = json
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        assert_eq!(
            keys,
            ["queued", "unfair", "pv_lock_stealing", "lock_slowpath"]
        );
    }

    #[test]
    fn nothing_counted_is_nothing() {
        let mut counters = Counters::default();
        Counters::start();
        counters.stop();
        assert_eq!(counters.modes(), (0, 0));
        assert_eq!(counters.describe(), "  nothing to count\n");
    }
}
