//! Round trips, and what is refused.

use std::fmt;

use super::*;
use crate::Time;
use crate::host::Host;
use crate::machine::{MOST_CORES, Machine};

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

/// Times are nanoseconds or have a unit. Contradictions and repeated keys are refused.
#[test]
#[rustfmt::skip]
fn overrides_are_understood_or_refused() {
    for (text, socket) in [("60", 60_000), ("60.5ns", 60_500), ("0.1us", 100_000), ("900ps", 900)] {
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
    let refusal = |text: &str| match text {
        _ if text.starts_with("threads") || text.starts_with("kvm") => Host::named(text).err(),
        _ => Machine::named(text).err(),
    };
    let range = "socket must be a time from 0.1ns to 10us";
    for (text, says) in [
        ("barcelona:socket=", range),
        ("barcelona:socket=ns", range),
        ("barcelona:socket=-1", range),
        ("barcelona:socket=60 parsec", range),
        ("barcelona:socket=NaN", range),
        ("barcelona:socket=inf", range),
        ("barcelona:socket=1s", range),
        ("barcelona:socket=0", range),
        ("barcelona:cores=17", "from 1 to 16"),
        ("barcelona:sockets=512", &MOST_CORES.to_string()),
        ("barcelona:8", "'8' must be KEY=VALUE"),
        ("barcelona:socket=131", "with several sockets (sockets is 4, socket is 131ns, across "),
        ("sandy-bridge:clusters=2", "at most socket, with clusters (clusters is 2, "),
        ("sandy-bridge:clusters=2:cluster=37", "at most socket, with clusters (clusters is 2, "),
        ("barcelona:hop=1:hop=2", "barcelona:hop=1:hop=2: hop is there twice"),
        ("barcelona:cores=8:cores=4", "cores is there twice"),
        ("kvm:chores_length=100ms", "chores_length must be less than chores_every (chores_every "),
        ("kvm:granularity=1s", "granularity must be at most latency (latency is "),
    ] {
        let said = refusal(text).expect(text).to_string();
        assert!(said.contains(says), "{said}");
    }
}

#[test]
#[rustfmt::skip]
fn complaints_about_files_name_the_line() {
    // Semicolons stand for ends of lines.
    for (text, says) in [
        ("base = 'x7560';;sokcet = '60ns'", ":3: unknown key 'sokcet'; did you mean 'socket'? "),
        ("base = 'x7560';xyz = 1", ":2: unknown key 'xyz'; the keys of a machine are sockets, "),
        ("base = 'e5-2699v3';socket = 60", ":2: socket needs a unit"),
        ("base = 'e5-2699v3';socket = '60'", ":2: socket needs a unit, as in \"60ns\""),
        ("base = 'e5-2699v3';links = 'star'", ":2: links must be one of all, cube, not star"),
        ("base = 'e5-2699v3';inclusive = 1", ":2: inclusive must be true or false, not 1"),
        ("base = 'e5-2699v3';hop = '1ns';hop = '2ns'", ":3: hop is there twice"),
        ("base = 'abacus'", ":1: unknown machine 'abacus'; the machines are e5-2699v3, "),
        ("base = 1", ":1: unknown machine '1'"),
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
        let said = file::<Machine>(&text.replace(';', "\n")).expect_err(text).to_string();
        assert!(said.starts_with(&format!("my.toml{says}")), "{said}");
    }
}
