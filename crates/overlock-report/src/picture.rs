//! Common parts of the pictures: a canvas, pens, charts.

mod chart;

use std::io::{self, Write};

use plotters::coord::Shift;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::Pos;

pub use chart::{Axis, Chart};
pub use plotters::style::text_anchor::{HPos, VPos};
pub use plotters::style::{BLACK, Color, RGBAColor, RGBColor, ShapeStyle, WHITE};

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

/// Pixels from the left and from the top.
pub type Point = (i32, i32);

/// Writes a picture of this width and height, in pixels.
///
/// # Errors
///
/// Those of `out`.
pub fn picture(
    mut out: impl Write,
    (width, height): Point,
    draw: impl FnOnce(&Canvas<'_>),
) -> io::Result<()> {
    let mut picture = String::new();
    let size = (width.unsigned_abs(), height.unsigned_abs());
    let canvas = Canvas {
        area: SVGBackend::with_string(&mut picture, size).into_drawing_area(),
    };
    // Pages may be dark; what is drawn here is not.
    canvas.rectangle([(0, 0), (width, height)], WHITE);
    draw(&canvas);
    canvas.area.present().expect(TAKEN);
    drop(canvas);
    out.write_all(picture.as_bytes())
}

const TAKEN: &str = "a string takes every element";

/// The look of a text: black, to the right of its place and below, unless it says otherwise.
#[derive(Clone, Copy)]
#[allow(missing_debug_implementations)] // plotters' positions have none
pub struct Pen {
    size: i32,
    colour: RGBAColor,
    bold: bool,
    anchor: Pos,
    turned: bool,
}

/// A pen of this size.
pub fn pen(size: i32) -> Pen {
    Pen {
        size,
        colour: BLACK.to_rgba(),
        bold: false,
        anchor: Pos::new(HPos::Left, VPos::Top),
        turned: false,
    }
}

impl Pen {
    /// For what counts less.
    pub fn grey(self) -> Self {
        self.coloured(BLACK.mix(0.65))
    }

    /// In this colour.
    pub fn coloured(self, colour: impl Color) -> Self {
        Self {
            colour: colour.to_rgba(),
            ..self
        }
    }

    /// For titles.
    pub fn bold(self) -> Self {
        Self { bold: true, ..self }
    }

    /// Which part of the text stands at its place.
    pub fn at(self, horizontal: HPos, vertical: VPos) -> Self {
        Self {
            anchor: Pos::new(horizontal, vertical),
            ..self
        }
    }

    /// Read from below.
    pub fn turned(self) -> Self {
        Self {
            turned: true,
            ..self
        }
    }
}

/// A white canvas.
#[allow(missing_debug_implementations)] // plotters' has none
pub struct Canvas<'a> {
    area: DrawingArea<SVGBackend<'a>, Shift>,
}

impl Canvas<'_> {
    /// Writes a text.
    pub fn text(&self, at: Point, pen: Pen, text: impl Into<String>) {
        let style = match pen.bold {
            true => FontStyle::Bold,
            false => FontStyle::Normal,
        };
        let mut font = ("sans-serif", pen.size).into_font().style(style);
        if pen.turned {
            font = font.transform(FontTransform::Rotate270);
        }
        let style = font.color(&pen.colour).pos(pen.anchor);
        let text = Text::new(text.into(), at, style);
        self.area.draw(&text).expect(TAKEN);
    }

    /// Draws lines from point to point.
    pub fn path(&self, points: impl Into<Vec<Point>>, style: impl Into<ShapeStyle>) {
        let path = PathElement::new(points.into(), style);
        self.area.draw(&path).expect(TAKEN);
    }

    /// The same with gaps.
    pub fn dashes(&self, points: Vec<Point>, style: impl Into<ShapeStyle>) {
        let dashes = DashedPathElement::new(points, 5, 4, style);
        self.area.draw(&dashes).expect(TAKEN);
    }

    /// Fills a rectangle.
    pub fn rectangle(&self, corners: [Point; 2], colour: impl Color) {
        let rectangle = Rectangle::new(corners, colour.filled());
        self.area.draw(&rectangle).expect(TAKEN);
    }

    /// Draws a circle.
    pub fn circle(&self, at: Point, radius: i32, style: impl Into<ShapeStyle>) {
        self.area
            .draw(&Circle::new(at, radius, style))
            .expect(TAKEN);
    }
}
