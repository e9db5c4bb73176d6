//! A grid as a picture: a panel of heat maps.

use std::error::Error;
use std::io::{self, Write};

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::Report;
use super::map::{Field, Heat, Map, maps};
use overlock_report::picture::{Area, FONT, picture};

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
    picture(out, |picture| draw(picture, report))
}

fn draw(picture: &mut String, report: &Report) -> Result<(), Box<dyn Error>> {
    let maps = maps(report);
    let (width, height) = size(&maps);
    let canvas = (width.unsigned_abs(), height.unsigned_abs());
    let area = SVGBackend::with_string(picture, canvas).into_drawing_area();
    area.fill(&WHITE)?;
    headline(&area, report)?;
    for (place, map) in maps.iter().enumerate() {
        let (row, column) = (place / ABREAST, place % ABREAST);
        let x = MARGIN + i32::try_from(column)? * (map_width(map) + MARGIN);
        let above: i32 = maps[..row * ABREAST].chunks(ABREAST).map(row_height).sum();
        panel(&area, map, (x, TITLE + above))?;
    }
    area.present()?;
    Ok(())
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

fn headline(area: &Area, report: &Report) -> Result<(), Box<dyn Error>> {
    let title = "overlock against each of its peers: the worst ratio of every cell";
    area.draw(&Text::new(title, (MARGIN, 16), (FONT, 20).into_font()))?;
    let small = (FONT, 13).into_font().color(&BLACK.mix(0.65));
    let what = format!("{}. {}", report.machine.summary(), report.headline());
    area.draw(&Text::new(what, (MARGIN, 44), small))?;
    let mut x = MARGIN;
    for heat in Heat::ALL {
        area.draw(&Rectangle::new(
            [(x, 66), (x + 16, 80)],
            colour(heat).filled(),
        ))?;
        area.draw(&Text::new(
            heat.title(),
            (x + 21, 66),
            (FONT, 12).into_font(),
        ))?;
        x += 33 + 8 * len(heat.title().len());
    }
    Ok(())
}

fn panel(area: &Area, map: &Map, (left, top): (i32, i32)) -> Result<(), Box<dyn Error>> {
    let title = (FONT, 15).into_font().style(FontStyle::Bold);
    area.draw(&Text::new(map.title, (left, top + 6), title))?;
    let plain = (FONT, 13).into_font();
    let centred = plain
        .clone()
        .into_text_style(area)
        .pos(Pos::new(HPos::Center, VPos::Center));
    area.draw(&Text::new("threads", (left, top + 34), plain.clone()))?;
    for (place, threads) in map.columns.iter().enumerate() {
        let x = left + NAMES + FIELD.0 * len(place) + FIELD.0 / 2;
        area.draw(&Text::new(
            threads.to_string(),
            (x, top + 42),
            centred.clone(),
        ))?;
    }
    for (place, row) in map.rows.iter().enumerate() {
        let y = top + HEAD + FIELD.1 * len(place);
        let name = format!("{} {}", row.family, row.shape);
        area.draw(&Text::new(name, (left, y + 8), plain.clone()))?;
        for (place, field) in row.fields.iter().enumerate() {
            if let Some(field) = field {
                let x = left + NAMES + FIELD.0 * len(place);
                draw_field(area, field, (x, y))?;
            }
        }
    }
    Ok(())
}

fn draw_field(area: &Area, field: &Field, (x, y): (i32, i32)) -> Result<(), Box<dyn Error>> {
    let corners = [(x + 1, y + 1), (x + FIELD.0 - 1, y + FIELD.1 - 1)];
    area.draw(&Rectangle::new(corners, colour(field.heat).filled()))?;
    let ink = if field.heat == Heat::FarBehind {
        WHITE
    } else {
        BLACK
    };
    let centre = Pos::new(HPos::Center, VPos::Center);
    let style = |size: i32| {
        let font = (FONT, size).into_font().color(&ink);
        font.pos(centre)
    };
    let middle = x + FIELD.0 / 2;
    match field.note {
        Some(note) => {
            area.draw(&Text::new(field.text.clone(), (middle, y + 11), style(13)))?;
            area.draw(&Text::new(note, (middle, y + 22), style(8)))?;
        }
        None => area.draw(&Text::new(field.text.clone(), (middle, y + 15), style(13)))?,
    }
    Ok(())
}

fn colour(heat: Heat) -> RGBColor {
    let (red, green, blue) = heat.rgb();
    RGBColor(red, green, blue)
}
