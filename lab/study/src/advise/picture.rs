//! Locks over the number of threads, as a picture.

use std::io::{self, Write};

use itertools::Itertools;
use overlock_report::numbers::rate;
use overlock_report::picture::{Axis, Chart, Point, pen, picture};

use super::Advice;

const SIZE: Point = (860, 480);
const CORNER: Point = (100, 70);
const PLOT: Point = (560, 330);
/// From this factor between the least and the most on, the axis is logarithmic: a collapse shows.
const COLLAPSE: f64 = 10.0;

impl Advice {
    /// Draws the best locks with each number of threads. Figures that have not settled are hollow.
    pub fn draw(&self, out: impl Write) -> io::Result<()> {
        let title = format!("{} on {}", self.workload, self.machine);
        let locks = self.drawn();
        let curve = |lock: &&str| {
            let points = self.curves.iter().filter_map(|advice| {
                let level = advice.threads as f64 / advice.cpus as f64;
                let mut all = advice.locks.iter().chain(&advice.models);
                let measured = &all.find(|other| other.lock == *lock)?.measured;
                let ops = measured.ops_per_sec;
                (ops > 0.0).then_some((level, ops, measured.is_unsettled()))
            });
            points.collect_vec()
        };
        let named = |lock: &&'static str| match self.model_ahead() {
            Some(model) if model.lock == *lock => format!("{lock} (no library has it)"),
            _ => (*lock).to_owned(),
        };
        let names = locks.iter().map(named).collect_vec();
        let names = names.iter().map(String::as_str).collect_vec();
        let mut curves = locks.iter().map(curve).collect_vec();
        let all = curves.concat();
        let levels = all.iter().map(|(level, ..)| *level);
        let levels = levels.sorted_by(f64::total_cmp).dedup().collect_vec();
        let figures = all.iter().map(|(_, ops, _)| *ops);
        let most = figures.clone().fold(0.0, f64::max);
        let is_log = figures.clone().any(|figure| most > COLLAPSE * figure);
        let (y, unit, scale) = match is_log {
            true => (Axis::powers(figures, rate), 1.0, ", log scale"),
            false => (Axis::up_to(most / 1e6), 1e6, ""),
        };
        let points = curves.iter_mut().flatten();
        points.for_each(|(_, ops, _)| *ops /= unit);
        picture(out, SIZE, |canvas| {
            canvas.text((24, 14), pen(17), &title);
            if all.iter().any(|(.., unsettled)| *unsettled) {
                let note =
                    "A hollow mark has not settled: longer simulations may bring another figure.";
                canvas.text((24, 42), pen(13).grey(), note);
            }
            let (corner, size, x) = (CORNER, PLOT, Axis::levels(&levels));
            let chart = Chart { corner, size, x, y };
            chart.draw(canvas, 13);
            let y = format!("million operations a second{scale}");
            chart.titles(canvas, "threads for each CPU (log scale)", &y);
            chart.curves(canvas, &names, &curves);
        })
    }
}
