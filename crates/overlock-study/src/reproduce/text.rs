//! A reproduced table for people, as CSV, and a summary of several.

use std::fmt::Write;
use std::io;

use comfy_table::{CellAlignment, ContentArrangement, Table as Grid};
use serde::Serialize;

use super::label::{Place, Quantity};
use super::{Line, Reproduction, Verdict};
use overlock_report::numbers::significant;

const TITLES: [&str; 6] = ["where", "what", "simulated", "published", "ratio", "within"];

/// The table with its claims.
pub fn describe(reproduction: &Reproduction) -> String {
    let Reproduction {
        table,
        about,
        assumes,
        fitted,
        verdict,
        ..
    } = reproduction;
    let mut text = format!("{table}: {about}\nassumed: {assumes}\n");
    if !fitted {
        let _ = writeln!(text, "{LEFT_OUT}");
    }
    text.push('\n');
    if !verdict.lines.is_empty() {
        let _ = writeln!(text, "{}\n", grid(&verdict.lines));
    }
    for claim in &verdict.claims {
        let holds = if claim.holds { "holds" } else { "fails" };
        let _ = writeln!(text, "{holds}: {}", claim.what);
    }
    for score in scores(verdict) {
        let _ = writeln!(text, "{score}");
    }
    text
}

/// How much of a table was reached.
pub(super) fn scores(verdict: &Verdict) -> Vec<String> {
    let ((reached, bounded), (held, claims)) = (verdict.reached(), verdict.held());
    let figures = format!("{reached} of {bounded} figures within their bounds");
    let claimed = format!("{held} of {claims} claims hold");
    let both = [(bounded, figures), (claims, claimed)];
    let counted = both.into_iter().filter(|(number, _)| *number > 0);
    counted.map(|(_, text)| text).collect()
}

/// The remark on a table that was not used to fit the cost model.
pub(super) const LEFT_OUT: &str = "not looked at when the cost model was fitted";

fn grid(lines: &[Line]) -> String {
    let mut grid = Grid::new();
    grid.load_style(comfy_table::presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(TITLES);
    for line in lines {
        grid.add_row([
            line.place.to_string(),
            line.what.to_string(),
            significant(line.measured),
            significant(line.published),
            format!("{:.2}", line.ratio),
            within(line),
        ]);
    }
    for column in grid.column_iter_mut().skip(2).take(3) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    grid.trim_fmt()
}

fn within(line: &Line) -> String {
    let (Some(bound), Some(reached)) = (line.bound, line.reached) else {
        return String::new();
    };
    let bound = if line.absolute {
        format!("{bound} points")
    } else {
        format!("{:.0} %", bound * 100.0)
    };
    format!("{bound}: {}", if reached { "yes" } else { "no" })
}

#[derive(Serialize)]
struct Record<'a> {
    table: &'a str,
    place: Place,
    what: &'a Quantity,
    simulated: f64,
    published: f64,
    ratio: f64,
    bound: Option<f64>,
    reached: Option<bool>,
}

/// A line of CSV for each figure.
///
/// # Errors
///
/// Those of `out`.
pub fn csv(out: &mut dyn io::Write, all: &[Reproduction]) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    for reproduction in all {
        for line in &reproduction.verdict.lines {
            writer
                .serialize(Record {
                    table: reproduction.table,
                    place: line.place,
                    what: &line.what,
                    simulated: line.measured,
                    published: line.published,
                    ratio: line.ratio,
                    bound: line.bound,
                    reached: line.reached,
                })
                .map_err(io::Error::other)?;
        }
    }
    writer.flush()
}

/// All of it as JSON.
///
/// # Errors
///
/// Those of `out`.
pub fn json(out: &mut dyn io::Write, all: &[Reproduction]) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, all)?;
    writeln!(out)
}
