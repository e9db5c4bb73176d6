//! The tables: a module for each document, and what they share.

mod fast_queue;
mod hybrid;
mod pv_ticket;
mod rwsem;

use super::label::{Count, Place, Scale, Unit};
use super::{Case, Results, Table, Verdict};
use overlock_bench::workload::Workload;

/// All of them.
pub static TABLES: &[Table] = &[
    hybrid::MICRO,
    hybrid::MODES,
    hybrid::BUILD_36,
    hybrid::BUILD_32,
    fast_queue::SEMOP,
    fast_queue::QDISC,
    pv_ticket::DBENCH,
    rwsem::RWSEM,
];

fn case(
    machine: &'static str,
    host: &'static str,
    lock: &'static str,
    vcpus: usize,
    workload: Workload,
    seconds: f64,
) -> Case {
    Case {
        machine,
        host,
        lock,
        vcpus,
        guests: 1,
        workload,
        seconds,
        runs: 1,
    }
}

fn cross(
    vcpus: &[usize],
    locks: &[&'static str],
    make: impl Fn(usize, &'static str) -> Case,
) -> Vec<Case> {
    let make = &make;
    vcpus
        .iter()
        .flat_map(|&vcpus| locks.iter().map(move |lock| make(vcpus, lock)))
        .collect()
}

/// The rows of a published table, as texts.
fn published(name: &str) -> impl Iterator<Item = Vec<&'static str>> {
    let table = Table::named(name).expect("it is one of the tables");
    let rows = table.csv.lines().skip(1);
    rows.map(|line| line.split(',').collect())
}

fn number(text: &str) -> f64 {
    text.parse().expect("published figures are numbers")
}

fn whole(text: &str) -> usize {
    text.parse().expect("published counts are numbers")
}

fn at(vcpus: usize) -> Place {
    Place::new(vcpus, Count::Vcpus)
}

const GAIN: Unit = Unit {
    word: Some("percent"),
    scale: Scale::Gain,
};
