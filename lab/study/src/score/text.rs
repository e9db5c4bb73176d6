//! The score for people, and as a page has it.

use std::iter::once;

use itertools::Itertools;
use overlock_report::columns::{Form, NOTHING, optional};
use overlock_report::numbers::significant;

use super::Class;
use super::judge::{Line, ORDERS_GOAL, Part, Score};
use crate::vary::Range;

/// The columns with numbers.
const NUMBERS: fn(usize) -> bool = |column| (2..8).contains(&column);

/// The titles of a part after its name.
const PARTS: [&str; 6] = ["half", "figures", "orders", "error", "null", "skill"];

/// The groups, the worst first, then the classes with their goals.
pub fn summary(form: Form, score: &Score) -> String {
    let rows = |first, last, parts: &[Part], about: fn(&Part) -> String| {
        let titles: Vec<&str> = once(first).chain(PARTS).chain([last]).collect();
        let lines = parts.iter().map(|part| cells(part).chain([about(part)]));
        form.table(&titles, lines, NUMBERS)
    };
    let groups = "group, the worst first";
    let groups = rows(groups, "document", &score.groups, |group| {
        group.source.clone()
    });
    let classes = rows("class", "goal", &score.classes, |part| {
        let told = if part.reached == Some(true) {
            "reached"
        } else {
            "missed"
        };
        let goal = part.class().map_or(0.0, Class::goal);
        format!("error {goal:.2}: {told}")
    });
    format!(
        "{groups}\n{classes}\nA goal is reached with {:.0} % of the orders, a skill above 0, and \
         the error. Errors are means of absolute logarithms: 0.1 is a tenth.\n",
        100.0 * ORDERS_GOAL
    )
}

fn cells(part: &Part) -> impl Iterator<Item = String> + use<> {
    let orders = match part.orders {
        0 => NOTHING.to_owned(),
        orders => format!("{} of {orders}", part.orders_right),
    };
    let figures = match part.failed {
        0 => part.figures.to_string(),
        failed => format!("{} ({failed} failed)", part.figures),
    };
    let number = |value: Option<f64>| optional(value, |value| format!("{value:.2}"));
    let cells = [
        part.name.clone(),
        part.half.to_string(),
        figures,
        orders,
        number(part.error),
        number(part.null),
        optional(part.skill, |skill| format!("{skill:+.2}")),
    ];
    cells.into_iter()
}

/// Each figure beside the published one.
pub fn figures(form: Form, score: &Score) -> String {
    let titles =
        "group, machine, workload, lock, threads, published, simulated, over it, unit, seen";
    let titles = titles.split(", ").collect_vec();
    form.table(&titles, score.figures.iter().map(figure), NUMBERS)
}

fn figure(line: &Line) -> [String; 10] {
    let row = &line.row;
    let lock = match &row.over {
        Some(over) => format!("{} over {over}", row.lock),
        None => row.lock.clone(),
    };
    let mut simulated = match (line.simulated, line.range) {
        (_, Some(Range { low, high })) => format!("{} to {}", significant(low), significant(high)),
        (Some(figure), None) => significant(figure),
        (None, None) => "failed".to_owned(),
    };
    if line.settled == Some(false) {
        simulated += ", unsettled";
    }
    let ratio = line.simulated.map(|figure| figure / row.figure);
    [
        row.group.clone(),
        row.machine.clone(),
        row.workload.clone(),
        lock,
        row.threads.to_string(),
        significant(row.figure),
        simulated,
        optional(ratio, |ratio| format!("{ratio:.2}")),
        row.unit.clone(),
        row.seen.clone(),
    ]
}
