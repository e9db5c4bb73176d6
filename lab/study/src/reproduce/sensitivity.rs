//! Which constants of the cost model the figures and claims of the tables depend on.
//!
//! Each constant is made smaller and larger by a share, alone, and the tables are simulated again.
//! A simulation whose machine and host do not have the constant keeps its result. Any change also
//! changes what chance does. So the tables are simulated once more with other seeds: a constant
//! that moves figures by no more than that moves nothing.

mod constant;
#[cfg(test)]
mod tests;
pub mod text;

use std::ops::Range;

use serde::Serialize;

use super::score::{apart, mean_error};
use super::{Case, Failure, Job, Options, Run, Site, Table, Verdict, simulate_all};

pub use constant::Constant;

/// The tables, and the constants to change.
#[derive(Debug)]
pub struct Study {
    /// Each with the place of its simulations among all.
    tables: Vec<(&'static Table, Range<usize>)>,
    cases: Vec<Case>,
    constants: Vec<Constant>,
    by: f64,
    /// For each constant: with less of it, and with more.
    changes: Vec<[Variant; 2]>,
}

/// For each case where to simulate it, unless it is as in the model as it is.
type Variant = Vec<Option<Site>>;

/// How a variant differs from the model as it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Effect {
    /// The mean absolute change of the figures, on logarithms.
    pub change: f64,
    /// The mean error of the figures then, on logarithms.
    pub error: f64,
    /// Figures that come within their bounds.
    pub enters: Vec<String>,
    /// Figures that do no longer.
    pub leaves: Vec<String>,
    /// Claims that come to hold.
    pub gains: Vec<String>,
    /// Claims that do no longer.
    pub loses: Vec<String>,
}

/// A constant, and the effects of less and of more of it: `None` where no simulation differs.
#[derive(Clone, Debug, Serialize)]
pub struct Moved {
    /// The constant.
    pub constant: Constant,
    /// With less of it.
    pub down: Option<Effect>,
    /// With more of it.
    pub up: Option<Effect>,
}

/// The request and its result, for the JSON report.
#[derive(Clone, Debug, Serialize)]
pub struct Sensitivity {
    /// The tables.
    pub tables: Vec<&'static str>,
    /// The share by which constants change.
    pub by: f64,
    /// The first seed.
    pub seed: u64,
    /// How many seeds there are. Figures are medians over them.
    pub seeds: usize,
    /// How long the simulations were, compared to the normal length.
    pub length: f64,
    /// How many figures are within their bounds in the model as it is, and how many there are.
    pub reached: (usize, usize),
    /// How many claims hold in it, and how many there are.
    pub held: (usize, usize),
    /// The mean error of its figures, on logarithms.
    pub error: f64,
    /// The effect of other seeds.
    pub chance: Effect,
    /// The constants, those that move figures the most first.
    pub constants: Vec<Moved>,
    /// Those that no simulation has.
    pub unused: Vec<Constant>,
}

impl Study {
    /// The study of these constants, each changed by the share `by`.
    ///
    /// # Errors
    ///
    /// Says which constant, if so much of it does not go with the others.
    pub fn new(
        tables: &[&'static Table],
        constants: Vec<Constant>,
        by: f64,
    ) -> Result<Self, String> {
        let (mut ranges, mut cases) = (Vec::new(), Vec::new());
        for &table in tables {
            let first = cases.len();
            cases.extend((table.cases)());
            ranges.push((table, first..cases.len()));
        }
        let variant = |constant: &Constant, factor: f64| {
            let cases = cases.iter();
            cases
                .map(|case| constant.changed(&case.site(), factor))
                .collect::<Result<Variant, String>>()
        };
        let both = |constant| Ok([variant(constant, 1.0 - by)?, variant(constant, 1.0 + by)?]);
        let changes: Result<Vec<_>, String> = constants.iter().map(both).collect();
        Ok(Self {
            changes: changes?,
            tables: ranges,
            cases,
            constants,
            by,
        })
    }

    /// How many simulations it needs, with so many seeds.
    pub fn rounds(&self, seeds: usize) -> usize {
        let changed = self.changes.iter().flatten().flatten().flatten();
        seeds * (2 * self.cases.len() + changed.count())
    }

    /// Simulates all of it, and calls `done` after each simulation.
    ///
    /// # Errors
    ///
    /// The first simulation that fails; no other begins then.
    pub fn run(
        &self,
        options: &Options,
        mut done: impl FnMut(&Case),
    ) -> Result<Sensitivity, Failure> {
        let usual: Variant = self.cases.iter().map(|case| Some(case.site())).collect();
        let others = Options {
            seed: options.seed.wrapping_add(options.seeds as u64),
            ..options.clone()
        };
        let mut variants = vec![(&usual, options), (&usual, &others)];
        let changes = self.changes.iter().flatten();
        variants.extend(changes.map(|change| (change, options)));

        let jobs = variants
            .iter()
            .flat_map(|&(variant, options)| self.jobs(variant, options));
        let mut runs = simulate_all(jobs, options, |job| done(job.case))?.into_iter();
        let count = self.jobs(&usual, options).count();
        let base: Vec<Run> = runs.by_ref().take(count).collect();
        let before = self.verdicts(&base);
        let mut effect = |variant: &Variant| {
            let differs = variant.iter().any(Option::is_some);
            differs.then(|| {
                let after = self.verdicts(&complete(variant, &mut runs, &base));
                self.effect(&before, &after)
            })
        };
        let chance = effect(&usual).unwrap_or_default();
        let moved = self.constants.iter().zip(&self.changes);
        let moved = moved.map(|(&constant, [less, more])| Moved {
            constant,
            down: effect(less),
            up: effect(more),
        });
        let (mut constants, unused): (Vec<Moved>, Vec<Moved>) =
            moved.partition(|moved| moved.most().is_some());
        constants.sort_by(|one, other| other.most().partial_cmp(&one.most()).expect("finite"));
        Ok(Sensitivity {
            tables: self.tables.iter().map(|(table, _)| table.name).collect(),
            by: self.by,
            seed: options.seed,
            seeds: options.seeds.max(1),
            length: options.length,
            reached: sum(before.iter().map(Verdict::reached)),
            held: sum(before.iter().map(Verdict::held)),
            error: mean_error(&before),
            chance,
            constants,
            unused: unused.iter().map(|moved| moved.constant).collect(),
        })
    }

    fn jobs<'a>(
        &'a self,
        variant: &'a Variant,
        options: &Options,
    ) -> impl Iterator<Item = Job<'a>> + use<'a> {
        options.numbers().flat_map(move |seed| {
            let all = self.cases.iter().zip(variant);
            all.filter_map(move |(case, site)| {
                let site = site.as_ref()?;
                Some(Job { case, site, seed })
            })
        })
    }

    /// The verdict on each table.
    fn verdicts(&self, runs: &[Run]) -> Vec<Verdict> {
        let of = |(table, range): &(&Table, Range<usize>)| {
            let seeds = runs.chunks(self.cases.len());
            let runs: Vec<Run> = seeds
                .flat_map(|seed| seed[range.clone()].to_vec())
                .collect();
            table.verdict(&runs, range.len())
        };
        self.tables.iter().map(of).collect()
    }

    fn effect(&self, before: &[Verdict], after: &[Verdict]) -> Effect {
        let mut effect = Effect {
            error: mean_error(after),
            ..Effect::default()
        };
        let mut figures = 0;
        for (((table, _), before), after) in self.tables.iter().zip(before).zip(after) {
            for (line, now) in before.lines.iter().zip(&after.lines) {
                figures += 1;
                if line.measured.to_bits() != now.measured.to_bits() {
                    let scale = line.what.unit.scale;
                    effect.change += apart(scale, now.measured, line.measured);
                }
                let name = || format!("{}: {}, {}", table.name, line.place, line.what);
                match (line.reached, now.reached) {
                    (false, true) => effect.enters.push(name()),
                    (true, false) => effect.leaves.push(name()),
                    _ => {}
                }
            }
            for (claim, now) in before.claims.iter().zip(&after.claims) {
                let name = || format!("{}: {}", table.name, claim.what);
                match (claim.holds, now.holds) {
                    (false, true) => effect.gains.push(name()),
                    (true, false) => effect.loses.push(name()),
                    _ => {}
                }
            }
        }
        effect.change /= figures.max(1) as f64;
        effect
    }
}

/// The runs of a variant, in which those that it does not change are as in `base`.
fn complete(variant: &Variant, runs: &mut impl Iterator<Item = Run>, base: &[Run]) -> Vec<Run> {
    let cases = variant.iter().cycle().zip(base);
    let all = cases.map(|(site, usual)| match site {
        Some(_) => runs.next().expect("each job has a run"),
        None => usual.clone(),
    });
    all.collect()
}

fn sum(counts: impl Iterator<Item = (usize, usize)>) -> (usize, usize) {
    counts.fold((0, 0), |sum, count| (sum.0 + count.0, sum.1 + count.1))
}

impl Moved {
    /// Whether any figure differs.
    fn moves(&self) -> bool {
        self.most() > Some(0.0)
    }

    /// The larger one of its changes.
    fn most(&self) -> Option<f64> {
        let both = [&self.down, &self.up].into_iter().flatten();
        both.map(|effect| effect.change).reduce(f64::max)
    }
}
