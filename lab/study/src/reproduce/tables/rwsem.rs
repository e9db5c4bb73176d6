//! The document of spinning on readers (Long, 2017).

use super::*;

/// Readers and writers.
pub const RWSEM: Table = Table {
    name: "rwsem",
    about: "reader-writer semaphore without and with spinning on readers, 36 threads on 36 cores (Long, 2017): gain in percent",
    assumes: "nothing between two operations",
    year: 2017,
    fitted: true,
    csv: include_str!("../../../published/rwsem.csv"),
    cases: || {
        cross(&[36], &["rwsem_none", "rwsem_count"], |vcpus, lock| {
            // The kernel's semaphore has no other spins than its own.
            let host = "threads:spins=false";
            case("e5-2699v3", host, lock, vcpus, Workload::Rwsem, 0.1)
        })
    },
    judge: rwsem,
};

const THOUSANDS: Unit = Unit {
    word: Some("kop/s"),
    scale: Scale::Absolute,
};

fn rwsem(results: &Results) -> Verdict {
    let mut verdict = Verdict::default();
    let rate = |lock| results.of("e5-2699v3", lock, 36).rate();
    let (without, with) = (rate("rwsem_none"), rate("rwsem_count"));
    let threads = Place::new(36, Count::Threads);
    for row in published("rwsem") {
        let gain = (with / without - 1.0) * 100.0;
        // The document's Mop/s can only be kop/s: a line does not move five times in a nanosecond.
        verdict.within(
            threads,
            THOUSANDS.of("without"),
            without / 1e3,
            number(row[1]),
            0.25,
        );
        verdict.within(
            threads,
            THOUSANDS.of("with"),
            with / 1e3,
            number(row[2]),
            0.25,
        );
        verdict.within(threads, GAIN.of("gain"), gain, number(row[3]), 0.25);
        verdict.claim(
            "spinning makes more than twice the operations",
            with,
            2.0 * without,
            0.0,
        );
    }
    verdict
}
