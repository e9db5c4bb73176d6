//! The table for people: a line for each lock.

use overlock_report::columns::table;

use super::LockReport;
use crate::settings::Settings;

const TITLES: [&str; 10] = [
    "lock",
    "threads",
    "operations",
    "reads",
    "refused",
    "timed out",
    "cancelled",
    "max/min a thread",
    "longest wait",
    "verdict",
];

/// The table, and what the threads went through.
pub fn render(settings: &Settings, locks: &[LockReport]) -> String {
    let row = |lock: &LockReport| {
        [
            lock.lock.to_owned(),
            lock.threads.to_string(),
            lock.operations.to_string(),
            lock.reads.to_string(),
            lock.refused.to_string(),
            lock.timed_out.to_string(),
            lock.cancelled.to_string(),
            format!("{}/{}", lock.max_thread, lock.min_thread),
            format!("{:.1} ms", lock.longest_wait_ms),
            if lock.passed { "ok" } else { "FAILED" }.to_owned(),
        ]
    };
    table(TITLES, locks.iter().map(row), |column| column > 0) + &around(settings, locks)
}

/// The interference with the threads.
fn around(settings: &Settings, locks: &[LockReport]) -> String {
    let sum = |what: fn(&LockReport) -> u64| -> u64 { locks.iter().map(what).sum() };
    let (rests, shuffles) = (sum(|lock| lock.rests), sum(|lock| lock.shuffles));
    let (successors, signals) = (sum(|lock| lock.successors), sum(|lock| lock.signals));
    let taken = sum(|lock| lock.in_handlers);
    let (real_time, nicer) = (sum(|lock| lock.real_time), sum(|lock| lock.nicer));
    let mut text = format!(
        "\nSeed {}. {rests} stops, {shuffles} changes of CPUs, {successors} threads replaced, {signals} signals, \
         {taken} locks taken in handlers.\n",
        settings.seed
    );
    let unboosted = sum(|lock| lock.unboosted);
    text += &match (real_time, nicer, unboosted) {
        _ if !settings.boost => "No boosts: they were not wanted.\n".to_owned(),
        (0, 0, 0) => "No boosts: none came up.\n".to_owned(),
        (0, 0, _) => format!("No boosts: this process may not have {unboosted} of them.\n"),
        _ => format!(
            "Boosts: {real_time} steps with a real-time priority, {nicer} with a better nice value.\n"
        ),
    };
    text
}
