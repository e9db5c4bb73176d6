use super::label::{Count, Place, Scale, Unit};
use super::score::{Score, capacity, predict};
use super::text::{Form, describe};
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
            assert!(Machine::preset(case.machine).is_some());
            assert!(Host::named(case.host).is_ok(), "{}", case.label());
            assert!(case.vcpus.is_multiple_of(case.guests), "{}", case.label());
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
        seeds: 2,
        jobs: 2,
        interrupt: Arc::default(),
    };
    for name in ["semop", "qdisc", "rwsem"] {
        let table = Table::named(name).unwrap();
        let mut done = 0;
        let mut reproduce = || table.reproduce(&options, |_| done += 1).unwrap();
        let (one, other) = (reproduce(), reproduce());
        assert_eq!(done, 4 * table.cases());
        assert!(one.verdict.lines.len() >= table.csv.lines().count() - 1);
        for form in [Form::Plain, Form::Markdown] {
            assert_eq!(describe(form, &one), describe(form, &other));
        }
        let page = describe(Form::Markdown, &one);
        assert!(page.starts_with(&format!("<!-- sim reproduce {name}: begin -->\n")));
        assert!(page.ends_with(&format!("<!-- sim reproduce {name}: end -->\n")));
    }
}

#[test]
fn an_interrupt_ends_a_table() {
    let options = Options {
        length: 1.0,
        seed: 1,
        seeds: 1,
        jobs: 1,
        interrupt: Arc::default(),
    };
    options.interrupt.raise();
    let table = Table::named("hybrid-micro").unwrap();
    let failure = table.reproduce(&options, |_| {}).unwrap_err();
    assert!(matches!(failure.error, Error::Interrupted), "{failure:?}");
}

const HERE: Place = Place::new(1, Count::Threads);
const UNIT: Unit = Unit {
    word: None,
    scale: Scale::Absolute,
};

const RATIO: Unit = Unit {
    word: None,
    scale: Scale::Ratio,
};

fn orders(measured: &[f64]) -> Verdict {
    let mut verdict = Verdict::default();
    verdict.order(HERE, &["a", "b", "c"], measured, &[10.0, 10.1, 12.0], 0.02);
    verdict
}

/// Fails where published figures within the margin make a claim, or where a sign is enough.
#[test]
fn orders_count_beyond_their_margin() {
    assert_eq!(orders(&[2.0, 1.0, 3.0]).held(), (2, 2));
    assert_eq!(orders(&[1.0, 1.0, 1.01]).held(), (0, 2));
    assert_eq!(orders(&[3.0, 1.0, 2.0]).held(), (1, 2));
}

/// Fails where an order counts although the seeds differ by more than the locks.
#[test]
fn orders_count_beyond_the_spread_of_the_seeds() {
    let over = |last: [f64; 3]| {
        let seeds = last.map(|last| orders(&[1.0, 1.0, last]));
        Verdict::over(&seeds).held()
    };
    assert_eq!(over([1.10, 1.11, 1.12]), (2, 2));
    assert_eq!(over([1.01, 1.10, 1.30]), (0, 2));
}

/// Fails where one seed may be slower than the margin allows.
#[test]
fn never_slower_holds_with_each_seed() {
    let over = |ratios: [f64; 3]| {
        let seeds = ratios.map(|ratio| {
            let mut verdict = Verdict::default();
            verdict.claim("never slower", ratio, 1.0, -0.07);
            verdict
        });
        Verdict::over(&seeds).claims[0].holds
    };
    assert!(over([0.94, 1.0, 1.2]));
    assert!(!over([0.92, 1.0, 1.2]));
}

/// Fails where a simulation that is too short supports what it does not show, or where a share of
/// zero is not less than another.
#[test]
fn nothing_over_nothing_supports_no_claim() {
    let over = |less: [f64; 3], margin: f64| {
        let seeds = less.map(|less| {
            let mut verdict = Verdict::default();
            verdict.claim("more", if less > 0.0 { 1.0 } else { 0.0 }, less, margin);
            verdict
        });
        Verdict::over(&seeds).claims[0].holds
    };
    for margin in [-0.07, 0.02] {
        assert!(over([0.5; 3], margin));
        assert!(!over([0.0; 3], margin));
        assert!(!over([0.5, 0.0, 0.5], margin));
    }
    let zero = [0.0; 3].map(|less| {
        let mut verdict = Verdict::default();
        verdict.claim("less", 20.0, less, 0.0);
        verdict
    });
    assert!(Verdict::over(&zero).claims[0].holds);
}

/// Fails where a seed without a figure is passed over.
#[test]
fn each_seed_needs_a_figure() {
    let seeds = [100.0, f64::NAN, 101.0].map(|measured| {
        let mut verdict = Verdict::default();
        verdict.within(HERE, UNIT.of("figure"), measured, 100.0, 0.25);
        verdict
    });
    assert!(!Verdict::over(&seeds).lines[0].reached);
}

/// Fails where the time at which a build was stopped is taken for its length.
#[test]
fn a_build_that_is_not_finished_is_no_figure() {
    let builds = [true, false].map(|all| Sample {
        operations: vec![1],
        elapsed: Duration::from_secs(3),
        cpu: Duration::ZERO,
        switches: 0,
        windows: Vec::new(),
        waits: None,
        roles: None,
        extra: Extra::Built { all },
    });
    finished(&builds[..1]).unwrap();
    let error = finished(&builds).unwrap_err().to_string();
    assert!(error.ends_with("not finished after 3s"), "{error}");
}

#[test]
fn figures_are_medians_over_the_seeds() {
    let seeds = [90.0, 160.0, 110.0].map(|measured| {
        let mut verdict = Verdict::default();
        verdict.within(HERE, UNIT.of("figure"), measured, 100.0, 0.25);
        verdict
    });
    let line = &Verdict::over(&seeds).lines[0];
    assert_eq!((line.measured, line.spread), (110.0, [90.0, 160.0]));
    assert!(line.reached);
}

#[test]
fn bounds_are_shares_or_differences() {
    let mut verdict = Verdict::default();
    verdict.within(HERE, UNIT.of("share"), 124.0, 100.0, 0.25);
    verdict.within(HERE, UNIT.of("share"), 126.0, 100.0, 0.25);
    verdict.near(HERE, UNIT.of("difference"), -5.0, 0.8, 6.0);
    verdict.near(HERE, UNIT.of("difference"), -5.5, 0.8, 6.0);
    verdict.within(HERE, UNIT.of("none"), f64::NAN, 1.0, 0.25);
    let reached: Vec<_> = verdict.lines.iter().map(|line| line.reached).collect();
    assert_eq!(reached, [true, false, true, false, false]);
    assert_eq!(verdict.reached(), (2, 5));
}

/// The null model has the mean of a series on logarithms, and locks that are equal where a series
/// has one figure.
#[test]
fn the_null_model_has_one_constant_for_a_series() {
    let mut verdict = Verdict::default();
    for (threads, measured, published) in [(1, 1.0, 1.0), (2, 4.0, 4.0)] {
        let place = Place::new(threads, Count::Threads);
        verdict.within(place, UNIT.of("series"), measured, published, 0.25);
    }
    verdict.within(HERE, RATIO.of("alone"), 2.0, 4.0, 0.25);
    verdict.within(HERE, UNIT.of("alone"), 2.0, 4.0, 0.25);
    predict(&mut verdict);
    let nulls: Vec<_> = verdict.lines.iter().map(|line| line.null).collect();
    let near = |null: Option<f64>, value: f64| (null.unwrap() - value).abs() < 1e-9;
    assert!(near(nulls[0], 2.0) && near(nulls[1], 2.0), "{nulls:?}");
    assert_eq!(nulls[2..], [Some(1.0), None]);
    let score = Score::of(&verdict.lines);
    assert_eq!(
        (score.figures, score.reached, score.null_reached),
        (3, 2, 0)
    );
    // Errors of 0, 0 and a factor of 2, against 2, 2 and 4.
    assert!((score.skill().unwrap() - 0.75).abs() < 1e-9);
}

/// Figures that are all off by one factor are met once they are scaled. A figure alone is not
/// scaled, nor is a series with a figure that is none.
#[test]
fn a_constant_for_a_series_leaves_its_shape() {
    let mut verdict = Verdict::default();
    let mut series = |name: &'static str, figures: [f64; 2]| {
        for (threads, measured) in [1, 2].into_iter().zip(figures) {
            let place = Place::new(threads, Count::Threads);
            verdict.within(
                place,
                UNIT.of(name),
                measured,
                4f64.powi(threads as i32),
                0.25,
            );
        }
    };
    series("off", [10.0, 40.0]);
    series("turned", [40.0, 10.0]);
    series("none", [f64::NAN, 16.0]);
    series("zero", [0.0, 16.0]);
    verdict.within(HERE, RATIO.of("alone"), 2.0, 4.0, 0.25);
    predict(&mut verdict);
    let scaled: Vec<_> = verdict.lines.iter().map(|line| line.scaled).collect();
    let expected = [4.0, 16.0, 16.0, 4.0, f64::NAN, 16.0, 0.0, 16.0, 2.0];
    for (scaled, expected) in scaled.iter().zip(expected) {
        let near = (scaled - expected).abs() < 1e-9;
        assert!(
            near || scaled.is_nan() && expected.is_nan(),
            "{scaled}, not {expected}"
        );
    }
    let off = Score::of(&verdict.lines[..2]);
    assert_eq!((off.reached, off.scaled_reached), (0, 2));
    assert!((off.scaled_skill().unwrap() - 1.0).abs() < 1e-9);
}

#[test]
fn the_null_model_scales_builds_with_cpus() {
    let machine = Machine::preset("e5-2620v4").unwrap();
    let cpus = [8, 16, 32, 64].map(|vcpus| capacity(machine, vcpus));
    let whole = 32.0 * machine.costs.sibling;
    assert_eq!(cpus[..2], [8.0, 16.0]);
    assert!((cpus[2] - whole).abs() < 1e-9 && (cpus[3] - whole).abs() < 1e-9);
}
