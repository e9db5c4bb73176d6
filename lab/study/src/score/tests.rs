//! Folders of figures, and the arithmetic of scores.

use std::collections::HashMap;
use std::fs;

use super::judge::{Part, Results};
use super::text::{Form, figures as figures_of, summary};
use super::*;
use crate::case::Outcome;
use crate::case::tests::{options, rate};

const HEADER: &str = "group,half,source,machine,workload,lock,threads,over,figure,unit\n";
const ROW: &str = "a,,D,small.toml,micro,mcs,4,,2,Mop/s\n";
const BOTH: &str =
    "a,,D,small.toml,micro,mcs,4,,2,Mop/s\na,,D,small.toml,micro,ticket,4,,1,Mop/s\n";

/// The figures of a folder with that table.
fn read(table: &str) -> Result<Vec<Figure>, String> {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("mine.csv"), table).unwrap();
    let machine = "base = \"graviton3\"\nabout = \"four cores\"\ncores_per_socket = 4\n";
    fs::write(dir.path().join("small.toml"), machine).unwrap();
    Folder::At(dir.path().to_owned()).figures()
}

fn folder(rows: &str) -> Vec<Figure> {
    read(&(HEADER.to_owned() + rows)).unwrap()
}

/// So many operations a second with each lock, whatever the threads.
fn rates(figures: &[Figure], rates: &[(&str, &[f64])]) -> Results {
    let mut results = HashMap::new();
    for case in figures.iter().flat_map(Figure::cases) {
        let (_, of) = rates
            .iter()
            .find(|(lock, _)| *lock == case.lock.name)
            .unwrap();
        let each = of.iter().map(|&ops| Outcome::Measured(Box::new(rate(ops))));
        results.insert(case.key(), each.collect());
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
    );
    let simulated: [(&str, &[f64]); 3] = [("ticket", &[2e6]), ("mcs", &[4e6]), ("hybrid", &[8e6])];
    let score = Score::new(&figures, &rates(&figures, &simulated));
    // Simulated are 2, 4 and 8: the published order of ticket and mcs is right, that of mcs and
    // hybrid is not, and ticket and hybrid hardly differ.
    let a = part(&score.groups, "a").sum;
    assert_eq!((a.orders, a.orders_right, a.figures), (2, 1, 3));
    let ln = |values: [f64; 3]| values.map(|value| value.ln().abs()).iter().sum::<f64>() / 3.0;
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

    let classes = score
        .classes
        .iter()
        .map(|part| (part.name.as_str(), part.reached));
    let classes: Vec<_> = classes.collect();
    let reached = ["across sockets", "one socket", "overcommit"]
        .map(|class| (class, Some(class == "overcommit")));
    assert_eq!(classes, reached);
    for form in [Form::Plain, Form::Markdown] {
        let text = summary(form, &score) + &figures_of(form, &score);
        for word in ["1 of 2", "+0.50", "error 0.20: missed", "mcs over ticket"] {
            assert!(text.contains(word), "{word}: {text}");
        }
    }
}

#[test]
fn a_regime_change_is_a_range() {
    let all = folder(BOTH);
    let mcs: (&str, &[f64]) = ("mcs", &[2e6, 1.9e6, 2.1e6]);
    let results = rates(&all, &[mcs, ("ticket", &[1e6, 0.4e6, 1e6])]);
    let text = figures_of(Form::Plain, &Score::new(&all, &results));
    assert!(
        text.contains("0.400 to 1.00") && !text.contains("1.90 to"),
        "{text}"
    );
}

#[test]
fn a_figure_that_has_not_settled_says_so() {
    let all = folder("a,,D,small.toml,micro,mcs,4,ticket,2,ratio\n");
    let mut results = rates(&all, &[("mcs", &[2e6]), ("ticket", &[1e6])]);
    let told = |results: &Results| {
        figures_of(Form::Markdown, &Score::new(&all, results)).contains("| 2.00, unsettled |")
    };
    assert!(!told(&results));
    let mut unsettled = rate(1e6);
    unsettled.simulation.settled = Some(false);
    let over = all[0].over.as_ref().unwrap().key();
    results.insert(over, vec![Outcome::Measured(Box::new(unsettled))]);
    assert!(told(&results));
}

#[test]
fn a_failure_is_told_and_counts_as_a_wrong_order() {
    let figures = folder(BOTH);
    let mut results = rates(&figures, &[("mcs", &[2e6]), ("ticket", &[1e6])]);
    let error = "it hangs".to_owned();
    results.insert(figures[0].case.key(), vec![Outcome::Failed { error }]);
    let score = Score::new(&figures, &results);
    let sum = score.groups[0].sum;
    assert_eq!((sum.failed, sum.orders, sum.orders_right), (1, 1, 0));
    assert_eq!(score.failures().next().unwrap().1, "it hangs");
}

#[test]
fn what_cannot_be_simulated_is_refused_with_its_line() {
    let refused = |table: &str, says: &str| {
        let why = read(table).unwrap_err();
        assert!(why.contains(says), "{table}: {why}");
    };
    let row = |from: &str, to: &str| ROW.replace(from, to);
    let twice = |row: String| row.repeat(22);
    let halves = row("a,,", "a,score,") + &row("a,,", "a,calibrate,");
    let several = [ROW, &row("mcs", "tikcet"), &row("4,,", "many,,")].concat();
    for (rows, says) in [
        (
            row("small.toml", "nowhere"),
            "group a: unknown machine 'nowhere'",
        ),
        (row("small", "gone"), "gone.toml"),
        (row("micro", "mikro"), "unknown workload 'mikro'"),
        (row("mcs", "cohort"), "no lock 'cohort'"),
        (row("Mop/s", "parsecs"), "unknown unit 'parsecs'"),
        (row("Mop/s", "ns a thread"), "unknown unit 'ns a thread'"),
        (row("2,Mop/s", "0,Mop/s"), "the figure 0 is not a finite"),
        (
            row("2,Mop/s", "1e400,Mop/s"),
            "the figure inf is not a finite number above 0",
        ),
        (row("Mop/s", "ratio"), "a ratio, and nothing else"),
        (row("4,,", "0,,"), "0 threads are not 1 to"),
        (
            row(",Mop/s", ""),
            "mine.csv:2: 9 columns, where the first line has 10",
        ),
        (halves, "mine.csv:3: group a: it is in both halves"),
        (
            ROW.to_owned() + &row("a,,", "a,calibrate,"),
            "mine.csv:3: group a: it is in both halves",
        ),
        (
            row("a,,", "a,scoer,"),
            "mine.csv:2: unknown variant `scoer`",
        ),
        (
            row("4,,", "-4,,"),
            "mine.csv:2: column threads: must be a whole number above 0",
        ),
        (String::new(), " has no figures"),
        (
            several.clone(),
            "mine.csv:3: group a: there is no lock 'tikcet' to simulate; did you mean 'ticket'?",
        ),
        (several, "mine.csv:4: column threads: "),
        (twice(row("4,,", "0,,")), "mine.csv:21: "),
        (twice(row("4,,", "0,,")), "\n2 more lines are wrong"),
    ] {
        refused(&(HEADER.to_owned() + &rows), says);
    }
    refused(
        "group,source\na,D\n",
        "mine.csv:1: there is no column 'machine'",
    );
    refused(
        &HEADER.replace("half", "unit"),
        "mine.csv:1: the column 'unit' is there twice",
    );
    let misspelt = HEADER.replace("half", "hafl") + &twice(ROW.to_owned());
    refused(
        &misspelt,
        "mine.csv:1: unknown column 'hafl'; the columns are group, source",
    );
    assert_eq!(read(&misspelt).unwrap_err().lines().count(), 1);
    // A group without a half is in the half `score`.
    folder(&(ROW.to_owned() + &row("a,,", "a,score,")));
    let empty = tempfile::tempdir().unwrap();
    let none = Folder::At(empty.path().to_owned()).figures().unwrap_err();
    assert!(none.contains("no file that ends in .csv"), "{none}");
}

#[test]
fn a_case_is_simulated_once_and_changed_six_times() {
    let figures = folder(
        "a,,D,small.toml,micro:cs=50,mcs,4,ticket,2,ratio\n\
         a,,D,small.toml,micro:cs=50,mcs,4,,2,Mop/s\n",
    );
    let options = options(200);
    let mut count = 0;
    let plain = simulate_all(&figures, false, &options, |_, all, _| count = all).unwrap();
    assert_eq!((count, plain.len()), (2, 2));
    let varied = simulate_all(&figures, true, &options, |_, all, _| count = all).unwrap();
    assert_eq!(count, 14);
    for (key, results) in &varied {
        assert_eq!(results[0], plain[key][0], "{key}");
        assert_ne!(results[1], results[2], "{key}");
    }
    options.interrupt.raise();
    assert!(simulate_all(&figures, false, &options, |_, _, _| ()).is_err());
}
