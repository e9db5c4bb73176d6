//! Classes of figures, and the score that this version of the program has in each.

use serde::Serialize;

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

/// The score of a class: of the half that no constant was chosen by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Known {
    /// How many figures.
    pub figures: &'static str,
    /// Pairs of locks in the right order, of so many.
    pub orders: &'static str,
    /// The mean absolute logarithm of simulated over published figures.
    pub error: f64,
}

impl Class {
    /// All of them, in the order of the report.
    pub const ALL: [Self; 3] = [Self::OneSocket, Self::AcrossSockets, Self::Overcommit];

    /// The class of so many threads on such a machine.
    pub fn of(sockets: usize, cpus: usize, threads: usize) -> Self {
        match threads {
            _ if threads > cpus => Self::Overcommit,
            2.. if sockets > 1 => Self::AcrossSockets,
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

    /// Its score, if there are figures of it.
    pub fn known(self) -> Option<Known> {
        let begin = format!("| {self} | score |");
        let line = PAGE.lines().find_map(|line| line.strip_prefix(&begin))?;
        let mut cells = line.split('|').map(str::trim);
        Some(Known {
            figures: cells.next()?,
            orders: cells.next()?,
            error: cells.next()?.parse().ok()?,
        })
    }

    /// The same as a sentence.
    pub fn told(self) -> String {
        let Some(known) = self.known() else {
            return String::new();
        };
        format!(
            "Of published pairs of locks in this class ({self}) {} are simulated in the right \
             order; {} figures are off by {:.2} on average, as logarithms.\n",
            known.orders, known.figures, known.error
        )
    }
}
