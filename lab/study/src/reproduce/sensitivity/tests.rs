//! Studies that tests can afford.

use super::*;

fn options() -> Options {
    Options {
        length: 0.05,
        seed: 1,
        seeds: 1,
        jobs: 2,
        interrupt: Default::default(),
    }
}

fn study(constants: &[&str], by: f64) -> Study {
    let constants = constants.iter().map(|name| Constant::named(name).unwrap());
    Study::new(&[Table::named("qdisc").unwrap()], constants.collect(), by).unwrap()
}

/// Fails where the runs of one variant are taken for those of another. Sandy Bridge has no second
/// hop, and threads do not poll.
#[test]
fn a_constant_that_matters_moves_a_claim() {
    let study = study(&["poll", "balance_all", "request", "hop"], 0.8);
    let mut done = 0;
    let found = study.run(&options(), |_| done += 1).unwrap();
    assert_eq!(done, study.rounds(1));
    let names = |constants: &[Constant]| constants.iter().map(|one| one.name()).collect::<Vec<_>>();
    let order: Vec<Constant> = found.constants.iter().map(|moved| moved.constant).collect();
    assert_eq!(names(&order), ["request", "balance_all"]);
    assert_eq!(names(&found.unused), ["poll", "hop"]);
    let moved = |at: usize| found.constants[at].down.clone().unwrap();
    let as_before = Effect {
        error: found.error,
        ..Effect::default()
    };
    assert_eq!(moved(1), as_before);
    assert!(moved(0).change > found.chance.change);
    assert!(moved(0).error > found.error && found.error > 0.0);
    let lost = "qdisc: 32 senders: backoff_ticket above ticket";
    assert_eq!(moved(0).loses, [lost]);
    let told = text::describe(&found);
    assert!(
        told.contains(&format!(" holds no longer: {lost}\n")),
        "{told}"
    );
    let page = text::markdown(&found);
    let row = format!("\n- request -80 %: holds no longer: {lost}\n");
    assert!(
        page.contains("\n| request | ") && page.contains(&row),
        "{page}"
    );
}

#[test]
fn a_change_that_does_not_go_with_other_constants_is_refused() {
    let across = vec![Constant::named("across").unwrap()];
    let refused = Study::new(&[Table::named("qdisc").unwrap()], across, 0.8);
    let why = refused.unwrap_err();
    assert!(
        why.contains("sandy-bridge: socket must be at most across"),
        "{why}"
    );
}

#[test]
fn constants_have_unique_names_and_near_misses() {
    for constant in Constant::all() {
        let same = Constant::all().filter(|other| other.name() == constant.name());
        assert_eq!(same.count(), 1, "{constant}");
    }
    let why = Constant::named("locks_lime").unwrap_err();
    assert!(why.starts_with("unknown constant 'locks_lime'; did you mean 'locks_line'?"));
    assert!(Constant::named("sockets").is_err());
}
