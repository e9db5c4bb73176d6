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
}

/// The least, the median and the most of one figure.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Spread {
    least: f64,
    median: f64,
    most: f64,
}

impl Spread {
    fn of(runs: &[Figures], figure: fn(&Figures) -> f64) -> Self {
        let mut all: Vec<f64> = runs.iter().map(figure).collect();
        all.sort_by(f64::total_cmp);
        Self {
            least: all[0],
            median: all[all.len() / 2],
            most: all[all.len() - 1],
        }
    }
}

/// The width of the longest bar.
const WIDTH: f64 = 30.0;

/// Two bars for each figure, the median and the spread over the runs, and the second median's ratio
/// to the first.
pub fn table(theirs: &[Figures], ours: &[Figures]) -> String {
    type Row = (
        &'static str,
        &'static str,
        fn(&Figures) -> f64,
        &'static str,
    );
    let rows: [Row; 3] = [
        ("blocks a second", "more is better", |run| run.rate, ""),
        ("longest wait", "less is better", |run| run.longest, " ms"),
        ("CPU time a block", "less is better", |run| run.block, " us"),
    ];
    let mut table = String::new();
    for (title, note, figure, unit) in rows {
        let [theirs, ours] = [theirs, ours].map(|runs| Spread::of(runs, figure));
        let longest = theirs.median.max(ours.median).max(f64::MIN_POSITIVE);
        for (left, lock, spread) in [(title, "C library", theirs), (note, "overlock", ours)] {
            let bar = "█".repeat((WIDTH * spread.median / longest).round() as usize);
            let median = number(spread.median);
            let range = format!("{} to {}", number(spread.least), number(spread.most));
            let _ = write!(
                table,
                "   {left:16}  {lock:9}  {bar:30}  {median:>8}{unit:3}  {range:18}"
            );
            if lock == "overlock" && theirs.median > 0.0 {
                let _ = write!(table, "  {:.2} times", ours.median / theirs.median);
            }
            table.truncate(table.trim_end().len());
            table.push('\n');
        }
    }
    table
}

fn number(value: f64) -> String {
    match value < 1000.0 {
        true => format!("{value:.1}"),
        false => format!("{value:.0}"),
    }
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
        let table = table(&[theirs], &[ours]);
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
    fn each_figure_has_a_median_and_a_spread_of_its_own() {
        let run = |rate, longest| Figures {
            rate,
            longest,
            block: 1.0,
            cpu: 1.0,
        };
        let runs = [run(1.0, 9.0), run(3000.0, 8.0), run(2.0, 7.0)];
        let table = table(&runs, &runs);
        let lines: Vec<&str> = table.lines().collect();
        assert!(lines[0].ends_with(" 2.0     1.0 to 3000"), "{table}");
        assert!(lines[2].ends_with(" 8.0 ms  7.0 to 9.0"), "{table}");
    }
}
