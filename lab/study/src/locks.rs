//! Locks by the names that people use: that of a peer stands for its model.

use overlock_bench::registry::{Entry, Family};

/// Before the name of a model.
const MODEL: &str = "model:";

/// The lock of that name, if it runs on simulated machines. The name of a peer is that of its
/// model, and `pthread_mutex` is glibc's.
pub fn named(family: Family, name: &str) -> Option<&'static Entry> {
    let name = match name.trim() {
        "pthread" | "pthread_mutex" => "glibc",
        "parking_lot-0.12" | "parking_lot 0.12" => "parking_lot",
        name => name,
    };
    let has = |wanted: &str| {
        let mut locks = family.locks().iter();
        locks.find(|lock| lock.name == wanted && lock.simulated.is_some())
    };
    has(name)
        .or_else(|| has(&format!("{MODEL}{name}")))
        .or_else(|| has(&format!("{MODEL}{}", name.replace(' ', "-"))))
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
