//! Locks by the names that people use: that of a peer stands for its model.

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
pub fn named(family: Family, name: &str) -> Option<&'static Entry> {
    let mut others = OTHERS.iter();
    let other = others.find(|(other, _)| *other == name.trim());
    let name = other.map_or(name.trim(), |(_, name)| name);
    let has = |wanted: &str| {
        let mut locks = family.locks().iter();
        locks.find(|lock| lock.name == wanted && lock.simulated.is_some())
    };
    has(name)
        .or_else(|| has(&format!("{MODEL}{name}")))
        .or_else(|| has(&format!("{MODEL}{}", name.replace(' ', "-"))))
}

/// The message for a name that no simulated lock has.
pub fn unknown(family: Family, name: &str) -> String {
    let locks = family.locks().iter();
    let locks = locks.filter(|lock| lock.simulated.is_some());
    let names: Vec<&str> = locks.map(|lock| plain(lock.name)).collect();
    let others = OTHERS.iter().map(|(other, _)| *other);
    let meant = meant(
        name,
        &names.iter().copied().chain(others).collect::<Vec<_>>(),
    );
    format!(
        "there is no lock '{name}' to simulate{meant} locks are {}",
        names.join(", ")
    )
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
        assert_eq!(name("ticket"), Some("ticket"));
        assert_eq!(name("std"), None, "the program adds its model");
        assert_eq!(name("overlock-mutex"), None, "a type is not simulated");
        assert_eq!(plain("model:std"), "std");
    }
}
