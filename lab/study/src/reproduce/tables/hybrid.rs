//! The document of the hybrid lock (Long, 2017).

use super::*;
use crate::reproduce::score::capacity;
use overlock_sim::machine::Machine;

/// A lock and nothing else.
pub const MICRO: Table = Table {
    name: "hybrid-micro",
    about: "hybrid and unfair lock in a microbenchmark, 36 to 108 vCPUs on 36 cores (Long, 2017): operations of a vCPU in 5 s",
    assumes: "an increment and one PAUSE (4 ns) in a section, 15 cycles (6.5 ns) between two, as its author's later posts describe the benchmark",
    year: 2017,
    fitted: true,
    csv: include_str!("../../../published/hybrid-micro.csv"),
    cases: || {
        // The workload increments a counter next to the lock, besides.
        let micro = Workload::micro(4.0, 6.5);
        cross(&[36, 54, 72, 108], &["hybrid", "unfair"], |vcpus, lock| {
            case("e5-2699v3", "kvm", lock, vcpus, micro, 0.3)
        })
    },
    judge: micro,
};

const OPERATIONS: Unit = Unit {
    word: None,
    scale: Scale::Absolute,
};

fn micro(results: &Results) -> Verdict {
    let mut verdict = Verdict::default();
    let mut spreads = [0.0; 2];
    for row in published("hybrid-micro") {
        let vcpus = whole(row[0]);
        let spread =
            ["hybrid", "unfair"].map(|lock| results.of("e5-2699v3", lock, vcpus).spread(5.0));
        for (lock, (ours, first)) in ["hybrid", "unfair"].iter().zip(spread.iter().zip([1, 4])) {
            let theirs = [0, 1, 2].map(|column| number(row[first + column]));
            for (name, (ours, theirs)) in ["least", "average", "most"]
                .iter()
                .zip(ours.iter().zip(theirs))
            {
                let what = OPERATIONS.of(format!("{lock}, {name}"));
                verdict.within(at(vcpus), what, *ours, theirs, 0.25);
                verdict.scales(1.0 / vcpus as f64);
            }
        }
        verdict.claim(
            format!("{}: hybrid above unfair", at(vcpus)),
            spread[0][1],
            spread[1][1],
            0.02,
        );
        spreads = spread.map(|[least, _, most]| most / least.max(1.0));
    }
    let [hybrid, unfair] = spreads;
    verdict.claim(
        "108 vCPUs: most over least of unfair is ten times that of hybrid",
        unfair,
        10.0 * hybrid,
        0.0,
    );
    verdict
}

/// Which mode the lock is in.
pub const MODES: Table = Table {
    name: "hybrid-modes",
    about: "acquisitions of the hybrid lock in queued and in unfair mode over a kernel build, 30 to 72 vCPUs on 36 cores (Long, 2017)",
    assumes: ASSUMED_BUILD,
    year: 2017,
    fitted: true,
    csv: include_str!("../../../published/hybrid-modes.csv"),
    cases: || {
        cross(&[30, 36, 45, 54, 72], &["hybrid"], |vcpus, lock| {
            build("e5-2699v3", lock, vcpus)
        })
    },
    judge: modes,
};

const QUEUED: Unit = Unit {
    word: Some("percent"),
    scale: Scale::Absolute,
};

/// The document counts one build in each place and has no spread. The bound is our choice.
const POINTS: f64 = 10.0;

fn modes(results: &Results) -> Verdict {
    let mut verdict = Verdict::default();
    let mut shares = Vec::new();
    for row in published("hybrid-modes") {
        let vcpus = whole(row[0]);
        let ours = results.of("e5-2699v3", "hybrid", vcpus).queued();
        let (queued, unfair) = (number(row[1]), number(row[2]));
        verdict.near(
            at(vcpus),
            QUEUED.of("queued mode"),
            ours,
            queued * 100.0 / (queued + unfair),
            POINTS,
        );
        shares.push(ours);
    }
    verdict.claim("30 vCPUs: at least 94 % queued", shares[0], 94.0, 0.0);
    for pair in published("hybrid-modes")
        .collect::<Vec<_>>()
        .windows(2)
        .skip(1)
        .zip(shares[1..].windows(2))
    {
        let (rows, shares) = pair;
        let (from, to) = (at(whole(rows[0][0])), at(whole(rows[1][0])));
        verdict.claim(
            format!("the share falls from {from} to {to}"),
            shares[0],
            shares[1],
            0.02,
        );
    }
    let last = shares.last().copied().unwrap_or(100.0);
    verdict.claim("72 vCPUs: under 20 % queued", 20.0, last, 0.0);
    verdict
}

/// A kernel build takes a contended lock about once a millisecond on each vCPU, says hybrid-modes:
/// so rare are visits here.
const BUILD: Workload = Workload::Build {
    cs: 100.0,
    ncs: 20_000.0,
};
const ASSUMED_BUILD: &str = "visits of 100 ns, 20 us apart, which brings about as many contended acquisitions a second as the document counts";

/// A kernel build on the larger machine.
pub const BUILD_36: Table = Table {
    name: "hybrid-build-36core",
    about: "a kernel build under three locks, 30 to 108 vCPUs on 36 cores (Long, 2017): time compared to the shortest",
    assumes: ASSUMED_BUILD,
    year: 2017,
    fitted: true,
    csv: include_str!("../../../published/hybrid-build-36core.csv"),
    cases: || builds("e5-2699v3", &[30, 36, 45, 54, 72, 108]),
    judge: |results| build_times(results, "hybrid-build-36core", "e5-2699v3"),
};

/// The same on the smaller one.
pub const BUILD_32: Table = Table {
    name: "hybrid-build-32thread",
    about: "a kernel build under three locks, 16 to 64 vCPUs on 16 cores with 32 hardware threads (Long, 2017): time compared to the shortest",
    assumes: ASSUMED_BUILD,
    year: 2017,
    fitted: false,
    csv: include_str!("../../../published/hybrid-build-32thread.csv"),
    cases: || builds("e5-2620v4", &[16, 36, 48, 64]),
    judge: |results| build_times(results, "hybrid-build-32thread", "e5-2620v4"),
};

fn build(machine: &'static str, lock: &'static str, vcpus: usize) -> Case {
    case(machine, "kvm", lock, vcpus, BUILD, 2.0)
}

const BUILD_LOCKS: [&str; 3] = ["pv_queued", "hybrid", "unfair"];

fn builds(machine: &'static str, vcpus: &[usize]) -> Vec<Case> {
    cross(vcpus, &BUILD_LOCKS, |vcpus, lock| {
        build(machine, lock, vcpus)
    })
}

const SHORTEST: Unit = Unit {
    word: Some("over the shortest"),
    scale: Scale::Absolute,
};

fn build_times(results: &Results, name: &str, machine: &str) -> Verdict {
    let mut verdict = Verdict::default();
    let rows: Vec<Vec<&str>> = published(name).collect();
    let theirs: Vec<[f64; 3]> = rows
        .iter()
        .map(|row| [1, 2, 3].map(|column| number(row[column])))
        .collect();
    let ours: Vec<[f64; 3]> = rows
        .iter()
        .map(|row| BUILD_LOCKS.map(|lock| results.of(machine, lock, whole(row[0])).seconds()))
        .collect();
    let best = |times: &[[f64; 3]]| {
        times
            .iter()
            .flatten()
            .copied()
            .fold(f64::INFINITY, f64::min)
    };
    let machine = Machine::preset(machine).expect("tables name presets");
    let (our_best, their_best) = (best(&ours), best(&theirs));
    for (row, (ours, theirs)) in rows.iter().zip(ours.iter().zip(&theirs)) {
        let place = at(whole(row[0]));
        for (lock, (ours, theirs)) in BUILD_LOCKS.iter().zip(ours.iter().zip(theirs)) {
            let what = SHORTEST.of(*lock);
            verdict.within(place, what, ours / our_best, theirs / their_best, 0.08);
            verdict.scales(1.0 / capacity(machine, place.number));
        }
        verdict.order(place, &BUILD_LOCKS, ours, theirs, 0.02);
    }
    verdict
}
