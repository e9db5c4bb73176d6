//! The counts as OpenMetrics text.

use std::collections::BTreeMap;
use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use overlock_shared::{LENGTHS, longest};

use crate::stat::{Event, Process, Row};

/// The text at a moment, with the end that the format wants.
pub fn text(counts: &Counts) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(counts.clone()));
    let mut out = String::new();
    text::encode(&mut out, &registry)?;
    Ok(out)
}

/// Lock, kind and call site, or event, kind and call site.
type Labels = [String; 3];

/// Waits for a lock, by their length.
#[derive(Clone, Copy, Debug, Default)]
struct Lengths {
    seconds: f64,
    /// As [`overlock_shared::length`] has them.
    waits: [u64; LENGTHS],
}

/// All counts so far. None goes back, as readers rely on: those that are estimated from samples
/// might.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    families: [BTreeMap<Labels, f64>; FAMILIES.len()],
    lengths: BTreeMap<Labels, Lengths>,
    threads: u32,
    process: [(&'static str, String); 2],
}

/// A family: its name, what it says, the name of its first label, and whether it is in seconds.
struct Family {
    name: &'static str,
    help: &'static str,
    of: &'static str,
    is_time: bool,
}

const fn counts(of: &'static str, name: &'static str, help: &'static str) -> Family {
    Family {
        name,
        help,
        of,
        is_time: false,
    }
}

const fn times(of: &'static str, name: &'static str, help: &'static str) -> Family {
    Family {
        name,
        help,
        of,
        is_time: true,
    }
}

const FAMILIES: [Family; 7] = [
    counts(
        "lock",
        "overlock_acquisitions",
        "Acquisitions of locks, estimated from samples",
    ),
    counts(
        "lock",
        "overlock_waits",
        "Waits for locks that were not free",
    ),
    times("lock", "overlock_wait", "Time in waits for locks"),
    counts(
        "lock",
        "overlock_gave_up",
        "Waits that ended without the lock",
    ),
    times(
        "lock",
        "overlock_hold",
        "Time for which locks were held, estimated from samples",
    ),
    counts(
        "event",
        "overlock_event_waits",
        "Waits for events, which are no contention",
    ),
    times(
        "event",
        "overlock_event_wait",
        "Time in waits for events, which is no contention",
    ),
];

impl Counts {
    /// Takes over what a process has counted.
    pub fn update(&mut self, process: &Process) {
        let mut now: [BTreeMap<Labels, f64>; FAMILIES.len()] = Default::default();
        let mut lengths: BTreeMap<Labels, Lengths> = BTreeMap::new();
        for row in &process.locks {
            add(&mut now[..5], labels_of(row), of_lock(row));
            if row.contentions > 0 {
                lengths.entry(labels_of(row)).or_default().add(row);
            }
        }
        for event in &process.events {
            let site = event.site.as_ref().map(ToString::to_string);
            let labels = [
                event.name.clone(),
                event.kind.name().to_owned(),
                site.unwrap_or_default(),
            ];
            add(&mut now[5..], labels, of_event(event));
        }
        for (family, now) in self.families.iter_mut().zip(now) {
            for (labels, value) in now {
                let known = family.entry(labels).or_default();
                *known = known.max(value);
            }
        }
        for (labels, now) in lengths {
            self.lengths.entry(labels).or_default().raise(&now);
        }
        self.threads = process.threads;
        self.process = [
            ("pid", process.pid.to_string()),
            ("program", process.program.clone()),
        ];
    }
}

impl Lengths {
    fn add(&mut self, row: &Row) {
        self.seconds += row.wait.total_ns as f64 / 1e9;
        for (sum, more) in self.waits.iter_mut().zip(row.lengths) {
            *sum += more;
        }
    }

    fn raise(&mut self, now: &Self) {
        self.seconds = self.seconds.max(now.seconds);
        for (known, now) in self.waits.iter_mut().zip(now.waits) {
            *known = now.max(*known);
        }
    }

    /// The upper bounds in seconds, each with the number of waits up to the next lower one.
    fn buckets(&self) -> Vec<(f64, u64)> {
        let bound = |class| longest(class).map_or(f64::INFINITY, |ns| ns as f64 / 1e9);
        let classes = self.waits.iter().enumerate();
        classes
            .map(|(class, &waits)| (bound(class), waits))
            .collect()
    }
}

/// Rows with the same names are one series.
fn add<const N: usize>(
    families: &mut [BTreeMap<Labels, f64>],
    labels: Labels,
    values: [Option<f64>; N],
) {
    for (family, value) in families.iter_mut().zip(values) {
        if let Some(value) = value {
            *family.entry(labels.clone()).or_default() += value;
        }
    }
}

fn labels_of(row: &Row) -> Labels {
    [
        row.lock.clone(),
        row.kind.name().to_owned(),
        row.site.to_string(),
    ]
}

fn of_lock(row: &Row) -> [Option<f64>; 5] {
    let acquisitions = row.acquisitions.map(|count| count as f64);
    let hold_s = acquisitions.and_then(|count| Some(row.hold.avg_ns? * count / 1e9));
    [
        acquisitions,
        Some(row.contentions as f64),
        Some(row.wait.total_ns as f64 / 1e9),
        Some(row.gave_up as f64),
        hold_s,
    ]
}

fn of_event(event: &Event) -> [Option<f64>; 2] {
    [
        Some(event.waits as f64),
        Some(event.wait.total_ns as f64 / 1e9),
    ]
}

impl Collector for Counts {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let info = "The process that counts";
        encoder
            .encode_descriptor("overlock_process", info, None, MetricType::Info)?
            .encode_info(&self.process)?;
        let threads = "Threads that have used a lock, or waited";
        encoder
            .encode_descriptor("overlock_threads", threads, None, MetricType::Gauge)?
            .encode_gauge(&self.threads)?;
        for (family, series) in FAMILIES.iter().zip(&self.families) {
            let unit = family.is_time.then_some(&Unit::Seconds);
            let kind = MetricType::Counter;
            let mut metric = encoder.encode_descriptor(family.name, family.help, unit, kind)?;
            for ([of, kind, site], value) in series {
                let labels = [(family.of, of), ("kind", kind), ("site", site)];
                metric
                    .encode_family(&labels)?
                    .encode_counter::<NoLabelSet, f64, f64>(value, None)?;
            }
        }
        let help = "Waits for locks by their length";
        let kind = MetricType::Histogram;
        let mut metric =
            encoder.encode_descriptor("overlock_wait_length", help, Some(&Unit::Seconds), kind)?;
        for ([lock, kind, site], lengths) in &self.lengths {
            let labels = [("lock", lock), ("kind", kind), ("site", site)];
            let all = lengths.waits.iter().sum();
            metric
                .encode_family(&labels)?
                .encode_histogram::<NoLabelSet>(lengths.seconds, all, &lengths.buckets(), None)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stat::tests::process;

    #[test]
    fn names_are_escaped_and_rows_of_one_name_are_one_series() {
        let mut process = process();
        process.locks[0].lock = "a \"b\\\nc".to_owned();
        process.locks[1].lock = "a \"b\\\nc".to_owned();
        process.locks[1].contentions = 5;
        process.locks[0].lengths[1] = 10;
        process.locks[1].lengths[15] = 5;
        let mut counts = Counts::default();
        counts.update(&process);
        let text = text(&counts).unwrap();
        for line in [
            r#"overlock_process_info{pid="7",program="program"} 1"#,
            "# TYPE overlock_wait_seconds counter",
            "# UNIT overlock_wait_seconds seconds",
            r#"overlock_waits_total{lock="a \"b\\\nc",kind="mutex",site="section"} 15.0"#,
            "# TYPE overlock_wait_length_seconds histogram",
            r#"overlock_wait_length_seconds_bucket{le="0.000004096",lock="a \"b\\\nc",kind="mutex",site="section"} 10"#,
            r#"overlock_wait_length_seconds_bucket{le="+Inf",lock="a \"b\\\nc",kind="mutex",site="section"} 15"#,
            r#"overlock_wait_length_seconds_count{lock="a \"b\\\nc",kind="mutex",site="section"} 15"#,
            r#"overlock_event_wait_seconds_total{event="ready",kind="cond",site="idle"} 9.0"#,
        ] {
            assert!(text.lines().any(|other| other == line), "{line}\n{text}");
        }
        assert!(text.ends_with("\n# EOF\n"));
    }

    #[test]
    fn counters_never_go_back() {
        let mut process = process();
        let mut counts = Counts::default();
        counts.update(&process);
        let before = text(&counts).unwrap();
        for row in &mut process.locks {
            row.acquisitions = row.acquisitions.map(|count| count / 2);
        }
        counts.update(&process);
        assert_eq!(text(&counts).unwrap(), before);
    }
}
