//! Folders of figures, and the arithmetic of scores.

use std::fs;

use itertools::Itertools;
use overlock_report::columns::Form;

use super::judge::Part;
use super::text::{figures as figures_of, summary};
use super::*;
use crate::case::Outcome;
use crate::case::tests::{options, rate};

const HEADER: &str = "group,half,source,machine,workload,lock,threads,over,figure,unit\n";
const ROW: &str = "a,,D,small.toml,micro,mcs,4,,2,Mop/s\n";

/// The figures of a folder with that table.
fn read(table: &str) -> Result<Vec<Figure>, String> {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("mine.csv"), table).unwrap();
    let machine = "base = \"graviton3\"\nabout = \"four cores\"\ncores_per_socket = 4\n";
    fs::write(dir.path().join("small.toml"), machine).unwrap();
    Folder::read(dir.path())?.figures()
}

fn folder(rows: &str) -> Vec<Figure> {
    read(&(HEADER.to_owned() + rows)).unwrap()
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
    let simulated = [2e6, 4e6, 8e6, 4e6, 2e6, 2e6].map(|ops| Ok(rate(ops)));
    let score = Score::new(&figures, vec![1], &[simulated.into()]);
    // Simulated are 2, 4 and 8: the published order of ticket and mcs is right, that of mcs and
    // hybrid is not, and ticket and hybrid hardly differ.
    let a = part(&score.groups, "a");
    assert_eq!((a.orders, a.orders_right, a.figures), (2, 1, 3));
    let ln = |values: [f64; 3]| values.map(|value| value.ln().abs()).iter().sum::<f64>() / 3.0;
    let near = |a: Option<f64>, b: f64| assert!((a.unwrap() - b).abs() < 1e-9, "{a:?} {b}");
    near(a.error, ln([2.0, 2.0, 8.0 / 1.1]));
    let mean = 2.2_f64.cbrt();
    near(a.null, ln([mean, mean / 2.0, mean / 1.1]));
    near(a.skill, 1.0 - a.error.unwrap() / a.null.unwrap());
    let b = part(&score.groups, "b");
    let orders = (b.orders, b.orders_right);
    assert_eq!((b.half, orders), (Half::Calibrate, (1, 1)));
    near(b.skill, 0.5);
    // One figure has no null model.
    let c = part(&score.groups, "c");
    assert_eq!((c.half, c.skill), (Half::Score, None));
    near(c.error, 0.0);
    assert_eq!(score.groups[0].name, "a", "the worst is first");

    let reached = Class::ALL.map(|class| part(&score.classes, &class.to_string()).reached);
    assert_eq!(reached, [Some(false), Some(false), Some(true)]);
    for form in [Form::Plain, Form::Markdown] {
        let text = summary(form, &score) + &figures_of(form, &score);
        for word in ["1 of 2", "+0.50", "error 0.20: missed", "mcs over ticket"] {
            assert!(text.contains(word), "{word}: {text}");
        }
    }
}

/// Also where only one of two simulations has not settled.
#[test]
fn ranges_unsettled_figures_and_failures_are_told() {
    let figures = folder(&(ROW.replace("4,,", "4,ticket,").replace("Mop/s", "ratio") + ROW));
    let runs = |runs: &[Vec<Outcome>]| {
        let score = Score::new(&figures, vec![], runs);
        (figures_of(Form::Markdown, &score), score)
    };
    let told = |outcomes: [Outcome; 6]| runs(&[outcomes.into()]);
    let simulated = [4e6, 3.8e6, 1e6, 0.4e6, 2e6, 1.9e6].map(|ops| Ok(rate(ops)));
    let (text, _) = told(simulated.clone());
    assert!(
        text.contains("| 4.00 to 9.50 |") && text.contains("| 2.00 |"),
        "{text}"
    );
    // The median over the runs, and a range where they have other regimes.
    let run = |ours: f64, over: f64| [ours, over, ours].map(|ops| Ok(rate(ops))).to_vec();
    let (text, _) = runs(&[run(4e6, 1e6), run(2e6, 1e6), run(1.9e6, 1e6)]);
    assert!(text.contains("| 1.90 to 4.00 | 1.00 |"), "{text}");
    let (text, _) = runs(&[run(2e6, 1e6), run(2.2e6, 1e6), run(1.9e6, 1e6)]);
    assert!(text.contains("| 2.00 | 1.00 |"), "{text}");
    let mut unsettled = rate(1e6);
    unsettled.simulation.settled = Some(false);
    let [a, b, _, d, e, f] = simulated.clone();
    let (text, _) = told([a, b, Ok(unsettled), d, e, f]);
    assert_eq!(text.matches("4.00 to 9.50, unsettled").count(), 1, "{text}");
    assert_eq!(text.matches("unsettled").count(), 1, "{text}");
    let [a, b, c, _, e, f] = simulated;
    let (text, score) = told([a, b, c, Err("it hangs".to_owned()), e, f]);
    let sum = &score.groups[0];
    assert_eq!((sum.failed, sum.orders, sum.orders_right), (1, 1, 0));
    assert_eq!(score.failures().next().unwrap().1, "it hangs");
    assert!(text.contains("| failed |"), "{text}");
}

/// A part of the row, what is there in its place, and the complaint.
const WRONG: &str = "\
small.toml > nowhere > mine.csv:2: unknown machine 'nowhere'
small > gone > gone.toml
micro > mikro > unknown workload 'mikro'
mcs > cohort > unknown lock 'cohort'
Mop/s > parsecs > unknown unit 'parsecs'
Mop/s > ns a thread > unknown unit 'ns a thread'
2,Mop/s > 0,Mop/s > the figure 0 is not a finite
2,Mop/s > 1e400,Mop/s > the figure inf is not a finite
Mop/s > ratio > a ratio, and nothing else
4,, > 0,, > mine.csv:2: 0 threads are not 1 to
,Mop/s >  > (line: 2, byte: 65): found record with 9 fields
a,, > a,scoer, > unknown variant `scoer`
4,, > -4,, > field 6: invalid digit
,D, > ,, > group and source must not be empty
a,, > ,, > group and source must not be empty";

#[test]
fn what_cannot_be_simulated_is_refused_with_its_line() {
    let refused = |table: &str, says: &str| {
        let why = read(table).unwrap_err();
        assert!(why.contains(says), "{table}: {why}");
    };
    let row = |from: &str, to: &str| ROW.replace(from, to);
    for line in WRONG.lines() {
        let [from, to, says] = line.split(" > ").collect_array().unwrap();
        refused(&(HEADER.to_owned() + &row(from, to)), says);
    }
    let halves = ROW.to_owned() + &row("a,,", "a,calibrate,");
    for (rows, says) in [
        (
            row("mcs", "tikcet") + ROW,
            "; did you mean 'ticket'? The locks",
        ),
        (halves, "mine.csv:3: a is in both halves"),
        (ROW.to_owned() + &row("4,,", "0,,"), "mine.csv:3: 0 threads"),
        (String::new(), " has no figures"),
    ] {
        refused(&(HEADER.to_owned() + &rows), says);
    }
    let missing = "missing field `machine`";
    refused("group,source\na,D\n", missing);
    let titled = |title: &str| HEADER.replace("half", title) + ROW;
    refused(&titled("unit"), "duplicate field `unit`");
    refused(
        &titled("hafl"),
        "unknown field `hafl`, expected one of `group`",
    );
    // A group without a half is in the half `score`.
    folder(&(ROW.to_owned() + &row("a,,", "a,score,")));
}

#[test]
fn a_case_is_simulated_once_and_changed_six_times() {
    let figures = folder(
        "a,,D,small.toml,micro:cs=50,mcs,4,ticket,2,ratio\n\
         a,,D,small.toml,micro:cs=50,mcs,4,,2,Mop/s\n",
    );
    let mut count = 0;
    let mut all = |vary| {
        let outcomes = simulate_all(&figures, vary, &options(200), |_, all, _| count = all);
        (outcomes.unwrap(), count)
    };
    let ((plain, once), (varied, each)) = (all(false), all(true));
    assert_eq!((once, each), (2, 14));
    for (plain, varied) in plain.iter().zip(varied.chunks(7)) {
        assert_eq!(varied[0], *plain);
        assert_ne!(varied[1], varied[2]);
    }
    let interrupted = options(200);
    interrupted.interrupt.raise();
    assert!(simulate_all(&figures, false, &interrupted, |_, _, _| ()).is_err());
}
