//! The document of the paravirtual ticket lock (Raghavendra, 2013).

use super::*;

/// A file benchmark.
pub const DBENCH: Table = Table {
    name: "pv-ticket-dbench",
    about: "a file benchmark in guests of 32 vCPUs on 32 cores, 1 to 4 guests, ticket lock against paravirtual ticket lock (Raghavendra, 2013): gain in percent",
    assumes: "the build workload with visits of 300 ns, 25 us apart, in one guest; the other guests compute all the time",
    fitted: true,
    csv: include_str!("../../../results/pv-ticket-dbench.csv"),
    cases: || {
        let files = Workload::Build {
            cs: 300.0,
            ncs: 25_000.0,
        };
        cross(&[1, 2, 3, 4], &["ticket", "pv_ticket"], |guests, lock| {
            Case {
                others: 32 * (guests - 1),
                runs: 3,
                ..case("x7560", "kvm-2013", lock, 32, files, 0.7)
            }
        })
    },
    judge: dbench,
};

fn dbench(results: &Results) -> Verdict {
    let mut verdict = Verdict::default();
    for row in published("pv-ticket-dbench") {
        let guests = whole(row[0]);
        // The work is the same; what differs is how long it takes.
        let time = |lock| results.of("x7560", lock, 32 * guests).seconds();
        let gain = (time("ticket") / time("pv_ticket") - 1.0) * 100.0;
        verdict.near(
            Place::new(guests, Count::Overcommit),
            GAIN.of("gain"),
            gain,
            number(row[5]),
            6.0,
        );
    }
    verdict
}
