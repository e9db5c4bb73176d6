//! A sweep as a picture of small charts: a row for each load, a column for each machine, a line for
//! each lock.

mod panel;

use std::io::{self, Write};

use super::cells::{Cell, Figures, cells};
use super::merge::Merged;
use super::summary::least_cpu;
use clap::ValueEnum;
use overlock_bench::registry::{Family, Origin};
use overlock_report::numbers::{factor, significant, time};
use overlock_report::picture::{Axis, COLOURS, Canvas, Color, ShapeStyle, pen, picture};
use panel::Panel;

/// The title, and what the colours mean.
const HEAD: i32 = 100;
/// The names of the loads.
const LEFT: i32 = 24;
const MARGIN: i32 = 24;

/// The figure of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Figure {
    /// Operations, over those of the best lock
    Operations,
    /// Jain's index of fairness
    Jain,
    /// The longest wait
    Longest,
    /// CPU time of an operation, over the least
    Cpu,
}

impl Figure {
    fn title(self) -> &'static str {
        match self {
            Self::Operations => "operations, as a share of the best lock's",
            Self::Jain => "Jain's index of fairness, 1 is even",
            Self::Longest => "longest wait (log scale)",
            Self::Cpu => "CPU time of an operation, over the least of all locks (log scale)",
        }
    }

    /// Its value for a lock of a cell.
    fn of(self, cell: &Cell, figures: &Figures, of_best: f64) -> Option<f64> {
        match self {
            Self::Operations => Some(of_best),
            Self::Jain => figures.jain,
            Self::Longest => figures.longest_ns.filter(|longest| *longest > 0.0),
            Self::Cpu => Some(figures.cpu_s_per_mop? / least_cpu(cell)?),
        }
    }

    fn axis(self, values: impl Iterator<Item = f64>) -> Axis {
        match self {
            Self::Operations | Self::Jain => Axis::share(factor),
            Self::Longest => Axis::powers(values, time),
            Self::Cpu => Axis::powers(values, significant),
        }
    }
}

/// A line of a chart.
#[derive(Clone, Debug)]
pub struct Curve {
    /// The text at its end.
    pub name: String,
    /// Its colour and width.
    pub style: ShapeStyle,
    /// vCPUs for each CPU, and the figure, where there is one.
    pub points: Vec<(f64, f64)>,
}

/// Writes the picture.
///
/// # Errors
///
/// Those of `out`.
pub fn write(out: impl Write, merged: &Merged, figure: Figure) -> io::Result<()> {
    let cells = &cells(merged);
    let mut machines: Vec<&str> = Vec::new();
    let mut loads: Vec<&str> = Vec::new();
    let mut levels: Vec<f64> = Vec::new();
    for cell in cells {
        once(&mut machines, cell.machine.as_str());
        once(&mut loads, cell.load.as_str());
        once(&mut levels, cell.overcommit());
    }
    levels.sort_by(f64::total_cmp);
    let curves = |load: &str, machine: &str| {
        let here: Vec<&Cell> = cells
            .iter()
            .filter(|cell| cell.load == load && cell.machine == machine)
            .collect();
        lines(&here, figure)
    };
    let values = loads.iter().flat_map(|load| {
        let machines = machines.iter();
        machines.flat_map(|machine| curves(load, machine))
    });
    let values = values.flat_map(|curve| curve.points.into_iter().map(|point| point.1));
    let axis = figure.axis(values);
    let (columns, rows) = (machines.len() as i32, loads.len() as i32);
    let size = (
        LEFT + columns * panel::WIDTH + MARGIN,
        HEAD + rows * panel::HEIGHT + MARGIN,
    );
    picture(out, size, |canvas| {
        let title = format!("overlock-lab sim sweep: {}", figure.title());
        canvas.text((MARGIN, 14), pen(20), title);
        legend(canvas);
        for (load, top) in loads.iter().zip((HEAD..).step_by(panel::HEIGHT as usize)) {
            for (machine, left) in machines.iter().zip((LEFT..).step_by(panel::WIDTH as usize)) {
                let cpus = cells.iter().find(|cell| cell.machine == *machine);
                let panel = Panel {
                    machine: format!("{machine}, {} CPUs", cpus.map_or(0, |cell| cell.cpus)),
                    load,
                    curves: &curves(load, machine),
                };
                panel.draw(canvas, (left, top), Axis::levels(&levels), axis.clone());
            }
        }
    })
}

fn once<T: PartialEq>(all: &mut Vec<T>, value: T) {
    if !all.contains(&value) {
        all.push(value);
    }
}

/// The lines of a chart, by the cells of one machine and load. A cell in which a lock failed has no
/// point.
fn lines(cells: &[&Cell], figure: Figure) -> Vec<Curve> {
    let mut curves: Vec<Curve> = Vec::new();
    for cell in cells {
        for standing in &cell.locks {
            let value = standing
                .figures
                .and_then(|figures| figure.of(cell, &figures, standing.of_best));
            let Some(value) = value else { continue };
            let (name, style) = dress(&standing.lock);
            let point = (cell.overcommit(), value);
            match curves.iter_mut().find(|curve| curve.name == name) {
                Some(curve) => curve.points.push(point),
                None => curves.push(Curve {
                    name: name.to_owned(),
                    style,
                    points: vec![point],
                }),
            }
        }
    }
    // The recommended lock is drawn last, above all others.
    curves.sort_by_key(|curve| curve.style.stroke_width);
    curves
}

/// The locks that we recommend.
const RECOMMENDED: [&str; 2] = ["overlock", "overlock_rw"];

/// The short name of a lock, and the look of its line.
fn dress(lock: &str) -> (&str, ShapeStyle) {
    let families = Family::ALL.iter();
    let entry = families
        .flat_map(|family| family.locks())
        .find(|entry| entry.name == lock);
    let style = match entry.map(|entry| entry.origin) {
        _ if RECOMMENDED.contains(&lock) => COLOURS[0].stroke_width(3),
        Some(Origin::Ours) => COLOURS[1].stroke_width(1),
        Some(Origin::Model) => COLOURS[2].stroke_width(1),
        _ => COLOURS[11].stroke_width(1),
    };
    (lock.strip_prefix("model:").unwrap_or(lock), style)
}

fn legend(canvas: &Canvas<'_>) {
    let mut x = MARGIN;
    for (what, lock, width) in [
        ("the lock that we recommend", "overlock", 240),
        ("other locks of ours", "queued", 190),
        ("models of the locks of others", "model:std", 260),
    ] {
        canvas.path([(x, 62), (x + 24, 62)], dress(lock).1);
        canvas.text((x + 32, 55), pen(14), what);
        x += width;
    }
    canvas.text((x, 55), pen(14), "x: vCPUs for each CPU (log scale)")
}
