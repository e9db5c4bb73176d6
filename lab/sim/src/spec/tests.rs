//! Round trips, and what is refused.

use std::fmt;

use super::*;
use crate::Time;
use crate::host::Host;
use crate::machine::Machine;

fn file<T: Spec>(text: &str) -> Result<T, Error> {
    file::parse("my.toml", text, &[])
}

/// Each preset is printed and read again, and made from each other preset by its differences. Fails
/// where a key is missing in the list, has the field of another, or loses digits, and where a
/// preset is outside of its ranges.
#[test]
fn presets_survive_being_printed() {
    fn check<T: Spec + PartialEq + fmt::Debug>() {
        for preset in T::presets() {
            assert_eq!(file::<T>(&toml(preset)).as_ref(), Ok(preset));
            assert!(broken_rule(preset).is_none());
            for base in T::presets() {
                let text = format!("{}:{}", base.name(), differences(base, preset));
                let mut again = parse::<T>(text.trim_end_matches(':')).unwrap();
                assert_eq!(again.name(), text.trim_end_matches(':'));
                again.rename(preset.name().to_owned(), preset.about().to_owned());
                assert_eq!(&again, preset, "{text}");
            }
        }
    }
    check::<Machine>();
    check::<Host>();
}

#[test]
fn each_key_changes_what_it_names_alone() {
    fn check<T: Spec>() {
        for key in T::keys() {
            let names = T::keys().iter().filter(|other| other.name == key.name);
            assert_eq!(names.count(), 1, "{}", key.name);
            let base = &T::presets()[0];
            let other = match key.kind {
                Domain::Time(_, most) => key.kind.show(most.as_ps() as f64),
                Domain::Count(_, most) => most.to_string(),
                Domain::Share(least, most) => ((least + most) / 3.0).to_string(),
                Domain::Flag => (key.get(base) == Some(0.0)).to_string(),
                Domain::Word(words) => words[1].to_owned(),
            };
            let mut changed = base.clone();
            key.set(&mut changed, &other, false).unwrap();
            let differing = differences(base, &changed);
            assert_eq!(differing, format!("{}={other}", key.name));
        }
    }
    check::<Machine>();
    check::<Host>();
}

/// Fails where a field has no key, by the names that `Debug` prints: a file could not set it.
#[test]
fn each_field_has_a_key() {
    fn check<T: Spec + fmt::Debug>(others: &[(&str, &str)]) {
        let text = format!("{:#?}", T::presets()[0]);
        let fields = text.lines().filter_map(|line| line.trim().split_once(": "));
        for (field, value) in fields {
            if value.ends_with('{') || ["name", "about"].contains(&field) {
                continue;
            }
            let key = others.iter().find(|(other, _)| *other == field);
            let key = key.map_or(field, |(_, key)| key);
            let has = T::keys().iter().any(|other| other.name == key);
            assert!(has, "{field} has no key");
        }
    }
    check::<Machine>(&[
        ("cores", "cores_per_socket"),
        ("threads", "threads_per_core"),
    ]);
    check::<Host>(&[
        ("balance", "balance_all"),
        ("request", "eevdf_request"),
        ("yields", "yield"),
        ("every", "chores_every"),
        ("length", "chores_length"),
        ("window", "pause_window"),
        ("grow", "pause_grow"),
        ("gap", "pause_gap"),
        ("cost", "pause_cost"),
    ]);
}

#[test]
fn a_file_changes_its_base() {
    let text = "base = \"e5-2699v3\"\nsocket = \"60ns\"\nsockets = 1\njitter = 0\n";
    let own = file::<Machine>(text).unwrap();
    let preset = Machine::preset("e5-2699v3").unwrap();
    assert_eq!(own.name, "e5-2699v3:sockets=1:socket=60ns:jitter=0");
    assert!(own.about.starts_with(&*preset.about) && own.about.ends_with("socket=60ns, jitter=0"));
    assert_eq!((own.all_cores(), own.costs.socket), (18, Time::ns(60)));
    assert_eq!(own.costs.across, preset.costs.across);
    assert_eq!(Machine::named(&own.name).unwrap(), own);
    let named = file::<Machine>(&format!("about = \"mine\"\n{text}cores = 6\n")).unwrap();
    assert_eq!((&*named.about, named.all_cores()), ("mine", 6));
    assert_eq!(named.name, own.name);
}

/// Times are nanoseconds or have a unit.
#[test]
fn overrides_change_keys() {
    for (text, socket) in [
        ("60", 60_000),
        ("60.5ns", 60_500),
        ("0.1us", 100_000),
        ("900ps", 900),
    ] {
        let machine = Machine::named(&format!("barcelona:socket={text}"));
        assert_eq!(machine.unwrap().costs.socket, Time::ps(socket));
    }
    for (text, cores) in [
        ("barcelona:cores=8", 8),
        ("barcelona:cores=3:sockets=1", 3),
        ("barcelona:sockets=1:socket=131", 4),
        ("sandy-bridge:clusters=2:cluster=20", 16),
    ] {
        assert_eq!(Machine::named(text).unwrap().all_cores(), cores);
    }
    let host = Host::named("threads:chores_length=1ms").unwrap();
    assert_eq!(host.chores.length, Time::ms(1));
}

/// Fails where a contradiction or a repeated key is accepted, or where a complaint does not name
/// the key, or the line of a file.
#[test]
fn what_is_wrong_is_named() {
    let rows = include_str!("tests/refused.txt").lines();
    for (text, says) in rows.filter_map(|row| row.split_once(" -> ")) {
        let error = match text {
            _ if says.starts_with("my.toml") => file::<Machine>(&text.replace(';', "\n")).err(),
            _ if ["threads", "kvm"].iter().any(|host| text.starts_with(host)) => {
                Host::named(text).err()
            }
            _ => Machine::named(text).err(),
        };
        let said = error.expect(text).to_string();
        assert!(said.contains(says), "{said}");
    }
}
