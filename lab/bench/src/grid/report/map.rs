//! Heat maps: a row for each shape, a column for each number of threads.

use super::Report;
use crate::grid::figures::Judged;
use crate::grid::shape::SHAPES;
use crate::stats::median;
use overlock_report::numbers::time;

/// How good a figure is, from far behind to far ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Heat {
    /// Below 0.80.
    FarBehind,
    /// Below 0.90.
    Behind,
    /// Below 0.95.
    ALittleBehind,
    /// Below 0.97.
    Slightly,
    /// As good.
    Even,
    /// From 1.03.
    Ahead,
    /// From 1.20.
    FarAhead,
}

/// The lower bound of each step, the lowest left out.
const STEPS: [(f64, Heat); 6] = [
    (1.20, Heat::FarAhead),
    (1.03, Heat::Ahead),
    (0.97, Heat::Even),
    (0.95, Heat::Slightly),
    (0.90, Heat::ALittleBehind),
    (0.80, Heat::Behind),
];

impl Heat {
    /// All, the worst first.
    pub const ALL: [Self; 7] = [
        Self::FarBehind,
        Self::Behind,
        Self::ALittleBehind,
        Self::Slightly,
        Self::Even,
        Self::Ahead,
        Self::FarAhead,
    ];

    /// Of a ratio that had better be high.
    pub fn of(ratio: f64) -> Self {
        let step = STEPS.iter().find(|(from, _)| ratio >= *from);
        step.map_or(Self::FarBehind, |(_, heat)| *heat)
    }

    /// Red to blue, which is safe for red-green colour blindness (after ColorBrewer's RdYlBu).
    pub fn rgb(self) -> (u8, u8, u8) {
        match self {
            Self::FarBehind => (215, 48, 39),
            Self::Behind => (244, 109, 67),
            Self::ALittleBehind => (253, 174, 97),
            Self::Slightly => (254, 224, 144),
            Self::Even => (245, 245, 245),
            Self::Ahead => (171, 217, 233),
            Self::FarAhead => (116, 173, 209),
        }
    }

    /// Its meaning, for a legend.
    pub fn title(self) -> &'static str {
        match self {
            Self::FarBehind => "below 0.80",
            Self::Behind => "0.80",
            Self::ALittleBehind => "0.90",
            Self::Slightly => "0.95",
            Self::Even => "0.97",
            Self::Ahead => "1.03",
            Self::FarAhead => "1.20 and more",
        }
    }
}

/// A field of a map.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// The figure.
    pub text: String,
    /// How good it is.
    pub heat: Heat,
    /// The peer that the figure is against, if there is one.
    pub note: Option<&'static str>,
}

/// A row of a map.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its family.
    pub family: &'static str,
    /// Its shape.
    pub shape: &'static str,
    /// By column.
    pub fields: Vec<Option<Field>>,
}

/// A map.
#[derive(Clone, Debug)]
pub struct Map {
    /// The title of its figure.
    pub title: &'static str,
    /// Numbers of threads.
    pub columns: Vec<usize>,
    /// In the order of the shapes.
    pub rows: Vec<Row>,
}

/// A Jain's index that is fair enough.
const FAIR: f64 = 0.95;

/// The figure that a map shows of a cell.
type Figure = fn(&Judged) -> Option<Field>;

const FIGURES: [(&str, Figure); 4] = [
    (
        "Operations: ours over the peer that it does worst against",
        operations,
    ),
    (
        "Jain's index of ours, uncoloured if fair or its slowest thread is as fast as any peer's",
        fairness,
    ),
    (
        "Longest wait of ours, coloured by the median of the peers' over it",
        longest,
    ),
    (
        "CPU time for an operation: ours over the peer that needs the least",
        cpu,
    ),
];

/// The map of the ratios, which comes first, and those of fairness, waits and CPU time. One that
/// has nothing to show is left out.
pub fn maps(report: &Report) -> Vec<Map> {
    let maps = FIGURES
        .into_iter()
        .map(|(title, figure)| map(report, title, figure));
    maps.filter(|map| !map.is_empty()).collect()
}

fn map(report: &Report, title: &'static str, figure: Figure) -> Map {
    let cells = &report.cells;
    let mut columns: Vec<usize> = cells.iter().map(|cell| cell.threads).collect();
    columns.sort_unstable();
    columns.dedup();
    let row = |family: &'static str, shape: &'static str| {
        let find = |threads: &usize| {
            let is_it = |cell: &&Judged| {
                cell.family == family && cell.shape == shape && cell.threads == *threads
            };
            cells.iter().find(is_it).and_then(figure)
        };
        let fields: Vec<Option<Field>> = columns.iter().map(find).collect();
        fields.iter().any(Option::is_some).then_some(Row {
            family,
            shape,
            fields,
        })
    };
    let rows = SHAPES
        .iter()
        .filter_map(|shape| row(shape.family.word(), shape.name));
    Map {
        title,
        rows: rows.collect(),
        columns,
    }
}

impl Map {
    fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

fn operations(cell: &Judged) -> Option<Field> {
    let ratio = cell.ratio?;
    Some(Field {
        text: format!("{ratio:.2}"),
        heat: Heat::of(ratio),
        note: cell.worst_peer,
    })
}

fn fairness(cell: &Judged) -> Option<Field> {
    let jain = cell.ours().jain;
    // It cannot be ahead, and chance alone takes a little from 1.
    let heat = if jain >= FAIR {
        Heat::Even
    } else {
        Heat::of(jain)
    };
    Some(Field {
        text: format!("{jain:.2}"),
        heat,
        note: None,
    })
}

/// One wait decides here, so peers are taken together: the longest of each is as much chance as
/// law.
fn longest(cell: &Judged) -> Option<Field> {
    let ours = cell.ours().longest_ns?;
    let ratio = median(cell.peers().filter_map(|(_, versus)| versus.longest));
    let heat = if ratio.is_finite() {
        Heat::of(1.0 / ratio)
    } else {
        Heat::Even
    };
    Some(Field {
        text: time(ours),
        heat,
        note: None,
    })
}

fn cpu(cell: &Judged) -> Option<Field> {
    let peers = cell.peers();
    let (ratio, peer) = peers
        .filter_map(|(row, versus)| Some((versus.cpu?, row.lock)))
        .max_by(|a, b| a.0.total_cmp(&b.0))?;
    Some(Field {
        text: format!("{ratio:.2}"),
        heat: Heat::of(1.0 / ratio),
        note: Some(peer),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heat_has_its_steps() {
        let pairs = [
            (0.0, 0),
            (0.8, 1),
            (0.949, 2),
            (0.96, 3),
            (1.0, 4),
            (1.03, 5),
            (9.0, 6),
        ];
        for (ratio, index) in pairs {
            assert_eq!(Heat::of(ratio), Heat::ALL[index], "{ratio}");
        }
        assert!(Heat::ALL.is_sorted());
    }
}
