//! A picture: the time spent in waits, a bar for each lock and call site.

use std::error::Error;
use std::io::{self, Write};

use overlock_bench::report::text::{count, time};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::json::Document;
use super::rows::Row;

const WIDTH: u32 = 1100;
const NAMES: i32 = 420;
const FIGURES: i32 = 190;
const TOP: i32 = 62;
const ROW: i32 = 40;
const MOST_ROWS: usize = 20;
const FONT: &str = "sans-serif";
const BAR: RGBColor = RGBColor(0, 114, 178);

/// Writes the picture.
pub fn write(mut out: impl Write, document: &Document) -> io::Result<()> {
    let mut picture = String::new();
    draw(&mut picture, document).map_err(|error| io::Error::other(error.to_string()))?;
    out.write_all(picture.as_bytes())
}

fn draw(picture: &mut String, document: &Document) -> Result<(), Box<dyn Error>> {
    let processes = &document.processes;
    let mut rows: Vec<&Row> = processes
        .iter()
        .flat_map(|process| &process.locks)
        .collect();
    rows.retain(|row| row.wait.total_ns > 0);
    rows.sort_by_key(|row| std::cmp::Reverse(row.wait.total_ns));
    rows.truncate(MOST_ROWS);
    let longest = rows.first().map_or(1, |row| row.wait.total_ns) as f64;
    let height = TOP + ROW * i32::try_from(rows.len())? + 20;

    let area = SVGBackend::with_string(picture, (WIDTH, height as u32)).into_drawing_area();
    area.fill(&WHITE)?;
    let title = match &document.command[..] {
        [] => "Waits for locks".to_owned(),
        command => format!("Waits for locks of {}", command.join(" ")),
    };
    let title: String = title.chars().take(100).collect();
    area.draw(&Text::new(title, (12, 12), (FONT, 20)))?;
    let legend = "time in waits; behind it their number and the average; below the lock, where it is acquired";
    area.draw(&Text::new(legend, (12, 38), (FONT, 13)))?;
    let grey = BLACK.mix(0.6);
    let small = TextStyle::from((FONT, 12)).color(&grey);
    let right = Pos::new(HPos::Right, VPos::Top);
    for (index, row) in rows.into_iter().enumerate() {
        let y = TOP + ROW * i32::try_from(index)?;
        let name = super::name(row);
        let style = TextStyle::from((FONT, 14)).pos(right);
        area.draw(&Text::new(name, (NAMES - 8, y), style))?;
        area.draw(&Text::new(
            row.site.to_string(),
            (NAMES - 8, y + 17),
            small.pos(right),
        ))?;
        let room = WIDTH as i32 - NAMES - FIGURES;
        let length = (row.wait.total_ns as f64 / longest * f64::from(room)).max(1.0) as i32;
        let bar = [(NAMES, y), (NAMES + length, y + ROW - 14)];
        area.draw(&Rectangle::new(bar, BAR.filled()))?;
        let figures = format!(
            "{}: {} of {}",
            time(row.wait.total_ns as f64),
            count(row.contentions as f64),
            time(row.wait.avg_ns.unwrap_or_default())
        );
        area.draw(&Text::new(figures, (NAMES + length + 8, y + 6), (FONT, 13)))?;
    }
    area.present()?;
    Ok(())
}
