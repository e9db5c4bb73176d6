//! Which lock for which class of machines: the same locks with the same loads on all of them.
//!
//! A range is what constants a tenth smaller and larger make of a figure, widened by the error of
//! the score. Locks whose ranges meet are level: nothing is known about their order.

#[cfg(test)]
mod tests;

use itertools::{Itertools, iproduct};
use overlock_bench::error::Error;
use overlock_bench::registry::Entry;
use overlock_report::columns::Form;
use overlock_report::numbers::rate;
use overlock_sim::host::Host;
use overlock_sim::machine::Machine;
use serde::Serialize;

use crate::advise::{self, Advice, NO_LIBRARY, Question, Standing};
use crate::case::{Case, Options, Place};
use crate::score::Class;
use crate::vary::Range;

/// The classes of machines: a name, what it is, and the machine that stands for it.
const PLACES: &str = "\
8 | one socket, 8 CPUs | xeon-8480:sockets=1:cores_per_socket=4
16 | one socket, 16 CPUs | xeon-8480:sockets=1:cores_per_socket=8
64 | one socket, 64 CPUs | xeon-8480:sockets=1:cores_per_socket=32
128 | one socket, 128 CPUs | xeon-8480:sockets=1:cores_per_socket=64
two-sockets | two sockets, 128 CPUs | xeon-8480:cores_per_socket=32
epyc | EPYC, 128 CPUs in 8 complexes | epyc-9654:sockets=1:clusters=8:cores_per_socket=64
graviton | Graviton, 64 CPUs | graviton3";

/// The sections: a name, what it is, and the workload.
const SECTIONS: &str = "\
short | 200 ns, 2 us between | micro:cs=200ns:ncs=2us
medium | 2 us, 20 us between | micro:cs=2us:ncs=20us
long | 20 us, 200 us between | micro:cs=20us:ncs=200us";

/// Threads for each CPU.
const LEVELS: [f64; 4] = [0.5, 1.0, 2.0, 4.0];

/// The locks, by the names that people use: ours, a queue of spinners, and what programs have.
const LOCKS: &str = "overlock, hybrid_short, mcs, std, glibc, parking_lot-0.13";

/// So many of the best locks of a cell are simulated with changed constants.
const VARIED: usize = 1;

/// A machine with a load, and all locks.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// The name of the machine's class.
    pub place: &'static str,
    /// The name of the section.
    pub section: &'static str,
    /// Threads for each CPU.
    pub level: f64,
    #[serde(flatten)]
    pub advice: Advice,
}

/// A row of [`PLACES`] or [`SECTIONS`].
type Names = [&'static str; 3];

/// All rows of one.
fn rows(table: &'static str) -> impl Iterator<Item = Names> + Clone {
    let rows = table.lines().map(|line| line.split(" | ").collect_array());
    rows.map(|row| row.expect("three cells"))
}

/// The names of the classes of machines.
pub fn places() -> Vec<&'static str> {
    rows(PLACES).map(|[place, ..]| place).collect()
}

/// The locks to choose from if none are named.
pub fn candidates() -> Vec<&'static Entry> {
    advise::named(LOCKS).collect()
}

/// Simulates `locks` in the cells of the classes of these names; of all classes if there are none.
///
/// # Panics
///
/// If a constant of this module is no machine or workload.
pub fn cells(
    places: &[String],
    locks: &[&'static Entry],
    options: &Options,
    done: impl FnMut(usize, usize, &Case),
) -> Result<Vec<Cell>, Error> {
    let wanted = |row: &Names| places.is_empty() || places.iter().any(|place| place == row[0]);
    let all = iproduct!(rows(PLACES).filter(wanted), LEVELS, rows(SECTIONS)).collect_vec();
    let question = |([.., machine], level, [.., workload]): &(Names, f64, Names)| {
        let machine = Machine::named(machine).expect("a machine");
        let threads = (level * machine.cpus() as f64) as usize;
        let workload = workload.parse().expect("a workload");
        let place = Place::new(machine, Host::threads(), workload, threads);
        let locks = locks.to_vec();
        Question { place, locks }
    };
    let questions = all.iter().map(question).collect_vec();
    let answers = advise::answer(&questions, VARIED, options, done)?;
    let cell = |((place, level, section), advice): ((Names, f64, Names), Advice)| Cell {
        place: place[0],
        section: section[0],
        level,
        advice,
    };
    Ok(all.into_iter().zip(answers).map(cell).collect())
}

/// The description of a name.
fn about(table: &'static str, name: &str) -> &'static str {
    let [_, about, _] = rows(table).find(|row| row[0] == name).expect("a name");
    about
}

/// The table, the errors of the score, and which locks failed.
pub fn describe(form: Form, cells: &[Cell]) -> String {
    let sections = rows(SECTIONS).map(|[section, about, _]| format!("{section}: {about}"));
    let sections = sections.collect_vec();
    let titles = ["machine", "threads"].into_iter();
    let titles = titles
        .chain(sections.iter().map(String::as_str))
        .collect_vec();
    let lines = cells.chunk_by(|a, b| (a.place, a.level) == (b.place, b.level));
    let lines = lines.map(|line| {
        let threads = format!("{} ({}x)", line[0].advice.threads, line[0].level);
        let begin = [about(PLACES, line[0].place).to_owned(), threads];
        begin.into_iter().chain(line.iter().map(best))
    });
    let mut text = form.table(&titles, lines, |_| false) + "\n";
    text.extend(Class::ALL.into_iter().filter_map(scored));
    for Cell {
        place,
        section,
        advice,
        ..
    } in cells
    {
        for (lock, why) in &advice.failed {
            let threads = advice.threads;
            text += &format!("- {lock} failed ({place}, {threads} threads, {section}): {why}\n");
        }
    }
    text
}

fn scored(class: Class) -> Option<String> {
    let error = class.error()?;
    Some(format!("- Error of the score, {class}: {error:.2}.\n"))
}

/// The best locks of a cell, the range of the best one, and what else to know of them. A lock that
/// failed is not among `any`.
fn best(cell: &Cell) -> String {
    let Some(best) = cell.advice.locks.first() else {
        return "none".to_owned();
    };
    let (level, behind) = cell.advice.split();
    let named = |locks: &[&Standing]| locks.iter().map(|lock| lock.lock).join(", ");
    let failed = cell.advice.failed.iter().map(|(lock, _)| *lock);
    let others = behind
        .iter()
        .map(|lock| lock.lock)
        .chain(failed)
        .collect_vec();
    let locks = match others.len() {
        0 if level.len() > 1 => "any".to_owned(),
        count if count > 0 && level.len() > count => format!("any but {}", others.join(", ")),
        _ => named(&level),
    };
    let Range { low, high } = best.widened(cell.advice.error);
    let mut text = format!("{locks}: {} to {}", rate(low), rate(high));
    let is_near = |lock: &&Standing| lock.varied().is_regime_change();
    let unsettled = |lock: &&Standing| lock.measured.is_unsettled();
    let near = level.iter().copied().filter(is_near).collect_vec();
    let unsettled = level.iter().copied().filter(unsettled).collect_vec();
    for (what, locks) in [
        ("near a change of regime", near),
        ("not settled", unsettled),
    ] {
        if !locks.is_empty() {
            text += &format!("; {what}: {}", named(&locks));
        }
    }
    if let Some(model) = cell.advice.model_ahead() {
        text += &format!("; ahead{NO_LIBRARY}: {}", model.lock);
    }
    text
}
