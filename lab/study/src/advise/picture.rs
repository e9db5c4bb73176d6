//! Locks over the number of threads, as a picture.

use std::io::{self, Write};

use itertools::Itertools;
use overlock_report::numbers::rate;
use overlock_report::picture::{
    Axis, COLOURS, Chart, Color, HPos, Point, VPos, WHITE, pen, picture,
};

use super::{Advice, Standing};

const SIZE: Point = (860, 480);
const CORNER: Point = (100, 70);
const PLOT: Point = (560, 330);
/// Between two names, one below the other.
const LINE: i32 = 18;
/// From this factor between the least and the most on, the axis is logarithmic: a collapse shows.
const COLLAPSE: f64 = 10.0;

/// Draws these locks with each number of threads of a machine. Figures that have not settled are
/// hollow.
pub(crate) fn draw(
    out: impl Write,
    title: &str,
    locks: &[&str],
    advices: &[&Advice],
) -> io::Result<()> {
    let level = |advice: &Advice| advice.threads as f64 / advice.cpus as f64;
    let curve = |lock: &&str| {
        let points = advices.iter().filter_map(|advice| {
            let standing = advice.locks.iter().find(|other| other.lock == *lock)?;
            (standing.measured.ops_per_sec > 0.0).then_some((level(advice), standing))
        });
        points.collect_vec()
    };
    let curves: Vec<Vec<(f64, &Standing)>> = locks.iter().map(curve).collect();
    let all = || curves.iter().flatten();
    let levels = all().map(|(level, _)| *level);
    let levels = levels.sorted_by(f64::total_cmp).dedup().collect_vec();
    let figures = || all().map(|(_, standing)| standing.measured.ops_per_sec);
    let most = figures().fold(0.0, f64::max);
    let is_log = figures().any(|figure| most > COLLAPSE * figure);
    let (y, unit, scale) = match is_log {
        true => (Axis::powers(figures(), rate), 1.0, ", log scale"),
        false => (Axis::up_to(most / 1e6), 1e6, ""),
    };
    picture(out, SIZE, |canvas| {
        canvas.text((24, 14), pen(17), title);
        if all().any(|(_, standing)| standing.measured.is_unsettled()) {
            let note =
                "A hollow mark has not settled: longer simulations may bring another figure.";
            canvas.text((24, 42), pen(13).grey(), note);
        }
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
            let place = |(level, standing): &(f64, &Standing)| {
                chart.at(*level, standing.measured.ops_per_sec / unit)
            };
            let places = curve.iter().map(place).collect_vec();
            ends.extend(places.last().map(|&end| (end, index)));
            canvas.path(places.clone(), COLOURS[index].stroke_width(2));
            for ((_, standing), place) in curve.iter().zip(places) {
                canvas.circle(place, 4, COLOURS[index].filled());
                if standing.measured.is_unsettled() {
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
            let name = pen(14).coloured(COLOURS[index]);
            canvas.text((x, y), name.at(HPos::Left, VPos::Center), locks[index]);
        }
    })
}
