//! Reproduced tables and their scores, for people and as results/simulator-tables.md has them: each
//! between two comments, by which `.ci/simulator` finds it.

use std::fmt::Write;

use super::score::{Score, groups};
use super::{Claim, Line, Reproduction, Verdict};
use overlock_report::columns::table;
use overlock_report::numbers::significant;

/// The form of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// For a terminal.
    Plain,
    /// For a page.
    Markdown,
}

/// A table with its claims and its scores.
pub fn describe(form: Form, reproduction: &Reproduction) -> String {
    let Reproduction {
        table,
        about,
        assumes,
        fitted,
        verdict,
        ..
    } = reproduction;
    let figures = verdict.lines.iter().map(|line| figure(form, line));
    let mut text = form.table(FIGURES, figures);
    if !verdict.claims.is_empty() {
        let claims = verdict.claims.iter().map(|one| claim(form, one));
        text += &format!("\n{}", form.table(CLAIMS, claims));
    }
    let _ = write!(text, "\n{}.\n", scores(verdict));
    if form == Form::Markdown {
        return between(table, &text);
    }
    let left_out = match fitted {
        true => "",
        false => "not looked at when the cost model was fitted\n",
    };
    format!("{table}: {about}\nassumed: {assumes}\n{left_out}\n{text}")
}

/// The scores of groups of tables, and of all tables.
pub fn summary(form: Form, all: &[Reproduction]) -> String {
    let tables = all.iter().map(|one| {
        let score = Score::of(&one.verdict.lines);
        (one.table.to_owned(), score)
    });
    let scores = groups(all).into_iter().chain(tables);
    let text = form.table(SCORES, scores.map(|(name, score)| scored(name, &score)));
    match form {
        Form::Plain => text,
        Form::Markdown => between("all", &text),
    }
}

impl Form {
    fn table<const N: usize>(
        self,
        titles: [&str; N],
        rows: impl Iterator<Item = [String; N]>,
    ) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        match self {
            Self::Plain => table(titles, rows, |column| column > 0),
            Self::Markdown => {
                let titles = line(&titles.map(str::to_owned));
                let rows = rows.map(|cells| line(&cells));
                format!("{titles}|{}\n", "---|".repeat(N)) + &rows.collect::<String>()
            }
        }
    }

    /// Has a figure or claim stand out on a page that is not reached.
    fn stands_out(self, text: String, good: bool) -> String {
        match self {
            Self::Markdown if !good => format!("**{text}**"),
            _ => text,
        }
    }
}

fn between(name: &str, text: &str) -> String {
    format!("<!-- sim reproduce {name}: begin -->\n\n{text}\n<!-- sim reproduce {name}: end -->\n")
}

const FIGURES: [&str; 8] = [
    "where",
    "what",
    "simulated",
    "least to most",
    "published",
    "ratio",
    "null model",
    "within",
];

fn figure(form: Form, line: &Line) -> [String; 8] {
    let bound = match line.absolute {
        true => format!("± {}", significant(line.bound)),
        false => format!("{:.0} %", line.bound * 100.0),
    };
    let within = format!("{bound}: {}", yes(line.reached));
    [
        line.place.to_string(),
        line.what.to_string(),
        significant(line.measured),
        line.spread.map(significant).join(" to "),
        significant(line.published),
        format!("{:.2}", line.ratio),
        line.null.map_or_else(String::new, significant),
        form.stands_out(within, line.reached),
    ]
}

const CLAIMS: [&str; 5] = ["claim", "lead, %", "least to most", "margin, %", "holds"];

fn claim(form: Form, claim: &Claim) -> [String; 5] {
    let percent = |log: f64| format!("{:+.1}", log.exp_m1() * 100.0);
    [
        claim.what.clone(),
        percent(claim.lead),
        claim.spread.map(percent).join(" to "),
        percent(claim.margin),
        form.stands_out(yes(claim.holds).to_owned(), claim.holds),
    ]
}

fn yes(reached: bool) -> &'static str {
    if reached { "yes" } else { "no" }
}

/// How much of a table was reached.
fn scores(verdict: &Verdict) -> String {
    let ((reached, bounded), (held, claims)) = (verdict.reached(), verdict.held());
    let figures = format!("{reached} of {bounded} figures within their bounds");
    let claimed = format!("{held} of {claims} claims hold");
    let both = [(bounded, figures), (claims, claimed)];
    let counted = both.into_iter().filter(|(number, _)| *number > 0);
    counted.map(|(_, text)| text).collect::<Vec<_>>().join("; ")
}

const SCORES: [&str; 7] = [
    "tables",
    "figures",
    "within their bounds",
    "skill",
    "scaled, within",
    "scaled, skill",
    "null model, within",
];

fn scored(name: String, score: &Score) -> [String; 7] {
    let of = |skill: Option<f64>| skill.map_or_else(String::new, |skill| format!("{skill:.2}"));
    [
        name,
        score.figures.to_string(),
        score.reached.to_string(),
        of(score.skill()),
        score.scaled_reached.to_string(),
        of(score.scaled_skill()),
        score.null_reached.to_string(),
    ]
}
