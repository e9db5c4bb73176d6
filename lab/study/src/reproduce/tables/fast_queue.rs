//! The document of the fast queue lock (Lespinasse, 2013).

use super::*;

/// Semaphore operations.
pub const SEMOP: Table = Table {
    name: "semop",
    about: "semaphore operations under three locks, 1 to 32 threads (Lespinasse, 2013): throughput compared to the ticket lock's",
    assumes: "one semaphore array, as the rates of two threads against one suggest",
    year: 2013,
    fitted: true,
    csv: include_str!("../../../published/semop.csv"),
    cases: semop_cases,
    judge: semop,
};

const SEMOP_MACHINES: [(&str, &str, &[usize]); 2] = [
    ("barcelona-4s16c", "barcelona", &[1, 2, 4, 8, 16]),
    (
        "sandybridge-2s16c32t",
        "sandy-bridge",
        &[1, 2, 4, 8, 16, 32],
    ),
];

fn semop_cases() -> Vec<Case> {
    SEMOP_MACHINES
        .iter()
        .flat_map(|&(_, machine, threads)| {
            cross(
                threads,
                &["ticket", "fast_queue", "backoff_ticket"],
                |threads, lock| {
                    case(
                        machine,
                        "threads",
                        lock,
                        threads,
                        Workload::Semop { arrays: 1 },
                        0.02,
                    )
                },
            )
        })
        .collect()
}

const RATIO: Unit = Unit {
    word: None,
    scale: Scale::Ratio,
};
const MILLIONS: Unit = Unit {
    word: Some("Mop/s"),
    scale: Scale::Absolute,
};

/// A smaller difference is not measurable: with four threads on Sandy Bridge the published ranges
/// overlap, and their middles are 6.4 % apart.
const MEASURABLE: f64 = 0.07;

fn semop(results: &Results) -> Verdict {
    let mut verdict = Verdict::default();
    for row in published("semop") {
        let (_, machine, _) = SEMOP_MACHINES
            .iter()
            .find(|(name, ..)| *name == row[0])
            .expect("the machines are known");
        let threads = whole(row[1]);
        let rate = |lock| results.of(machine, lock, threads).rate();
        let place = Place::new(threads, Count::Threads).on(machine);
        let ticket = middle(row[4], row[5]);
        let queue = middle(row[2], row[3]) / ticket;
        verdict.within(
            place,
            RATIO.of("fast_queue over ticket"),
            rate("fast_queue") / rate("ticket"),
            queue,
            0.25,
        );
        if !row[6].is_empty() {
            let backoff = middle(row[6], row[7]) / ticket;
            verdict.within(
                place,
                RATIO.of("backoff_ticket over ticket"),
                rate("backoff_ticket") / rate("ticket"),
                backoff,
                0.25,
            );
        }
        // A published range is the bound.
        let (low, high) = (number(row[4]), number(row[5]));
        let (what, ours) = (MILLIONS.of("ticket"), rate("ticket") / 1e6);
        match low < high {
            true => verdict.near(place, what, ours, ticket, (high - low) / 2.0),
            false => verdict.within(place, what, ours, ticket, 0.25),
        }
    }
    for (_, machine, threads) in SEMOP_MACHINES {
        for &threads in threads {
            let rate = |lock| results.of(machine, lock, threads).rate();
            let place = Place::new(threads, Count::Threads).on(machine);
            verdict.claim(
                format!("{place}: fast_queue is not measurably slower than ticket"),
                rate("fast_queue"),
                rate("ticket"),
                -MEASURABLE,
            );
        }
    }
    verdict
}

/// Packets that go through one queue.
pub const QDISC: Table = Table {
    name: "qdisc",
    about: "32 senders of packets under three locks on 16 cores with 32 hardware threads (Lespinasse, 2013): throughput compared to the ticket lock's",
    assumes: "how long the steps of a packet take: the workload's defaults",
    year: 2013,
    fitted: true,
    csv: include_str!("../../../published/qdisc.csv"),
    cases: || {
        cross(
            &[32],
            &["ticket", "fast_queue", "backoff_ticket"],
            |vcpus, lock| {
                case(
                    "sandy-bridge",
                    "threads",
                    lock,
                    vcpus,
                    Workload::Qdisc,
                    0.02,
                )
            },
        )
    },
    judge: qdisc,
};

fn qdisc(results: &Results) -> Verdict {
    let mut verdict = Verdict::default();
    let rows: Vec<(&str, f64)> = published("qdisc")
        .map(|row| (row[0], middle(row[1], row[2])))
        .collect();
    let theirs = |lock: &str| {
        rows.iter()
            .find(|(name, _)| *name == lock)
            .map_or(f64::NAN, |row| row.1)
    };
    let ours = |lock: &str| results.of("sandy-bridge", lock, 32).rate();
    let senders = Place::new(32, Count::Senders);
    for (over, under) in [
        ("fast_queue", "ticket"),
        ("backoff_ticket", "ticket"),
        ("fast_queue", "backoff_ticket"),
    ] {
        verdict.within(
            senders,
            RATIO.of(format!("{over} over {under}")),
            ours(over) / ours(under),
            theirs(over) / theirs(under),
            0.25,
        );
    }
    let names: Vec<&str> = rows.iter().map(|row| row.0).collect();
    let measured: Vec<f64> = names.iter().map(|lock| ours(lock)).collect();
    let published: Vec<f64> = rows.iter().map(|row| row.1).collect();
    verdict.order(senders, &names, &measured, &published, 0.02);
    verdict
}

/// The middle of a published range.
fn middle(low: &str, high: &str) -> f64 {
    (number(low) + number(high)) / 2.0
}
