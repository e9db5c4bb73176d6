//! A picture: the time spent in waits, a bar for each lock and call site. Below it those for
//! events, with a scale of their own: they wait for longest that have nothing to do.

use std::io::{self, Write};

use overlock_report::numbers::{count, time};
use overlock_report::picture::{COLOURS, Canvas, HPos, RGBColor, VPos, pen, picture};

use super::document::Document;
use super::layout::{MOST_LETTERS, shortened};
use super::rows::Times;
use super::symbols::Place;

const WIDTH: i32 = 1100;
const NAMES: i32 = 420;
const FIGURES: i32 = 190;
const TOP: i32 = 62;
const ROW: i32 = 40;
const HEADING: i32 = 34;
const MOST_ROWS: usize = 20;
const MOST_EVENTS: usize = 10;
const LOCKS: RGBColor = COLOURS[1];
const EVENTS: RGBColor = RGBColor(136, 136, 136);

/// The figures of a bar.
struct Bar<'a> {
    name: &'a str,
    site: Option<&'a Place>,
    waits: u64,
    wait: &'a Times,
}

/// Writes the picture.
pub fn write(out: impl Write, document: &Document) -> io::Result<()> {
    let locks = document.processes.iter().flat_map(|process| &process.locks);
    let locks = longest(
        locks.map(|row| Bar {
            name: &row.lock,
            site: Some(&row.site),
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
            site: event.site.as_ref(),
            waits: event.waits,
            wait: &event.wait,
        }),
        MOST_EVENTS,
    );
    let below = TOP + ROW * locks.len().max(1) as i32;
    let height = match events.len() as i32 {
        0 => below,
        events => below + HEADING + ROW * events,
    };
    let title = match &document.command[..] {
        [] => "Waits for locks".to_owned(),
        command => format!("Waits for locks of {}", command.join(" ")),
    };
    let title: String = title.chars().take(100).collect();
    picture(out, (WIDTH, height + 20), |canvas| {
        canvas.text((12, 12), pen(20), title);
        let legend = "time in waits; behind it their number and the average; below the lock, where it is acquired";
        canvas.text((12, 38), pen(13), legend);
        if locks.is_empty() {
            canvas.text(
                (12, TOP),
                pen(14),
                "No thread waited for a lock of the C library.",
            );
        }
        bars(canvas, TOP, &locks, LOCKS);
        if !events.is_empty() {
            let heading = "Waits for events, which are no contention";
            canvas.text((12, below + 8), pen(16), heading);
        }
        bars(canvas, below + HEADING, &events, EVENTS)
    })
}

/// The longest waits, at most so many.
fn longest<'a>(bars: impl Iterator<Item = Bar<'a>>, most: usize) -> Vec<Bar<'a>> {
    let mut bars: Vec<Bar<'_>> = bars.filter(|bar| bar.wait.total_ns > 0).collect();
    bars.sort_by_key(|bar| std::cmp::Reverse(bar.wait.total_ns));
    bars.truncate(most);
    bars
}

/// The longest of them is as long as there is room.
fn bars(canvas: &Canvas<'_>, top: i32, bars: &[Bar<'_>], colour: RGBColor) {
    let longest = bars.first().map_or(1, |bar| bar.wait.total_ns) as f64;
    for (bar, y) in bars.iter().zip((top..).step_by(ROW as usize)) {
        let left = |size| pen(size).at(HPos::Right, VPos::Top);
        canvas.text((NAMES - 8, y), left(14), shortened(bar.name, MOST_LETTERS));
        if let Some(site) = bar.site {
            canvas.text(
                (NAMES - 8, y + 17),
                left(12).grey(),
                shortened(&site.to_string(), MOST_LETTERS + 6),
            );
        }
        let room = f64::from(WIDTH - NAMES - FIGURES);
        let length = (bar.wait.total_ns as f64 / longest * room).max(1.0) as i32;
        canvas.rectangle([(NAMES, y), (NAMES + length, y + ROW - 14)], colour);
        let figures = format!(
            "{}: {} {}, {} each",
            time(bar.wait.total_ns as f64),
            count(bar.waits as f64),
            if bar.waits == 1 { "wait" } else { "waits" },
            time(bar.wait.avg_ns.unwrap_or_default())
        );
        canvas.text((NAMES + length + 8, y + 6), pen(13), figures);
    }
}
