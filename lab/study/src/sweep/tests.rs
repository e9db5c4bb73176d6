//! Invariants of every grid, however it is split, killed and joined.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use itertools::Itertools;
use overlock_bench::registry::Family;
use overlock_bench::workload::Workload;
use overlock_sim::machine::Machine;
use proptest::prelude::*;
use tempfile::TempDir;

use std::time::Duration;

use super::*;
use crate::case::tests::rate;

fn names<T: ToString>(names: &[T]) -> Vec<String> {
    names.iter().map(T::to_string).collect()
}

/// The machines have 36 CPUs and 16, and the small ticket takes 127 vCPUs.
fn grid(vcpus: &[usize], seeds: u64) -> Grid {
    Grid {
        machines: names(&["e5-2699v3", "e5-2620v4:cores=8"]),
        hosts: names(&["kvm"]),
        others: vec![0],
        workloads: names(&["micro:cs=95ns"]),
        vcpus: vcpus.iter().map(|&vcpus| Load::Vcpus(vcpus)).collect(),
        locks: names(&["ticket", "hybrid", "pv_ticket_small"]),
        seeds: (1..=seeds).collect(),
        seconds: 1e-4,
    }
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
fn quick(key: &Key, case: &Case) -> Result<Measured, Failure> {
    if key.seed == 3 {
        return Err(Failure::Simulation("nobody is left".to_owned()));
    }
    let parts = key.seed as f64 + key.vcpus as f64 / 3.0 + case.machine.cpus() as f64;
    Ok(rate(1e9 / parts))
}

/// A directory with a grid.
struct Scene(TempDir, Grid);

impl Scene {
    fn new(vcpus: &[usize], seeds: u64) -> Self {
        Self(tempfile::tempdir().unwrap(), grid(vcpus, seeds))
    }

    fn begun(&self, name: &str) -> Sweep {
        Sweep::new(&self.0.path().join(name), build(), self.1.clone()).unwrap()
    }

    /// Runs what is left of a shard by `simulate`.
    fn run(
        &self,
        (name, shard): (&str, &str),
        interrupt: &Interrupt,
        simulate: impl Fn(&Key, &Case) -> Result<Measured, Failure> + Sync,
    ) -> Result<Sweep, String> {
        let mut sweep = self.begun(name);
        let mut store = sweep.open()?;
        let shard: Shard = shard.parse().unwrap();
        let numbers = shard.of(sweep.points.len());
        sweep.run(numbers, 3, &mut store, interrupt, simulate, |_, _| ())?;
        Ok(sweep)
    }

    /// Runs what is left of a shard to the end.
    fn sweep(&self, name: &str, shard: &str) {
        let none = Interrupt::default();
        self.run((name, shard), &none, quick).unwrap();
    }

    fn part(&self, name: &str) -> Sweep {
        Sweep::read(&self.0.path().join(name)).unwrap().unwrap()
    }

    /// All results of these files, as a file has them.
    fn merged(&self, names: &[String]) -> Vec<u8> {
        let parts = names.iter().map(|name| self.part(name)).collect();
        let (whole, duplicates) = merge(parts).unwrap().unwrap();
        assert_eq!((whole.missing().count(), duplicates), (0, 0));
        let mut bytes = Vec::new();
        whole.write(&mut bytes).unwrap();
        bytes
    }

    /// Checks that a sweep goes on to the end, and is what it is in one process.
    fn goes_on(&self, name: &str) {
        self.sweep(name, "1/1");
        self.sweep("one process", "1/1");
        let one = self.merged(&names(&["one process"]));
        assert_eq!(self.merged(&names(&[name])), one);
    }
}

fn refused<T>(result: Result<T, String>, says: &str) {
    let why = result.err().expect(says);
    assert!(why.contains(says), "{why}");
}

#[test]
fn grids_have_only_what_can_be_simulated() {
    type Change = fn(&mut Grid);
    let changed = |change: fn(&mut Grid)| {
        let mut grid = grid(&[4, 200], 2);
        change(&mut grid);
        grid.points().map(|points| points.len())
    };
    // The small ticket takes no 200 vCPUs; 0.1x and 4 are the same on one of the machines.
    assert_eq!(changed(|_| ()), Ok(2 * 2 * (3 + 2)));
    let twice =
        |grid: &mut Grid| grid.vcpus = ["0.1x", "4"].map(|load| load.parse().unwrap()).into();
    assert_eq!(changed(twice), Ok(2 * 3 * (1 + 2)));
    let changes: [(&str, Change); 5] = [
        ("std", |grid| grid.locks = names(&["std"])),
        ("xen", |grid| grid.hosts = names(&["xen"])),
        ("-1", |grid| grid.seconds = -1.0),
        // It has another name.
        ("barcelona:cores=16", |grid| {
            grid.machines = names(&["barcelona:cores=16"])
        }),
        ("macro", |grid| grid.workloads = names(&["micro", "macro"])),
    ];
    for (unknown, change) in changes {
        let why = changed(change).unwrap_err();
        assert_eq!(why, format!("this program does not know '{unknown}'"));
    }
}

#[test]
fn points_are_named_by_the_keys_that_differ_from_a_preset() {
    let name = "barcelona:sockets=2:hop=0ns:cores=6";
    let grid = Grid {
        machines: names(&[name]),
        hosts: names(&["kvm:poll=0ns"]),
        ..grid(&[4], 1)
    };
    let (key, case) = grid.points().unwrap().remove(0);
    assert_eq!(
        (key.machine.as_str(), key.host.as_str()),
        (name, "kvm:poll=0ns")
    );
    assert_eq!(*case.machine, Machine::named(name).unwrap());
    assert_eq!(grid::machine_name(&case.machine), name);
}

#[test]
fn loads_and_shards_are_read_as_they_are_written() {
    let machine = Machine::named("barcelona").unwrap();
    for (text, vcpus, json) in [
        ("3", 3, "3"),
        (" 0.25x ", 4, r#""0.25x""#),
        ("2.0X", 32, r#""2x""#),
        ("0.01x", 1, r#""0.01x""#),
    ] {
        let load: Load = text.parse().unwrap();
        assert_eq!(load.on(&machine), Ok(vcpus), "{text}");
        assert_eq!(serde_json::to_string(&load).unwrap(), json);
        assert_eq!(serde_json::from_str::<Load>(json).unwrap(), load);
    }
    for nonsense in ",x,0,0x,-1x,-1,1.5,NaNx,infx,1e9x".split(',') {
        assert!(nonsense.parse::<Load>().is_err(), "{nonsense}");
        assert!(Load::Overcommit(nonsense.to_owned()).on(&machine).is_err());
    }
    for nonsense in ",3,/,0/4,5/4,1/0,-1/4,1/4/4,x/4".split(',') {
        assert!(nonsense.parse::<Shard>().is_err(), "{nonsense}");
    }
    let shard: Shard = " 2/3".parse().unwrap();
    assert_eq!(shard.of(8).collect_vec(), [1, 4, 7]);
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
        let scene = Scene::new(&[1, 200], seeds);
        scene.sweep("whole", "1/1");
        let order = order.into_iter().filter(|&index| index < count);
        let parts = order.map(|index| {
            let (part, shard) = (index.to_string(), format!("{}/{count}", index + 1));
            scene.sweep(&part, &shard);
            part
        });
        let parts = parts.collect_vec();
        prop_assert_eq!(scene.merged(&parts), scene.merged(&names(&["whole"])));
    }
}

/// A killed process may leave any beginning of its file.
#[test]
fn a_sweep_that_was_cut_at_any_byte_goes_on() {
    let scene = Scene::new(&[4], 1);
    scene.sweep("whole", "1/1");
    let whole = scene.merged(&names(&["whole"]));
    for length in 0..=whole.len() {
        fs::write(scene.0.path().join("cut"), &whole[..length]).unwrap();
        scene.sweep("cut", "1/1");
        assert_eq!(
            scene.merged(&names(&["cut"])),
            whole,
            "after {length} bytes"
        );
    }
}

/// Not only with results that a test makes up: those of the simulator depend on neither threads nor
/// order.
#[test]
fn simulations_depend_on_their_settings_alone() {
    for family in [Family::Exclusive, Family::ReaderWriter] {
        let workloads = Workload::ALL.iter().filter(|load| load.family() == family);
        let locks = family
            .locks()
            .iter()
            .filter(|lock| lock.simulated.is_some());
        let grid = Grid {
            machines: names(&["e5-2620v4"]),
            others: vec![8],
            workloads: names(&workloads.collect_vec()),
            locks: locks.map(|lock| lock.name.to_owned()).collect(),
            ..grid(&[3, 12], 1)
        };
        let (points, interrupt) = (grid.points().unwrap(), Arc::default());
        let round = Duration::from_secs_f64(grid.seconds);
        let simulated = |at: usize| points[at].1.simulate(1, round, &interrupt);
        let all = |numbers: Vec<usize>, jobs| {
            let mut all = vec![None; points.len()];
            let ended = |_, at: usize, outcome: Result<Outcome, Failure>| {
                all[at] = Some(outcome?);
                Ok::<(), Failure>(())
            };
            case::run(numbers, jobs, &interrupt, simulated, ended).unwrap();
            all
        };
        let forwards = all((0..points.len()).collect(), 1);
        let backwards = all((0..points.len()).rev().collect(), 4);
        for ((one, other), (key, _)) in forwards.iter().zip(&backwards).zip(&points) {
            let is_measured = |one: &Outcome| one.measured().is_ok();
            assert!(
                one == other && one.as_ref().is_some_and(is_measured),
                "{key}"
            );
        }
    }
}

#[test]
fn two_shards_may_share_a_file_but_not_at_the_same_time() {
    let scene = Scene::new(&[4], 2);
    scene.sweep("both", "2/2");
    scene.goes_on("both");
    let _store = scene.begun("both").open().unwrap();
    refused(scene.begun("both").open(), "another sweep writes to it");
}

#[test]
fn failures_do_not_stop_the_others_and_are_kept() {
    let scene = Scene::new(&[4], 4);
    scene.sweep("failed", "1/1");
    let sweep = scene.part("failed");
    let failures = sweep.failures().collect_vec();
    assert_eq!(failures.len(), sweep.points.len() / 4);
    let is_told = |(key, why): &(&Key, &str)| key.seed == 3 && why.contains("nobody is left");
    assert!(failures.iter().all(is_told), "{failures:?}");
    let text = table::render(&sweep, None);
    assert!(
        text.contains("failed") && text.contains("e5-2620v4:cores=8, kvm"),
        "{text}"
    );
}

/// A machine without room for a simulation says nothing about the lock.
#[test]
fn what_ends_a_sweep_is_no_result() {
    for lacks_room in [true, false] {
        let scene = Scene::new(&[4], 2);
        let interrupt = Interrupt::default();
        let simulate = |key: &Key, case: &Case| {
            if key.seed == 1 {
                return quick(key, case);
            }
            if lacks_room {
                let why = "no room".to_owned();
                return Err(Failure::Spawn {
                    wanted: 4,
                    got: 3,
                    why,
                });
            }
            interrupt.raise();
            Err(Failure::Interrupted)
        };
        match scene.run(("ended", "1/1"), &interrupt, simulate) {
            Ok(sweep) => assert!(!lacks_room && sweep.missing().count() > 0),
            Err(error) => assert!(lacks_room && error.contains("3 of 4 threads")),
        }
        let kept = scene.part("ended");
        assert!(kept.missing().count() > 0 && kept.failures().count() == 0);
        scene.goes_on("ended");
    }
}

#[test]
fn other_files_are_refused_and_left_alone() {
    let scene = Scene::new(&[4], 1);
    scene.sweep("file", "1/1");
    let path = scene.0.path().join("file");
    let whole = fs::read_to_string(&path).unwrap();
    let changed = |from: &str, to: &str| whole.replacen(from, to, 1);
    let empty = |from: &str, to: &str| changed(from, to).lines().take(1).join("") + "\n";
    let (seeds, others) = (r#""seeds":[1]"#, r#""seeds":[2,3]"#);
    let line = whole.lines().nth(1).unwrap();
    let line = line.replacen(r#""jain":1.0"#, r#""jain":0.5"#, 1) + "\n";
    let xen = "line 1 is of no grid: this program does not know 'xen'";
    for (content, says) in [
        ("{}".to_owned(), "is no file of `overlock-lab sim sweep`"),
        (
            changed(":4,", ":1,"),
            "line 1 is of format 1, and this program has format 4",
        ),
        (changed(seeds, others), "line 2 is not of this grid"),
        (empty(seeds, others), "is of another grid, with seeds 2,3"),
        (empty("kvm", "xen"), xen),
        (
            empty(r#""micro:cs=95ns""#, ""),
            "the list of workloads is empty",
        ),
        (empty(seeds, r#""seeds":[]"#), "the list of seeds is empty"),
        (changed("\n", "\n\n"), "line 2 is damaged"),
        (whole.clone() + "{}\n", "is damaged: missing field"),
        (whole.clone() + &line, "contradicts one before"),
    ] {
        fs::write(&path, &content).unwrap();
        refused(scene.begun("file").open(), says);
        assert_eq!(fs::read_to_string(&path).unwrap(), content);
    }
    let mut null = Sweep::new(Path::new("/dev/null"), build(), scene.1.clone()).unwrap();
    refused(null.open(), "results need a file");
}

/// Fails where a build that is unknown counts as equal to another one.
#[test]
fn unknown_builds_do_not_mix() {
    let scene = Scene::new(&[4], 1);
    let mut sweep = scene.begun("unknown");
    sweep.build.commit = "unknown".to_owned();
    drop(sweep.open().unwrap());
    let says = "it may be another build";
    refused(sweep.open(), says);
    let part = || scene.part("unknown");
    refused(merge(vec![part(), part()]), says);
    assert!(merge(vec![part()]).unwrap().is_some());
}
