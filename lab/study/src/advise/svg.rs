//! The picture of an answer: operations over the number of threads, with a line for each of at most
//! five locks.

use std::io::{self, Write};

use overlock_report::numbers::rate;
use overlock_report::picture::{Axis, COLOURS, Chart, Color, HPos, Point, VPos, pen, picture};

use super::Advice;

const SIZE: Point = (860, 480);
const CORNER: Point = (100, 70);
const PLOT: Point = (560, 330);
/// Between two names, one below the other.
const LINE: i32 = 18;
/// From this factor between the least and the most on, the axis is logarithmic: a collapse shows.
const COLLAPSE: f64 = 10.0;

/// Writes the picture.
///
/// # Errors
///
/// Those of `out`.
pub fn write(out: impl Write, advice: &Advice) -> io::Result<()> {
    let levels = |points: &[(usize, f64)]| {
        let levels = points
            .iter()
            .map(|(threads, _)| *threads as f64 / advice.cpus as f64);
        levels.collect::<Vec<_>>()
    };
    let mut all: Vec<f64> = advice
        .curves
        .iter()
        .flat_map(|curve| levels(&curve.points))
        .collect();
    all.sort_by(f64::total_cmp);
    all.dedup();
    let figures = || {
        let curves = advice.curves.iter();
        curves.flat_map(|curve| curve.points.iter().map(|(_, ops)| *ops))
    };
    let (least, most) = figures().fold((f64::INFINITY, 0.0_f64), |(least, most), ops| {
        (least.min(ops), most.max(ops))
    });
    let is_log = most > COLLAPSE * least;
    let y = match is_log {
        true => Axis::powers(figures(), rate),
        false => Axis::up_to(most / 1e6),
    };
    picture(out, SIZE, |canvas| {
        let title = format!("{} on {}", advice.workload, advice.machine);
        canvas.text((24, 14), pen(17), title);
        let scale = if is_log { ", log scale" } else { "" };
        let chart = Chart {
            corner: CORNER,
            size: PLOT,
            x: Axis::levels(&all),
            y,
        };
        chart.draw(canvas, 13);
        let y = format!("million operations a second{scale}");
        chart.titles(canvas, "threads for each CPU (log scale)", &y);
        let mut ends: Vec<(Point, usize)> = Vec::new();
        for (index, curve) in advice.curves.iter().enumerate() {
            let scaled = |ops: f64| if is_log { ops } else { ops / 1e6 };
            let places = levels(&curve.points).into_iter().zip(&curve.points);
            let points: Vec<Point> = places
                .map(|(x, (_, ops))| chart.at(x, scaled(*ops)))
                .collect();
            for &point in &points {
                canvas.circle(point, 3, COLOURS[index].filled());
            }
            ends.extend(points.last().map(|&end| (end, index)));
            canvas.path(points, COLOURS[index].stroke_width(2));
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
            canvas.text((x, y), name, &advice.curves[index].lock);
        }
    })
}
