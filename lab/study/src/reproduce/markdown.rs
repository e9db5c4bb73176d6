//! Reproduced tables as results/simulator-tables.md has them: each between two comments, by which
//! `.ci/simulator` finds it. docs/evidence/simulator.md has the scores.

use std::fmt::Write;

use super::score::{Score, groups};
use super::text::{percent, scores, within};
use super::{Claim, Line, Reproduction};
use overlock_report::numbers::significant;

/// A table with its claims and its scores.
pub fn table(reproduction: &Reproduction) -> String {
    let verdict = &reproduction.verdict;
    let mut text = String::from(
        "| where | what | simulated | least to most | published | ratio | null model | within |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    text.extend(verdict.lines.iter().map(figure));
    if !verdict.claims.is_empty() {
        text +=
            "\n| claim | lead, % | least to most | margin, % | holds |\n|---|---|---|---|---|\n";
        text.extend(verdict.claims.iter().map(claim));
    }
    let reached = scores(verdict).join("; ");
    let _ = write!(text, "\n{reached}.\n");
    between(reproduction.table, &text)
}

/// The scores of all tables, and of groups of them.
pub fn summary(all: &[Reproduction]) -> String {
    let mut text = String::from(
        "| tables | figures | within their bounds | skill | scaled, within | scaled, skill | null model, within |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for (name, score) in groups(all) {
        text += &scored(&name, &score);
    }
    for reproduction in all {
        let score = Score::of(&reproduction.verdict.lines);
        text += &scored(reproduction.table, &score);
    }
    between("all", &text)
}

fn between(name: &str, text: &str) -> String {
    format!("<!-- sim reproduce {name}: begin -->\n\n{text}\n<!-- sim reproduce {name}: end -->\n")
}

fn figure(line: &Line) -> String {
    let [least, most] = line.spread.map(significant);
    format!(
        "| {} | {} | {} | {least} to {most} | {} | {:.2} | {} | {} |\n",
        line.place,
        line.what,
        significant(line.measured),
        significant(line.published),
        line.ratio,
        line.null.map_or_else(String::new, significant),
        emphasis(within(line), line.reached),
    )
}

fn claim(claim: &Claim) -> String {
    let [least, most] = claim.spread.map(percent);
    let holds = if claim.holds { "yes" } else { "no" };
    format!(
        "| {} | {} | {least} to {most} | {} | {} |\n",
        claim.what,
        percent(claim.lead),
        percent(claim.margin),
        emphasis(holds.to_owned(), claim.holds),
    )
}

fn scored(name: &str, score: &Score) -> String {
    let of = |skill: Option<f64>| skill.map_or_else(String::new, |skill| format!("{skill:.2}"));
    format!(
        "| {name} | {} | {} | {} | {} | {} | {} |\n",
        score.figures,
        score.reached,
        of(score.skill()),
        score.scaled_reached,
        of(score.scaled_skill()),
        score.null_reached,
    )
}

/// Has a figure or claim stand out that is not reached.
fn emphasis(text: String, good: bool) -> String {
    if good { text } else { format!("**{text}**") }
}
