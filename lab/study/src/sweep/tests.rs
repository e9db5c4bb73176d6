//! Results, however a sweep is killed and goes on.

use overlock_bench::registry::Family;

use super::*;
use crate::case::Options;
use crate::case::tests::{options, rate};

/// The small ticket takes 127 vCPUs.
fn grid() -> Grid {
    let names = |names: &[&str]| names.iter().map(ToString::to_string).collect_vec();
    Grid {
        machines: [("e5-2699v3:cores=18".to_owned(), vec![12, 200])].into(),
        hosts: names(&["kvm:kick=3us"]),
        others: vec![0],
        workloads: names(&["micro:cs=95ns"]),
        locks: names(&["ticket", "pv_ticket_small"]),
        seeds: vec![1, 3],
        seconds: 1e-4,
    }
}

/// A killed process may leave any beginning of its file.
#[test]
fn a_sweep_that_was_cut_at_any_byte_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let paths = [dir.path().join("sweep")];
    let simulate = |key: &Key| match key.seed {
        3 => Err(Error::Simulation("nobody is left".to_owned())),
        seed => Ok(rate(1e9 / (seed as f64 + key.vcpus as f64 / 3.0))),
    };
    let goes_on = |beginning: &[u8]| {
        fs::write(&paths[0], beginning).unwrap();
        let mut sweep = Sweep::new("overlock".to_owned(), grid()).unwrap();
        let mut file = sweep.open(&paths[0]).unwrap();
        for part in [(2, 2), (1, 2)] {
            let none = Interrupt::default();
            sweep
                .run(part, 2, &mut file, &none, simulate, |_, _| ())
                .unwrap();
        }
        let whole = Sweep::merge(&paths).unwrap();
        assert_eq!(whole.missing((1, 1)).count(), 0);
        let failures = whole.failures().filter(|(key, _)| key.seed == 3);
        assert_eq!((failures.count(), whole.results.len()), (3, 6));
        let mut bytes = Vec::new();
        whole.write(&mut bytes).unwrap();
        bytes
    };
    let whole = goes_on(&[]);
    for length in 1..=whole.len() {
        assert_eq!(goes_on(&whole[..length]), whole, "after {length} bytes");
    }
    // Half a first line of another sweep is not overwritten.
    fs::write(&paths[0], &whole[..100]).unwrap();
    let mut other = Sweep::new("another build".to_owned(), grid()).unwrap();
    let refused = other.open(&paths[0]).unwrap_err();
    assert!(refused.ends_with("of another sweep"), "{refused}");
    assert_eq!(fs::read(&paths[0]).unwrap(), whole[..100]);
}

/// Not only results that a test makes up: those of the simulator depend on neither threads nor
/// order.
#[test]
fn simulations_depend_on_their_settings_alone() {
    for family in [Family::Exclusive, Family::ReaderWriter] {
        let loads = Workload::ALL.iter().filter(|load| load.family() == family);
        let locks = family.locks().iter();
        let locks = locks.filter(|lock| lock.simulated.is_some());
        let mut grid = grid();
        grid.seeds = vec![1];
        grid.others = vec![4];
        grid.machines[0].1 = vec![4];
        grid.workloads = loads.map(ToString::to_string).collect();
        grid.locks = locks.map(|lock| lock.name.to_owned()).collect();
        let mut cases = grid.keys().unwrap().iter().map(Key::case).collect_vec();
        let all = |cases: &[Case], jobs| {
            let options = Options {
                jobs,
                ..options(100)
            };
            case::outcomes(cases, &options, |_, _, _| ()).unwrap()
        };
        let forwards = all(&cases, 1);
        cases.reverse();
        let backwards = all(&cases, 4);
        for ((one, other), case) in forwards.iter().rev().zip(&backwards).zip(&cases) {
            assert!(one == other && one.is_ok(), "{case:?}");
        }
    }
}
