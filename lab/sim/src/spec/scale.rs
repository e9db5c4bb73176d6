//! Constants made larger or smaller, to see what depends on them.

use super::{Domain, Key, Spec, Value};
use crate::time::Time;

/// The keys whose values are constants of the model: numbers, without those of the topology.
pub fn constants<T: Spec>() -> impl Iterator<Item = &'static Key<T>> {
    let is_number = |kind| {
        matches!(
            kind,
            Domain::Time(..) | Domain::Count(..) | Domain::Share(..)
        )
    };
    let keys = T::keys().iter();
    keys.filter(move |key| is_number(key.kind) && !T::TOPOLOGY.contains(&key.name))
}

/// Returns `of` with the value of `key` multiplied by `factor`, within the key's range. A whole
/// number changes by at least one. It keeps its name. Without such a part it is unchanged.
///
/// # Errors
///
/// Says what is wrong if this value does not go with the others.
pub fn scaled<T: Spec>(of: &T, key: &Key<T>, factor: f64) -> Result<T, String> {
    let mut changed = of.clone();
    if let Some(value) = key.get(of) {
        key.set(&mut changed, times(value, key.kind, factor))?;
        changed.check().map_err(|contradiction| contradiction.why)?;
    }
    Ok(changed)
}

fn times(value: Value, kind: Domain, factor: f64) -> Value {
    match (value, kind) {
        (Value::Time(time), Domain::Time(least, most)) => {
            let scaled = Time::ps((time.as_ps() as f64 * factor).round() as u64);
            Value::Time(scaled.clamp(least, most))
        }
        (Value::Count(count), Domain::Count(least, most)) => {
            let scaled = count as f64 * factor;
            let apart = if factor < 1.0 {
                scaled.round().min(count as f64 - 1.0)
            } else {
                scaled.round().max(count as f64 + 1.0)
            };
            Value::Count((apart as u64).clamp(least, most))
        }
        (Value::Share(share), Domain::Share(least, most)) => {
            Value::Share((share * factor).clamp(least, most))
        }
        _ => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Host;
    use crate::machine::Machine;

    fn key<T: Spec>(name: &str) -> &'static Key<T> {
        let mut keys = constants::<T>();
        keys.find(|key| key.name == name).expect("it is a constant")
    }

    #[test]
    fn a_constant_is_scaled_alone_and_within_its_range() {
        let machine = Machine::preset("e5-2699v3").unwrap();
        let up = |name: &str| scaled(machine, key(name), 1.2).unwrap();
        let socket = Machine::named("e5-2699v3:socket=60ns").unwrap();
        assert_eq!(up("socket").costs, socket.costs);
        assert_eq!(up("socket").name, machine.name);
        assert_eq!(up("stores").costs.stores, 38);
        assert_eq!(&up("sibling"), machine, "no sibling is faster than alone");
        assert_eq!(&up("hop"), machine, "there is no second hop");
        let less = scaled(machine, key("jitter"), 0.8).unwrap();
        assert!((less.costs.jitter - 0.2).abs() < 1e-12);
    }

    /// Fails where rounding takes back what the factor has changed.
    #[test]
    fn a_whole_number_changes_by_at_least_one() {
        let of = |host: &Host, factor| {
            let changed = scaled(host, key("pause_grow"), factor).unwrap();
            changed.pause_exit.map(|exit| exit.grow)
        };
        assert_eq!(
            [0.8, 1.2].map(|factor| of(&Host::KVM, factor)),
            [Some(1), Some(3)]
        );
        assert_eq!(of(&Host::KVM_2013, 0.8), Some(1));
        assert_eq!(of(&Host::THREADS, 1.2), None);
    }

    #[test]
    fn constants_are_numbers_that_go_together() {
        let names: Vec<&str> = constants::<Machine>().map(|key| key.name).collect();
        assert!(!names.contains(&"sockets") && !names.contains(&"links"));
        assert!(names.contains(&"request") && names.contains(&"gap"));
        for factor in [0.8, 1.2] {
            for key in constants::<Host>() {
                assert!(!names.contains(&key.name), "{} is ambiguous", key.name);
                for host in Host::PRESETS {
                    scaled(host, key, factor).unwrap();
                }
            }
        }
        let socket = scaled(Machine::preset("barcelona").unwrap(), key("socket"), 1.9);
        assert_eq!(
            socket.unwrap_err(),
            "socket must be at most across, with several sockets"
        );
    }
}
