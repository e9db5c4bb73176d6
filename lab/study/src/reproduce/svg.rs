//! A picture: each published figure with the band of its tolerance, and the simulated one beside
//! it.

mod axis;
mod chart;
#[cfg(test)]
mod tests;

use std::error::Error;
use std::io::{self, Write};

use plotters::prelude::*;

use super::{Reproduction, text};
use chart::{Chart, Dot};
use overlock_report::picture::{Area, COLOURS, FONT, picture};

const WIDTH: u32 = 1100;
/// The title of the picture, and what its marks mean.
const HEAD: u32 = 84;
/// The title of a table.
const TITLE: u32 = 76;
/// A row of charts.
const ROW: u32 = 270;
/// The names of the series are on the right.
const LEGEND: u32 = 230;
const MARGIN: i32 = 24;

/// Writes the picture: all tables, one below the other.
///
/// # Errors
///
/// Those of `out`.
pub fn write(out: impl Write, all: &[Reproduction]) -> io::Result<()> {
    picture(out, |text| draw(text, all))
}

fn draw(picture: &mut String, all: &[Reproduction]) -> Result<(), Box<dyn Error>> {
    let panels: Vec<Panel<'_>> = all.iter().map(Panel::new).collect();
    let height = HEAD + panels.iter().map(Panel::height).sum::<u32>();
    let area = SVGBackend::with_string(picture, (WIDTH, height)).into_drawing_area();
    // Pages may be dark; what is drawn here is not.
    area.fill(&WHITE)?;
    let (head, mut rest) = area.split_vertically(HEAD);
    headline(&head, all)?;
    for panel in &panels {
        let (area, below) = rest.split_vertically(panel.height());
        panel.draw(&area)?;
        rest = below;
    }
    area.present()?;
    Ok(())
}

/// The title, and the meaning of the marks.
fn headline(area: &Area<'_>, all: &[Reproduction]) -> Result<(), Box<dyn Error>> {
    let large = (FONT, 20).into_font();
    area.draw(&Text::new(
        "overlock-lab sim reproduce",
        (MARGIN, 14),
        large,
    ))?;
    if let Some(first) = all.first() {
        let how = match first.length {
            1.0 => format!("seed {}", first.seed),
            length => format!("seed {}, {length} times the normal length", first.seed),
        };
        area.draw(&Text::new(how, (MARGIN + 250, 19), small()))?;
    }
    let colour = COLOURS[1];
    let line = |area: &Area<'_>, x| {
        let ends = vec![(x - 9, 58), (x + 9, 58)];
        area.draw(&PathElement::new(ends, BLACK.stroke_width(2)))
    };
    let mut x = MARGIN + 9;
    let mut entry = |what: &str, width| {
        area.draw(&Text::new(what.to_owned(), (x + 18, 52), small()))?;
        x += width;
        Ok::<_, Box<dyn Error>>(x)
    };
    line(area, MARGIN + 9)?;
    let next = entry("published", 120)?;
    let band = [(next - 9, 48), (next + 9, 68)];
    area.draw(&Rectangle::new(band, chart::band(colour)))?;
    line(area, next)?;
    let next = entry("with its tolerance", 175)?;
    Dot::Within.draw(area, (next, 58), colour)?;
    let next = entry("simulated, within it", 185)?;
    Dot::Outside.draw(area, (next, 58), colour)?;
    entry("simulated, outside it", 0)?;
    Ok(())
}

fn small<'a>() -> TextStyle<'a> {
    (FONT, 13).into_font().color(&BLACK.mix(0.65))
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
                let used: u32 = row.iter().map(Chart::width).sum();
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

    fn height(&self) -> u32 {
        TITLE + ROW * self.rows.len() as u32
    }

    fn colour(&self, series: &str) -> RGBColor {
        let index = self.series.iter().position(|name| *name == series);
        COLOURS[index.unwrap_or_default() % COLOURS.len()]
    }

    fn draw(&self, area: &Area<'_>) -> Result<(), Box<dyn Error>> {
        let rule = vec![(MARGIN, 4), (WIDTH as i32 - MARGIN, 4)];
        area.draw(&PathElement::new(rule, BLACK.mix(0.25)))?;
        let name = Text::new(self.table.table, (MARGIN, 14), (FONT, 17).into_font());
        area.draw(&name)?;
        area.draw(&Text::new(self.table.about, (MARGIN, 38), small()))?;
        let mut scores = text::scores(&self.table.verdict);
        if !self.table.fitted {
            scores.push(text::LEFT_OUT.to_owned());
        }
        area.draw(&Text::new(scores.join("; "), (MARGIN, 56), small()))?;
        for (row, y) in self.rows.iter().zip((TITLE..).step_by(ROW as usize)) {
            let mut x = 0;
            for chart in row {
                let place = area.clone().shrink((x, y), (chart.width(), ROW));
                chart.draw(&place, |series| self.colour(series))?;
                x += chart.width();
            }
        }
        let x = (WIDTH - LEGEND) as i32 + 12;
        for (name, y) in self.series.iter().zip((TITLE as i32 + 20..).step_by(22)) {
            Dot::Within.draw(area, (x, y), self.colour(name))?;
            let name = (*name).to_owned();
            area.draw(&Text::new(name, (x + 14, y - 6), (FONT, 13).into_font()))?;
        }
        Ok(())
    }
}
