//! Round trips, and what is refused.

use std::fmt::Debug;

use super::*;
use crate::Time;
use crate::host::Host;
use crate::machine::Machine;
use crate::machine::tests::rows;

fn file<T: Spec>(text: &str) -> Result<T, String> {
    read_in("my.toml", &[], |_| Ok(text.to_owned()))
}

/// Each preset is printed and read again, and made from each other preset by its differences. Fails
/// where a key is missing in the list, or loses digits, and where a preset is outside of its
/// ranges.
#[test]
fn presets_survive_being_printed() {
    fn check<T: Spec + PartialEq + Debug>() {
        for preset in T::presets() {
            assert_eq!(file::<T>(&toml(preset)).as_ref(), Ok(preset));
            assert_eq!(preset.broken_rule(), None);
            for base in T::presets() {
                let text = canonical(base, &table(preset));
                let again = parse::<T>(&text).unwrap();
                assert_eq!(again.name(), text);
                assert_eq!(differences::<T>(&table(&again), &table(preset)), "");
            }
        }
    }
    check::<Machine>();
    check::<Host>();
}

/// Fails where a field has no key: a file could not set it.
#[test]
fn each_key_changes_its_field_and_each_field_has_a_key() {
    fn check<T: Spec>() {
        let base = table(&T::presets()[0]);
        let keys: Vec<&str> = T::keys().map(|key| key.name).collect();
        let all = keys.iter().copied().chain(["name", "about"]);
        for field in base.keys() {
            assert!(all.clone().any(|key| key == field), "{field} has no key");
        }
        for Key { name, kind, .. } in T::keys() {
            assert_eq!(keys.iter().filter(|key| *key == name).count(), 1, "{name}");
            let others = match kind {
                Domain::Time(_, most) => vec![most.to_string()],
                Domain::Count(_, most) => vec![most.to_string()],
                Domain::Share(least, most) => vec![((least + most) / 3.0).to_string()],
                Domain::Flag => ["true", "false"].map(str::to_owned).into(),
                Domain::Word(words) => words.iter().map(ToString::to_string).collect(),
            };
            let others = others.iter().filter(|other| **other != shown(&base[*name]));
            for other in others {
                let mut changed = base.clone();
                changed[*name] = kind.parse(other).unwrap();
                let of: T = changed.try_into().unwrap();
                let differing = differences::<T>(&base, &table(&of));
                assert_eq!(differing, format!("{name}={other}"));
            }
        }
    }
    check::<Machine>();
    check::<Host>();
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
    // TOML escapes some of these, and Rust one in a way that TOML does not know.
    let mine = "'mine', \"so\" \\ \u{200b}";
    let text = format!("about = {}\n{text}cores = 6\n", Value::from(mine));
    let named = file::<Machine>(&text).unwrap();
    assert_eq!((&*named.about, named.all_cores()), (mine, 6));
    assert_eq!(named.name, own.name);
    assert_eq!(file::<Machine>(&toml(&named)).unwrap().about, mine);
}

/// Fails where a contradiction is accepted, or where a complaint does not name the key. Fails where
/// a part of a machine has more sockets or clusters than share its cores evenly, or more cores in
/// one than that has.
#[test]
fn what_is_right_is_read_and_what_is_wrong_is_named() {
    fn read<T: Spec>(text: &str) -> Result<String, String> {
        let read = match text.contains(" = ") {
            true => file::<T>(&text.replace(';', "\n")),
            false => parse(text),
        };
        read.map(|of| name(&of))
    }
    for row in rows(include_str!("tests/texts.txt")) {
        let (text, says) = row.split_once(" -> ").expect(row);
        let is_host = ["threads", "kvm"].iter().any(|host| text.starts_with(host));
        match if is_host {
            read::<Host>(text)
        } else {
            read::<Machine>(text)
        } {
            Ok(name) => assert_eq!(name, says),
            Err(said) => {
                assert!(said.contains(says), "{said}");
                assert!(!said.contains('\n'), "{said} is more than a line");
            }
        }
    }
    let said = Host::named("kvm:chores=false").unwrap_err();
    assert!(!said.contains("did you mean"), "{said}");
}

#[test]
#[should_panic(expected = "sokcet")]
fn a_preset_with_an_unknown_key_is_refused() {
    presets::<Machine>("[mine]\nsokcet = '60ns'\n");
}
