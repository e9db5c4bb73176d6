//! The figures of a comparison: medians, and how much of a difference is more than noise.

use std::fmt::Write;

use overlock_report::columns::{NOTHING, table};
use overlock_report::numbers::{count, factor, significant};
use serde::Serialize;

use crate::stat::Process;

/// The cost of one run.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Run {
    /// From its start to its end.
    pub seconds: f64,
    /// In user and kernel mode, of all its threads.
    pub cpu_seconds: f64,
    /// A thread slept.
    pub voluntary_switches: f64,
    /// A thread lost its CPU to another.
    pub involuntary_switches: f64,
}

/// The waits of a counted run.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Waits {
    /// Acquisitions of mutexes, reader-writer locks and spinlocks that found them held.
    pub count: u64,
    /// How long these took.
    pub total_ns: u64,
}

impl Waits {
    /// Those of all processes.
    pub fn of(processes: &[Process]) -> Self {
        let rows = processes.iter().flat_map(|process| &process.locks);
        Self {
            count: rows.map(|row| row.contentions).sum(),
            total_ns: processes.iter().map(Process::wait_ns).sum(),
        }
    }
}

/// The runs of a pair.
#[derive(Debug, Serialize)]
pub struct Pair {
    glibc: Run,
    overlock: Run,
}

impl From<(Run, Run)> for Pair {
    fn from((glibc, overlock): (Run, Run)) -> Self {
        Self { glibc, overlock }
    }
}

/// All of it.
#[derive(Debug, Serialize)]
pub struct Comparison {
    /// This program's version.
    pub overlock: &'static str,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Which locks ours were.
    pub mutex: String,
    /// And for readers and writers.
    pub rwlock: String,
    /// By what was measured.
    pub figures: Vec<Figure>,
    /// Of one run more with the C library's locks.
    pub waits_glibc: Waits,
    /// Of one run more with ours.
    pub waits_overlock: Waits,
    /// The pairs, in their order.
    pub runs: Vec<Pair>,
}

/// The middle of some values, and how far they spread.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    median: f64,
    least: f64,
    most: f64,
}

/// Whether a difference is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    Less,
    More,
    Noise,
    /// No number of equal signs would be proof.
    TooFewPairs,
}

impl Verdict {
    fn text(self) -> &'static str {
        match self {
            Verdict::Less => "less",
            Verdict::More => "more",
            Verdict::Noise => "noise",
            Verdict::TooFewPairs => "too few pairs",
        }
    }
}

/// One sort of figure.
#[derive(Debug, Serialize)]
pub struct Figure {
    name: &'static str,
    glibc: Spread,
    overlock: Spread,
    /// Ours to the C library's, of pairs; null where one of the C library's is 0.
    ratio: Option<f64>,
    /// The interval that has the median of all such ratios in it with 95 % confidence, or, of too
    /// few pairs, the least and the largest.
    ratio_low: Option<f64>,
    ratio_high: Option<f64>,
    verdict: Verdict,
    #[serde(skip)]
    text: fn(f64) -> String,
}

/// The figures of these pairs: the C library's locks first.
pub fn all(runs: &[(Run, Run)]) -> Vec<Figure> {
    let figure = |name, text: fn(f64) -> String, of: fn(&Run) -> f64| {
        let pairs: Vec<(f64, f64)> = runs
            .iter()
            .map(|(glibc, ours)| (of(glibc), of(ours)))
            .collect();
        compared(name, text, &pairs)
    };
    vec![
        figure("time", seconds, |run| run.seconds),
        figure("CPU time", seconds, |run| run.cpu_seconds),
        figure("sleeps", count, |run| run.voluntary_switches),
        figure("preemptions", count, |run| run.involuntary_switches),
    ]
}

fn compared(name: &'static str, text: fn(f64) -> String, pairs: &[(f64, f64)]) -> Figure {
    let mut ratios: Vec<f64> = pairs.iter().map(ratio).collect();
    ratios.sort_by(f64::total_cmp);
    let rank = rank(ratios.len());
    let (low, high) = match rank {
        Some(rank) => (ratios[rank], ratios[ratios.len() - 1 - rank]),
        None => (ratios[0], ratios[ratios.len() - 1]),
    };
    let verdict = match rank {
        None => Verdict::TooFewPairs,
        Some(_) if high < 1.0 => Verdict::Less,
        Some(_) if low > 1.0 => Verdict::More,
        Some(_) => Verdict::Noise,
    };
    let finite = |value: f64| Some(value).filter(|value| value.is_finite());
    Figure {
        name,
        glibc: spread(pairs.iter().map(|pair| pair.0)),
        overlock: spread(pairs.iter().map(|pair| pair.1)),
        ratio: finite(median(&ratios)),
        ratio_low: finite(low),
        ratio_high: finite(high),
        verdict,
        text,
    }
}

/// Two zeros are equal; something is infinitely more than nothing.
fn ratio(&(glibc, ours): &(f64, f64)) -> f64 {
    match glibc == 0.0 && ours == 0.0 {
        true => 1.0,
        false => ours / glibc,
    }
}

/// The number of values on either side that are outside of the interval in which the median is with
/// 95 % confidence; `None` if so few values have none. Each value is above the true median as often
/// as below, whatever their distribution.
fn rank(values: usize) -> Option<usize> {
    let mut outside = None;
    // The chance that so many fall on one side, or fewer.
    let mut chance = 0.0;
    let mut term = 0.5_f64.powi(values.min(1000) as i32);
    for below in 0..values.min(1000) / 2 {
        chance += term;
        if chance > 0.025 {
            break;
        }
        outside = Some(below);
        term *= (values.min(1000) - below) as f64 / (below + 1) as f64;
    }
    outside
}

/// Of values in order.
fn median(values: &[f64]) -> f64 {
    let middle = values.len() / 2;
    match values.len() % 2 {
        1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    }
}

fn spread(values: impl Iterator<Item = f64>) -> Spread {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    Spread {
        median: median(&values),
        least: values[0],
        most: values[values.len() - 1],
    }
}

fn seconds(value: f64) -> String {
    match value < 1.0 {
        true => format!("{} ms", significant(value * 1e3)),
        false => format!("{} s", significant(value)),
    }
}

impl Comparison {
    /// For people.
    pub fn describe(&self) -> String {
        let pairs = self.runs.len();
        let mut text = match pairs {
            1 => "1 pair of runs\n".to_owned(),
            _ => format!("{pairs} pairs of runs: medians, and below them from least to most\n"),
        };
        let titles = ["", "C library", "overlock", "ratio", "overlock takes"];
        let rows = self.figures.iter().flat_map(Figure::rows);
        text += &table(titles.map(str::to_owned), rows, |column| column > 0);
        let _ = writeln!(
            text,
            "waits for locks, in one more run of each: {} with the C library's, {} with ours",
            count(self.waits_glibc.count as f64),
            count(self.waits_overlock.count as f64)
        );
        if self
            .figures
            .iter()
            .any(|figure| figure.verdict == Verdict::TooFewPairs)
        {
            text += "Fewer than 6 pairs cannot tell a difference from noise.\n";
        }
        text
    }
}

impl Figure {
    /// The medians, and the spread.
    fn rows(&self) -> Vec<Vec<String>> {
        let range = |spread: &Spread| {
            format!(
                "{} - {}",
                (self.text)(spread.least),
                (self.text)(spread.most)
            )
        };
        let ratio = |ratio: Option<f64>| ratio.map_or_else(|| NOTHING.to_owned(), factor);
        let medians = vec![
            self.name.to_owned(),
            (self.text)(self.glibc.median),
            (self.text)(self.overlock.median),
            ratio(self.ratio),
            self.verdict.text().to_owned(),
        ];
        let ranges = vec![
            String::new(),
            range(&self.glibc),
            range(&self.overlock),
            format!("{} - {}", ratio(self.ratio_low), ratio(self.ratio_high)),
            String::new(),
        ];
        vec![medians, ranges]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(pairs: &[(f64, f64)]) -> Verdict {
        compared("", count, pairs).verdict
    }

    /// The ranks are those of the sign test's tables.
    #[test]
    fn the_interval_of_the_median_is_that_of_the_sign_test() {
        for (values, outside) in [
            (1, None),
            (5, None),
            (6, Some(0)),
            (8, Some(0)),
            (9, Some(1)),
            (10, Some(1)),
            (20, Some(5)),
            (100, Some(39)),
        ] {
            assert_eq!(rank(values), outside, "{values}");
        }
    }

    #[test]
    fn a_difference_that_all_pairs_show_is_one_and_others_are_noise() {
        assert_eq!(verdict(&[(2.0, 1.0); 6]), Verdict::Less);
        assert_eq!(verdict(&[(1.0, 2.0); 6]), Verdict::More);
        assert_eq!(verdict(&[(2.0, 1.0); 5]), Verdict::TooFewPairs);
        let mut mixed = [(2.0, 1.0); 6];
        mixed[3] = (1.0, 2.0);
        assert_eq!(verdict(&mixed), Verdict::Noise);
        assert_eq!(verdict(&[(0.0, 0.0); 6]), Verdict::Noise);
        let from_nothing = compared("", count, &[(0.0, 3.0); 6]);
        assert_eq!(
            (from_nothing.verdict, from_nothing.ratio),
            (Verdict::More, None)
        );
    }
}
