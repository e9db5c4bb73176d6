//! Simulated figures compared to published ones.

use serde::Serialize;

use super::label::{Place, Quantity};
use overlock_bench::stats::median;

/// No lead is larger than that of a factor of a million, since infinite ones would have no spread.
const MOST_LEAD: f64 = 13.8;

/// One figure and the published one.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// The place in the table: "36 vCPUs".
    pub place: Place,
    /// The quantity that is compared: "hybrid, average".
    pub what: Quantity,
    /// Ours: the median over the seeds.
    pub measured: f64,
    /// The least and the most over the seeds.
    pub spread: [f64; 2],
    /// Theirs.
    pub published: f64,
    /// Ours over theirs.
    pub ratio: f64,
    /// How far the two may be apart: a share of the published one, or where `absolute` so much.
    pub bound: f64,
    /// Whether the bound is a difference.
    pub absolute: bool,
    /// Whether they are not further apart.
    pub reached: bool,
    /// The null model's prediction, if it has one.
    pub null: Option<f64>,
    /// Ours times a constant for the series, which is fitted as that of the null model.
    pub scaled: f64,
    /// How the null model scales the constant of the series to this place.
    #[serde(skip)]
    pub(super) shape: f64,
}

/// Something that the document says, and whether the simulation says so too.
#[derive(Clone, Debug, Serialize)]
pub struct Claim {
    /// What.
    pub what: String,
    /// How clearly: the natural logarithm of a ratio that is above 1 if the claim is true. The
    /// median over the seeds.
    pub lead: f64,
    /// The least and the most over the seeds.
    pub spread: [f64; 2],
    /// The lead that counts. Below zero for "never slower", which may fall short by so much.
    pub margin: f64,
    /// Whether the claim holds.
    pub holds: bool,
}

/// A table reproduced.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Verdict {
    /// Its figures.
    pub lines: Vec<Line>,
    /// The statements that the figures support or not.
    pub claims: Vec<Claim>,
}

impl Line {
    /// Whether `figure` is within the bound of the published one.
    pub(super) fn reaches(&self, figure: f64) -> bool {
        let apart = if self.absolute {
            figure - self.published
        } else {
            figure / self.published - 1.0
        };
        apart.abs() <= self.bound
    }

    fn over(seeds: &[&Self]) -> Self {
        let (measured, spread) = middle(seeds.iter().map(|line| line.measured));
        let mut line = seeds[0].clone();
        line.ratio = measured / line.published;
        line.reached = line.reaches(measured);
        (line.measured, line.spread, line.scaled) = (measured, spread, measured);
        line
    }
}

impl Claim {
    /// A lead must exceed the margin and the spread of the seeds. "Never slower" must hold with
    /// each seed.
    fn over(seeds: &[&Self]) -> Self {
        let (lead, spread) = middle(seeds.iter().map(|claim| claim.lead));
        let margin = seeds[0].margin;
        let holds = match margin < 0.0 {
            true => spread[0] >= margin,
            false => lead > margin && lead > spread[1] - spread[0],
        };
        Self {
            what: seeds[0].what.clone(),
            lead,
            spread,
            margin,
            holds,
        }
    }
}

/// The median, and the least and the most. Without a figure for each seed they are no numbers, so
/// no bound is kept and no claim holds.
fn middle(figures: impl Iterator<Item = f64> + Clone) -> (f64, [f64; 2]) {
    if figures.clone().any(f64::is_nan) {
        return (f64::NAN, [f64::NAN; 2]);
    }
    let least = figures.clone().fold(f64::INFINITY, f64::min);
    let most = figures.clone().fold(f64::NEG_INFINITY, f64::max);
    (median(figures), [least, most])
}

impl Verdict {
    /// The verdict on the medians of several seeds, each of which has the same lines and claims.
    pub(super) fn over(seeds: &[Self]) -> Self {
        let first = &seeds[0];
        let line = |at: usize| seeds.iter().map(|seed| &seed.lines[at]).collect::<Vec<_>>();
        let claim = |at: usize| {
            seeds
                .iter()
                .map(|seed| &seed.claims[at])
                .collect::<Vec<_>>()
        };
        Self {
            lines: (0..first.lines.len())
                .map(|at| Line::over(&line(at)))
                .collect(),
            claims: (0..first.claims.len())
                .map(|at| Claim::over(&claim(at)))
                .collect(),
        }
    }

    /// Adds a figure which is to be within `bound`, a share of the published one.
    pub(super) fn within(
        &mut self,
        place: Place,
        what: Quantity,
        measured: f64,
        published: f64,
        bound: f64,
    ) {
        self.line(place, what, [measured, published], bound, false);
    }

    /// Adds a figure which is to differ by no more than `bound`.
    pub(super) fn near(
        &mut self,
        place: Place,
        what: Quantity,
        measured: f64,
        published: f64,
        bound: f64,
    ) {
        self.line(place, what, [measured, published], bound, true);
    }

    fn line(
        &mut self,
        place: Place,
        what: Quantity,
        [measured, published]: [f64; 2],
        bound: f64,
        absolute: bool,
    ) {
        let mut line = Line {
            place,
            what,
            measured,
            spread: [measured; 2],
            published,
            ratio: measured / published,
            bound,
            absolute,
            reached: false,
            null: None,
            scaled: measured,
            shape: 1.0,
        };
        line.reached = line.reaches(measured);
        self.lines.push(line);
    }

    /// Says how the null model scales the last line.
    pub(super) fn scales(&mut self, shape: f64) {
        self.lines.last_mut().expect("a line was added").shape = shape;
    }

    /// Adds a claim that `more` is more than `less`, by more than `margin`, a share.
    pub(super) fn claim(&mut self, what: impl Into<String>, more: f64, less: f64, margin: f64) {
        let lead = (more / less).ln().clamp(-MOST_LEAD, MOST_LEAD);
        let claim = Claim {
            what: what.into(),
            lead,
            spread: [lead; 2],
            margin: (1.0 + margin).ln(),
            holds: false,
        };
        self.claims.push(Claim::over(&[&claim]));
    }

    /// Adds a claim for each two names whose published figures differ by more than `differ`, a
    /// share: that they stand in the published order, by more than that.
    pub(super) fn order(
        &mut self,
        place: Place,
        names: &[&str],
        measured: &[f64],
        published: &[f64],
        differ: f64,
    ) {
        let pairs = (0..names.len()).flat_map(|one| (0..one).map(move |other| (one, other)));
        for (one, other) in pairs {
            let (more, less) = match published[one] > published[other] {
                true => (one, other),
                false => (other, one),
            };
            if published[more] > published[less] * (1.0 + differ) {
                let what = format!("{place}: {} above {}", names[more], names[less]);
                self.claim(what, measured[more], measured[less], differ);
            }
        }
    }

    /// Figures that are within their bounds, and how many there are.
    pub fn reached(&self) -> (usize, usize) {
        let reached = self.lines.iter().filter(|line| line.reached);
        (reached.count(), self.lines.len())
    }

    /// Claims that hold, and how many there are.
    pub fn held(&self) -> (usize, usize) {
        (
            self.claims.iter().filter(|claim| claim.holds).count(),
            self.claims.len(),
        )
    }
}
