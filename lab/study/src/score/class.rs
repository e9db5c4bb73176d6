//! Classes of figures, and the score that this version of the program has in each.

use itertools::Itertools;
use serde::Serialize;

use crate::case::Place;

/// The page with the score.
const PAGE: &str = include_str!("../../../../results/score.md");

/// The classes of figures, each with a goal of its own, in the order of the report.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, strum::Display, strum::EnumString,
)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// No more threads than CPUs, on one socket.
    #[strum(serialize = "one socket")]
    OneSocket,
    /// The same on several.
    #[strum(serialize = "across sockets")]
    AcrossSockets,
    /// More threads than CPUs.
    #[strum(serialize = "overcommit")]
    Overcommit,
}

impl Class {
    /// All of them, in the order of the report.
    pub const ALL: [Self; 3] = [Self::OneSocket, Self::AcrossSockets, Self::Overcommit];

    /// The class of a load on a machine.
    pub fn of(place: &Place) -> Self {
        match place.threads {
            threads if threads > place.machine.cpus() => Self::Overcommit,
            2.. if place.machine.sockets > 1 => Self::AcrossSockets,
            _ => Self::OneSocket,
        }
    }

    /// The largest mean error that is wanted.
    pub fn goal(self) -> f64 {
        match self {
            Self::OneSocket => 0.2,
            Self::AcrossSockets => 0.35,
            Self::Overcommit => 0.5,
        }
    }

    /// The figures, the orders and the error of the half that no constant was chosen by.
    fn known(self) -> Option<[&'static str; 3]> {
        let begin = format!("| {self} | score | ");
        let line = PAGE.lines().find_map(|line| line.strip_prefix(&begin))?;
        line.split(" | ").take(3).collect_array()
    }

    /// The mean absolute logarithm of simulated over published figures, if there are any.
    pub fn error(self) -> Option<f64> {
        self.known()?[2].parse().ok()
    }

    /// Its score as a sentence.
    pub fn told(self) -> String {
        self.known().map_or_else(String::new, |[figures, orders, error]| {
            format!(
                "Of published pairs of locks in this class ({self}) {orders} are simulated in the \
                 right order; {figures} figures are off by {error} on average, as logarithms.\n"
            )
        })
    }
}
