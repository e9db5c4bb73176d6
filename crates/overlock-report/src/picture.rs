//! Common parts of the pictures.

use std::error::Error;
use std::io::{self, Write};

use plotters::coord::Shift;
use plotters::prelude::*;

/// The font of all texts.
pub const FONT: &str = "sans-serif";

/// Colours that differ on white, also with most kinds of colour blindness (after Okabe and Ito, and
/// Tol). Locks of ours take them from the front.
pub const COLOURS: [RGBColor; 12] = [
    RGBColor(213, 94, 0),
    RGBColor(0, 114, 178),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(136, 34, 85),
    RGBColor(17, 119, 51),
    RGBColor(51, 34, 136),
    RGBColor(153, 153, 51),
    RGBColor(170, 68, 153),
    RGBColor(90, 90, 90),
];

/// The canvas.
pub type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Writes what `draw` draws.
///
/// # Errors
///
/// Those of `draw` and of `out`.
pub fn picture(
    mut out: impl Write,
    draw: impl FnOnce(&mut String) -> Result<(), Box<dyn Error>>,
) -> io::Result<()> {
    let mut picture = String::new();
    draw(&mut picture).map_err(|error| io::Error::other(error.to_string()))?;
    out.write_all(picture.as_bytes())
}
