//! Locks by the names that people use: that of a peer stands for its model.

use itertools::Itertools;
use overlock_bench::registry::{Entry, Family};
use overlock_sim::spec::meant;

/// Other names of models.
const OTHERS: [(&str, &str); 3] = [
    ("pthread_mutex", "glibc"),
    ("pthread", "glibc"),
    ("parking_lot-0.12", "parking_lot"),
];

/// The lock of that name, if it runs on simulated machines. The name of a peer is that of its
/// model, and `pthread_mutex` is glibc's.
///
/// # Errors
///
/// Says which names there are.
pub fn named(family: Family, name: &str) -> Result<&'static Entry, String> {
    let locks = family.locks().iter();
    let mut locks = locks.filter(|lock| lock.simulated.is_some());
    let dashed = name.trim().replace(' ', "-");
    let other = OTHERS.iter().find(|(other, _)| *other == dashed);
    let wanted = other.map_or(dashed.as_str(), |(_, name)| name);
    let lock = locks
        .clone()
        .find(|lock| [lock.name, plain(lock.name)].contains(&wanted));
    lock.ok_or_else(|| {
        let names = locks.by_ref().map(|lock| plain(lock.name)).collect_vec();
        let others = OTHERS.iter().map(|(other, _)| *other);
        let meant = meant(name, &names.iter().copied().chain(others).collect_vec());
        let names = names.join(", ");
        format!("there is no lock '{name}' to simulate{meant} locks are {names}")
    })
}

/// The name that people use for a lock.
pub fn plain(name: &str) -> &str {
    name.strip_prefix("model:").unwrap_or(name)
}
