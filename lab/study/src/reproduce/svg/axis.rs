//! An axis with the labels that we want, logarithmic where its figures are far apart.

use std::ops::Range;

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};

use overlock_report::numbers::count;

/// Figures that are further apart than this, as a factor, have a logarithmic axis.
const FAR: f64 = 10.0;

/// Between the outermost figures and the ends, as a share of what is between the figures.
const ROOM: f64 = 0.06;

/// An axis.
#[derive(Debug)]
pub struct Axis {
    range: Range<f64>,
    logarithmic: bool,
    labels: Vec<f64>,
}

impl Axis {
    /// So many places at equal distances: 0, 1, and so on.
    pub fn places(number: usize) -> Self {
        Self {
            range: -0.5..number as f64 - 0.5,
            logarithmic: false,
            labels: (0..number).map(|place| place as f64).collect(),
        }
    }

    /// One with room for all figures that are finite.
    pub fn over(figures: impl IntoIterator<Item = f64>) -> Self {
        let finite = figures.into_iter().filter(|figure| figure.is_finite());
        let (least, most) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), x| {
            (least.min(x), most.max(x))
        });
        if least > most {
            return Self::over([0.0, 1.0]);
        }
        if least > 0.0 && most / least > FAR {
            let room = (most / least).powf(ROOM);
            let range = least / room..most * room;
            return Self {
                labels: powers(&range),
                range,
                logarithmic: true,
            };
        }
        let room = match ROOM * (most - least) {
            0.0 => ROOM * most.abs().max(1.0),
            room => room,
        };
        // Zero is shown where that costs little.
        let low = match least {
            0.0.. if least < 0.4 * most => 0.0,
            _ => least - room,
        };
        let range = low..most + room;
        Self {
            labels: steps(&range),
            range,
            logarithmic: false,
        }
    }

    /// Whether equal distances are equal factors.
    pub fn is_logarithmic(&self) -> bool {
        self.logarithmic
    }

    /// The ends of the axis.
    pub fn ends(&self) -> [f64; 2] {
        [self.range.start, self.range.end]
    }

    /// How a label of an axis is written.
    pub fn label(figure: f64) -> String {
        if figure.abs() >= 1000.0 {
            count(figure)
        } else {
            format!("{}", (figure * 1000.0).round() / 1000.0)
        }
    }

    fn scaled(&self, figure: f64) -> f64 {
        if self.logarithmic {
            figure.ln()
        } else {
            figure
        }
    }
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

/// Powers of ten in the range and some numbers between, fewer where there are many powers.
fn powers(range: &Range<f64>) -> Vec<f64> {
    let decades = (range.end / range.start).log10();
    let (first, last) = (
        range.start.log10().floor() as i32,
        range.end.log10().ceil() as i32,
    );
    let between: &[f64] = match decades {
        ..1.7 => &[1.0, 2.0, 5.0],
        ..4.0 => &[1.0, 3.0],
        _ => &[1.0],
    };
    let all = (first..=last).flat_map(|power| between.iter().map(move |x| x * 10_f64.powi(power)));
    all.filter(|label| range.contains(label)).collect()
}

impl Ranged for Axis {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let [low, high] = self.ends().map(|end| self.scaled(end));
        let share = (self.scaled(*value) - low) / (high - low);
        limit.0 + (f64::from(limit.1 - limit.0) * share).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.labels.clone()
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(figures: &[f64]) -> Vec<String> {
        let axis = Axis::over(figures.iter().copied());
        axis.labels
            .iter()
            .map(|label| Axis::label(*label))
            .collect()
    }

    #[test]
    fn labels_are_round_and_few() {
        assert_eq!(labels(&[0.0, 97.0]), ["0", "20", "40", "60", "80", "100"]);
        assert_eq!(labels(&[0.92, 1.6]), ["1", "1.2", "1.4", "1.6"]);
        assert_eq!(labels(&[-5.2, 31.0]), ["0", "10", "20", "30"]);
        let far = [
            "3,000",
            "10,000",
            "30,000",
            "100,000",
            "300,000",
            "1,000,000",
        ];
        assert_eq!(labels(&[3_085.0, 1_257_109.0]), far);
        assert_eq!(labels(&[0.7, 9.0]), ["1", "2", "5", "10"]);
        assert_eq!(labels(&[1e-6, 7.0]).len(), 8);
        assert_eq!(labels(&[2.0]), ["1.9", "1.95", "2", "2.05", "2.1"]);
    }

    #[test]
    fn all_figures_are_on_the_axis_and_in_order() {
        for figures in [
            &[1.0, 2.0, 3.0][..],
            &[0.1, 5.0, 700.0],
            &[-3.0, 0.0, 8.0],
            &[5.0],
            &[0.0],
            &[],
            &[f64::NAN, 1.0, f64::INFINITY],
        ] {
            let axis = Axis::over(figures.iter().copied());
            let finite = figures.iter().filter(|figure| figure.is_finite());
            let at: Vec<i32> = finite.map(|figure| axis.map(figure, (200, 0))).collect();
            assert!(
                at.iter().all(|y| (0..=200).contains(y)),
                "{figures:?}: {at:?}"
            );
            assert!(
                at.is_sorted_by(|low, high| low > high),
                "{figures:?}: {at:?}"
            );
            assert!((1..10).contains(&axis.labels.len()), "{figures:?}");
        }
    }
}
