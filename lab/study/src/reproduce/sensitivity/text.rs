//! The effects of constants for people, as a page has them, and as JSON.

use std::fmt::Write;

use overlock_report::columns::table;

use super::{Constant, Effect, Moved, Sensitivity};

/// The table, then what comes and goes.
pub fn describe(found: &Sensitivity) -> String {
    let table = table(titles(found), rows(found), |column| {
        [1, 4].contains(&column)
    });
    let mut text = format!("{}\n\n{table}", settings(found));
    for change in changes(found, true) {
        let _ = write!(text, "\n{change}");
    }
    text + "\n" + &unused(found)
}

/// The same for a page. Of what comes and goes it names the claims.
pub fn markdown(found: &Sensitivity) -> String {
    let line = |cells: [String; 7]| format!("| {} |\n", cells.join(" | "));
    let mut text = line(titles(found)) + "|---|--:|---|---|--:|---|---|\n";
    text.extend(rows(found).map(line));
    text.push('\n');
    for change in changes(found, false) {
        let _ = writeln!(text, "- {change}");
    }
    let (settings, unused) = (settings(found), unused(found));
    format!("{settings}\n\n{text}\n{unused}")
}

fn settings(found: &Sensitivity) -> String {
    let Sensitivity {
        tables,
        seeds,
        seed,
        length,
        reached,
        held,
        ..
    } = found;
    let seeds = match seeds {
        1 => format!("seed {seed}"),
        many => format!("{many} seeds from {seed}"),
    };
    format!(
        "{}: {seeds}, {length} of the normal length. \
         As the model is, {} of {} figures are within their bounds, and {} of {} claims hold.",
        tables.join(", "),
        reached.0,
        reached.1,
        held.0,
        held.1
    )
}

fn titles(found: &Sensitivity) -> [String; 7] {
    let [less, more] = signed(found);
    [
        "constant", &less, "bounds", "claims", &more, "bounds", "claims",
    ]
    .map(str::to_owned)
}

/// The two changes: "-20 %", "+20 %".
fn signed(found: &Sensitivity) -> [String; 2] {
    let percent = (found.by * 1e4).round() / 100.0;
    [format!("-{percent} %"), format!("+{percent} %")]
}

/// Chance first, then each constant.
fn rows(found: &Sensitivity) -> impl Iterator<Item = [String; 7]> {
    let chance = cells("(other seeds)", Some(&found.chance), None);
    let moving = found.constants.iter().filter(|moved| moved.moves());
    let constants = moving.map(|moved| {
        let Moved { constant, down, up } = moved;
        cells(constant.name(), down.as_ref(), up.as_ref())
    });
    std::iter::once(chance).chain(constants)
}

fn cells(name: &str, down: Option<&Effect>, up: Option<&Effect>) -> [String; 7] {
    let change = |effect: Option<&Effect>| {
        effect.map_or_else(String::new, |effect| {
            format!("{:.1} %", effect.change.exp_m1() * 100.0)
        })
    };
    let bounds = |effect: Option<&Effect>| {
        effect.map_or_else(String::new, |Effect { enters, leaves, .. }| {
            counts([(enters.len(), "in"), (leaves.len(), "out")])
        })
    };
    let claims = |effect: Option<&Effect>| {
        effect.map_or_else(String::new, |Effect { gains, loses, .. }| {
            counts([(gains.len(), "more"), (loses.len(), "fewer")])
        })
    };
    [
        name.to_owned(),
        change(down),
        bounds(down),
        claims(down),
        change(up),
        bounds(up),
        claims(up),
    ]
}

fn counts(both: [(usize, &str); 2]) -> String {
    let some = both.iter().filter(|(count, _)| *count > 0);
    let some = some.map(|(count, what)| format!("{count} {what}"));
    some.collect::<Vec<_>>().join(", ")
}

/// A line for each change that moves a claim or, if `figures`, a figure across its bound.
fn changes(found: &Sensitivity, figures: bool) -> impl Iterator<Item = String> {
    let [less, more] = signed(found);
    let chance = [("other seeds".to_owned(), Some(&found.chance))];
    let constants = found.constants.iter().flat_map(move |moved| {
        [(&less, &moved.down), (&more, &moved.up)]
            .map(|(change, effect)| (format!("{} {change}", moved.constant), effect.as_ref()))
    });
    let all = chance.into_iter().chain(constants);
    all.filter_map(move |(name, effect)| {
        let Effect {
            enters,
            leaves,
            gains,
            loses,
            ..
        } = effect?;
        let parts = [
            (figures, "comes within its bound", enters),
            (figures, "leaves its bound", leaves),
            (true, "comes to hold", gains),
            (true, "holds no longer", loses),
        ];
        let parts = parts
            .iter()
            .filter(|(shown, _, names)| *shown && !names.is_empty());
        let parts: Vec<String> = parts
            .map(|(_, what, names)| format!("{what}: {}", names.join("; ")))
            .collect();
        (!parts.is_empty()).then(|| format!("{name}: {}", parts.join(". ")))
    })
}

/// The constants that move nothing, in two sentences.
fn unused(found: &Sensitivity) -> String {
    let still = found.constants.iter().filter(|moved| !moved.moves());
    let still: Vec<Constant> = still.map(|moved| moved.constant).collect();
    let sentence = |what: &str, constants: &[Constant]| {
        let names: Vec<&str> = constants.iter().map(|constant| constant.name()).collect();
        match names.as_slice() {
            [] => String::new(),
            names => format!("{what}: {}.\n", names.join(", ")),
        }
    };
    sentence("Nothing moves with", &still) + &sentence("Not in these simulations", &found.unused)
}
