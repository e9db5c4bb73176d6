//! Scenes computed by hand, in a table.

use super::*;
use crate::spec::Spec;

/// Does one thing, on behalf of a vCPU.
fn act(words: &[Own; 2], action: &str) {
    let word = |name: &str| &words[usize::from(name == "b")].0;
    let own = |name: &str| &words[usize::from(name == "b")];
    let number = |text: &str| text.parse::<u64>().expect("a number");
    let value = |text: &str| number(text) as u32;
    let halt = |name, until: Option<u64>, class| {
        let until = until.map(|nanos| Instant::from_nanos(nanos).into());
        Sim::halt(word(name), 0, until, class);
    };
    let spins = |name, limit| {
        let seen = Sim::wait_until(word(name), Relaxed, limit, |seen: u32| seen == 1);
        assert_eq!(seen, Err(0));
    };
    let parts: Vec<&str> = action.split_whitespace().collect();
    match parts[..] {
        ["at", moment] => at(number(moment)),
        ["work", nanos] => work(Time::ns(number(nanos))),
        ["take", name] => own(name).take(),
        [name, ":=", stored] => word(name).store(value(stored), Relaxed),
        [name, "seq", stored] => word(name).store(value(stored), SeqCst),
        ["light"] => Sim::light_barrier(),
        ["heavy"] => Sim::heavy_barrier(),
        [name, "+=", added] => drop(word(name).fetch_add(value(added), Relaxed)),
        [name, "==", loaded] => assert_eq!(word(name).load(Relaxed), value(loaded)),
        ["byte", name, stored] => word(name).byte1_store(value(stored) as u8, Relaxed),
        ["free", name, loaded] => {
            assert!(Sim::unobserved(|| word(name).load(Relaxed) == value(loaded)));
        }
        ["wait", name, value] => own(name).wait_for(number(value) as u32),
        ["polls", name, polls] => spins(name, Spin::Polls(value(polls))),
        ["until", name, end] => spins(name, Spin::Until(Instant::from_nanos(number(end)))),
        ["halt", name] => halt(name, None, WakeClass::Waiter),
        ["halt", name, until] => halt(name, Some(number(until)), WakeClass::Waiter),
        ["target", name] => halt(name, None, WakeClass::Target),
        ["kick", name] => Sim::kick(word(name), Kick::One),
        ["kick-all", name] => Sim::kick(word(name), Kick::All),
        ["kick-target", name] => Sim::kick(word(name), Kick::Target),
        ["move", from, to] => assert!(Sim::requeue(word(from), word(to))),
        ["works", times] => (0..number(times)).for_each(|_| work(Time::us(100))),
        ["rests", times] => (0..number(times)).for_each(|_| {
            work(Time::us(10));
            rest();
        }),
        ["holds"] => holds(0x1000),
        ["waits"] => waits(0x1000),
        ["releases"] => releases(0x1000),
        ["pause", turns] => Sim::pause(Pause::Iterations(value(turns))),
        ["pauses", turns] => (0..number(turns)).for_each(|_| Sim::pause(Pause::Iterations(1))),
        ["delay", nanos] => Sim::pause(Pause::Delay(number(nanos))),
        ["spin", nanos] => Sim::pause(Pause::Nanos(number(nanos))),
        ["loop", nanos] => loops(number(nanos)),
        _ => unreachable!("{action} is nothing"),
    }
}

/// Plays a scene. Returns it with the figures that it has.
fn play(scene: &str) -> String {
    let mut lines = scene.lines();
    let keys = lines.next().unwrap_or_default();
    let (counts, vcpus): (Vec<&str>, Vec<&str>) =
        lines.partition(|line| line.starts_with("counts"));
    let vcpus: Vec<(&str, &str)> = vcpus
        .iter()
        .map(|line| line.split_once(" -> ").expect("an end"))
        .collect();
    let (mut machine, mut host) = (machine(vcpus.len(), 1), host());
    let (mut guests, mut others) = (1, 0);
    for key in keys.split_whitespace() {
        let is_of_machine = |name| Machine::keys().any(|key| key.name == name);
        match key.split_once('=') {
            None => host = exits(),
            Some(("guests", count)) => guests = count.parse().expect("a number"),
            Some(("others", count)) => others = count.parse().expect("a number"),
            Some((key, value)) if is_of_machine(key) => {
                machine = spec::with(machine, key, value).expect("a machine");
            }
            Some((key, value)) => host = spec::with(host, key, value).expect("a host"),
        }
    }
    let words = [Own::new(), Own::new()];
    let mut setup = setup(&machine, &host, vcpus.len());
    (setup.guests, setup.others) = (guests, others);
    let body = |vcpu: usize| {
        vcpus[vcpu]
            .0
            .split(", ")
            .for_each(|action| act(&words, action));
        now().as_ns()
    };
    let outcome = run(&setup, body, || true).expect("it ends");
    let mut seen: Vec<String> = vec![keys.to_owned()];
    for (vcpu, (script, expected)) in vcpus.iter().enumerate() {
        let account = &outcome.accounts[vcpu];
        assert_eq!(account.total(), outcome.elapsed, "{scene}");
        let mut words: Vec<String> = expected.split(' ').map(str::to_owned).collect();
        if words[0] != "*" {
            words[0] = outcome.results[vcpu].to_string();
        }
        for two in words[1..].chunks_mut(2) {
            let state = State::ALL.iter().find(|state| state.name() == two[0]);
            two[1] = account[*state.expect("a state")].as_ns().to_string();
        }
        seen.push(format!("{script} -> {}", words.join(" ")));
    }
    for line in counts {
        let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        for two in words[1..].chunks_mut(2) {
            let count = match &*two[0] {
                "halts" => outcome.counts.halts,
                "kicks" => outcome.counts.kicks,
                "kicked" => marks(&outcome, |mark| matches!(mark.what, What::Kicked(_))),
                "exits" => outcome.counts.pause_exits,
                "yields" => outcome.counts.yields,
                "preemptions" => outcome.counts.preemptions,
                "holders" => outcome.counts.holders,
                "waiters" => outcome.counts.waiters,
                "migrations" => outcome.counts.migrations,
                name => unreachable!("{name} is not counted"),
            };
            two[1] = count.to_string();
        }
        seen.push(words.join(" "));
    }
    seen.join("\n")
}

/// Fails where a cost is mixed up with another one, or an event is at another time.
#[test]
fn scenes_are_as_computed() {
    let is_text = |line: &&str| !line.is_empty() && !line.starts_with('#');
    let lines: Vec<&str> = include_str!("scenes.txt").lines().filter(is_text).collect();
    let scenes = lines.join("\n");
    for scene in scenes.split("scene").skip(1) {
        assert_eq!(play(scene), scene.trim_end());
    }
}
