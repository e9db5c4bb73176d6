//! A reproduced table for people, as CSV, and a summary of several.

use std::fmt::Write;
use std::io;

use serde::Serialize;

use super::label::{Place, Quantity};
use super::score::{Score, groups};
use super::{Claim, Line, Reproduction, Verdict};
use overlock_report::columns::table;
use overlock_report::numbers::significant;

const TITLES: [&str; 8] = [
    "where",
    "what",
    "simulated",
    "least to most",
    "published",
    "ratio",
    "null model",
    "within",
];

/// The table with its claims.
pub fn describe(reproduction: &Reproduction) -> String {
    let Reproduction {
        table,
        about,
        assumes,
        fitted,
        verdict,
        ..
    } = reproduction;
    let mut text = format!("{table}: {about}\nassumed: {assumes}\n");
    if !fitted {
        let _ = writeln!(text, "{LEFT_OUT}");
    }
    text.push('\n');
    if !verdict.lines.is_empty() {
        let _ = writeln!(text, "{}", grid(&verdict.lines));
    }
    for claim in &verdict.claims {
        let _ = writeln!(text, "{}", claimed(claim));
    }
    for score in scores(verdict) {
        let _ = writeln!(text, "{score}");
    }
    let _ = writeln!(text, "{}", scored(&Score::of(&verdict.lines)));
    text
}

/// The scores of groups of tables.
pub fn summary(all: &[Reproduction]) -> String {
    let line = |(name, score): &(String, Score)| format!("{name}: {}\n", scored(score));
    groups(all).iter().map(line).collect()
}

fn scored(score: &Score) -> String {
    let Score {
        figures,
        reached,
        scaled_reached,
        null_reached,
        ..
    } = score;
    let of =
        |skill: Option<f64>| skill.map_or_else(String::new, |skill| format!(" (skill {skill:.2})"));
    let (skill, scaled) = (of(score.skill()), of(score.scaled_skill()));
    format!(
        "of the {figures} figures that the null model predicts, {reached} are within their \
         bounds{skill}, {scaled_reached} if scaled{scaled}, and {null_reached} of its own"
    )
}

fn claimed(claim: &Claim) -> String {
    let holds = if claim.holds { "holds" } else { "fails" };
    let [least, most] = claim.spread.map(percent);
    let (lead, margin) = (percent(claim.lead), percent(claim.margin));
    format!(
        "{holds}: {} ({lead} %, {least} to {most}; margin {margin})",
        claim.what
    )
}

/// The logarithm of a ratio, in percent.
pub(super) fn percent(log: f64) -> String {
    format!("{:+.1}", log.exp_m1() * 100.0)
}

/// How much of a table was reached.
pub(super) fn scores(verdict: &Verdict) -> Vec<String> {
    let ((reached, bounded), (held, claims)) = (verdict.reached(), verdict.held());
    let figures = format!("{reached} of {bounded} figures within their bounds");
    let claimed = format!("{held} of {claims} claims hold");
    let both = [(bounded, figures), (claims, claimed)];
    let counted = both.into_iter().filter(|(number, _)| *number > 0);
    counted.map(|(_, text)| text).collect()
}

/// The remark on a table that was not used to fit the cost model.
pub(super) const LEFT_OUT: &str = "not looked at when the cost model was fitted";

fn grid(lines: &[Line]) -> String {
    let row = |line: &Line| {
        [
            line.place.to_string(),
            line.what.to_string(),
            significant(line.measured),
            line.spread.map(significant).join(" to "),
            significant(line.published),
            format!("{:.2}", line.ratio),
            line.null.map_or_else(String::new, significant),
            within(line),
        ]
    };
    table(TITLES, lines.iter().map(row), |column| {
        (2..7).contains(&column)
    })
}

pub(super) fn within(line: &Line) -> String {
    let bound = if line.absolute {
        format!("± {}", significant(line.bound))
    } else {
        format!("{:.0} %", line.bound * 100.0)
    };
    format!("{bound}: {}", if line.reached { "yes" } else { "no" })
}

#[derive(Serialize)]
struct Record<'a> {
    table: &'a str,
    place: Place,
    what: &'a Quantity,
    simulated: f64,
    least: f64,
    most: f64,
    published: f64,
    ratio: f64,
    null: Option<f64>,
    scaled: f64,
    bound: f64,
    reached: bool,
}

/// A line of CSV for each figure.
///
/// # Errors
///
/// Those of `out`.
pub fn csv(out: &mut dyn io::Write, all: &[Reproduction]) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    for reproduction in all {
        for line in &reproduction.verdict.lines {
            writer
                .serialize(Record {
                    table: reproduction.table,
                    place: line.place,
                    what: &line.what,
                    simulated: line.measured,
                    least: line.spread[0],
                    most: line.spread[1],
                    published: line.published,
                    ratio: line.ratio,
                    null: line.null,
                    scaled: line.scaled,
                    bound: line.bound,
                    reached: line.reached,
                })
                .map_err(io::Error::other)?;
        }
    }
    writer.flush()
}
