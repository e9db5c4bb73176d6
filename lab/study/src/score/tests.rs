//! Folders of figures, and the arithmetic of scores.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use super::judge::Part;
use super::run::Results;
use super::text::{Form, figures as figures_of, summary};
use super::*;
use crate::sweep::Measured;
use crate::sweep::tests::nothing;

const HEADER: &str = "group,half,source,machine,workload,lock,threads,over,figure,unit\n";

fn folder(rows: &str) -> Result<Vec<Figure>, String> {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), rows);
    let figures = Folder::At(dir.path().to_owned()).figures();
    figures.map_err(|error| error.to_string())
}

fn write(dir: &Path, rows: &str) {
    fs::write(dir.join("figures.csv"), format!("{HEADER}{rows}")).unwrap();
    let machine = "base = \"graviton3\"\nabout = \"four cores\"\ncores_per_socket = 4\n";
    fs::write(dir.join("small.toml"), machine).unwrap();
}

/// So many operations a second with each lock, whatever the threads.
fn rates(figures: &[Figure], rates: &[(&str, &[f64])]) -> HashMap<String, Results> {
    let mut results = HashMap::new();
    for figure in figures {
        for case in std::iter::once(&figure.case).chain(&figure.over) {
            let of = rates.iter().find(|(lock, _)| *lock == case.lock.name);
            let each = of.unwrap().1.iter().map(|&ops_per_sec| {
                Ok(Measured {
                    ops_per_sec,
                    ..nothing()
                })
            });
            results.insert(case.key(), each.collect());
        }
    }
    results
}

fn part<'a>(parts: &'a [Part], name: &str) -> &'a Part {
    parts.iter().find(|part| part.name == name).unwrap()
}

#[test]
fn orders_errors_and_skill_are_those_of_the_figures() {
    let figures = folder(
        "a,score,D,small.toml,micro:cs=5,ticket,4,,1,Mop/s\n\
         a,score,D,small.toml,micro:cs=5,mcs,4,,2,Mop/s\n\
         a,score,D,small.toml,micro:cs=5,hybrid,4,,1.1,Mop/s\n\
         b,calibrate,D,graviton4,micro,mcs,8,ticket,4,ratio\n\
         c,,D,small.toml,micro,ticket,8,,500,ns\n",
    )
    .unwrap();
    let results = rates(
        &figures,
        &[("ticket", &[2e6]), ("mcs", &[4e6]), ("hybrid", &[8e6])],
    );
    let score = Score::new(&figures, &results);
    // Simulated are 2, 4 and 8: the published order of ticket and mcs is right, that of mcs and
    // hybrid is not, and ticket and hybrid hardly differ.
    let a = part(&score.groups, "a").sum;
    assert_eq!((a.orders, a.orders_right, a.figures), (2, 1, 3));
    let ln = |values: [f64; 3]| {
        values
            .map(|value: f64| value.ln().abs())
            .iter()
            .sum::<f64>()
            / 3.0
    };
    let near = |a: Option<f64>, b: f64| assert!((a.unwrap() - b).abs() < 1e-9, "{a:?} {b}");
    near(a.error, ln([2.0, 2.0, 8.0 / 1.1]));
    let mean = 2.2_f64.cbrt();
    near(a.null, ln([mean, mean / 2.0, mean / 1.1]));
    near(a.skill, 1.0 - a.error.unwrap() / a.null.unwrap());
    // Times a constant they would be 0.65, 1.3 and 2.6.
    near(a.shape, ln([mean / 2.0, mean / 2.0, 2.0 * mean / 1.1]));
    let b = part(&score.groups, "b");
    assert_eq!(
        (b.half, b.sum.orders, b.sum.orders_right),
        (Half::Calibrate, 1, 1)
    );
    near(b.sum.skill, 0.5);
    // One figure has no null model.
    let c = part(&score.groups, "c");
    assert_eq!((c.half, c.sum.skill), (Half::Score, None));
    near(c.sum.error, 0.0);
    assert_eq!(score.groups[0].name, "a", "the worst is first");

    let classes: Vec<&str> = score
        .classes
        .iter()
        .map(|part| part.name.as_str())
        .collect();
    assert_eq!(classes, ["across sockets", "one socket", "overcommit"]);
    assert_eq!(part(&score.classes, "overcommit").reached, Some(true));
    assert_eq!(part(&score.classes, "one socket").reached, Some(false));
    for form in [Form::Plain, Form::Markdown] {
        let text = summary(form, &score) + &figures_of(form, &score);
        for word in ["1 of 2", "+0.50", "error 0.20: missed", "mcs over ticket"] {
            assert!(text.contains(word), "{word}: {text}");
        }
    }
}

#[test]
fn a_regime_change_is_a_range() {
    let rows = "a,,D,small.toml,micro,mcs,4,,2,Mop/s\na,,D,small.toml,micro,ticket,4,,1,Mop/s\n";
    let all = folder(rows).unwrap();
    let results = rates(
        &all,
        &[
            ("mcs", &[2e6, 1.9e6, 2.1e6]),
            ("ticket", &[1e6, 0.4e6, 1e6]),
        ],
    );
    let text = figures_of(Form::Plain, &Score::new(&all, &results));
    assert!(text.contains("0.400 to 1.00"), "{text}");
    assert!(!text.contains("1.90 to"), "{text}");
}

#[test]
fn a_figure_that_has_not_settled_says_so() {
    let all = folder("a,,D,small.toml,micro,mcs,4,ticket,2,ratio\n").unwrap();
    let mut results = rates(&all, &[("mcs", &[2e6]), ("ticket", &[1e6])]);
    let told = |results: &HashMap<String, Results>| {
        figures_of(Form::Markdown, &Score::new(&all, results)).contains("| 2.00, unsettled |")
    };
    assert!(!told(&results));
    let over = all[0].over.as_ref().unwrap().key();
    let measured = results.get_mut(&over).unwrap()[0].as_mut().unwrap();
    measured.simulation.settled = Some(false);
    assert!(told(&results));
}

#[test]
fn a_failure_is_told_and_counts_as_a_wrong_order() {
    let rows = "a,,D,small.toml,micro,mcs,4,,2,Mop/s\na,,D,small.toml,micro,ticket,4,,1,Mop/s\n";
    let figures = folder(rows).unwrap();
    let mut results = rates(&figures, &[("mcs", &[2e6]), ("ticket", &[1e6])]);
    results.insert(figures[0].case.key(), vec![Err("it hangs".to_owned())]);
    let score = Score::new(&figures, &results);
    let sum = score.groups[0].sum;
    assert_eq!((sum.failed, sum.orders, sum.orders_right), (1, 1, 0));
    assert_eq!(score.failures().next().unwrap().1, "it hangs");
}

#[test]
fn what_cannot_be_simulated_is_refused_with_its_group() {
    const ROW: &str = "a,,D,small.toml,micro,mcs,4,,2,Mop/s\n";
    let refused = |rows: &str, says: &str| {
        let why = folder(rows).unwrap_err();
        assert!(why.contains(says), "{rows}: {why}");
    };
    for (cell, other, says) in [
        (
            "small.toml",
            "nowhere",
            "group a: unknown machine 'nowhere'",
        ),
        ("small.toml", "gone.toml", "gone.toml"),
        ("micro", "mikro", "unknown workload 'mikro'"),
        ("mcs", "cohort", "no lock 'cohort'"),
        ("Mop/s", "parsecs", "unknown unit 'parsecs'"),
        ("2,Mop/s", "0,Mop/s", "not above 0"),
        ("Mop/s", "ratio", "a ratio, and nothing else"),
        ("4,,", "0,,", "0 threads are not 1 to"),
        ("4,,", "many,,", "figures.csv"),
        (",Mop/s", "", "9 columns, where the first line has 10"),
    ] {
        refused(&ROW.replace(cell, other), says);
    }
    let halves = ["a,score,", "a,calibrate,"].map(|half| ROW.replace("a,,", half));
    refused(&halves.concat(), "the group a is in both halves");
    let [lock, threads] = [("mcs", "tikcet"), ("4,,", "many,,")].map(|(a, b)| ROW.replace(a, b));
    refused(
        &[ROW, &lock, &threads].concat(),
        "figures.csv:3: group a: there is no lock 'tikcet' to simulate; did you mean 'ticket'?",
    );
    let gone = ROW.replace("small", "gone");
    refused(&(gone + &threads), "figures.csv:3: column threads: ");
    let lines = "a,,D,small.toml,micro,mcs,0,,2,Mop/s\n".repeat(22);
    refused(&lines, "figures.csv:21: ");
    refused(&lines, "\n2 more lines are wrong");
    let titles = |titles: &str, says: &str| {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("mine.csv"), titles).unwrap();
        let why = Folder::At(dir.path().to_owned()).figures().unwrap_err();
        assert!(why.to_string().contains(says), "{why}");
    };
    titles("group,source\n", "mine.csv:1: there is no column 'machine'");
    titles(
        "group,source,machine,workload,lock,threads,figure,unit,hafl\n",
        "mine.csv:1: unknown column 'hafl'",
    );
    let empty = tempfile::tempdir().unwrap();
    let none = Folder::At(empty.path().to_owned()).figures().unwrap_err();
    assert!(
        none.to_string().contains("no file that ends in .csv"),
        "{none}"
    );
}

#[test]
fn a_case_is_simulated_once_and_changed_six_times() {
    let figures = folder(
        "a,,D,small.toml,micro:cs=50,mcs,4,ticket,2,ratio\n\
         a,,D,small.toml,micro:cs=50,mcs,4,,2,Mop/s\n",
    )
    .unwrap();
    let mut options = Options::of(200);
    let mut count = 0;
    let plain = simulate_all(&figures, &options, |_, all, _| count = all).unwrap();
    assert_eq!((count, plain.len()), (2, 2));
    options.vary = true;
    let varied = simulate_all(&figures, &options, |_, all, _| count = all).unwrap();
    assert_eq!(count, 14);
    for (key, results) in &varied {
        assert_eq!(results[0], plain[key][0], "{key}");
        assert_ne!(results[1], results[2], "{key}");
    }
    options.interrupt.raise();
    assert!(simulate_all(&figures, &options, |_, _, _| ()).is_err());
}
