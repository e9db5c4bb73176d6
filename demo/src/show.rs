//! The figures of runs, and their table.

use std::fmt::Write;

/// The figures of a run, as the program prints them.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// Blocks of text a second.
    pub rate: f64,
    /// The longest wait for the lock, in milliseconds.
    pub longest: f64,
    /// Microseconds of CPU time for a block.
    pub block: f64,
    /// Seconds of CPU time in all.
    pub cpu: f64,
}

impl Figures {
    /// Reads the program's line.
    pub fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let mut of = |name: &str| {
            words
                .find(|&word| word == name)
                .and_then(|_| words.next()?.parse().ok())
        };
        Some(Self {
            rate: of("rate")?,
            longest: of("longest_ms")?,
            block: of("cpu_us")?,
            cpu: of("cpu_s")?,
        })
    }

    /// Each figure's median by itself.
    pub fn median(runs: &[Self]) -> Self {
        let of = |figure: fn(&Self) -> f64| {
            let mut all: Vec<f64> = runs.iter().map(figure).collect();
            all.sort_by(f64::total_cmp);
            all[all.len() / 2]
        };
        Self {
            rate: of(|run| run.rate),
            longest: of(|run| run.longest),
            block: of(|run| run.block),
            cpu: of(|run| run.cpu),
        }
    }
}

/// The width of the longest bar.
const WIDTH: f64 = 30.0;

/// Two bars for each figure, and the second's ratio to the first.
pub fn table(theirs: &Figures, ours: &Figures) -> String {
    let mut table = String::new();
    let rows = [
        (
            "blocks a second",
            "more is better",
            theirs.rate,
            ours.rate,
            "",
        ),
        (
            "longest wait",
            "less is better",
            theirs.longest,
            ours.longest,
            " ms",
        ),
        (
            "CPU time a block",
            "less is better",
            theirs.block,
            ours.block,
            " us",
        ),
    ];
    for (title, note, theirs, ours, unit) in rows {
        let longest = theirs.max(ours).max(f64::MIN_POSITIVE);
        for (left, lock, value) in [(title, "C library", theirs), (note, "overlock", ours)] {
            let bar = "█".repeat((WIDTH * value / longest).round() as usize);
            let number = if value < 1000.0 {
                format!("{value:.1}")
            } else {
                format!("{value:.0}")
            };
            let _ = write!(table, "   {left:16}  {lock:9}  {bar:30}  {number:>8}{unit}");
            if lock == "overlock" && theirs > 0.0 {
                let _ = write!(table, "   {:.2} times", ours / theirs);
            }
            table.push('\n');
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_line_is_read() {
        let line = "rate 141000 longest_ms 12.50 cpu_us 11.20 cpu_s 1.58\n";
        let figures = Figures {
            rate: 141_000.0,
            longest: 12.5,
            block: 11.2,
            cpu: 1.58,
        };
        assert_eq!(Figures::parse(line), Some(figures));
        assert_eq!(Figures::parse("wrong"), None);
    }

    #[test]
    fn bars_and_ratios_are_to_scale() {
        let theirs = Figures {
            rate: 100.0,
            longest: 40.0,
            block: 10.0,
            cpu: 1.0,
        };
        let ours = Figures {
            rate: 150.0,
            longest: 10.0,
            block: 10.0,
            cpu: 1.0,
        };
        let table = table(&theirs, &ours);
        let bars: Vec<usize> = table
            .lines()
            .map(|line| line.matches('█').count())
            .collect();
        assert_eq!(bars, [20, 30, 30, 8, 30, 30]);
        for ratio in ["1.50 times", "0.25 times", "1.00 times"] {
            assert!(table.contains(ratio), "{table}");
        }
    }

    #[test]
    fn each_figure_has_a_median_of_its_own() {
        let run = |rate, longest| Figures {
            rate,
            longest,
            block: 1.0,
            cpu: 1.0,
        };
        let median = Figures::median(&[run(1.0, 9.0), run(3.0, 8.0), run(2.0, 7.0)]);
        assert_eq!((median.rate, median.longest), (2.0, 8.0));
    }
}
