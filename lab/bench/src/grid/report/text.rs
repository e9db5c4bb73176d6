//! A grid for a terminal.

use std::fmt::Write;

use anstyle::{Ansi256Color, Style};

use super::Report;
use super::map::{Heat, Map, maps};
use crate::grid::check;
use crate::grid::figures::{Judged, Row};
use crate::grid::summary::Summary;
use overlock_report::columns::{Column, NOTHING, blocks, optional};
use overlock_report::numbers::{count, factor, rate, significant, time};

/// The form of the text.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Columns of the terminal, if it is one.
    pub width: Option<u16>,
    /// Whether it shows colours.
    pub colours: bool,
    /// Cells to name among the worst.
    pub worst: usize,
    /// Whether all maps and groups of cells are shown, or the first of each alone.
    pub all: bool,
    /// Whether every cell has a table of its locks.
    pub details: bool,
}

const WORST: &[Column<Judged>] = &[
    Column("ratio", |cell| optional(cell.ratio, factor)),
    Column("of rounds", |cell| {
        spread(cell).unwrap_or_else(|| NOTHING.to_owned())
    }),
    Column("to", |cell| cell.worst_peer.unwrap_or(NOTHING).to_owned()),
    Column("Mop/s", |cell| {
        both(cell, |row| Some(rate(row.ops_per_sec)))
    }),
    Column("(no lock)", |cell| optional(cell.limit_ops_per_sec, rate)),
    Column("Jain", |cell| {
        both(cell, |row| Some(format!("{:.2}", row.jain)))
    }),
    Column("longest wait", |cell| {
        both(cell, |row| row.longest_ns.map(time))
    }),
    Column("CPU s/Mop", |cell| {
        both(cell, |row| row.cpu_s_per_mop.map(significant))
    }),
];

const SUMMARY: &[Column<Summary>] = &[
    Column("cells", |one| one.count.to_string()),
    Column("geometric mean", |one| factor(one.geometric_mean)),
    Column("worst", |one| factor(one.worst)),
    Column(">= 0.97", |one| percent(one.at_least_097)),
    Column(">= 0.95", |one| percent(one.at_least_095)),
    Column("least Jain", |one| {
        format!("{:.2} / {:.2}", one.jain_min, one.peer_jain_min)
    }),
    Column("p99.9", |one| optional(one.p999_median, factor)),
    Column("longest wait", |one| optional(one.longest_median, factor)),
    Column("CPU", |one| optional(one.cpu_median, factor)),
];

const DETAILS: &[Column<Row>] = &[
    Column("Mop/s", |row| rate(row.ops_per_sec)),
    Column("ours over it", |row| {
        optional(row.versus.and_then(|versus| versus.ratio), factor)
    }),
    Column("slowest thread/s", |row| count(row.slowest_ops_per_sec)),
    Column("Jain", |row| format!("{:.3}", row.jain)),
    Column("p99.9", |row| optional(row.p999_ns, time)),
    Column("longest", |row| optional(row.longest_ns, time)),
    Column("CPU s/Mop", |row| optional(row.cpu_s_per_mop, significant)),
    Column("switches/s", |row| count(row.switches_per_sec)),
];

pub(super) fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// From the lowest to the highest ratio of a round.
pub(super) fn spread(cell: &Judged) -> Option<String> {
    let versus = cell.worst()?.versus?;
    Some(format!("{:.2}-{:.2}", versus.ratio_min?, versus.ratio_max?))
}

/// A figure of ours and of the peer that it does worst against.
pub(super) fn both(cell: &Judged, figure: fn(&Row) -> Option<String>) -> String {
    let text = |row: Option<&Row>| row.and_then(figure).unwrap_or_else(|| NOTHING.to_owned());
    let (ours, theirs) = (text(Some(cell.ours())), text(cell.worst()));
    if ours == NOTHING && theirs == NOTHING {
        return ours;
    }
    format!("{ours} / {theirs}")
}

/// All of it.
pub fn render(report: &Report, layout: &Layout) -> String {
    let mut text = format!("{}\n{}\n", report.machine.summary(), report.headline());
    text += &check::describe(&report.check);
    text.push('\n');
    for skipped in &report.skipped {
        let _ = writeln!(
            text,
            "Not measured: {} {}: {}",
            skipped.family, skipped.shape, skipped.why
        );
    }
    text.push('\n');
    worst(&mut text, report, layout);
    let shown = if layout.all { usize::MAX } else { 1 };
    for map in maps(report).iter().take(shown) {
        heat_map(&mut text, map, layout.colours);
    }
    summary(&mut text, report, layout);
    if layout.details {
        details(&mut text, report, layout);
    }
    text
}

fn worst(text: &mut String, report: &Report, layout: &Layout) {
    // Those without a ratio are last.
    let judged = report.cells.iter().take_while(|cell| cell.ratio.is_some());
    let cells = &report.cells[..judged.take(layout.worst).count()];
    if cells.is_empty() {
        *text += "No cell has a round of ours and of a peer.\n\n";
        return;
    }
    *text += "The worst cells: ours / the peer that it does worst against there. The ratio is the\n\
              median of the rounds, each paired.\n";
    *text += &blocks("cell", cells, Judged::name, &[WORST], layout.width);
}

/// Fields of a width that all figures fit in.
const FIELD: usize = 8;

fn heat_map(text: &mut String, map: &Map, colours: bool) {
    let _ = writeln!(text, "{}", map.title);
    let _ = write!(text, "{:<22}", "threads");
    for column in &map.columns {
        let _ = write!(text, "{column:>FIELD$}");
    }
    text.push('\n');
    let mut family = "";
    for row in &map.rows {
        let shown = if row.family == family { "" } else { row.family };
        family = row.family;
        let mut line = format!("{shown:<8}{:<14}", row.shape);
        for field in &row.fields {
            match field {
                Some(field) => {
                    let style = if colours {
                        style(field.heat)
                    } else {
                        Style::new()
                    };
                    // One blank stays without colour, so that fields do not run together.
                    let figure = format!("{:>width$}", field.text, width = FIELD - 1);
                    let _ = write!(line, " {style}{figure}{style:#}");
                }
                None => {
                    let _ = write!(line, "{:FIELD$}", "");
                }
            }
        }
        *text += line.trim_end();
        text.push('\n');
    }
    if colours {
        for heat in Heat::ALL {
            let style = style(heat);
            let _ = write!(text, "{style} {} {style:#} ", heat.title());
        }
        text.push('\n');
    }
    text.push('\n');
}

fn style(heat: Heat) -> Style {
    let (background, foreground) = match heat {
        Heat::FarBehind => (160, 231),
        Heat::Behind => (209, 16),
        Heat::ALittleBehind => (215, 16),
        Heat::Slightly => (223, 16),
        Heat::Even => return Style::new(),
        Heat::Ahead => (153, 16),
        Heat::FarAhead => (110, 16),
    };
    Style::new()
        .bg_color(Some(Ansi256Color(background).into()))
        .fg_color(Some(Ansi256Color(foreground).into()))
}

fn summary(text: &mut String, report: &Report, layout: &Layout) {
    let groups = report.summary.chunk_by(|a, b| a.cells == b.cells);
    for group in groups.take(if layout.all { usize::MAX } else { 1 }) {
        let _ = writeln!(
            text,
            "Ours over each peer by itself, cells: {}",
            group[0].cells
        );
        *text += &blocks(
            "peer",
            group,
            |one| one.peer.to_owned(),
            &[SUMMARY],
            layout.width,
        );
    }
    if !report.summary.is_empty() {
        *text += "least Jain: the lowest of any cell, ours / the peer's. p99.9, longest wait, \
                  CPU: the median of\nthe cells, ours over the peer's: lower is better.\n";
    }
}

fn details(text: &mut String, report: &Report, layout: &Layout) {
    for cell in &report.cells {
        let _ = writeln!(text, "\n{}", cell.name());
        let name = |row: &Row| match row.kind {
            "limit" => "(no lock)".to_owned(),
            _ => row.lock.to_owned(),
        };
        *text += blocks("lock", &cell.rows, name, &[DETAILS], layout.width).trim_end();
        text.push('\n');
    }
}
