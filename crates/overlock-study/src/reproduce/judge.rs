//! Simulated figures compared to published ones.

use serde::Serialize;

use super::label::{Place, Quantity};

/// One figure and the published one.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// The place in the table: "36 vCPUs".
    pub place: Place,
    /// The quantity that is compared: "hybrid, average".
    pub what: Quantity,
    /// Ours.
    pub measured: f64,
    /// Theirs.
    pub published: f64,
    /// Ours over theirs.
    pub ratio: f64,
    /// How far the two may be apart: a share of the published one, or where `absolute` so much.
    pub bound: Option<f64>,
    /// Whether the bound is a difference.
    pub absolute: bool,
    /// Whether they are not further apart.
    pub reached: Option<bool>,
}

/// Something that the document says, and whether the simulation says so too.
#[derive(Clone, Debug, Serialize)]
pub struct Claim {
    /// What.
    pub what: String,
    /// Whether it does.
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

impl Verdict {
    /// Adds a figure which is to be within `bound`, a share of the published one.
    pub(super) fn within(
        &mut self,
        place: Place,
        what: Quantity,
        measured: f64,
        published: f64,
        bound: f64,
    ) {
        let reached = (measured / published - 1.0).abs() <= bound;
        self.line(
            place,
            what,
            measured,
            published,
            Some((bound, false, reached)),
        );
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
        let reached = (measured - published).abs() <= bound;
        self.line(
            place,
            what,
            measured,
            published,
            Some((bound, true, reached)),
        );
    }

    /// Adds a figure without a bound.
    pub(super) fn beside(&mut self, place: Place, what: Quantity, measured: f64, published: f64) {
        self.line(place, what, measured, published, None);
    }

    fn line(
        &mut self,
        place: Place,
        what: Quantity,
        measured: f64,
        published: f64,
        bound: Option<(f64, bool, bool)>,
    ) {
        self.lines.push(Line {
            place,
            what,
            measured,
            published,
            ratio: measured / published,
            bound: bound.map(|(bound, ..)| bound),
            absolute: bound.is_some_and(|(_, absolute, _)| absolute),
            reached: bound.map(|(.., reached)| reached),
        });
    }

    /// Adds a claim.
    pub(super) fn claim(&mut self, what: impl Into<String>, holds: bool) {
        self.claims.push(Claim {
            what: what.into(),
            holds,
        });
    }

    /// Adds a claim that the names stand in the published order by their figures, wherever two
    /// published ones differ by more than `differ`, a share.
    pub(super) fn order(
        &mut self,
        place: Place,
        names: &[&str],
        measured: &[f64],
        published: &[f64],
        differ: f64,
    ) {
        let pairs = (0..names.len()).flat_map(|one| (0..one).map(move |other| (one, other)));
        let wrong = pairs
            .filter(|&(one, other)| {
                let apart = (published[one] / published[other]).ln();
                apart.abs() > (1.0 + differ).ln()
                    && (measured[one] / measured[other]).ln() * apart <= 0.0
            })
            .map(|(one, other)| format!("{} and {}", names[other], names[one]))
            .collect::<Vec<_>>();
        let what = match wrong.as_slice() {
            [] => format!("{place}: the order of the locks agrees"),
            wrong => format!(
                "{place}: the order of the locks agrees, but for {}",
                wrong.join(", ")
            ),
        };
        self.claim(what, wrong.is_empty());
    }

    /// Figures with a bound that are within it, and how many have one.
    pub fn reached(&self) -> (usize, usize) {
        let bounded = self.lines.iter().filter_map(|line| line.reached);
        (
            bounded.clone().filter(|&reached| reached).count(),
            bounded.count(),
        )
    }

    /// Claims that hold, and how many there are.
    pub fn held(&self) -> (usize, usize) {
        (
            self.claims.iter().filter(|claim| claim.holds).count(),
            self.claims.len(),
        )
    }
}
