use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use super::select::{GROUPS, same};
use super::*;
use crate::probe::Pass;
use crate::workload::condvar::Pattern;
use crate::world::{Part, Workers};

fn names(family: Family, words: &[&str]) -> Vec<&'static str> {
    let locks = select(family, words.iter().copied()).unwrap();
    locks.iter().map(|entry| entry.name).collect()
}

#[test]
fn names_are_unique_in_their_family() {
    for family in Family::ALL {
        let mut seen: Vec<&str> = GROUPS.to_vec();
        for entry in family.locks() {
            for name in entry.aliases.iter().chain([&entry.name]) {
                assert!(
                    !seen.iter().any(|other| same(other, name)),
                    "{name} twice in {family:?}"
                );
                seen.push(name);
            }
        }
    }
}

#[test]
fn groups_and_names_select_in_the_order_of_the_list() {
    let family = Family::Exclusive;
    assert_eq!(names(family, &["usync", "std", "usync"]), ["std", "usync"]);
    assert_eq!(names(family, &["parking_lot-0.13"]), ["parking_lot"]);
    assert_eq!(names(family, &[" Parking-Lot"]), ["parking_lot"]);
    assert!(names(family, &["peers"]).contains(&"spin-ticket"));
    assert!(!names(family, &["default"]).contains(&"spin-ticket"));
    for family in Family::ALL {
        assert_eq!(names(family, &["all"]).len(), family.locks().len());
    }
}

#[test]
fn one_name_is_a_lock_in_each_family() {
    let about = |family| select(family, ["std"]).unwrap()[0].about;
    let all: HashSet<&str> = Family::ALL.into_iter().map(about).collect();
    assert_eq!(all.len(), 3);
}

#[test]
fn a_name_that_does_not_fit_is_told_from_one_that_nobody_knows() {
    let message = |family, words: &[&str]| {
        select(family, words.iter().copied())
            .unwrap_err()
            .to_string()
    };
    let text = message(Family::Exclusive, &["std", "nonsense"]);
    assert!(
        text.starts_with(
            "unknown lock 'nonsense'; the locks are all, ours, peers, default, overlock, "
        ),
        "{text}"
    );
    assert!(text.contains("std, parking_lot"), "{text}");
    let text = message(Family::Exclusive, &["Parkinglot"]);
    let meant = "unknown lock 'Parkinglot'; did you mean 'parking_lot'? The locks are all, ";
    assert!(text.starts_with(meant), "{text}");
    let text = message(Family::ReaderWriter, &["ticket"]);
    assert!(
        text.starts_with(
            "'ticket' is for micro, semop, qdisc, build and fserver, not for rw and rwsem; the locks are all, "
        ),
        "{text}"
    );
    let text = message(Family::Condvar, &["crossbeam"]);
    assert!(
        text.starts_with("'crossbeam' is for rw and rwsem, not for condvar; "),
        "{text}"
    );
}

#[test]
fn every_lock_is_listed_with_its_workloads() {
    let text = describe::<Native>();
    for family in Family::ALL {
        for entry in family.locks() {
            let line = entry.line(entry.default);
            assert!(text.contains(&line), "{}", entry.name);
        }
        for workload in family.workloads() {
            assert!(text.contains(workload), "{workload}");
        }
    }
    assert!(text.contains("reader-writer locks, for rw, rwsem:\n"));
}

#[test]
fn what_can_be_simulated_is_told_from_what_cannot() {
    let simulated = |family, words: &[&str]| {
        select_in::<Simulated>(family, words.iter().copied())
            .map(|locks| locks.iter().map(|entry| entry.name).collect::<Vec<_>>())
            .map_err(|error| error.to_string())
    };
    assert_eq!(
        simulated(Family::Exclusive, &["default"]).unwrap(),
        ["overlock", "kernel_mutex", "unfair", "pv_queued", "hybrid"]
    );
    let defaults = simulated(Family::ReaderWriter, &["default"]).unwrap();
    assert!(defaults.contains(&"overlock_rw"), "{defaults:?}");
    assert!(!names(Family::ReaderWriter, &["default"]).contains(&"overlock_rw"));
    let text = simulated(Family::Exclusive, &["std"]).unwrap_err();
    assert!(text.starts_with("'std' needs the real machine: "), "{text}");
    assert!(
        text.contains("the locks are all, ours, default, overlock, "),
        "{text}"
    );
    assert!(!text.contains("parking_lot"), "{text}");
    let text = simulated(Family::ReaderWriter, &["overlock"]).unwrap_err();
    assert!(
        text.starts_with("'overlock' is for micro, semop, qdisc, build and fserver, not for rw"),
        "{text}"
    );
    for word in ["peers", "Peers"] {
        let text = simulated(Family::Exclusive, &[word]).unwrap_err();
        let says = format!("'{word}' has no lock for micro, ");
        assert!(text.starts_with(&says), "{text}");
    }
    let text = simulated(Family::Condvar, &["default"]).unwrap_err();
    assert!(text.starts_with("condvar needs the real machine"), "{text}");
    let text = describe::<Simulated>();
    assert!(
        text.contains("* overlock_rw ") && text.contains("ticket "),
        "{text}"
    );
    assert!(
        !text.contains("peers") && !text.contains("condvar"),
        "{text}"
    );
}

#[test]
#[cfg(target_env = "gnu")]
fn rivals_exist() {
    for family in Family::ALL {
        assert!(select(family, family.rivals().iter().copied()).is_ok());
    }
}

fn world() -> Native {
    Native::new(vec![0], Arc::default(), |workers, left| {
        panic!("{left} threads of {workers:?} hang")
    })
}

fn workers(threads: usize, milliseconds: u64) -> Workers {
    Workers {
        lock: "test",
        threads,
        pin: false,
        stop_after: Duration::from_millis(milliseconds),
        measured: Part::Warm,
    }
}

#[test]
fn every_lock_excludes_in_every_workload() {
    let world = world();
    let round = Duration::from_millis(2);
    let more = [
        Workload::Semop { arrays: 2 },
        Workload::Rw {
            cs: 50.0,
            ncs: 50.0,
            reads: 50.0,
            records: 3,
        },
        Workload::Condvar {
            pattern: Pattern::PingPong,
        },
        Workload::Condvar {
            pattern: Pattern::Broadcast,
        },
    ];
    for workload in Workload::ALL.into_iter().chain(more) {
        let prepared = workload.prepare(&world, 1.0, round);
        // An odd number is a case of its own for condition variables; strictly fair spinlocks want
        // no more than need be.
        let threads = if workload.family() == Family::Condvar {
            3
        } else {
            2
        };
        for entry in workload.family().locks() {
            for pass in [Pass::Throughput, Pass::Latency] {
                // A round may be over before a busy machine gives its threads a CPU.
                let locked = (0..100).any(|_| {
                    let sample = prepared
                        .round(&entry.rounds, &world, &workers(threads, 2), pass)
                        .unwrap();
                    let timed = pass == Pass::Latency;
                    assert_eq!(sample.waits.is_some(), timed);
                    let tells_apart = workload.family() == Family::ReaderWriter;
                    assert_eq!(sample.roles.is_some(), timed && tells_apart);
                    sample.total() > 0
                });
                assert!(locked, "{} does nothing in {workload:?}", entry.name);
            }
        }
    }
}

#[test]
fn a_thread_alone_goes_on() {
    let world = world();
    for workload in Workload::ALL {
        let prepared = workload.prepare(&world, 1.0, Duration::from_millis(2));
        let entry = select(workload.family(), ["std"]).unwrap()[0];
        let goes_on = (0..100).any(|_| {
            let sample = prepared.round(&entry.rounds, &world, &workers(1, 2), Pass::Throughput);
            sample.unwrap().total() > 0
        });
        assert!(goes_on, "{workload:?}");
    }
}
