//! A grid as the body of a page: the losing cells, the maps, the peers, then every cell.

use std::fmt::Write as _;
use std::io::{self, Write};

use super::Report;
use super::map::{Field, Heat, maps};
use super::text::{both, percent, spread};
use crate::grid::check;
use crate::grid::figures::Judged;
use overlock_report::columns::{NOTHING, optional};
use overlock_report::numbers::{factor, rate, significant, time};

/// A cell below this loses.
const LOSES: f64 = 0.97;
/// Worst cells that are shown even where none loses.
const WORST: usize = 10;

/// Writes the page's body.
///
/// # Errors
///
/// Those of `out`.
pub fn write(mut out: impl Write, report: &Report) -> io::Result<()> {
    out.write_all(render(report).as_bytes())
}

fn render(report: &Report) -> String {
    let mut text = format!(
        "Measured by `{}` on {}. {} {}\n",
        report.settings.command,
        report.machine.summary(),
        report.headline(),
        check::describe(&report.check),
    );
    for skipped in &report.skipped {
        let _ = writeln!(
            text,
            "Not measured: {} {}: {}.",
            skipped.family, skipped.shape, skipped.why
        );
    }
    losing(&mut text, &report.cells);
    for map in maps(report) {
        let _ = writeln!(text, "\n## {}\n", map.title);
        let columns = map.columns.iter().map(ToString::to_string);
        head(&mut text, ["threads".to_owned()].into_iter().chain(columns));
        for row in &map.rows {
            let name = format!("{} {}", row.family, row.shape);
            let fields = row
                .fields
                .iter()
                .map(|field| field.as_ref().map_or_else(String::new, bold));
            line(&mut text, [name].into_iter().chain(fields));
        }
    }
    text += "\nBold: 5 % behind or more.\n";
    summary(&mut text, report);
    every_cell(&mut text, report);
    text
}

fn losing(text: &mut String, cells: &[Judged]) {
    let lose = |cell: &&Judged| cell.ratio.is_some_and(|ratio| ratio < LOSES);
    let losing = cells.iter().filter(lose).count();
    let all = cells.iter().filter(|cell| cell.ratio.is_some()).count();
    let _ = writeln!(
        text,
        "\n## The losing cells\n\n{losing} of {all} cells are below {LOSES} of some peer. Shown is \
         ours / the peer that it does worst\nagainst there; the ratio is the median of the rounds, \
         each paired.\n"
    );
    let titles = [
        "cell",
        "ratio",
        "of rounds",
        "to",
        "Mop/s",
        "no lock",
        "Jain",
        "p99.9",
        "longest wait",
        "CPU s/Mop",
        "switches/s",
    ];
    head(text, titles.map(str::to_owned));
    for cell in cells.iter().take(losing.max(WORST)) {
        let fields = [
            cell.name(),
            optional(cell.ratio, factor),
            spread(cell).unwrap_or_else(|| NOTHING.to_owned()),
            cell.worst_peer.unwrap_or(NOTHING).to_owned(),
            both(cell, |row| Some(rate(row.ops_per_sec))),
            optional(cell.limit_ops_per_sec, rate),
            both(cell, |row| Some(factor(row.jain))),
            both(cell, |row| row.p999_ns.map(time)),
            both(cell, |row| row.longest_ns.map(time)),
            both(cell, |row| row.cpu_s_per_mop.map(significant)),
            both(cell, |row| Some(format!("{:.0}", row.switches_per_sec))),
        ];
        line(text, fields);
    }
}

fn summary(text: &mut String, report: &Report) {
    *text += "\n## Against each peer by itself\n\n";
    let titles = [
        "cells",
        "peer",
        "number",
        "geometric mean",
        "worst",
        "at",
        ">= 0.97",
        ">= 0.95",
        "least Jain (peer's)",
        "p99.9",
        "longest wait",
        "CPU",
    ];
    head(text, titles.map(str::to_owned));
    for one in &report.summary {
        let fields = [
            one.cells.to_owned(),
            one.peer.to_owned(),
            one.count.to_string(),
            factor(one.geometric_mean),
            factor(one.worst),
            one.worst_cell.clone(),
            percent(one.at_least_097),
            percent(one.at_least_095),
            format!("{:.2} ({:.2})", one.jain_min, one.peer_jain_min),
            optional(one.p999_median, factor),
            optional(one.longest_median, factor),
            optional(one.cpu_median, factor),
        ];
        line(text, fields);
    }
    *text += "\np99.9, longest wait and CPU are medians over the cells of ours over the peer's: lower is \
              better.\n";
}

/// The ratios to all peers, by family since the peers are.
fn every_cell(text: &mut String, report: &Report) {
    let mut cells: Vec<&Judged> = report.cells.iter().collect();
    cells.sort_by_key(|cell| cell.family);
    for family in cells.chunk_by(|a, b| a.family == b.family) {
        let peers: Vec<&str> = family[0].peers().map(|(row, _)| row.lock).collect();
        let _ = writeln!(
            text,
            "\n## All cells: {}\n\nOurs in million operations a second, and over each of the others.\n",
            family[0].family
        );
        let first = ["cell", "(no lock)", "ours", "of no lock"].map(str::to_owned);
        head(
            text,
            first
                .into_iter()
                .chain(peers.iter().map(ToString::to_string)),
        );
        for cell in family {
            let first = [
                cell.name(),
                optional(cell.limit_ops_per_sec, rate),
                rate(cell.ours().ops_per_sec),
                optional(cell.vs_limit, factor),
            ];
            let ratios = cell
                .peers()
                .map(|(_, versus)| optional(versus.ratio, factor));
            line(text, first.into_iter().chain(ratios));
        }
    }
}

fn bold(field: &Field) -> String {
    if field.heat <= Heat::ALittleBehind {
        format!("**{}**", field.text)
    } else {
        field.text.clone()
    }
}

fn head(text: &mut String, titles: impl IntoIterator<Item = String>) {
    let titles: Vec<String> = titles.into_iter().collect();
    let rule = titles.iter().map(|_| "---".to_owned());
    let rule: Vec<String> = rule.collect();
    line(text, titles);
    line(text, rule);
}

fn line(text: &mut String, fields: impl IntoIterator<Item = String>) {
    for field in fields {
        let _ = write!(text, "| {field} ");
    }
    *text += "|\n";
}
