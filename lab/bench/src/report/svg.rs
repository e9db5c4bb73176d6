//! A picture: operations a second over threads, a line for each lock.

use std::io::{self, Write};

use overlock_report::picture::{
    Axis, BLACK, COLOURS, Canvas, Chart, Color, RGBColor, ShapeStyle, WHITE, pen, picture,
};

use super::Row;
use crate::machine::Machine;
use crate::registry::Origin;
use crate::settings::Settings;

const SIZE: (i32, i32) = (1100, 620);
/// The chart without its labels.
const CORNER: (i32, i32) = (80, 72);
const PLOT: (i32, i32) = (820, 492);
const LEGEND: i32 = 910;

/// One lock's line.
struct Line<'a> {
    name: &'static str,
    origin: Origin,
    colour: RGBColor,
    /// Place on the x axis, and the row.
    points: Vec<(f64, &'a Row)>,
}

impl Line<'_> {
    fn width(&self) -> u32 {
        if self.origin == Origin::Ours { 3 } else { 1 }
    }

    fn style(&self) -> ShapeStyle {
        self.colour.stroke_width(self.width())
    }

    fn dot(&self, canvas: &Canvas<'_>, at: (i32, i32)) {
        canvas.circle(at, self.width() as i32 + 2, self.colour.filled())
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
    picture(out, SIZE, |canvas| {
        let lines = lines(rows, &settings.threads);
        let command = match (&settings.simulation, &machine.guest) {
            (Some(_), _) => "sim",
            (None, Some(_)) => "vm",
            (None, None) => "bench",
        };
        let title = format!("overlock-lab {command} {}", what(settings));
        canvas.text((24, 14), pen(20), title);
        canvas.text((24, 42), pen(13).grey(), machine.summary());
        if rows.iter().any(|row| row.settled == Some(false)) {
            canvas.text((24, 58), pen(12).grey(), "hollow: not settled");
        }
        let axis = if command == "bench" {
            "threads"
        } else {
            "vCPUs"
        };
        plot(canvas, &lines, &settings.threads, axis);
        explain(canvas, &lines)
    })
}

/// The locks' lines. The limit has one only where it does not squash all others.
fn lines<'a>(rows: &'a [Row], threads: &[usize]) -> Vec<Line<'a>> {
    let highest = rows
        .iter()
        .filter(|row| row.origin() != Origin::Limit)
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
                let colour = if row.origin() == Origin::Limit {
                    BLACK
                } else {
                    COLOURS[lines.len() % COLOURS.len()]
                };
                lines.push(Line {
                    name: row.lock,
                    origin: row.origin(),
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
        line.origin != Origin::Limit || top <= 3.0 * highest
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

/// The workload, with what the user may set about it.
fn what(settings: &Settings) -> String {
    let mut text = settings.workload.to_owned();
    let set = settings.parameters;
    if let (Some(cs), Some(ncs)) = (set.cs_ns, set.ncs_ns) {
        text += &format!(", {cs} ns in the critical section, {ncs} ns between");
    }
    text + &set.describe()
}

fn plot(canvas: &Canvas<'_>, lines: &[Line], threads: &[usize], axis: &str) {
    let top = lines.iter().flat_map(|line| &line.points);
    let top = top.map(|(_, row)| row.ops_per_sec_max).fold(0.0, f64::max);
    let chart = Chart {
        corner: CORNER,
        size: PLOT,
        // Thread counts stand at equal distances.
        x: Axis::places(threads.iter().map(usize::to_string), 0.15),
        y: Axis::up_to(top / 1e6),
    };
    chart.draw(canvas, 13);
    chart.titles(canvas, axis, "million operations a second");
    for line in lines {
        let at = |(x, row): &(f64, &Row)| chart.at(*x, row.ops_per_sec / 1e6);
        let points: Vec<_> = line.points.iter().map(at).collect();
        for (point, (x, row)) in points.iter().zip(&line.points) {
            // From the slowest to the fastest round.
            let ends = [row.ops_per_sec_min, row.ops_per_sec_max];
            canvas.path(
                ends.map(|end| chart.at(*x, end / 1e6)),
                line.colour.mix(0.5),
            );
            line.dot(canvas, *point);
            if row.settled == Some(false) {
                canvas.circle(*point, line.width() as i32, WHITE.filled());
            }
        }
        match line.origin {
            Origin::Limit => canvas.dashes(points, line.style()),
            _ => canvas.path(points, line.style()),
        }
    }
}

/// The names, in the order in which the lines end on the right.
fn explain(canvas: &Canvas<'_>, lines: &[Line]) {
    let mut lines: Vec<&Line> = lines.iter().collect();
    lines.sort_by(|a, b| b.last().total_cmp(&a.last()));
    for (line, y) in lines.iter().zip((82..).step_by(22)) {
        canvas.path([(LEGEND, y), (LEGEND + 24, y)], line.style());
        line.dot(canvas, (LEGEND + 12, y));
        canvas.text((LEGEND + 32, y - 7), pen(14), line.origin.title(line.name));
    }
}
