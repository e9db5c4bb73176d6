//! The figures of a table that have the same unit and were published of the same machine.

use std::error::Error;

use plotters::prelude::*;

use super::axis::Axis;
use crate::reproduce::Line;
use crate::reproduce::label::{Count, Place, Unit};
use overlock_report::picture::{Area, FONT};

/// The room that a figure has, if there are many.
const SLOT: u32 = 24;
/// The labels on the left, and margins.
const FRAME: u32 = 100;
/// The least and the most room that a chart takes.
const BOUNDS: (u32, u32) = (380, 870);
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
    pub fn width(&self) -> u32 {
        let slots = self.places.len() * self.series.len();
        (FRAME + SLOT * slots as u32).clamp(BOUNDS.0, BOUNDS.1)
    }

    /// Draws it.
    ///
    /// # Errors
    ///
    /// Those of the drawing area.
    pub fn draw(
        &self,
        area: &Area<'_>,
        colour: impl Fn(&str) -> RGBColor,
    ) -> Result<(), Box<dyn Error>> {
        if let Some(machine) = self.machine {
            let left = FRAME as i32 - 8;
            area.draw(&Text::new(machine, (left, 4), (FONT, 14).into_font()))?;
        }
        let vertical = Axis::over(self.lines.iter().flat_map(|line| figures(line)));
        let [low, high] = vertical.ends();
        let scale = if vertical.is_logarithmic() {
            " (log scale)"
        } else {
            ""
        };
        let mut chart = ChartBuilder::on(area)
            .margin(10)
            .margin_top(24)
            .x_label_area_size(44)
            .y_label_area_size(FRAME - 20)
            .build_cartesian_2d(Axis::places(self.places.len()), vertical)?;
        let label = |x: &f64| {
            let place = self.places.get(x.round() as usize);
            place.map(Place::label).unwrap_or_default()
        };
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(BLACK.mix(0.12))
            .x_label_formatter(&label)
            .x_desc(self.of.title())
            .y_desc(format!("{}{scale}", self.unit.title))
            .y_label_formatter(&|y| Axis::label(*y))
            .axis_desc_style((FONT, 14))
            .label_style((FONT, 13))
            .draw()?;
        // Between two places.
        let borders = (1..self.places.len()).map(|place| place as f64 - 0.5);
        chart.draw_series(
            borders.map(|x| PathElement::new(vec![(x, low), (x, high)], BLACK.mix(0.12))),
        )?;

        let plot = chart.plotting_area();
        let room = f64::from(plot.dim_in_pixel().0) / self.places.len() as f64;
        let step = (0.84 / self.series.len() as f64).min(BAND.1 / room);
        let half = (step * 0.36).min(BAND.0 / room);
        for line in &self.lines {
            let colour = colour(&line.what.series);
            let x = self.x(line, step);
            let (published, measured) = (line.published, line.measured);
            let [low, high] = tolerance(line);
            let corners = [(x - half, low), (x + half, high)];
            plot.draw(&Rectangle::new(corners, band(colour)))?;
            let ends = vec![(x - half, published), (x + half, published)];
            plot.draw(&PathElement::new(ends, BLACK.stroke_width(2)))?;
            // A simulation that is too short may bring no figure.
            if measured.is_finite() {
                let ends = vec![(x, published), (x, measured)];
                plot.draw(&PathElement::new(ends, colour))?;
                let (base, at) = (area.get_base_pixel(), plot.map_coordinate(&(x, measured)));
                Dot::of(line).draw(area, (at.0 - base.0, at.1 - base.1), colour)?;
            }
        }
        Ok(())
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
    ///
    /// # Errors
    ///
    /// Those of the drawing area.
    pub fn draw(
        self,
        area: &Area<'_>,
        at: (i32, i32),
        colour: RGBColor,
    ) -> Result<(), Box<dyn Error>> {
        match self {
            Self::Within => area.draw(&Circle::new(at, 5, colour.filled()))?,
            Self::Outside => {
                area.draw(&Circle::new(at, 5, colour.filled()))?;
                area.draw(&Circle::new(at, 9, OUTSIDE.stroke_width(2)))?;
            }
        }
        Ok(())
    }
}

/// The fill of a band.
pub fn band(colour: RGBColor) -> ShapeStyle {
    colour.mix(0.25).filled()
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
