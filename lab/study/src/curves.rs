//! Locks over the number of threads, and their picture.

use std::io::{self, Write};

use itertools::Itertools;
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
    let levels = all()
        .map(level)
        .sorted_by(f64::total_cmp)
        .dedup()
        .collect_vec();
    let figures = || all().map(|point| point.ops_per_sec);
    let most = figures().fold(0.0, f64::max);
    let is_log = figures().any(|figure| most > COLLAPSE * figure);
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

    #[test]
    fn a_collapse_has_a_logarithmic_axis_and_what_has_not_settled_is_hollow() {
        let drawn = |last: f64, settled: bool| {
            let points =
                [(8, 1e6, true), (16, last, settled)].map(|(threads, ops, settled)| Rate {
                    threads,
                    ops_per_sec: ops,
                    settled: Some(settled),
                });
            let curve = Curve {
                lock: "mcs".to_owned(),
                points: points.into(),
            };
            let mut picture = Vec::new();
            write(&mut picture, "a title", 8, &[curve]).unwrap();
            let picture = String::from_utf8(picture).unwrap();
            let has = ["second, log scale", "has not settled"].map(|text| picture.contains(text));
            (has, picture.matches("<circle").count())
        };
        assert_eq!(drawn(2e5, true), ([false, false], 2));
        assert_eq!(drawn(5e4, true), ([true, false], 2));
        assert_eq!(drawn(2e5, false), ([false, true], 3));
    }
}
