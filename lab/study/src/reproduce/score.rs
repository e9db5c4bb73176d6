//! The null model, and how much better than it the simulation is.
//!
//! The null model knows nothing about locks. All locks are equal but for one constant for each
//! series of a table and machine, and builds scale with the CPUs:
//!
//! - Its prediction is `constant * shape`. The shape of a build's time is one over the CPUs that
//!   the vCPUs can use; that of one vCPU's operations is one over the vCPUs; any other is 1.
//! - The constant is fitted to the published figures of the series: the mean of
//!   `published / shape`, on logarithms.
//! - A series of one figure would be met exactly. So it has no constant: a ratio of locks is 1
//!   there, a gain is 0, and for any other quantity there is no prediction.
//!
//! The simulation has no such constants. To tell what it knows about the shape of a series from
//! what it knows about rates, its figures are scored a second time, *scaled*: times a constant for
//! each series, which is fitted in the same way. A series of one figure has none.
//!
//! A gain counts as `1 + gain`. The error of a prediction is the logarithm of its ratio to the
//! published figure, without the sign, at most that of a factor of 1000.

use serde::Serialize;

use super::{Line, Reproduction, Verdict};
use overlock_sim::machine::Machine;

/// An error of more than that factor is no worse.
const FARTHEST: f64 = 1000.0;

/// How well figures are met by the simulation and by the null model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Score {
    /// Figures that the null model predicts. Only those count here.
    pub figures: usize,
    /// Those that the simulation has within their bounds.
    pub reached: usize,
    /// Those that it has if it is scaled.
    pub scaled_reached: usize,
    /// Those that the null model has.
    pub null_reached: usize,
    /// The mean error of the simulation, on logarithms.
    pub error: f64,
    /// That of the scaled one.
    pub scaled_error: f64,
    /// That of the null model.
    pub null_error: f64,
}

impl Score {
    /// The score on these lines.
    pub fn of<'a>(lines: impl IntoIterator<Item = &'a Line>) -> Self {
        let mut score = Self::default();
        for line in lines {
            let Some(null) = line.null else { continue };
            score.figures += 1;
            score.reached += usize::from(line.reached);
            score.scaled_reached += usize::from(line.reaches(line.scaled));
            score.null_reached += usize::from(line.reaches(null));
            score.error += error(line, line.measured);
            score.scaled_error += error(line, line.scaled);
            score.null_error += error(line, null);
        }
        let figures = score.figures.max(1) as f64;
        score.error /= figures;
        score.scaled_error /= figures;
        score.null_error /= figures;
        score
    }

    /// One minus the error over that of the null model: 1 is perfect, 0 is no better than the null
    /// model. `None` if that makes no error.
    pub fn skill(&self) -> Option<f64> {
        self.over_null(self.error)
    }

    /// The same of the scaled simulation.
    pub fn scaled_skill(&self) -> Option<f64> {
        self.over_null(self.scaled_error)
    }

    fn over_null(&self, error: f64) -> Option<f64> {
        (self.null_error > 0.0).then(|| 1.0 - error / self.null_error)
    }
}

/// The scores of groups of tables: those left out of the fit, then by the year of the document.
pub fn groups(all: &[Reproduction]) -> Vec<(String, Score)> {
    let score = |belongs: &dyn Fn(&Reproduction) -> bool| {
        let tables = all.iter().filter(|table| belongs(table));
        Score::of(tables.flat_map(|table| &table.verdict.lines))
    };
    let mut years: Vec<u16> = all.iter().map(|table| table.year).collect();
    years.sort_unstable();
    years.dedup();
    let left_out = score(&|table| !table.fitted);
    let mut groups = vec![("left out of the fit".to_owned(), left_out)];
    groups.extend(years.iter().rev().map(|&year| {
        let score = score(&|table| table.year == year);
        (format!("documents of {year}"), score)
    }));
    groups.push(("all".to_owned(), score(&|_| true)));
    groups.retain(|(_, score)| score.figures > 0);
    groups
}

/// Has the null model predict the lines, and scales ours.
pub(super) fn predict(verdict: &mut Verdict) {
    let of = |line: &Line| (line.place.machine, line.what.clone());
    let predictions: Vec<_> = verdict
        .lines
        .iter()
        .map(|line| {
            let series = verdict.lines.iter().filter(|other| of(other) == of(line));
            let series: Vec<&Line> = series.collect();
            (constant(&series, line), scaled(&series, line))
        })
        .collect();
    for (line, (null, scaled)) in verdict.lines.iter_mut().zip(predictions) {
        (line.null, line.scaled) = (null, scaled);
    }
}

/// The null model's figure for the line.
fn constant(series: &[&Line], line: &Line) -> Option<f64> {
    let scale = line.what.unit.scale;
    match offset(series, |line| line.shape.ln()) {
        Some(offset) => Some(scale.figure(offset + line.shape.ln())),
        None => scale.equal(),
    }
}

/// The line's figure times the constant of the series.
fn scaled(series: &[&Line], line: &Line) -> f64 {
    let scale = line.what.unit.scale;
    let offset = offset(series, |line| scale.log(line.measured));
    // Without a figure for each place there is nothing to fit it to.
    match offset.filter(|offset| offset.is_finite()) {
        Some(offset) => scale.figure(offset + scale.log(line.measured)),
        None => line.measured,
    }
}

/// The logarithm of the constant that fits predictions of these logarithms to the published figures
/// of a series. `None` if there is but one figure.
fn offset(series: &[&Line], log: impl Fn(&Line) -> f64) -> Option<f64> {
    let offsets = series
        .iter()
        .map(|line| line.what.unit.scale.log(line.published) - log(line));
    (series.len() > 1).then(|| offsets.sum::<f64>() / series.len() as f64)
}

/// How far a figure is from the published one, on logarithms.
fn error(line: &Line, figure: f64) -> f64 {
    let scale = line.what.unit.scale;
    let apart = (scale.log(figure) - scale.log(line.published)).abs();
    // A simulation that is too short has no figure; that is no merit.
    if apart.is_nan() {
        FARTHEST.ln()
    } else {
        apart.min(FARTHEST.ln())
    }
}

/// The CPUs' worth of work that so many vCPUs can do: a core each, then the siblings of cores.
pub(super) fn capacity(machine: &Machine, vcpus: usize) -> f64 {
    let cores = machine.all_cores();
    let shared = vcpus.min(machine.cpus()).saturating_sub(cores);
    let gain = machine.threads as f64 * machine.costs.sibling - 1.0;
    vcpus.min(cores) as f64 + shared as f64 * gain
}
