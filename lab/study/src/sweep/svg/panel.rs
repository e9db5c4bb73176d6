//! One small chart, with the names of its lines at their ends.

use std::error::Error;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::Curve;
use overlock_report::numbers::trimmed;
use overlock_report::picture::{Area, FONT};

/// A chart with all around it.
pub const WIDTH: i32 = 306;
/// The same.
pub const HEIGHT: i32 = 246;
/// The lines, without labels.
const PLOT: (i32, i32) = (160, 172);
/// From the corner of a chart to the corner of its lines.
const CORNER: (i32, i32) = (44, 42);
/// Between two names, one below the other.
const LINE: i32 = 12;

/// A vertical axis.
#[derive(Clone, Debug)]
pub struct Scale {
    low: f64,
    high: f64,
    logarithmic: bool,
    ticks: Vec<f64>,
}

impl Scale {
    /// From 0 to 1.
    pub fn share() -> Self {
        Self {
            low: 0.0,
            high: 1.0,
            logarithmic: false,
            ticks: vec![0.0, 0.25, 0.5, 0.75, 1.0],
        }
    }

    /// Powers of ten around all values, which are above 0.
    pub fn powers(values: impl Iterator<Item = f64>) -> Self {
        let (least, most) = values.fold((f64::INFINITY, 0.0_f64), |(least, most), value| {
            (least.min(value), most.max(value))
        });
        let (least, most) = if least > most {
            (1.0, 1.0)
        } else {
            (least, most)
        };
        let first = least.log10().floor() as i32;
        let last = (most.log10().ceil() as i32).max(first + 1);
        Self {
            low: 10_f64.powi(first),
            high: 10_f64.powi(last),
            logarithmic: true,
            ticks: (first..=last).map(|power| 10_f64.powi(power)).collect(),
        }
    }

    /// Pixels below the upper end.
    fn below(&self, value: f64) -> i32 {
        let share = if self.logarithmic {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        (f64::from(PLOT.1) * (1.0 - share)).round() as i32
    }
}

/// A chart.
pub struct Panel<'a> {
    /// Its title.
    pub machine: String,
    /// The line below.
    pub load: &'a str,
    /// vCPUs for each CPU, in order.
    pub levels: &'a [f64],
    /// The vertical axis.
    pub scale: &'a Scale,
    /// How a tick of it is written.
    pub label: fn(f64) -> String,
    /// The lines, the foremost last.
    pub curves: &'a [Curve],
}

impl Panel<'_> {
    /// Draws it there.
    ///
    /// # Errors
    ///
    /// Those of the drawing area.
    pub fn draw(&self, area: &Area<'_>, (left, top): (i32, i32)) -> Result<(), Box<dyn Error>> {
        let corner = (left + CORNER.0, top + CORNER.1);
        let grey = BLACK.mix(0.65);
        let title = (FONT, 14).into_font().style(FontStyle::Bold);
        area.draw(&Text::new(self.machine.clone(), (left + 8, top + 4), title))?;
        let load = (FONT, 13).into_font().color(&grey);
        area.draw(&Text::new(self.load.to_owned(), (left + 8, top + 22), load))?;
        self.frame(area, corner)?;
        for curve in self.curves {
            let points: Vec<(i32, i32)> =
                curve.points.iter().map(|&p| self.at(p, corner)).collect();
            let dot = curve.style.stroke_width as i32;
            let dots = points
                .iter()
                .map(|&point| Circle::new(point, dot.clamp(1, 2) + 1, curve.style.color.filled()));
            for dot in dots {
                area.draw(&dot)?;
            }
            area.draw(&PathElement::new(points, curve.style))?;
        }
        self.names(area, corner)
    }

    /// A point of a curve, as pixels.
    fn at(&self, (level, value): (f64, f64), corner: (i32, i32)) -> (i32, i32) {
        (
            corner.0 + self.right(level),
            corner.1 + self.scale.below(value),
        )
    }

    /// Pixels right of the vertical axis: equal distances are equal factors.
    fn right(&self, level: f64) -> i32 {
        let (Some(first), Some(last)) = (self.levels.first(), self.levels.last()) else {
            return 0;
        };
        let share = match last / first {
            1.0 => 0.5,
            factor => (level / first).ln() / factor.ln(),
        };
        (f64::from(PLOT.0) * share).round() as i32
    }

    fn frame(&self, area: &Area<'_>, corner: (i32, i32)) -> Result<(), Box<dyn Error>> {
        let small = (FONT, 11).into_font().color(&BLACK.mix(0.65));
        let faint = BLACK.mix(0.12);
        let centred = small.clone().pos(Pos::new(HPos::Center, VPos::Top));
        let bottom = corner.1 + PLOT.1;
        let mut free = i32::MIN;
        for &level in self.levels {
            let x = corner.0 + self.right(level);
            area.draw(&PathElement::new(vec![(x, corner.1), (x, bottom)], faint))?;
            // Some levels that are close to each other have no label.
            if x >= free {
                let text = format!("{}x", trimmed(level));
                area.draw(&Text::new(text, (x, bottom + 6), centred.clone()))?;
                free = x + 30;
            }
        }
        let before = small.pos(Pos::new(HPos::Right, VPos::Center));
        for &tick in &self.scale.ticks {
            let y = corner.1 + self.scale.below(tick);
            let ends = vec![(corner.0, y), (corner.0 + PLOT.0, y)];
            area.draw(&PathElement::new(ends, faint))?;
            let text = (self.label)(tick);
            area.draw(&Text::new(text, (corner.0 - 5, y), before.clone()))?;
        }
        Ok(())
    }

    /// The names, each near the end of its line.
    fn names(&self, area: &Area<'_>, corner: (i32, i32)) -> Result<(), Box<dyn Error>> {
        let mut ends: Vec<(&Curve, (i32, i32))> = self
            .curves
            .iter()
            .filter_map(|curve| Some((curve, self.at(*curve.points.last()?, corner))))
            .collect();
        ends.sort_by_key(|(_, (_, y))| *y);
        let wanted: Vec<i32> = ends.iter().map(|(_, (_, y))| *y).collect();
        let places = apart(&wanted, corner.1, corner.1 + PLOT.1);
        let x = corner.0 + PLOT.0 + 12;
        for ((curve, end), y) in ends.into_iter().zip(places) {
            let colour = curve.style.color;
            let leader = vec![end, (x - 2, y)];
            area.draw(&PathElement::new(leader, colour.mix(0.4)))?;
            let style = (FONT, 12).into_font().color(&colour);
            let style = style.pos(Pos::new(HPos::Left, VPos::Center));
            area.draw(&Text::new(curve.name.clone(), (x, y), style))?;
        }
        Ok(())
    }
}

/// Places that are a line apart and within the bounds: those that are wanted, in their order, moved
/// down past the one before, or up where there is no room.
fn apart(wanted: &[i32], top: i32, bottom: i32) -> Vec<i32> {
    let mut places = wanted.to_vec();
    let mut least = top;
    for place in &mut places {
        *place = (*place).max(least);
        least = *place + LINE;
    }
    let mut most = bottom;
    for place in places.iter_mut().rev() {
        *place = (*place).min(most);
        most = *place - LINE;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_do_not_hide_each_other() {
        assert_eq!(apart(&[50, 90], 0, 100), [50, 90]);
        assert_eq!(apart(&[50, 51, 52], 0, 100), [50, 62, 74]);
        assert_eq!(apart(&[99, 100, 100], 0, 100), [76, 88, 100]);
        assert!(apart(&[], 0, 100).is_empty());
    }

    #[test]
    fn scales_have_room_for_all() {
        let scale = Scale::powers([300.0, 2e7].into_iter());
        assert_eq!((scale.low, scale.high), (100.0, 1e8));
        assert_eq!((scale.below(1e8), scale.below(100.0)), (0, PLOT.1));
        assert_eq!(scale.ticks.len(), 7);
        for values in [vec![], vec![1.0]] {
            let scale = Scale::powers(values.into_iter());
            assert_eq!(scale.ticks, [1.0, 10.0]);
        }
        assert_eq!(Scale::share().below(0.5), PLOT.1 / 2);
    }
}
