//! Round trips, and what is refused.

use std::fmt;

use super::*;
use crate::Time;
use crate::host::Host;
use crate::machine::{MOST_CORES, Machine, PRESETS};

fn machine(text: &str) -> Result<Machine, Error> {
    file("my.toml", text)
}

fn file<T: Spec>(path: &str, text: &str) -> Result<T, Error> {
    file::parse(path, text, &[])
}

fn complaint<T>(result: Result<T, Error>) -> String {
    result.err().expect("it is wrong").to_string()
}

/// Fails where a key is missing in the list, has the field of another, or loses digits, and where a
/// preset is outside of its ranges.
fn round_trips<T: Spec + PartialEq + fmt::Debug>() {
    for preset in T::presets() {
        assert_eq!(
            &file::<T>("preset.toml", &toml(preset)).unwrap(),
            preset,
            "{}",
            preset.name()
        );
        // From another preset by its differences.
        for base in T::presets() {
            let text = format!("{}:{}", base.name(), differences(base, preset));
            let mut again = parse::<T>(text.trim_end_matches(':')).unwrap();
            assert_eq!(again.name(), text.trim_end_matches(':'));
            again.rename(preset.name().to_owned(), preset.about().to_owned());
            assert_eq!(&again, preset, "{text}");
        }
        assert_eq!(preset.check(), Ok(()));
    }
}

#[test]
fn presets_survive_being_printed() {
    round_trips::<Machine>();
    round_trips::<Host>();
}

#[test]
fn each_key_changes_what_it_names_alone() {
    fn check<T: Spec>() {
        for key in T::keys() {
            let names = T::keys().iter().filter(|other| other.name == key.name);
            assert_eq!(names.count(), 1, "{}", key.name);
            let has = |preset: &&T| {
                let value = key.get(preset);
                value.is_some_and(|value| value != Value::Flag(false))
            };
            let base = T::presets().iter().find(has).expect("a preset has it");
            let value = key.get(base).expect("it has it");
            let other = match key.kind {
                Domain::Time(_, most) => Value::Time(most),
                Domain::Count(_, most) => Value::Count(most),
                Domain::Share(least, most) => Value::Share((least + most) / 3.0),
                Domain::Flag => Value::Flag(value != Value::Flag(true)),
                Domain::Word(words) => Value::Word(words[1]),
            };
            let mut changed = base.clone();
            key.set(&mut changed, other).unwrap();
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
            let is_outer = value.ends_with('{') || value.ends_with("Some(");
            if is_outer || ["name", "about"].contains(&field) {
                continue;
            }
            let key = others.iter().find(|(other, _)| *other == field);
            let key = key.map_or(field, |(_, key)| key);
            let has = |other: &Key<T>| {
                let suffix = other.name.rsplit_once('_').map(|(_, suffix)| suffix);
                other.name == key || (other.part.is_some() && suffix == Some(key))
            };
            assert!(T::keys().iter().any(has), "{field} has no key");
        }
    }
    check::<Machine>(&[
        ("cores", "cores_per_socket"),
        ("threads", "threads_per_core"),
    ]);
    check::<Host>(&[("balance", "balance_all")]);
}

#[test]
fn a_file_changes_its_base() {
    let text = "base = \"e5-2699v3\"\nsocket = \"60ns\"\nsockets = 1\njitter = 0\n";
    let own = machine(text).unwrap();
    let preset = &PRESETS[0];
    assert_eq!(own.name, "e5-2699v3:sockets=1:socket=60ns:jitter=0");
    assert!(own.about.starts_with(&*preset.about) && own.about.ends_with("socket=60ns, jitter=0"));
    assert_eq!((own.all_cores(), own.costs.socket), (18, Time::ns(60)));
    assert_eq!(own.costs.across, preset.costs.across);
    assert_eq!(Machine::named(&own.name).unwrap(), own);
    let named = machine(&format!("about = \"mine\"\n{text}cores = 6\n")).unwrap();
    assert_eq!((&*named.about, named.all_cores()), ("mine", 6));
    assert_eq!(named.name, own.name);
}

#[test]
fn overrides_are_nanoseconds_or_have_a_unit() {
    let socket = |text: &str| {
        let machine = Machine::named(&format!("barcelona:socket={text}"));
        machine.map(|machine| machine.costs.socket)
    };
    assert_eq!(socket("60"), Ok(Time::ns(60)));
    assert_eq!(socket("60.5ns"), Ok(Time::ps(60_500)));
    assert_eq!(socket("0.1us"), Ok(Time::ns(100)));
    assert_eq!(socket("900ps"), Ok(Time::ps(900)));
    assert!(complaint(socket("")).ends_with("socket must be a time from 0.1ns to 10us"));
    for nonsense in ["ns", "-1", "60 parsec", "NaN", "inf", "1s", "0"] {
        let text = complaint(socket(nonsense));
        assert!(
            text.ends_with(&format!(
                "socket must be a time from 0.1ns to 10us, not {nonsense}"
            )),
            "{text}"
        );
    }
    let cores = |text: &str| Machine::named(text).map(|machine| machine.all_cores());
    assert_eq!(cores("barcelona:cores=8"), Ok(8));
    assert_eq!(cores("barcelona:cores=3:sockets=1"), Ok(3));
    assert!(complaint(cores("barcelona:cores=17")).ends_with("from 1 to 16"));
    assert!(complaint(cores("barcelona:sockets=512")).contains(&MOST_CORES.to_string()));
    assert!(complaint(cores("barcelona:8")).contains("'8' must be KEY=VALUE"));
    let nearer = complaint(cores("barcelona:socket=131"));
    assert!(
        nearer.ends_with(
            "socket must be at most across, with several sockets \
             (sockets is 4, socket is 131ns, across is 130ns)"
        ),
        "{nearer}"
    );
    assert_eq!(cores("barcelona:sockets=1:socket=131"), Ok(4));
    for cluster in ["", ":cluster=37"] {
        let text = complaint(cores(&format!("sandy-bridge:clusters=2{cluster}")));
        assert!(
            text.contains(
                "cluster must be above 0 and at most socket, with clusters (clusters is 2, "
            ),
            "{text}"
        );
    }
    assert_eq!(cores("sandy-bridge:clusters=2:cluster=20"), Ok(16));
    let twice = complaint(cores("barcelona:hop=1:hop=2"));
    assert_eq!(twice, "barcelona:hop=1:hop=2: hop is there twice");
    let twice = complaint(cores("barcelona:cores=8:cores=4"));
    assert_eq!(twice, "barcelona:cores=8:cores=4: cores is there twice");
}

#[test]
fn a_part_that_is_absent_has_no_keys() {
    let host = Host::named("threads:chores=true:chores_length=1ms").unwrap();
    assert_eq!(host.chores.unwrap().length, Time::ms(1));
    let text = complaint(Host::named("threads:chores_length=1ms"));
    assert!(text.ends_with("chores_length needs chores=true"), "{text}");
    let text = complaint(Host::named("kvm:granularity=1s"));
    assert!(text.contains("granularity must be at most latency (latency is "));
    assert_eq!(Host::named("kvm:poll=200us"), Ok(Host::KVM));
}

#[test]
#[rustfmt::skip]
fn complaints_about_files_name_the_line() {
    // Semicolons stand for ends of lines.
    for (text, says) in [
        ("base = 'e5-2699v3';;sokcet = '60ns'", ":3: unknown key 'sokcet'; did you mean 'socket'? "),
        ("base = 'e5-2699v3';xyz = 1", ":2: unknown key 'xyz'; the keys of a machine are sockets, "),
        ("base = 'e5-2699v3';socket = 60", ":2: socket needs a unit"),
        ("base = 'e5-2699v3';socket = '60'", ":2: socket needs a unit, as in \"60ns\""),
        ("base = 'e5-2699v3';links = 'star'", ":2: links must be one of all, cube, not star"),
        ("base = 'e5-2699v3';inclusive = 'true'", ":2: inclusive must be true or false"),
        ("base = 'e5-2699v3';hop = '1ns';hop = '2ns'", ":3: hop is there twice"),
        ("base = 'abacus'", ":1: unknown machine 'abacus'; the machines are e5-2699v3, "),
        ("base = 1", ":1: base must be a string"),
        ("base = 'x7560';about = \"a\\nb\"", ":2: about must be one line"),
        ("hop = '1ns'", ": base is missing"),
        ("base = ", ":1: "),
        ("base = 'x7560';cores = 33", ":2: cores 33: must be a whole number from 1 to 32"),
        ("base = 'x7560';;across = '9ns'", ":3: socket must be at most across, "),
        // The key that comes closest to the fault has the blame, if the file has it.
        ("base = 'graviton3';hop = '1ns';sockets = 2", ":3: socket must be at most across, "),
        ("base = 'x7560';sockets = 2;socket = '400ns'", ":3: socket must be at most across, "),
        // The base tells the kind, wherever it stands; the other keys follow in their order.
        ("gap = '1ns';base = 'kvm'", ":2: unknown machine 'kvm'"),
        ("base = 'x7560';zzz = 1;aaa = 1", ":2: unknown key 'zzz'"),
        ("base = 'x7560';[costs];hop = '1ns'", ":2: unknown key 'costs'"),
    ] {
        let complaint = complaint(machine(&text.replace(';', "\n")));
        assert!(complaint.starts_with(&format!("my.toml{says}")), "{complaint}");
    }
}
