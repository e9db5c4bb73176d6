use super::label::{Count, Place, Unit};
use super::*;
use overlock_bench::registry::Listed;
use std::collections::HashSet;

/// The presets and locks of a table exist, and each published line has at least one simulated line.
#[test]
fn tables_ask_for_what_exists() {
    let mut names = HashSet::new();
    for table in TABLES {
        assert!(names.insert(table.name), "{} is there twice", table.name);
        let cases = (table.cases)();
        assert!(!cases.is_empty());
        for case in cases {
            let machine = Machine::preset(case.machine).unwrap();
            assert!(Host::preset(case.host).is_some(), "{}", case.label());
            assert!(case.others % machine.cpus() == 0, "{}", case.label());
            let locks = select(case.workload.family(), [case.lock]).unwrap();
            assert!(locks.iter().all(|lock| Simulated::rounds(lock).is_some()));
        }
    }
}

/// Those that tests can afford, at a length that says nothing about the figures.
#[test]
fn tables_are_reproduced_and_the_same_again() {
    let options = Options {
        length: 0.02,
        seed: 7,
        jobs: 2,
        interrupt: Arc::default(),
    };
    for name in ["semop", "qdisc", "rwsem"] {
        let table = Table::named(name).unwrap();
        let mut done = 0;
        let mut reproduce = || table.reproduce(&options, |_| done += 1).unwrap();
        let (one, other) = (reproduce(), reproduce());
        assert_eq!(done, 2 * table.cases());
        assert!(one.verdict.lines.len() >= table.csv.lines().count() - 1);
        assert_eq!(text::describe(&one), text::describe(&other));
        let mut file = Vec::new();
        text::csv(&mut file, &[one]).unwrap();
        assert!(String::from_utf8(file).unwrap().lines().count() > 1);
    }
}

#[test]
fn an_interrupt_ends_a_table() {
    let options = Options {
        length: 1.0,
        seed: 1,
        jobs: 1,
        interrupt: Arc::default(),
    };
    options.interrupt.raise();
    let table = Table::named("hybrid-micro").unwrap();
    let failure = table.reproduce(&options, |_| {}).unwrap_err();
    assert!(matches!(failure.error, Error::Interrupted), "{failure:?}");
}

const HERE: Place = Place::new(1, Count::Threads);
static UNIT: Unit = Unit {
    title: "a test's",
    short: None,
};

#[test]
fn orders_are_compared_where_published_ones_differ() {
    let order = |measured: &[f64], published: &[f64]| {
        let mut verdict = Verdict::default();
        verdict.order(HERE, &["a", "b", "c"], measured, published, 0.02);
        verdict.claims[0].holds
    };
    assert!(order(&[1.0, 2.0, 3.0], &[10.0, 11.0, 12.0]));
    assert!(!order(&[2.0, 1.0, 3.0], &[10.0, 11.0, 12.0]));
    // Published ones that differ by less do not count.
    assert!(order(&[2.0, 1.0, 3.0], &[10.0, 10.1, 12.0]));
}

#[test]
fn bounds_are_shares_or_differences() {
    let mut verdict = Verdict::default();
    verdict.within(HERE, UNIT.of("share"), 124.0, 100.0, 0.25);
    verdict.within(HERE, UNIT.of("share"), 126.0, 100.0, 0.25);
    verdict.near(HERE, UNIT.of("difference"), -5.0, 0.8, 6.0);
    verdict.near(HERE, UNIT.of("difference"), -5.5, 0.8, 6.0);
    verdict.beside(HERE, UNIT.of("neither"), 1.0, 2.0);
    assert_eq!(verdict.reached(), (2, 4));
    let reached: Vec<_> = verdict.lines.iter().map(|line| line.reached).collect();
    assert_eq!(
        reached,
        [Some(true), Some(false), Some(true), Some(false), None]
    );
}
