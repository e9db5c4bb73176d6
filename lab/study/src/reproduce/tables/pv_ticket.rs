//! The document of the paravirtual ticket lock (Raghavendra, 2013).

use super::*;

/// A file benchmark.
pub const DBENCH: Table = Table {
    name: "pv-ticket-dbench",
    about: "a file benchmark in guests of 32 vCPUs on 32 cores, 1 to 4 guests, ticket lock against paravirtual ticket lock (Raghavendra, 2013): gain in percent",
    assumes: "the build workload with visits of 300 ns, 25 us apart, in each guest",
    year: 2013,
    fitted: true,
    csv: include_str!("../../../published/pv-ticket-dbench.csv"),
    cases: || {
        let files = Workload::Build {
            cs: 300.0,
            ncs: 25_000.0,
        };
        cross(&[1, 2, 3, 4], &["ticket", "pv_ticket"], |guests, lock| {
            Case {
                guests,
                runs: 3,
                ..case("x7560", "kvm-2013", lock, 32 * guests, files, 0.7)
            }
        })
    },
    judge: dbench,
};

const SHARE: Unit = Unit {
    word: Some("over 1x"),
    scale: Scale::Absolute,
};

fn dbench(results: &Results) -> Verdict {
    let mut verdict = Verdict::default();
    let rows: Vec<_> = published("pv-ticket-dbench").collect();
    // The work is the same; what differs is how long it takes.
    let time = |lock, guests: usize| results.of("x7560", lock, 32 * guests).seconds();
    let share = |lock, guests| time(lock, 1) / time(lock, guests);
    for row in &rows {
        let guests = whole(row[0]);
        let gain = (time("ticket", guests) / time("pv_ticket", guests) - 1.0) * 100.0;
        verdict.near(
            Place::new(guests, Count::Overcommit),
            GAIN.of("gain"),
            gain,
            number(row[5]),
            6.0,
        );
        for (lock, column) in [("ticket", 1), ("pv_ticket", 3)]
            .into_iter()
            .filter(|_| guests > 1)
        {
            verdict.within(
                Place::new(guests, Count::Overcommit),
                SHARE.of(lock),
                share(lock, guests),
                number(row[column]) / number(rows[0][column]),
                0.25,
            );
        }
    }
    // Published: 0.098 and 0.043.
    for (guests, most) in [(2, 0.2), (4, 0.1)] {
        verdict.claim(
            format!("{guests}x: ticket has less than {most} of its throughput at 1x"),
            most,
            share("ticket", guests),
            0.0,
        );
    }
    verdict
}
