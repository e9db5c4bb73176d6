//! A picture: the time spent in waits, a bar for each lock and call site. Below it those for
//! events, with a scale of their own: they wait for longest that have nothing to do.

use std::error::Error;
use std::io::{self, Write};

use overlock_report::numbers::{count, time};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::json::Document;
use super::rows::Times;
use super::symbols::Place;
use super::text::short;

const WIDTH: u32 = 1100;
const NAMES: i32 = 420;
const FIGURES: i32 = 190;
const TOP: i32 = 62;
const ROW: i32 = 40;
const HEADING: i32 = 34;
const MOST_ROWS: usize = 20;
const MOST_EVENTS: usize = 10;
const FONT: &str = "sans-serif";
const LOCKS: RGBColor = RGBColor(0, 114, 178);
const EVENTS: RGBColor = RGBColor(136, 136, 136);

/// The figures of a bar.
struct Bar<'a> {
    name: &'a str,
    site: &'a Place,
    waits: u64,
    wait: &'a Times,
}

/// Writes the picture.
pub fn write(mut out: impl Write, document: &Document) -> io::Result<()> {
    let mut picture = String::new();
    draw(&mut picture, document).map_err(|error| io::Error::other(error.to_string()))?;
    out.write_all(picture.as_bytes())
}

fn draw(picture: &mut String, document: &Document) -> Result<(), Box<dyn Error>> {
    let locks = document.processes.iter().flat_map(|process| &process.locks);
    let locks = longest(
        locks.map(|row| Bar {
            name: &row.lock,
            site: &row.site,
            waits: row.contentions,
            wait: &row.wait,
        }),
        MOST_ROWS,
    );
    let events = document
        .processes
        .iter()
        .flat_map(|process| &process.events);
    let events = longest(
        events.map(|event| Bar {
            name: &event.name,
            site: &event.site,
            waits: event.waits,
            wait: &event.wait,
        }),
        MOST_EVENTS,
    );
    let below = TOP + ROW * i32::try_from(locks.len().max(1))?;
    let height = match i32::try_from(events.len())? {
        0 => below,
        events => below + HEADING + ROW * events,
    };
    let size = (WIDTH, (height + 20) as u32);
    let area = SVGBackend::with_string(picture, size).into_drawing_area();
    area.fill(&WHITE)?;
    let title = match &document.command[..] {
        [] => "Waits for locks".to_owned(),
        command => format!("Waits for locks of {}", command.join(" ")),
    };
    let title: String = title.chars().take(100).collect();
    area.draw(&Text::new(title, (12, 12), (FONT, 20)))?;
    let legend = "time in waits; behind it their number and the average; below the lock, where it is acquired";
    area.draw(&Text::new(legend, (12, 38), (FONT, 13)))?;
    if locks.is_empty() {
        area.draw(&Text::new(
            "No thread waited for a lock.",
            (12, TOP),
            (FONT, 14),
        ))?;
    }
    bars(&area, TOP, &locks, LOCKS)?;
    if !events.is_empty() {
        let heading = "Waits for events, which are no contention";
        area.draw(&Text::new(heading, (12, below + 8), (FONT, 16)))?;
        bars(&area, below + HEADING, &events, EVENTS)?;
    }
    area.present()?;
    Ok(())
}

/// The longest waits, at most so many.
fn longest<'a>(bars: impl Iterator<Item = Bar<'a>>, most: usize) -> Vec<Bar<'a>> {
    let mut bars: Vec<Bar<'_>> = bars.filter(|bar| bar.wait.total_ns > 0).collect();
    bars.sort_by_key(|bar| std::cmp::Reverse(bar.wait.total_ns));
    bars.truncate(most);
    bars
}

/// The longest of them is as long as there is room.
fn bars<B: DrawingBackend>(
    area: &DrawingArea<B, plotters::coord::Shift>,
    top: i32,
    bars: &[Bar<'_>],
    colour: RGBColor,
) -> Result<(), Box<dyn Error>>
where
    B::ErrorType: 'static,
{
    let longest = bars.first().map_or(1, |bar| bar.wait.total_ns) as f64;
    let grey = BLACK.mix(0.6);
    let right = Pos::new(HPos::Right, VPos::Top);
    let small = TextStyle::from((FONT, 12)).color(&grey).pos(right);
    for (index, bar) in bars.iter().enumerate() {
        let y = top + ROW * i32::try_from(index)?;
        let style = TextStyle::from((FONT, 14)).pos(right);
        area.draw(&Text::new(short(bar.name), (NAMES - 8, y), style))?;
        let site = bar.site.to_string();
        area.draw(&Text::new(site, (NAMES - 8, y + 17), small.clone()))?;
        let room = WIDTH as i32 - NAMES - FIGURES;
        let length = (bar.wait.total_ns as f64 / longest * f64::from(room)).max(1.0) as i32;
        let corners = [(NAMES, y), (NAMES + length, y + ROW - 14)];
        area.draw(&Rectangle::new(corners, colour.filled()))?;
        let figures = format!(
            "{}: {} {}, {} each",
            time(bar.wait.total_ns as f64),
            count(bar.waits as f64),
            if bar.waits == 1 { "wait" } else { "waits" },
            time(bar.wait.avg_ns.unwrap_or_default())
        );
        area.draw(&Text::new(figures, (NAMES + length + 8, y + 6), (FONT, 13)))?;
    }
    Ok(())
}
