//! A picture: each published figure with the band of its tolerance, and the simulated one beside
//! it.

mod chart;
#[cfg(test)]
mod tests;

use std::io::{self, Write};

use overlock_report::picture::{BLACK, COLOURS, Canvas, Color, RGBColor, pen, picture};

use super::{Reproduction, text};
use chart::{Chart, Dot};

const WIDTH: i32 = 1100;
/// The title of the picture, and what its marks mean.
const HEAD: i32 = 84;
/// The title of a table.
const TITLE: i32 = 76;
/// A row of charts.
const ROW: i32 = 270;
/// The names of the series are on the right.
const LEGEND: i32 = 230;
const MARGIN: i32 = 24;

/// Writes the picture: all tables, one below the other.
///
/// # Errors
///
/// Those of `out`.
pub fn write(out: impl Write, all: &[Reproduction]) -> io::Result<()> {
    let panels: Vec<Panel<'_>> = all.iter().map(Panel::new).collect();
    let height = HEAD + panels.iter().map(Panel::height).sum::<i32>();
    picture(out, (WIDTH, height), |canvas| {
        headline(canvas, all);
        let mut top = HEAD;
        for panel in &panels {
            panel.draw(canvas, top);
            top += panel.height();
        }
    })
}

/// The title, and the meaning of the marks.
fn headline(canvas: &Canvas<'_>, all: &[Reproduction]) {
    canvas.text((MARGIN, 14), pen(20), "overlock-lab sim reproduce");
    if let Some(first) = all.first() {
        let how = match first.length {
            1.0 => format!("seed {}", first.seed),
            length => format!("seed {}, {length} times the normal length", first.seed),
        };
        canvas.text((MARGIN + 250, 19), pen(13).grey(), how);
    }
    let colour = COLOURS[1];
    let marks = [MARGIN + 9, MARGIN + 129, MARGIN + 304, MARGIN + 489];
    let meanings = [
        "published",
        "with its tolerance",
        "simulated, within it",
        "simulated, outside it",
    ];
    for (x, meaning) in marks.into_iter().zip(meanings) {
        canvas.text((x + 18, 52), pen(13).grey(), meaning);
    }
    let [alone, within, reached, outside] = marks.map(|x| (x, 58));
    chart::published(canvas, alone, 9);
    let (x, y) = within;
    canvas.rectangle([(x - 9, y - 10), (x + 9, y + 10)], chart::band(colour));
    chart::published(canvas, within, 9);
    Dot::Within.draw(canvas, reached, colour);
    Dot::Outside.draw(canvas, outside, colour)
}

/// A table.
struct Panel<'a> {
    table: &'a Reproduction,
    /// A row of charts.
    rows: Vec<Vec<Chart<'a>>>,
    /// The series, in all of its charts.
    series: Vec<&'a str>,
}

impl<'a> Panel<'a> {
    fn new(table: &'a Reproduction) -> Self {
        let mut rows: Vec<Vec<Chart<'a>>> = Vec::new();
        for chart in Chart::all(&table.verdict.lines) {
            let room = |row: &Vec<Chart<'_>>| {
                let used: i32 = row.iter().map(Chart::width).sum();
                used + chart.width() <= WIDTH - LEGEND
            };
            match rows.last_mut() {
                Some(row) if room(row) => row.push(chart),
                _ => rows.push(vec![chart]),
            }
        }
        let mut series: Vec<&str> = Vec::new();
        for line in &table.verdict.lines {
            if !series.contains(&line.what.series.as_str()) {
                series.push(&line.what.series);
            }
        }
        Self {
            table,
            rows,
            series,
        }
    }

    fn height(&self) -> i32 {
        TITLE + ROW * self.rows.len() as i32
    }

    fn colour(&self, series: &str) -> RGBColor {
        let index = self.series.iter().position(|name| *name == series);
        COLOURS[index.unwrap_or_default() % COLOURS.len()]
    }

    fn draw(&self, canvas: &Canvas<'_>, top: i32) {
        let rule = [(MARGIN, top + 4), (WIDTH - MARGIN, top + 4)];
        canvas.path(rule, BLACK.mix(0.25));
        canvas.text((MARGIN, top + 14), pen(17), self.table.table);
        canvas.text((MARGIN, top + 38), pen(13).grey(), self.table.about);
        let mut scores = text::scores(&self.table.verdict);
        if !self.table.fitted {
            scores.push(text::LEFT_OUT.to_owned());
        }
        canvas.text((MARGIN, top + 56), pen(13).grey(), scores.join("; "));
        for (row, y) in self.rows.iter().zip((top + TITLE..).step_by(ROW as usize)) {
            let mut x = 0;
            for chart in row {
                chart.draw(canvas, (x, y), ROW, |series| self.colour(series));
                x += chart.width();
            }
        }
        let x = WIDTH - LEGEND + 12;
        for (&name, y) in self.series.iter().zip((top + TITLE + 20..).step_by(22)) {
            Dot::Within.draw(canvas, (x, y), self.colour(name));
            canvas.text((x + 14, y - 6), pen(13), name);
        }
    }
}
