//! Charts, whose axes have the labels that we want.

use std::ops::Range;

use super::{BLACK, COLOURS, Canvas, Color, HPos, Point, VPos, WHITE, pen};
use crate::numbers::{count, trimmed};

/// An axis.
#[derive(Clone, Debug)]
pub struct Axis {
    range: Range<f64>,
    logarithmic: bool,
    /// Figures with their labels.
    labels: Vec<(f64, String)>,
    /// The figures at which a line crosses the chart.
    lines: Vec<f64>,
}

impl Axis {
    fn new(range: Range<f64>, logarithmic: bool, ticks: Vec<f64>, label: Label) -> Self {
        Self {
            labels: ticks.iter().map(|&tick| (tick, label(tick))).collect(),
            lines: ticks,
            range,
            logarithmic,
        }
    }

    /// Places at equal distances: 0, 1, and so on, with so much room at the ends, and no lines.
    pub fn places(labels: impl IntoIterator<Item = String>, room: f64) -> Self {
        let places = (0_u32..).map(f64::from);
        let labels: Vec<(f64, String)> = places.zip(labels).collect();
        let last = labels.last().map_or(0.0, |(place, _)| *place);
        Self {
            range: -room..last + room,
            logarithmic: false,
            labels,
            lines: Vec::new(),
        }
    }

    /// Levels of overcommit, which are in order: equal distances are equal factors.
    pub fn levels(levels: &[f64]) -> Self {
        let ends = (levels.first().copied(), levels.last().copied());
        let range = match ends {
            (Some(first), Some(last)) if first < last => first..last,
            // The only one is in the middle.
            (Some(only), _) => only / 2.0..only * 2.0,
            _ => 1.0..2.0,
        };
        // One thread on thousands of CPUs is not none.
        Self::new(range, true, levels.to_vec(), |level| {
            let decimals = -level.log10().floor() as usize;
            match level < 0.01 {
                true => format!("{level:.decimals$}x"),
                false => format!("{}x", trimmed(level)),
            }
        })
    }

    /// From 0 to 1.
    pub fn share(label: Label) -> Self {
        Self::new(0.0..1.0, false, vec![0.0, 0.25, 0.5, 0.75, 1.0], label)
    }

    /// Powers of ten around all figures, which are above 0.
    pub fn powers(figures: impl IntoIterator<Item = f64>, label: Label) -> Self {
        let (least, most) = ends(figures).unwrap_or((1.0, 1.0));
        let first = least.log10().floor() as i32;
        let last = (most.log10().ceil() as i32).max(first + 1);
        let ticks: Vec<f64> = (first..=last).map(|power| 10_f64.powi(power)).collect();
        Self::new(ticks[0]..ticks[ticks.len() - 1], true, ticks, label)
    }

    /// From 0 to a little above a figure.
    pub fn up_to(most: f64) -> Self {
        let range = 0.0..if most > 0.0 { most * 1.05 } else { 1.0 };
        Self::new(range.clone(), false, steps(&range), label)
    }

    /// The place of a figure on an axis between these pixels.
    fn place(&self, figure: f64, (from, to): (i32, i32)) -> i32 {
        let scaled = |figure: f64| {
            if self.logarithmic {
                figure.ln()
            } else {
                figure
            }
        };
        let (low, high) = (scaled(self.range.start), scaled(self.range.end));
        let share = (scaled(figure) - low) / (high - low);
        from + (f64::from(to - from) * share).round() as i32
    }
}

/// How a figure is written.
pub type Label = fn(f64) -> String;

fn label(figure: f64) -> String {
    if figure.abs() >= 1000.0 {
        count(figure)
    } else {
        format!("{}", (figure * 1e6).round() / 1e6)
    }
}

/// The least and the most, if there are any.
fn ends(figures: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    let pairs = figures.into_iter().map(|figure| (figure, figure));
    pairs.reduce(|(least, most), (figure, _)| (least.min(figure), most.max(figure)))
}

/// Round numbers in the range, evenly spaced: seven at most.
fn steps(range: &Range<f64>) -> Vec<f64> {
    let rough = (range.end - range.start) / 6.0;
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|step| *step >= rough)
        .unwrap_or(rough);
    let first = (range.start / step).ceil() as i64;
    let last = (range.end / step).floor() as i64;
    (first..=last).map(|number| number as f64 * step).collect()
}

/// Between two names of curves, one below the other.
const LINE: i32 = 18;

/// A chart, without what it shows.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Its upper left corner, without labels.
    pub corner: Point,
    /// Its width and height, without labels.
    pub size: Point,
    /// From left to right.
    pub x: Axis,
    /// From below to above.
    pub y: Axis,
}

impl Chart {
    /// The pixel of a point.
    pub fn at(&self, x: f64, y: f64) -> Point {
        let (left, top) = self.corner;
        let (width, height) = self.size;
        (
            self.x.place(x, (left, left + width)),
            self.y.place(y, (top + height, top)),
        )
    }

    /// Draws the lines and the labels, in a font of this size.
    pub fn draw(&self, canvas: &Canvas<'_>, font: i32) {
        let (left, top) = self.corner;
        let (right, bottom) = (left + self.size.0, top + self.size.1);
        let faint = BLACK.mix(0.12);
        let small = pen(font).grey();
        let across = |x: f64| self.x.place(x, (left, right));
        let above = |y: f64| self.y.place(y, (bottom, top));
        for &line in &self.x.lines {
            canvas.path([(across(line), top), (across(line), bottom)], faint);
        }
        for &line in &self.y.lines {
            canvas.path([(left, above(line)), (right, above(line))], faint);
        }
        let mut free = i32::MIN;
        for (figure, label) in &self.x.labels {
            let x = across(*figure);
            // Some that are close to each other have no label.
            if x >= free {
                let below = small.at(HPos::Center, VPos::Top);
                canvas.text((x, bottom + 6), below, label);
                free = x + font * (label.len() as i32 + 1) / 2;
            }
        }
        for (figure, label) in &self.y.labels {
            let before = small.at(HPos::Right, VPos::Center);
            canvas.text((left - 5, above(*figure)), before, label);
        }
    }

    /// Draws a curve for each name, with the name at its end. Its points are figures on both axes;
    /// those of which the last part is true are hollow.
    pub fn curves(&self, canvas: &Canvas<'_>, names: &[&str], curves: &[Vec<(f64, f64, bool)>]) {
        let mut ends: Vec<(Point, usize)> = Vec::new();
        for (index, curve) in curves.iter().enumerate() {
            let colour = COLOURS[index];
            let places: Vec<Point> = curve.iter().map(|&(x, y, _)| self.at(x, y)).collect();
            ends.extend(places.last().map(|&end| (end, index)));
            canvas.path(places.clone(), colour.stroke_width(2));
            for (place, (.., hollow)) in places.into_iter().zip(curve) {
                canvas.circle(place, 4, colour.filled());
                if *hollow {
                    canvas.circle(place, 2, WHITE.filled());
                }
            }
        }
        ends.sort_by_key(|((_, y), _)| *y);
        let (mut free, x) = (self.corner.1, self.corner.0 + self.size.0 + 20);
        for (end, index) in ends {
            let y = end.1.max(free);
            free = y + LINE;
            canvas.path([end, (x - 4, y)], COLOURS[index].mix(0.4));
            let name = pen(14).coloured(COLOURS[index]);
            canvas.text((x, y), name.at(HPos::Left, VPos::Center), names[index]);
        }
    }

    /// Writes the titles of both axes.
    pub fn titles(&self, canvas: &Canvas<'_>, x: &str, y: &str) {
        let (left, top) = self.corner;
        let (width, height) = self.size;
        let title = pen(14).at(HPos::Center, VPos::Top);
        canvas.text((left - 72, top + height / 2), title.turned(), y);
        canvas.text((left + width / 2, top + height + 26), title, x);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_round_and_few() {
        let labels = |most| {
            let labels = Axis::up_to(most).labels.into_iter();
            labels.map(|(_, label)| label).collect::<Vec<_>>()
        };
        assert_eq!(labels(97.0), ["0", "20", "40", "60", "80", "100"]);
        assert_eq!(labels(1.6), ["0", "0.5", "1", "1.5"]);
        assert_eq!(labels(0.0).len(), 6);
        assert_eq!(labels(0.0016), ["0", "0.0005", "0.001", "0.0015"]);
        let levels = Axis::levels(&[1.0 / 8192.0, 1.0 / 224.0, 0.25, 2.0]).labels;
        assert_eq!(
            levels
                .into_iter()
                .map(|(_, label)| label)
                .collect::<Vec<_>>(),
            ["0.0001x", "0.004x", "0.25x", "2x"]
        );
        assert_eq!(labels(1_257.0)[1..], ["500", "1,000"]);
    }

    #[test]
    fn powers_of_ten_have_room_for_all() {
        let axis = Axis::powers([300.0, 2e7], label);
        assert_eq!(axis.range, 100.0..1e8);
        let ends = [1e8, 100.0].map(|figure| axis.place(figure, (172, 0)));
        assert_eq!((ends, axis.labels.len()), ([0, 172], 7));
        for figures in [vec![], vec![1.0]] {
            assert_eq!(Axis::powers(figures, label).lines, [1.0, 10.0]);
        }
        assert_eq!(Axis::share(label).place(0.5, (172, 0)), 86);
    }
}
