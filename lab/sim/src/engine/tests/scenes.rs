//! Scenes computed by hand, in a table.

use super::*;
use crate::spec::Spec;

/// Does one thing, on behalf of a vCPU.
fn act(words: &[Own; 2], action: &str) {
    let own = |name: &str| &words[usize::from(name == "b")];
    let word = |name: &str| &own(name).0;
    let number = |text: &str| text.parse::<u64>().expect("a number");
    let value = |text: &str| number(text) as u32;
    let instant = |text: &str| Instant::from_nanos(number(text));
    let halt = |name, until: Option<&str>| {
        Sim::halt(word(name), 0, until.map(|until| instant(until).into()));
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
        ["wait", name, expected] => own(name).wait_for(value(expected)),
        ["polls", name, polls] => spins(name, Spin::Polls(value(polls))),
        ["until", name, end] => spins(name, Spin::Until(instant(end))),
        ["halt", name] => halt(name, None),
        ["halt", name, until] => halt(name, Some(until)),
        ["kick", name] => Sim::kick(word(name), Kick::One),
        ["kick-all", name] => Sim::kick(word(name), Kick::All),
        ["futile", name] => assert!(!Sim::halt(word(name), 1 + word(name).peek(), None)),
        ["move", from, to] => assert!(Sim::requeue(word(from), word(to))),
        ["cpu", number] => assert_eq!(Sim::cpu().0, value(number)),
        ["sees", states] => {
            let me = current().expect("a vCPU");
            let mut seen = [false; 2];
            for _ in 0..120 {
                work(Time::us(100));
                for (of, is) in [1 - me, me].into_iter().zip(&mut seen) {
                    *is |= Sim::preempted(Cpu(of as u32));
                }
            }
            let names = ["neither", "itself", "the-other", "both"];
            assert_eq!(
                names[usize::from(seen[0]) * 2 + usize::from(seen[1])],
                states
            );
        }
        ["turn", name, last] => {
            while word(name).load(Relaxed) < value(last) {
                Sim::yield_slice(Sim::ticks());
                Sim::pause(Pause::Nanos(150));
            }
        }
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
        ["loop", nanos] => {
            let start = Sim::now();
            while Sim::now().nanos_since(start) < number(nanos) {
                Sim::pause(Pause::Iterations(1));
            }
        }
        _ => unreachable!("{action} is nothing"),
    }
}

/// Returns the text, after whose first word names and figures alternate, with other figures.
fn fill(text: &str, figure: impl Fn(&str) -> u64) -> String {
    let mut words: Vec<String> = text.split(' ').map(str::to_owned).collect();
    for two in words[1..].chunks_mut(2) {
        two[1] = figure(&two[0]).to_string();
    }
    words.join(" ")
}

/// Plays a scene. Returns it with the figures that it has.
fn play(scene: &str) -> String {
    let (keys, lines) = scene.split_once('\n').expect("what vCPUs do");
    let is_of_vcpu = |line: &&str| !line.starts_with("counts");
    let (vcpus, counts): (Vec<&str>, Vec<&str>) = lines.lines().partition(is_of_vcpu);
    let ends = vcpus.iter().map(|line| line.split_once(" -> "));
    let vcpus: Vec<(&str, &str)> = ends.map(|end| end.expect("an end")).collect();
    let (mut machine, mut host) = (machine(vcpus.len(), 1), host());
    let (mut guests, mut others) = (1, 0);
    for key in keys.split_whitespace() {
        let is_of_machine = |name| Machine::keys().any(|key| key.name == name);
        match key.split_once('=') {
            None => host = exits(),
            Some(("guests", count)) => guests = count.parse().expect("a number"),
            Some(("others", count)) => others = count.parse().expect("a number"),
            Some((key, value)) if is_of_machine(key) => {
                machine = spec::with(&machine, key, value).expect("a machine");
            }
            Some((key, value)) => host = spec::with(&host, key, value).expect("a host"),
        }
    }
    let words = [Own::new(), Own::new()];
    let mut setup = setup(&machine, &host, vcpus.len());
    (setup.guests, setup.others) = (guests, others);
    let body = |vcpu: usize| {
        let actions = vcpus[vcpu].0.split(", ");
        actions.for_each(|action| act(&words, action));
        now().as_ns()
    };
    let outcome = run(&setup, body, || true).expect("it ends");
    let mut seen = keys.to_owned();
    for ((script, expected), (account, end)) in vcpus
        .iter()
        .zip(outcome.accounts.iter().zip(&outcome.results))
    {
        assert_eq!(account.total(), outcome.elapsed, "{scene}");
        let state = |name: &str| State::ALL.iter().find(|state| state.name() == name);
        let figures = fill(expected, |name| {
            account[*state(name).expect("a state")].as_ns()
        });
        let figures = match figures.split_once(' ') {
            _ if figures.starts_with('*') => figures,
            Some((_, states)) => format!("{end} {states}"),
            None => end.to_string(),
        };
        seen += &format!("\n{script} -> {figures}");
    }
    let of_all = outcome.counts;
    let count = |name: &str| match name {
        "halts" => of_all.halts,
        "kicks" => of_all.kicks,
        "kicked" => marks(&outcome, |mark| matches!(mark.what, What::Kicked(_))),
        "exits" => of_all.pause_exits,
        "yields" => of_all.yields,
        "preemptions" => of_all.preemptions,
        "holders" => of_all.holders,
        "waiters" => of_all.waiters,
        "migrations" => of_all.migrations,
        _ => unreachable!("{name} is not counted"),
    };
    counts
        .iter()
        .for_each(|line| seen += &format!("\n{}", fill(line, count)));
    seen
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
