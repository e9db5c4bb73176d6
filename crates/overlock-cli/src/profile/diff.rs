//! `overlock diff`

use std::fmt::Write;
use std::io;
use std::path::PathBuf;

use overlock_profile::diff::{self, ENOUGH, Row, Side, Verdict};
use overlock_profile::{By, Profile, Shown};
use overlock_report::numbers::{count, time};
use serde::Serialize;

use super::files::Who;
use super::kept;
use crate::exit::Exit;
use crate::files::{Content, Files};
use crate::stat::{Column, WIDTH, fitting};
use crate::terminal::{print, width};

/// Compare the waits of two profiles, or of several runs each, and say what is noise
///
/// The figures are means of a side's runs. With four runs or more on each side their order tells
/// what is noise (Wilcoxon's rank-sum test, at 5 %). With fewer it is estimated from the number and
/// the lengths of the waits, as if runs did not differ otherwise: so give several.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  overlock diff before.json after.json\n  overlock diff before.json after.json --flame change.svg\n  overlock diff old-*.json --after new-*.json --json changes.json\n\nExit codes: 1 a file cannot be written, 2 bad use, or a profile cannot be read."
)]
pub struct Args {
    /// The profile before and the one after; or, with --after, all those before
    #[arg(required = true, value_name = "PROFILE")]
    before: Vec<PathBuf>,

    /// The profiles after
    #[arg(long, num_args = 1.., value_name = "PROFILE")]
    after: Vec<PathBuf>,

    /// Write all rows as JSON; `-` is the standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Draw a flame graph of the time after: red where it has grown, blue where it has shrunk
    #[arg(long, value_name = "FILE")]
    flame: Option<PathBuf>,

    /// Whose stacks it has
    #[arg(long, value_enum, value_name = "WHO", default_value_t)]
    by: Who,

    /// Compare also waits for events, which are no contention
    #[arg(long)]
    events: bool,
}

/// How many rows the table has.
const MOST_ROWS: usize = 20;

/// Compares.
pub fn run(args: &Args) -> Result<(), Exit> {
    let (before, after) = match (&args.before[..], &args.after[..]) {
        ([before, after], []) => (std::slice::from_ref(before), std::slice::from_ref(after)),
        (_, []) => {
            return Err(Exit::usage(
                "give one profile before and one after, or those after behind --after",
            ));
        }
        sides => sides,
    };
    let files = Files::open([("--json", &args.json), ("--flame", &args.flame)])?;
    let read = |paths: &[PathBuf]| -> Result<Vec<Profile>, Exit> {
        paths.iter().map(|path| kept::read(path)).collect()
    };
    let (before, after) = (read(before)?, read(after)?);
    let shown = Shown {
        by: match args.by {
            Who::Waiter => By::Waiter,
            Who::Holder => By::Holder,
        },
        events: args.events,
        ..Shown::default()
    };
    let rows = diff::rows(&before, &after, shown);
    let runs = [before.len(), after.len()];
    if !files.use_stdout() {
        let text = describe(&rows, runs, width());
        print(io::stdout().lock(), text.as_bytes())?;
    }
    let flame: Content = &|out| diff::flame(out, &before, &after, shown);
    let document = Document {
        overlock: env!("CARGO_PKG_VERSION"),
        runs_before: runs[0],
        runs_after: runs[1],
        locks: &rows,
    };
    let json: Content = &|out| overlock_report::json::write(out, &document);
    files.write([json, flame])
}

/// All rows, for programs. The schema is `schema/diff.schema.json`.
#[derive(Debug, Serialize)]
struct Document<'a> {
    /// This program's version.
    overlock: &'static str,
    /// How many profiles each side has.
    runs_before: usize,
    runs_after: usize,
    /// The largest difference first.
    locks: &'a [Row],
}

fn describe(rows: &[Row], runs: [usize; 2], width: Option<u16>) -> String {
    let total = |side: fn(&Row) -> Side| rows.iter().map(|row| side(row).wait_ns).sum::<f64>();
    let (before, after) = (total(|row| row.before), total(|row| row.after));
    let mut text = format!(
        "{} waited for locks before, {} after: {}\n",
        time(before),
        time(after),
        change(before, after)
    );
    let shown = &rows[..rows.len().min(MOST_ROWS)];
    if !shown.is_empty() {
        let first = Column::of_names("lock", shown, |row| plain(&row.name));
        let columns = [vec![
            Column::new("kind", shown, |row| plain(&row.kind)),
            Column::new("before", shown, |row| time(row.before.wait_ns)),
            Column::new("after", shown, |row| time(row.after.wait_ns)),
            Column::new("change", shown, |row| {
                change(row.before.wait_ns, row.after.wait_ns)
            }),
            Column::new("verdict", shown, |row| verdict(row.verdict).to_owned()),
            Column::new("waits", shown, |row| {
                format!("{} -> {}", count(row.before.waits), count(row.after.waits))
            }),
        ]];
        text += &fitting(&first, &columns, width.map_or(WIDTH, usize::from));
    }
    if let Some(more) = rows.len().checked_sub(MOST_ROWS + 1) {
        let _ = writeln!(text, "And {} more locks.", more + 1);
    }
    if runs.iter().any(|&runs| runs < ENOUGH) {
        let _ = writeln!(
            text,
            "Noise is estimated from the waits alone; {ENOUGH} runs of each side tell more."
        );
    }
    text
}

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Less => "less",
        Verdict::More => "more",
        Verdict::Noise => "noise",
    }
}

/// How one became the other.
fn change(before: f64, after: f64) -> String {
    if before == after {
        "none".to_owned()
    } else if before == 0.0 {
        "new".to_owned()
    } else if after == 0.0 {
        "gone".to_owned()
    } else if after > 2.0 * before {
        format!("x{:.1}", after / before)
    } else {
        format!("{:+.0} %", (after / before - 1.0) * 100.0)
    }
}

/// Without what would move the terminal's cursor.
fn plain(text: &str) -> String {
    text.replace(char::is_control, " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_for_people() {
        for (before, after, right) in [
            (2.0, 2.0, "none"),
            (0.0, 2.0, "new"),
            (2.0, 0.0, "gone"),
            (2.0, 5.0, "x2.5"),
            (2.0, 3.0, "+50 %"),
            (2.0, 1.0, "-50 %"),
        ] {
            assert_eq!(change(before, after), right);
        }
    }
}
