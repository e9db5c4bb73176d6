//! The figures of a table that have the same unit and were published of the same machine.

use overlock_report::picture::{self, Axis, BLACK, Canvas, Color, Point, RGBAColor, RGBColor, pen};

use crate::reproduce::Line;
use crate::reproduce::label::{Count, Place, Unit};

/// The room that a figure has, if there are many.
const SLOT: i32 = 24;
/// The labels on the left, and margins.
const FRAME: i32 = 100;
/// The least and the most room that a chart takes.
const BOUNDS: (i32, i32) = (380, 870);
/// Half of the width of a band, at most, and how far two of them are apart, in pixels.
const BAND: (f64, f64) = (11.0, 44.0);
/// The colour of the ring of a figure outside its band.
const OUTSIDE: RGBColor = RGBColor(200, 0, 30);

/// A chart.
#[derive(Debug)]
pub struct Chart<'a> {
    machine: Option<&'static str>,
    unit: &'static Unit,
    of: Count,
    places: Vec<Place>,
    /// The names of its figures.
    pub series: Vec<&'a str>,
    lines: Vec<&'a Line>,
}

/// The mark of a simulated figure.
#[derive(Clone, Copy, Debug)]
pub enum Dot {
    /// It is within the band of the published one.
    Within,
    /// It is not.
    Outside,
}

impl<'a> Chart<'a> {
    /// Those that show all of the lines.
    pub fn all(lines: &'a [Line]) -> Vec<Self> {
        let mut charts: Vec<Self> = Vec::new();
        for line in lines {
            let (place, what) = (line.place, &line.what);
            let same = |chart: &Self| {
                (chart.machine, chart.unit, chart.of) == (place.machine, what.unit, place.of)
            };
            let index = charts.iter().position(same).unwrap_or_else(|| {
                charts.push(Self {
                    machine: place.machine,
                    unit: what.unit,
                    of: place.of,
                    places: Vec::new(),
                    series: Vec::new(),
                    lines: Vec::new(),
                });
                charts.len() - 1
            });
            let chart = &mut charts[index];
            if !chart.places.contains(&place) {
                chart.places.push(place);
            }
            if !chart.series.contains(&what.series.as_str()) {
                chart.series.push(&what.series);
            }
            chart.lines.push(line);
        }
        charts
    }

    /// How wide it is.
    pub fn width(&self) -> i32 {
        let slots = self.places.len() * self.series.len();
        (FRAME + SLOT * slots as i32).clamp(BOUNDS.0, BOUNDS.1)
    }

    /// Draws it there, so high.
    pub fn draw(
        &self,
        canvas: &Canvas<'_>,
        (left, top): Point,
        height: i32,
        colour: impl Fn(&str) -> RGBColor,
    ) {
        if let Some(machine) = self.machine {
            canvas.text((left + FRAME - 8, top + 4), pen(14), machine);
        }
        let chart = picture::Chart {
            corner: (left + FRAME - 10, top + 24),
            size: (self.width() - FRAME, height - 78),
            x: Axis::places(self.places.iter().map(Place::label), 0.5).divided(),
            y: Axis::over(self.lines.iter().flat_map(|line| figures(line))),
        };
        let scale = if chart.y.is_logarithmic() {
            " (log scale)"
        } else {
            ""
        };
        chart.draw(canvas, 13);
        let unit = format!("{}{scale}", self.unit.title);
        chart.titles(canvas, self.of.title(), &unit);

        let room = f64::from(chart.size.0) / self.places.len() as f64;
        let step = (0.84 / self.series.len() as f64).min(BAND.1 / room);
        let half = (step * 0.36 * room).min(BAND.0) as i32;
        for line in &self.lines {
            let colour = colour(&line.what.series);
            let at = |figure| chart.at(self.x(line, step), figure);
            let (x, y) = at(line.published);
            let [low, high] = tolerance(line).map(|end| at(end).1);
            canvas.rectangle([(x - half, high), (x + half, low)], band(colour));
            published(canvas, (x, y), half);
            // A simulation that is too short may bring no figure.
            if line.measured.is_finite() {
                let measured = at(line.measured);
                canvas.path([(x, y), measured], colour);
                Dot::of(line).draw(canvas, measured, colour);
            }
        }
    }

    /// The x coordinate of a figure: all of a place are side by side.
    fn x(&self, line: &Line, step: f64) -> f64 {
        let place = self.places.iter().position(|place| *place == line.place);
        let series = self
            .series
            .iter()
            .position(|name| *name == line.what.series);
        let middle = (self.series.len() as f64 - 1.0) / 2.0;
        place.unwrap_or_default() as f64 + (series.unwrap_or_default() as f64 - middle) * step
    }
}

impl Dot {
    fn of(line: &Line) -> Self {
        match line.reached {
            true => Self::Within,
            false => Self::Outside,
        }
    }

    /// Draws it there.
    pub fn draw(self, canvas: &Canvas<'_>, at: Point, colour: RGBColor) {
        canvas.circle(at, 5, colour.filled());
        if let Self::Outside = self {
            canvas.circle(at, 9, OUTSIDE.stroke_width(2));
        }
    }
}

/// Draws the mark of a published figure, so wide on both sides.
pub fn published(canvas: &Canvas<'_>, (x, y): Point, half: i32) {
    canvas.path([(x - half, y), (x + half, y)], BLACK.stroke_width(2))
}

/// The colour of a band.
pub fn band(colour: RGBColor) -> RGBAColor {
    colour.mix(0.25)
}

/// From where to where a simulated figure is near enough.
fn tolerance(line: &Line) -> [f64; 2] {
    let bound = line.bound;
    let most = if line.absolute {
        bound
    } else {
        bound * line.published
    };
    [line.published - most, line.published + most]
}

/// The figures that an axis must include.
fn figures(line: &Line) -> impl Iterator<Item = f64> {
    let both = [line.published, line.measured];
    both.into_iter().chain(tolerance(line))
}
