//! Locks over the number of threads, and their picture.

use std::io::{self, Write};

use overlock_report::numbers::rate;
use overlock_report::picture::{
    Axis, COLOURS, Chart, Color, HPos, Point, VPos, WHITE, pen, picture,
};
use serde::Serialize;

/// A lock with several numbers of threads.
#[derive(Clone, Debug, Serialize)]
pub struct Curve {
    pub lock: String,
    pub points: Vec<Rate>,
}

/// A figure of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rate {
    pub threads: usize,
    pub ops_per_sec: f64,
    /// Whether longer simulations would bring the same, where that is known.
    pub settled: Option<bool>,
}

impl Rate {
    /// The figure of so many threads, if there is one to draw.
    pub fn new(threads: usize, ops_per_sec: f64, settled: Option<bool>) -> Option<Self> {
        let rate = Self {
            threads,
            ops_per_sec,
            settled,
        };
        (ops_per_sec > 0.0).then_some(rate)
    }
}

const SIZE: Point = (860, 480);
const CORNER: Point = (100, 70);
const PLOT: Point = (560, 330);
/// Between two names, one below the other.
const LINE: i32 = 18;
/// From this factor between the least and the most on, the axis is logarithmic: a collapse shows.
const COLLAPSE: f64 = 10.0;

/// Draws curves of a machine with so many CPUs. Figures that have not settled are hollow.
pub fn write(out: impl Write, title: &str, cpus: usize, curves: &[Curve]) -> io::Result<()> {
    let level = |point: &Rate| point.threads as f64 / cpus as f64;
    let all = || curves.iter().flat_map(|curve| &curve.points);
    let mut levels: Vec<f64> = all().map(level).collect();
    levels.sort_by(f64::total_cmp);
    levels.dedup();
    let figures = || all().map(|point| point.ops_per_sec);
    let (least, most) = figures().fold((f64::INFINITY, 0.0_f64), |(least, most), ops| {
        (least.min(ops), most.max(ops))
    });
    let is_log = most > COLLAPSE * least;
    let y = match is_log {
        true => Axis::powers(figures(), rate),
        false => Axis::up_to(most / 1e6),
    };
    picture(out, SIZE, |canvas| {
        canvas.text((24, 14), pen(17), title);
        if all().any(|point| point.settled == Some(false)) {
            let note =
                "A hollow mark has not settled: longer simulations may bring another figure.";
            canvas.text((24, 42), pen(13).grey(), note);
        }
        let scale = if is_log { ", log scale" } else { "" };
        let chart = Chart {
            corner: CORNER,
            size: PLOT,
            x: Axis::levels(&levels),
            y,
        };
        chart.draw(canvas, 13);
        let y = format!("million operations a second{scale}");
        chart.titles(canvas, "threads for each CPU (log scale)", &y);
        let mut ends: Vec<(Point, usize)> = Vec::new();
        for (index, curve) in curves.iter().enumerate() {
            let scaled = |ops: f64| if is_log { ops } else { ops / 1e6 };
            let place = |point: &Rate| chart.at(level(point), scaled(point.ops_per_sec));
            let places: Vec<Point> = curve.points.iter().map(place).collect();
            ends.extend(places.last().map(|&end| (end, index)));
            canvas.path(places.clone(), COLOURS[index].stroke_width(2));
            for (point, place) in curve.points.iter().zip(places) {
                canvas.circle(place, 4, COLOURS[index].filled());
                if point.settled == Some(false) {
                    canvas.circle(place, 2, WHITE.filled());
                }
            }
        }
        ends.sort_by_key(|((_, y), _)| *y);
        let mut free = CORNER.1;
        for (end, index) in ends {
            let y = end.1.max(free);
            free = y + LINE;
            let x = CORNER.0 + PLOT.0 + 20;
            canvas.path([end, (x - 4, y)], COLOURS[index].mix(0.4));
            let name = pen(14)
                .coloured(COLOURS[index])
                .at(HPos::Left, VPos::Center);
            canvas.text((x, y), name, &curves[index].lock);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(points: &[(usize, f64, bool)]) -> String {
        let points = points.iter().map(|&(threads, ops_per_sec, settled)| Rate {
            threads,
            ops_per_sec,
            settled: Some(settled),
        });
        let curve = Curve {
            lock: "mcs".to_owned(),
            points: points.collect(),
        };
        let mut picture = Vec::new();
        write(&mut picture, "a title", 8, &[curve]).unwrap();
        String::from_utf8(picture).unwrap()
    }

    #[test]
    fn figures_that_have_not_settled_are_hollow() {
        let settled = drawn(&[(4, 1e6, true), (8, 2e6, true)]);
        let not = drawn(&[(4, 1e6, true), (8, 2e6, false)]);
        let circles = |picture: &str| picture.matches("<circle").count();
        assert_eq!((circles(&settled), circles(&not)), (2, 3));
        assert!(not.contains("has not settled") && !settled.contains("has not settled"));
    }

    #[test]
    fn a_collapse_has_a_logarithmic_axis() {
        assert!(!drawn(&[(8, 1e6, true), (16, 2e5, true)]).contains("second, log scale"));
        assert!(drawn(&[(8, 1e6, true), (16, 5e4, true)]).contains("second, log scale"));
    }
}
