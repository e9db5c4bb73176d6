//! The figures of the JSON document go together, and the CSV file has the same names.

use std::sync::Arc;
use std::time::Duration;

use overlock_bench::machine::Machine;
use overlock_bench::measure;
use overlock_bench::plan::Plan;
use overlock_bench::registry;
use overlock_bench::report::{self, json};
use overlock_bench::settings::Settings;
use overlock_bench::workload::Workload;
use overlock_bench::world::native::Native;

use overlock_report::csv;
use serde_json::Value;

/// A tiny real run: the document and the CSV file.
fn run(workload: Workload, locks: &[&str], latency_runs: usize) -> (Value, Vec<u8>) {
    let machine = Machine::probe();
    let family = workload.family();
    let locks = registry::select(family, locks.iter().copied()).unwrap();
    let mut plan = Plan {
        locks: locks.clone(),
        threads: vec![1, 3],
        runs: 2,
        latency_runs,
        round: Duration::from_millis(3),
        stretch: workload.stretch(),
        pin: false,
        stat: true,
        deadline: None,
    };
    plan.locks.extend(workload.limit());
    let world = Native::new(machine.allowed().to_vec(), Arc::default(), |_, _| {
        panic!("hangs")
    });
    let mut rounds = 0;
    let measurement = measure::run(&world, &workload, &plan, machine.cpus, |_, _, _| {
        rounds += 1
    })
    .unwrap();
    assert_eq!(rounds, plan.steps().count());
    let rows = report::rows(&measurement, &world, &machine, &workload);
    let settings = Settings {
        workload: workload.name(),
        locks: locks.iter().map(|entry| entry.name).collect(),
        rivals: family.rivals(),
        threads: plan.threads.clone(),
        parameters: workload.parameters(),
        seconds: plan.round.as_secs_f64(),
        runs: measurement.rounds(),
        latency_runs,
        pin: false,
        quota_percent: None,
        clock: world.clock().name(),
        elapsed_s: Some(measurement.elapsed.as_secs_f64()),
        simulation: None,
    };
    let (mut document, mut table) = (Vec::new(), Vec::new());
    json::write(&mut document, &machine, &settings, &rows).unwrap();
    csv::write(&mut table, &rows).unwrap();
    (serde_json::from_slice(&document).unwrap(), table)
}

#[test]
fn readers_are_told_from_writers() {
    let rw = |reads| Workload::Rw {
        cs: 0.0,
        ncs: 0.0,
        reads,
        records: 1,
    };
    let (document, _) = run(rw(75.0), &["std"], 1);
    assert_eq!(document["settings"]["reads_percent"], 75.0);
    for row in document["rows"].as_array().unwrap() {
        let count = |key: &str| row[key].as_u64().unwrap();
        assert_eq!(count("read_waits") + count("write_waits"), count("waits"));
        assert!(row["read_p99_ns"].as_f64() <= row["read_max_ns"].as_f64());
        let longest = |key: &str| row[key].as_f64().unwrap();
        assert_eq!(
            longest("read_max_ns").max(longest("write_max_ns")),
            longest("max_ns")
        );
    }
    // A round may be over before a busy machine gives its threads a CPU.
    let only_reads = (0..100).any(|_| {
        let (document, _) = run(rw(100.0), &["std"], 1);
        assert_eq!(document["rows"][0]["write_waits"], 0);
        document["rows"][0]["read_waits"].as_u64() > Some(0)
    });
    assert!(only_reads);
    let (document, _) = run(Workload::Fserver, &["std"], 1);
    assert_eq!(document["rows"][0]["read_waits"], Value::Null);
}

#[test]
fn rows_relate_to_the_best_peer_and_the_limit() {
    let (document, table) = run(Workload::micro(100.0, 0.0), &["spin", "glibc"], 1);
    let rows = document["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2 * 3);
    for row in rows {
        let number = |key: &str| row[key].as_f64();
        if row["lock"] == "none" {
            assert_eq!((number("vs_best_peer"), number("vs_limit")), (None, None));
            continue;
        }
        // spin is no rival, however fast.
        assert_eq!(row["best_peer"], "glibc");
        let limit = number("limit_ops_per_sec").unwrap();
        assert!(limit <= 1e9 / number("cs_measured_ns").unwrap() + 1.0);
        // On a busy machine a short round may be over before its threads have a CPU.
        let ratio = |of: f64| (of > 0.0).then(|| number("ops_per_sec").unwrap() / of);
        assert_eq!(number("vs_limit"), ratio(limit));
        if row["lock"] == "glibc" {
            assert_eq!(
                number("vs_best_peer"),
                ratio(number("ops_per_sec").unwrap())
            );
        }
        assert!(number("min") <= number("avg") && number("avg") <= number("max"));
        assert!(number("p50_ns") <= number("p99_ns") && number("p999_ns") <= number("max_ns"));
    }
    let table = String::from_utf8(table).unwrap();
    let keys: Vec<&str> = rows[0]
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(table.lines().next().unwrap(), keys.join(","));
    assert_eq!(table.lines().count(), 1 + rows.len());
}
