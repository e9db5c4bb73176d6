//! Locks by the names that people use: that of a peer stands for its model.

use itertools::Itertools;
use overlock_bench::registry::{Entry, Family};
use overlock_sim::spec::meant;

/// Before the name of a model.
const MODEL: &str = "model:";

/// Other names of models.
const OTHERS: [(&str, &str); 4] = [
    ("pthread_mutex", "glibc"),
    ("pthread", "glibc"),
    ("parking_lot-0.12", "parking_lot"),
    ("parking_lot 0.12", "parking_lot"),
];

/// The lock of that name, if it runs on simulated machines. The name of a peer is that of its
/// model, and `pthread_mutex` is glibc's.
///
/// # Errors
///
/// Says which names there are.
pub fn named(family: Family, name: &str) -> Result<&'static Entry, String> {
    let simulated = || {
        family
            .locks()
            .iter()
            .filter(|lock| lock.simulated.is_some())
    };
    let others = || OTHERS.iter().map(|(other, _)| *other);
    let other = OTHERS.iter().find(|(other, _)| *other == name.trim());
    let wanted = other.map_or(name.trim(), |(_, name)| name);
    let dashed = wanted.replace(' ', "-");
    let names = [
        wanted,
        &format!("{MODEL}{wanted}"),
        &format!("{MODEL}{dashed}"),
    ];
    let lock = names
        .iter()
        .find_map(|wanted| simulated().find(|lock| lock.name == *wanted));
    lock.ok_or_else(|| {
        let names = simulated().map(|lock| plain(lock.name)).collect_vec();
        let meant = meant(name, &names.iter().copied().chain(others()).collect_vec());
        let names = names.join(", ");
        format!("there is no lock '{name}' to simulate{meant} locks are {names}")
    })
}

/// The name that people use for a lock.
pub fn plain(name: &str) -> &str {
    name.strip_prefix(MODEL).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_is_not_simulated_has_no_name() {
        let name = |name| named(Family::Exclusive, name).map(|lock| lock.name);
        assert_eq!(name("ticket"), Ok("ticket"));
        for model in ["std", "overlock-mutex"] {
            assert!(name(model).is_err(), "{model}: the program adds its model");
        }
        assert_eq!(plain("model:std"), "std");
    }
}
