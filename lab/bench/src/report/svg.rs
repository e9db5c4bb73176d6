//! A picture: operations a second over threads, a line for each lock.

use std::error::Error;
use std::io::{self, Write};

use overlock_report::picture::{Area, COLOURS, FONT, picture};
use plotters::prelude::*;

use super::Row;
use crate::machine::Machine;
use crate::registry::Kind;
use crate::settings::Settings;

const SIZE: (u32, u32) = (1100, 620);
const LEGEND_WIDTH: u32 = 190;
/// One lock's line.
struct Line<'a> {
    name: &'static str,
    kind: Kind,
    colour: RGBColor,
    /// Place on the x axis, and the row.
    points: Vec<(f64, &'a Row)>,
}

impl Line<'_> {
    fn width(&self) -> u32 {
        if self.kind == Kind::Ours { 3 } else { 1 }
    }

    fn last(&self) -> f64 {
        self.points.last().map_or(0.0, |(_, row)| row.ops_per_sec)
    }
}

/// Writes the picture.
///
/// # Errors
///
/// Those of `out`.
pub fn write(
    out: impl Write,
    machine: &Machine,
    settings: &Settings,
    rows: &[Row],
) -> io::Result<()> {
    picture(out, |picture| draw(picture, machine, settings, rows))
}

fn draw(
    picture: &mut String,
    machine: &Machine,
    settings: &Settings,
    rows: &[Row],
) -> Result<(), Box<dyn Error>> {
    let area = SVGBackend::with_string(picture, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let (title, area) = area.split_vertically(62);
    let (chart, legend) = area.split_horizontally(SIZE.0 - LEGEND_WIDTH);
    let lines = lines(rows, &settings.threads);
    headline(&title, machine, settings)?;
    let axis = if settings.simulation.is_some() || machine.guest.is_some() {
        "vCPUs"
    } else {
        "threads"
    };
    plot(&chart, &lines, &settings.threads, axis)?;
    explain(&legend, &lines)?;
    area.present()?;
    Ok(())
}

/// The locks' lines. The limit has one only where it does not squash all others.
fn lines<'a>(rows: &'a [Row], threads: &[usize]) -> Vec<Line<'a>> {
    let highest = rows
        .iter()
        .filter(|row| row.kind() != Kind::Limit)
        .map(|row| row.ops_per_sec)
        .fold(0.0, f64::max);
    let mut lines: Vec<Line> = Vec::new();
    for row in rows {
        let Some(place) = threads.iter().position(|&count| count == row.threads) else {
            continue;
        };
        let point = (place as f64, row);
        match lines.iter_mut().find(|line| line.name == row.lock) {
            Some(line) => line.points.push(point),
            None => {
                let colour = if row.kind() == Kind::Limit {
                    BLACK
                } else {
                    COLOURS[lines.len() % COLOURS.len()]
                };
                lines.push(Line {
                    name: row.lock,
                    kind: row.kind(),
                    colour,
                    points: vec![point],
                });
            }
        }
    }
    lines.retain(|line| {
        let top = line
            .points
            .iter()
            .map(|(_, row)| row.ops_per_sec)
            .fold(0.0, f64::max);
        line.kind != Kind::Limit || top <= 3.0 * highest
    });
    // A little apart, so that the spreads of one number of threads do not hide each other.
    let middle = (lines.len() as f64 - 1.0) / 2.0;
    for (place, line) in lines.iter_mut().enumerate() {
        for (x, _) in &mut line.points {
            *x += (place as f64 - middle) * 0.012;
        }
    }
    lines
}

fn headline(area: &Area, machine: &Machine, settings: &Settings) -> Result<(), Box<dyn Error>> {
    let command = match (&settings.simulation, &machine.guest) {
        (Some(_), _) => "sim",
        (None, Some(_)) => "vm",
        (None, None) => "bench",
    };
    let title = format!("overlock-lab {command} {}", what(settings));
    area.draw(&Text::new(title, (24, 14), (FONT, 20).into_font()))?;
    let small = (FONT, 13).into_font().color(&BLACK.mix(0.65));
    area.draw(&Text::new(machine.summary(), (24, 42), small))?;
    Ok(())
}

/// The workload, with what the user may set about it.
fn what(settings: &Settings) -> String {
    let mut text = settings.workload.to_owned();
    let set = settings.parameters;
    if let (Some(cs), Some(ncs)) = (set.cs_ns, set.ncs_ns) {
        text += &format!(", {cs} ns in the critical section, {ncs} ns between");
    }
    text + &set.describe()
}

fn plot(area: &Area, lines: &[Line], threads: &[usize], axis: &str) -> Result<(), Box<dyn Error>> {
    let top = lines
        .iter()
        .flat_map(|line| &line.points)
        .map(|(_, row)| row.ops_per_sec_max)
        .fold(0.0, f64::max);
    let top = if top > 0.0 { top * 1.05 / 1e6 } else { 1.0 };
    let last = threads.len().saturating_sub(1) as f64;
    let mut chart = ChartBuilder::on(area)
        .margin(10)
        .x_label_area_size(46)
        .y_label_area_size(70)
        .build_cartesian_2d(-0.15..last + 0.15, 0.0..top)?;
    // Thread counts stand at equal distances, each where its number is; nothing stands between
    // them.
    let label = |x: &f64| match threads.get(x.round() as usize) {
        Some(count) if (x - x.round()).abs() < 1e-6 && *x >= 0.0 => count.to_string(),
        _ => String::new(),
    };
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(BLACK.mix(0.12))
        .x_labels(threads.len())
        .x_label_formatter(&label)
        .x_desc(axis)
        .y_desc("million operations a second")
        .y_label_formatter(&|y| format!("{}", (y * 1000.0).round() / 1000.0))
        .axis_desc_style((FONT, 15))
        .label_style((FONT, 13))
        .draw()?;

    for line in lines {
        let style = line.colour.stroke_width(line.width());
        let points = || {
            line.points
                .iter()
                .map(|(x, row)| (*x, row.ops_per_sec / 1e6))
        };
        if line.kind == Kind::Limit {
            chart.draw_series(DashedLineSeries::new(points(), 5, 4, style))?;
        } else {
            chart.draw_series(LineSeries::new(points(), style))?;
        }
        // From the slowest to the fastest round.
        let spread = line.points.iter().map(|(x, row)| {
            let ends = vec![
                (*x, row.ops_per_sec_min / 1e6),
                (*x, row.ops_per_sec_max / 1e6),
            ];
            PathElement::new(ends, line.colour.mix(0.5))
        });
        chart.draw_series(spread)?;
        chart.draw_series(
            points().map(|point| Circle::new(point, line.width() + 2, line.colour.filled())),
        )?;
    }
    Ok(())
}

/// The names, in the order in which the lines end on the right.
fn explain(area: &Area, lines: &[Line]) -> Result<(), Box<dyn Error>> {
    let mut lines: Vec<&Line> = lines.iter().collect();
    lines.sort_by(|a, b| b.last().total_cmp(&a.last()));
    for (place, line) in lines.iter().enumerate() {
        let y = 20 + 22 * i32::try_from(place)?;
        let style = line.colour.stroke_width(line.width());
        area.draw(&PathElement::new(vec![(0, y), (24, y)], style))?;
        area.draw(&Circle::new(
            (12, y),
            line.width() + 2,
            line.colour.filled(),
        ))?;
        let name = line.kind.title(line.name);
        area.draw(&Text::new(name, (32, y - 7), (FONT, 14).into_font()))?;
    }
    Ok(())
}
