//! The score for people, and as a page has it.

use std::fmt::Write;

use overlock_report::columns::{NOTHING, table};
use overlock_report::numbers::significant;

use super::judge::{Line, ORDERS_GOAL, Part, Score};
use crate::vary::Range;

/// How a text is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Columns for a terminal.
    Plain,
    /// Tables in Markdown.
    Markdown,
}

/// The columns with numbers.
const NUMBERS: fn(usize) -> bool = |column| (2..8).contains(&column);

const PARTS: [&str; 8] = [
    "", "half", "figures", "orders", "error", "shape", "null", "skill",
];

/// The groups, the worst first, then the classes with their goals.
pub fn summary(form: Form, score: &Score) -> String {
    let mut text = String::new();
    let titled = |first: &'static str, last: &'static str| {
        let mut titles = PARTS.to_vec();
        titles[0] = first;
        titles.push(last);
        titles
    };
    let groups = score.groups.iter();
    let groups = groups.map(|group| cells(group).into_iter().chain([group.source.clone()]));
    text += &rows(
        form,
        &titled("group, the worst first", "document"),
        NUMBERS,
        groups,
    );
    text += "\n";
    let classes = score.classes.iter().map(|part| {
        let told = match part.reached {
            Some(true) => "reached",
            _ => "missed",
        };
        let goal = part
            .class()
            .map(|class| format!("error {:.2}: {told}", class.goal()));
        let goal = goal.unwrap_or_default();
        cells(part).into_iter().chain([goal])
    });
    text += &rows(form, &titled("class", "goal"), NUMBERS, classes);
    let percent = 100.0 * ORDERS_GOAL;
    let _ = writeln!(
        text,
        "\nA goal is reached with {percent:.0} % of the orders, a skill above 0, and the error. \
         Errors are means of absolute logarithms: 0.1 is a tenth."
    );
    text
}

fn cells(part: &Part) -> Vec<String> {
    let sum = &part.sum;
    let orders = match sum.orders {
        0 => NOTHING.to_owned(),
        orders => format!("{} of {orders}", sum.orders_right),
    };
    let figures = match sum.failed {
        0 => sum.figures.to_string(),
        failed => format!("{} ({failed} failed)", sum.figures),
    };
    let number = |value: Option<f64>| value.map_or(NOTHING.to_owned(), |v| format!("{v:.2}"));
    let skill = sum.skill.map_or(NOTHING.to_owned(), |v| format!("{v:+.2}"));
    vec![
        part.name.clone(),
        part.half.to_string(),
        figures,
        orders,
        number(sum.error),
        number(sum.shape),
        number(sum.null),
        skill,
    ]
}

/// The classes with each value of a key.
pub fn tries(form: Form, key: &str, scores: &[(String, Score)]) -> String {
    let mut titles = PARTS.to_vec();
    titles[0] = "class";
    titles.insert(0, key);
    let lines = scores.iter().flat_map(|(value, score)| {
        let classes = score.classes.iter();
        classes.map(|class| [value.clone()].into_iter().chain(cells(class)))
    });
    rows(form, &titles, |column| column > 2, lines)
}

/// Each figure beside the published one.
pub fn figures(form: Form, score: &Score) -> String {
    let titles = [
        "group",
        "machine",
        "workload",
        "lock",
        "threads",
        "published",
        "simulated",
        "over it",
        "unit",
        "seen",
    ];
    rows(form, &titles, NUMBERS, score.figures.iter().map(figure))
}

fn figure(line: &Line) -> Vec<String> {
    let row = &line.row;
    let lock = match &row.over {
        Some(over) => format!("{} over {over}", row.lock),
        None => row.lock.clone(),
    };
    let simulated = match (line.simulated, line.range) {
        (_, Some(Range { low, high })) => format!("{} to {}", significant(low), significant(high)),
        (Some(figure), None) => significant(figure),
        (None, None) => "failed".to_owned(),
    };
    let unsettled = if line.settled == Some(false) {
        ", unsettled"
    } else {
        ""
    };
    let ratio = line.simulated.map(|figure| figure / row.figure);
    vec![
        row.group.clone(),
        row.machine.clone(),
        row.workload.clone(),
        lock,
        row.threads.to_string(),
        significant(row.figure),
        simulated + unsettled,
        ratio.map_or(NOTHING.to_owned(), |ratio| format!("{ratio:.2}")),
        row.unit.clone(),
        row.seen.clone(),
    ]
}

/// A table, with numbers in the columns of which `is_number` is true.
pub(crate) fn rows(
    form: Form,
    titles: &[&str],
    is_number: fn(usize) -> bool,
    rows: impl IntoIterator<Item = impl IntoIterator<Item = String>>,
) -> String {
    if form == Form::Plain {
        return table(titles.to_vec(), rows, is_number);
    }
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let titles: Vec<String> = titles.iter().map(|&title| title.to_owned()).collect();
    let rule = format!("|{}\n", "---|".repeat(titles.len()));
    let rows = rows.into_iter().map(|row| line(row.into_iter().collect()));
    line(titles) + &rule + &rows.collect::<String>()
}
