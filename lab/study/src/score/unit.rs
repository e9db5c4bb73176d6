//! Units of published figures.

use std::str::FromStr;

use crate::sweep::Measured;

/// The unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unit {
    /// The operations with one lock over those with another.
    Ratio,
    /// So many operations a second, of all threads or of each.
    Rate {
        /// Operations a second in one of the unit.
        each: f64,
        /// Whether it is that of a thread.
        of_a_thread: bool,
    },
    /// Nanoseconds for each operation, all threads together.
    Nanoseconds,
    /// Megabits of messages a second.
    Megabits,
    /// The operations of the thread with the most, over those of the one with the fewest.
    MostOverLeast,
    /// The percentage of the acquisitions on a slow path that went through the queue.
    Queued,
}

/// Rates by name: those of all threads, to which ` a thread` may be added.
const RATES: [(&str, f64); 7] = [
    ("op/s", 1.0),
    ("kop/s", 1e3),
    ("Mop/s", 1e6),
    ("Hz", 1.0),
    ("kHz", 1e3),
    ("MHz", 1e6),
    ("10 M operations in 30 s", 1e7 / 30.0),
];

impl Unit {
    /// The figure that a simulation brings, if it brings any.
    pub fn of(self, measured: &Measured, threads: usize) -> Option<f64> {
        let rate = measured.ops_per_sec;
        let figure = match self {
            Self::Ratio => rate,
            Self::Rate { each, of_a_thread } => {
                rate / each / if of_a_thread { threads as f64 } else { 1.0 }
            }
            Self::Nanoseconds => 1e9 / rate,
            Self::Megabits => measured.mbit_per_sec?,
            Self::MostOverLeast => measured.max as f64 / measured.min.max(1) as f64,
            Self::Queued => {
                let told = &measured.simulation;
                100.0 * told.queued as f64 / (told.queued + told.unfair) as f64
            }
        };
        (figure.is_finite() && figure > 0.0).then_some(figure)
    }

    /// Whether two locks can be ordered by it: 1 if more is better, -1 if less is.
    pub fn better(self) -> Option<f64> {
        match self {
            Self::Rate { .. } | Self::Megabits => Some(1.0),
            Self::Nanoseconds => Some(-1.0),
            Self::Ratio | Self::MostOverLeast | Self::Queued => None,
        }
    }
}

impl FromStr for Unit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "ratio" | "throughput ratio" => Self::Ratio,
            "ns" => Self::Nanoseconds,
            "Mbit/s" => Self::Megabits,
            "most over least" => Self::MostOverLeast,
            "queued %" => Self::Queued,
            _ => {
                let of_a_thread = text.strip_suffix(" a thread");
                let word = of_a_thread.unwrap_or(text);
                let rate = RATES.iter().find(|(name, _)| *name == word);
                let Some((_, each)) = rate else {
                    let rates = RATES.map(|(name, _)| name).join(", ");
                    return Err(format!(
                        "unknown unit '{text}'; the units are ratio, ns, Mbit/s, most over least, \
                         queued %, and {rates}, all of these perhaps with ' a thread'"
                    ));
                };
                Self::Rate {
                    each: *each,
                    of_a_thread: of_a_thread.is_some(),
                }
            }
        })
    }
}
