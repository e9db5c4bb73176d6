//! The JSON document is what its schema says, and the CSV file has the same names.

use std::sync::Arc;
use std::time::Duration;

use overlock_bench::machine::Machine;
use overlock_bench::measure;
use overlock_bench::plan::Plan;
use overlock_bench::registry::{self, Family};
use overlock_bench::report::{self, json};
use overlock_bench::settings::{Settings, Simulation};
use overlock_bench::workload::Workload;
use overlock_bench::workload::condvar::Pattern;
use overlock_bench::world::native::Native;
use overlock_bench::world::sim::Simulated;

use overlock_report::csv;
use overlock_sim as sim;
use serde_json::Value;

const SCHEMA: &str = include_str!("../schema/bench.schema.json");

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
    let measurement = measure::run(&world, &workload, &plan, machine.cpus, &mut |_, _, _| {
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

/// The same on a simulated machine.
fn simulate(workload: Workload, locks: &[&str]) -> (Value, Vec<u8>) {
    let (model, host) = (
        sim::machine::Machine::preset("e5-2620v4"),
        sim::host::Host::KVM,
    );
    let model = model.unwrap().with_cores(2);
    let machine = Machine::simulated(&model, &host);
    let locks = registry::select_in::<Simulated>(workload.family(), locks.iter().copied()).unwrap();
    let plan = Plan {
        locks: locks.clone(),
        threads: vec![2, 8],
        runs: 2,
        latency_runs: 1,
        round: Duration::from_micros(200),
        stretch: workload.stretch(),
        pin: false,
        stat: false,
        deadline: None,
    };
    let world = Simulated::new(model, host.clone(), 7, Arc::default());
    let ignore = &mut |_: usize, _: &'static registry::Entry, _: usize| {};
    let measurement = measure::run(&world, &workload, &plan, machine.cpus, ignore).unwrap();
    let rows = report::rows(&measurement, &world, &machine, &workload);
    let settings = Settings {
        workload: workload.name(),
        locks: locks.iter().map(|entry| entry.name).collect(),
        rivals: &[],
        threads: plan.threads.clone(),
        parameters: workload.parameters(),
        seconds: plan.round.as_secs_f64(),
        runs: plan.runs,
        latency_runs: plan.latency_runs,
        pin: false,
        quota_percent: None,
        clock: "simulated",
        elapsed_s: None,
        simulation: Some(Simulation {
            machine: "e5-2620v4".into(),
            cores: 2,
            host: host.name.clone(),
            others: 0,
            seed: 7,
        }),
    };
    let (mut document, mut table) = (Vec::new(), Vec::new());
    json::write(&mut document, &machine, &settings, &rows).unwrap();
    csv::write(&mut table, &rows).unwrap();
    (serde_json::from_slice(&document).unwrap(), table)
}

#[test]
fn simulations_validate() {
    for workload in Workload::ALL {
        if workload.family() == Family::Condvar {
            continue;
        }
        let (document, table) = simulate(workload, &["default"]);
        check(&document);
        let header = String::from_utf8(table).unwrap();
        let header = header.lines().next().unwrap();
        assert!(
            header.ends_with(",simulation_time_ended,simulation_events"),
            "{header}"
        );
        for row in document["rows"].as_array().unwrap() {
            let shares = row["simulation"]["time"].as_object().unwrap().values();
            let sum: f64 = shares.map(|share| share.as_f64().unwrap()).sum();
            assert!((sum - 1.0).abs() < 1e-6, "{sum}");
        }
    }
}

#[test]
fn the_schema_names_every_figure_of_a_simulation() {
    let (mut document, _) = simulate(Workload::Qdisc, &["hybrid"]);
    let told = document["rows"][0]["simulation"].as_object_mut().unwrap();
    told.insert("surprise".to_owned(), 1.into());
    let schema = jsonschema::validator_for(&serde_json::from_str(SCHEMA).unwrap()).unwrap();
    assert!(!schema.is_valid(&document));
}

fn check(document: &Value) {
    let schema = jsonschema::validator_for(&serde_json::from_str(SCHEMA).unwrap()).unwrap();
    let errors: Vec<String> = schema
        .iter_errors(document)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}");
}

#[test]
fn real_runs_validate() {
    let more = [
        Workload::Micro {
            cs: 50.0,
            ncs: 100.0,
        },
        Workload::Rw {
            cs: 50.0,
            ncs: 100.0,
            reads: 12.5,
            records: 100,
        },
        Workload::Condvar {
            pattern: Pattern::PingPong,
        },
        Workload::Condvar {
            pattern: Pattern::Broadcast,
        },
    ];
    for (index, workload) in Workload::ALL.into_iter().chain(more).enumerate() {
        let (document, _) = run(workload, &["std", "parking_lot"], index % 2);
        check(&document);
    }
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
    check(&document);
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
fn the_schema_notices_what_is_missing() {
    let (mut document, _) = run(Workload::Qdisc, &["std"], 0);
    let schema = jsonschema::validator_for(&serde_json::from_str(SCHEMA).unwrap()).unwrap();
    document["rows"][0]
        .as_object_mut()
        .unwrap()
        .remove("vs_limit");
    assert!(!schema.is_valid(&document));
}

#[test]
fn the_schema_names_every_key() {
    let (document, _) = run(Workload::Semop { arrays: 1 }, &["std"], 1);
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let known = |part: &Value| -> Vec<String> {
        part["properties"]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect()
    };
    let found =
        |part: &Value| -> Vec<String> { part.as_object().unwrap().keys().cloned().collect() };
    let mut of_machine = known(&schema["properties"]["machine"]);
    of_machine.retain(|key| key != "guest");
    assert_eq!(found(&document["machine"]), of_machine);
    assert_eq!(
        found(&document["settings"]),
        known(&schema["properties"]["settings"])
    );
    assert_eq!(
        found(&document["rows"][0]),
        known(&schema["properties"]["rows"]["items"])
    );
}

#[test]
fn rows_relate_to_the_best_peer_and_the_limit() {
    let (document, table) = run(
        Workload::Micro {
            cs: 100.0,
            ncs: 0.0,
        },
        &["spin", "glibc"],
        1,
    );
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
