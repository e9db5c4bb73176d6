//! Invariants of every grid, however it is split, killed and joined.

mod files;
mod grids;

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use overlock_sim::host::Host;
use overlock_sim::machine::PRESETS;
use proptest::prelude::*;
use tempfile::TempDir;

use super::merge::{Merged, merge};
use super::run::{left, run};
use super::*;
use overlock_bench::error::Error as Failure;
use overlock_bench::interrupt::Interrupt;
use overlock_bench::registry::{Entry, Family};
use overlock_bench::report::simulation::Summary;
use overlock_bench::workload::Workload;

fn locks(names: &[&str]) -> Vec<&'static Entry> {
    overlock_bench::registry::select(Family::Exclusive, names.iter().copied()).unwrap()
}

fn grid(vcpus: &[usize], seeds: u64) -> Grid {
    let grid = Grid {
        machines: vec![PRESETS[0].clone(), PRESETS[1].with_cores(8)],
        hosts: vec![Host::named("kvm").unwrap()],
        others: vec![0],
        workloads: vec!["micro:cs=95".parse().unwrap()],
        vcpus: vcpus.iter().map(|&vcpus| Load::Vcpus(vcpus)).collect(),
        locks: locks(&["ticket", "hybrid", "pv_ticket_small"]),
        seeds: (1..=seeds).collect(),
        round: Duration::from_micros(100),
    };
    grid.check().unwrap()
}

fn build() -> Build {
    Build {
        program: "0.1.0".to_owned(),
        commit: "4d92672".to_owned(),
        changes: None,
        profile: "release".to_owned(),
        checks: false,
    }
}

/// A result that depends on the point and on nothing else, and is quick.
fn quick(point: &Point<'_>) -> Result<Measured, Failure> {
    if point.seed == 3 {
        return Err(Failure::Simulation("nobody is left".to_owned()));
    }
    let ops = 1e9 / (point.seed as f64 + point.vcpus as f64 / 3.0 + point.machine.cpus() as f64);
    Ok(Measured {
        ops_per_sec: ops,
        total: ops as u64,
        ..nothing()
    })
}

pub(crate) fn nothing() -> Measured {
    Measured {
        elapsed_s: 1.0,
        jain: 1.0,
        simulation: Summary {
            settled: Some(true),
            ..Summary::default()
        },
        ..Measured::default()
    }
}

/// Runs what is left of a shard.
fn sweep(path: &Path, grid: &Grid, shard: Shard) {
    let (mut store, done) = Store::open(path, &build(), grid).unwrap();
    let points = left(shard.of(grid.points()), &done);
    let none = Interrupt::default();
    let ended = run(&points, 3, &mut store, &none, quick, |_, _| {});
    assert_eq!(ended.unwrap().len(), points.len());
}

fn part(path: &Path) -> Part {
    Part::read(path).unwrap().unwrap()
}

fn merged(path: &Path) -> Merged {
    merge([part(path)]).unwrap().unwrap()
}

fn bytes(merged: &Merged) -> Vec<u8> {
    let mut bytes = Vec::new();
    merged.write(&mut bytes).unwrap();
    bytes
}

/// A whole sweep of a grid, merged.
fn whole(dir: &TempDir, grid: &Grid) -> Vec<u8> {
    let path = dir.path().join("whole");
    sweep(&path, grid, Shard::WHOLE);
    let merged = merged(&path);
    assert!(merged.missing.is_empty());
    bytes(&merged)
}

/// A directory, a grid, and a file for it.
fn scene(seeds: u64) -> (TempDir, Grid, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    (dir, grid(&[4], seeds), path)
}

/// Checks that a sweep goes on to the end.
fn goes_on((dir, grid, path): &(TempDir, Grid, PathBuf)) {
    sweep(path, grid, Shard::WHOLE);
    assert_eq!(bytes(&merged(path)), whole(dir, grid));
}

fn refused<T>(result: Result<T, Error>, says: &str) {
    match result {
        Err(Error::Refused(_, why)) => assert!(why.contains(says), "{why}"),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it is not refused: {says}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Shards on machines of their own, merged in any order, are the whole.
    #[test]
    fn any_split_in_any_order_is_the_whole(
        count in 1_usize..9,
        order in Just((0..8).collect::<Vec<usize>>()).prop_shuffle(),
        seeds in 1_u64..5,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let grid = grid(&[1, 200], seeds);
        let whole = whole(&dir, &grid);
        let mut parts = Vec::new();
        for index in order.into_iter().filter(|&index| index < count) {
            let path = dir.path().join(format!("part{index}"));
            sweep(&path, &grid, format!("{}/{count}", index + 1).parse().unwrap());
            parts.push(part(&path));
        }
        let merged = merge(parts).unwrap().unwrap();
        prop_assert_eq!(merged.duplicates, 0);
        prop_assert_eq!(bytes(&merged), whole);
    }
}

/// A killed process may leave any beginning of its file.
#[test]
fn a_sweep_that_was_cut_at_any_byte_goes_on() {
    let (dir, grid, path) = scene(1);
    let whole = whole(&dir, &grid);
    for length in 0..=whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        sweep(&path, &grid, Shard::WHOLE);
        assert_eq!(bytes(&merged(&path)), whole, "after {length} bytes");
    }
}

/// Not only with results that a test makes up: those of the simulator depend on neither threads nor
/// order.
#[test]
fn simulations_depend_on_their_settings_alone() {
    for family in [Family::Exclusive, Family::ReaderWriter] {
        let workloads = Workload::ALL.into_iter();
        let locks = family.locks().iter();
        let grid = Grid {
            machines: vec![PRESETS[1].clone()],
            others: vec![8],
            workloads: workloads
                .filter(|workload| workload.family() == family)
                .collect(),
            locks: locks.filter(|lock| lock.simulated.is_some()).collect(),
            ..grid(&[3, 12], 1)
        };
        same_forwards_and_backwards(&grid);
    }
}

fn same_forwards_and_backwards(grid: &Grid) {
    let points = grid.points();
    let interrupt = Arc::new(Interrupt::default());
    let simulated = |point: &Point<'_>| {
        let measured = simulate(point, grid.round, &interrupt).unwrap();
        serde_json::to_string(&measured).unwrap()
    };
    let forwards: Vec<String> = points.iter().map(simulated).collect();
    let backwards: Vec<String> = std::thread::scope(|scope| {
        let simulated = &simulated;
        let one = |point| scope.spawn(move || simulated(point));
        let all: Vec<_> = points.iter().rev().map(one).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    for ((point, one), other) in points.iter().zip(forwards).zip(backwards.into_iter().rev()) {
        assert_eq!(one, other, "{}", point.key());
    }
}

#[test]
fn two_shards_may_share_a_file() {
    let (dir, grid, path) = scene(2);
    for shard in ["2/2", "1/2"] {
        sweep(&path, &grid, shard.parse().unwrap());
    }
    assert_eq!(bytes(&merged(&path)), whole(&dir, &grid));
    // But not at the same time.
    let _store = Store::open(&path, &build(), &grid).unwrap();
    refused(
        Store::open(&path, &build(), &grid),
        "another sweep writes to it",
    );
}

#[test]
fn failures_do_not_stop_the_others_and_are_kept() {
    let scene = scene(4);
    let (_, grid, path) = &scene;
    let (mut store, _) = Store::open(path, &build(), grid).unwrap();
    let simulate = |point: &Point<'_>| {
        assert!(point.seed != 2, "the lock is held");
        quick(point)
    };
    let points = grid.points();
    let none = Interrupt::default();
    let lines = run(&points, 2, &mut store, &none, simulate, |_, _| {}).unwrap();
    assert_eq!(lines.len(), points.len());
    let mut errors: Vec<&str> = merge::failures(&lines).map(|(_, error)| error).collect();
    errors.sort_unstable();
    errors.dedup();
    let both = ["did not end: nobody is left", "panicked: the lock is held"];
    assert_eq!(errors, both);
    drop(store);

    let merged = merged(path);
    assert_eq!(merged.failures().count(), points.len() / 2);
    let table = table::render(&merged.lines, None);
    assert!(
        table.contains("failed") && table.contains("e5-2620v4:cores=8, kvm"),
        "{table}"
    );
}

/// A machine without room for a simulation says nothing about the lock.
#[test]
fn what_this_machine_lacks_is_no_result() {
    let scene = scene(2);
    let (_, grid, path) = &scene;
    let (mut store, _) = Store::open(path, &build(), grid).unwrap();
    let lacks = |point: &Point<'_>| {
        if point.seed == 1 {
            return quick(point);
        }
        Err(Failure::Spawn {
            wanted: 4,
            got: 3,
            why: "no room".to_owned(),
        })
    };
    let points = grid.points();
    let interrupt = Interrupt::default();
    let ended = run(&points, 1, &mut store, &interrupt, lacks, |_, _| {});
    assert!(ended.unwrap_err().to_string().contains("3 of 4 threads"));
    drop(store);
    let kept = part(path).lines;
    assert!(kept.len() < points.len() && merge::failures(&kept).count() == 0);
    goes_on(&scene);
}

#[test]
fn an_interrupted_sweep_keeps_what_is_done() {
    let scene = scene(3);
    let (_, grid, path) = &scene;
    let (mut store, _) = Store::open(path, &build(), grid).unwrap();
    let interrupt = Interrupt::default();
    let done = grid
        .points()
        .iter()
        .take_while(|point| point.lock.name != "hybrid")
        .count();
    let simulate = |point: &Point<'_>| {
        if point.lock.name == "hybrid" {
            interrupt.raise();
            return Err(Failure::Interrupted);
        }
        quick(point)
    };
    let begun = Cell::new(0);
    let begin = |_: usize, _: &Key| begun.set(begun.get() + 1);
    let points = grid.points();
    let lines = run(&points, 1, &mut store, &interrupt, simulate, begin).unwrap();
    assert_eq!((lines.len(), begun.get()), (done, done + 1));
    drop(store);
    goes_on(&scene);
}
