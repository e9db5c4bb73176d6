//! A grid as a picture: a panel of heat maps.

use std::io::{self, Write};

use overlock_report::picture::{BLACK, Canvas, HPos, Pen, RGBColor, VPos, WHITE, pen, picture};

use super::Report;
use super::map::{Field, Heat, Map, maps};

const FIELD: (i32, i32) = (66, 30);
const NAMES: i32 = 176;
/// Above the fields of a map: its title and the numbers of threads.
const HEAD: i32 = 58;
const MARGIN: i32 = 24;
/// Above all maps.
const TITLE: i32 = 96;
/// Maps beside each other.
const ABREAST: usize = 2;

/// Writes the picture.
///
/// # Errors
///
/// Those of `out`.
pub fn write(out: impl Write, report: &Report) -> io::Result<()> {
    let maps = maps(report);
    picture(out, size(&maps), |canvas| {
        headline(canvas, report);
        let mut top = TITLE;
        for maps in maps.chunks(ABREAST) {
            let mut left = MARGIN;
            for map in maps {
                panel(canvas, map, (left, top));
                left += map_width(map) + MARGIN;
            }
            top += row_height(maps);
        }
    })
}

fn len(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX / 1000)
}

fn map_width(map: &Map) -> i32 {
    // A title is longer than few columns are wide.
    (NAMES + FIELD.0 * len(map.columns.len())).max(500)
}

fn row_height(maps: &[Map]) -> i32 {
    let rows = maps.iter().map(|map| map.rows.len()).max().unwrap_or(0);
    HEAD + FIELD.1 * len(rows) + MARGIN
}

fn size(maps: &[Map]) -> (i32, i32) {
    let width = maps.iter().map(map_width).max().unwrap_or(500);
    let abreast = len(maps.len().clamp(1, ABREAST));
    let height: i32 = maps.chunks(ABREAST).map(row_height).sum();
    (MARGIN + abreast * (width + MARGIN), TITLE + height)
}

fn headline(canvas: &Canvas<'_>, report: &Report) {
    let title = "overlock against each of its peers: the worst ratio of every cell";
    canvas.text((MARGIN, 16), pen(20), title);
    let what = format!("{}. {}", report.machine.summary(), report.headline());
    canvas.text((MARGIN, 44), pen(13).grey(), what);
    let mut x = MARGIN;
    for heat in Heat::ALL {
        canvas.rectangle([(x, 66), (x + 16, 80)], colour(heat));
        canvas.text((x + 21, 66), pen(12), heat.title());
        x += 33 + 8 * len(heat.title().len());
    }
}

fn panel(canvas: &Canvas<'_>, map: &Map, (left, top): (i32, i32)) {
    canvas.text((left, top + 6), pen(15).bold(), map.title);
    canvas.text((left, top + 34), pen(13), "threads");
    for (threads, x) in map.columns.iter().zip(columns(left)) {
        let middle = (x + FIELD.0 / 2, top + 42);
        canvas.text(middle, centred(13), threads.to_string());
    }
    for (row, y) in map
        .rows
        .iter()
        .zip((top + HEAD..).step_by(FIELD.1 as usize))
    {
        let name = format!("{} {}", row.family, row.shape);
        canvas.text((left, y + 8), pen(13), name);
        for (field, x) in row.fields.iter().zip(columns(left)) {
            if let Some(field) = field {
                draw_field(canvas, field, (x, y));
            }
        }
    }
}

/// The left edges of the fields.
fn columns(left: i32) -> impl Iterator<Item = i32> {
    (left + NAMES..).step_by(FIELD.0 as usize)
}

fn draw_field(canvas: &Canvas<'_>, field: &Field, (x, y): (i32, i32)) {
    let corners = [(x + 1, y + 1), (x + FIELD.0 - 1, y + FIELD.1 - 1)];
    canvas.rectangle(corners, colour(field.heat));
    let ink = match field.heat {
        Heat::FarBehind => WHITE,
        _ => BLACK,
    };
    let middle = x + FIELD.0 / 2;
    let figure = if field.note.is_some() { y + 11 } else { y + 15 };
    let note = field.note.unwrap_or_default();
    canvas.text((middle, figure), centred(13).coloured(ink), &field.text);
    canvas.text((middle, y + 22), centred(8).coloured(ink), note)
}

fn centred(size: i32) -> Pen {
    pen(size).at(HPos::Center, VPos::Center)
}

fn colour(heat: Heat) -> RGBColor {
    let (red, green, blue) = heat.rgb();
    RGBColor(red, green, blue)
}
