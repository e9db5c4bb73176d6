//! The findings of a run, for people and for programs.

use std::collections::BTreeMap;
use std::env;
use std::fmt::{self, Write};
use std::path::{Path, PathBuf};

use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

use crate::coverage::{self, Coverage};
use crate::list::{Lock, added};
use crate::run::{Effort, Engine, Outcome};
use crate::sources::{SOURCES, Site, Source, UNIT_TESTED, UNREACHABLE, Unreachable};

/// A run's results.
#[derive(Debug, Serialize)]
pub struct Report {
    /// How far each check went.
    pub effort: Effort,
    /// The start of the random numbers.
    pub seed: u64,
    /// Lock by lock.
    pub locks: Vec<Row>,
    /// Scenario by scenario.
    pub outcomes: Vec<Outcome>,
}

/// One lock's results.
#[derive(Debug, Serialize)]
pub struct Row {
    /// Its name.
    pub lock: &'static str,
    /// The work of each checker.
    pub engines: BTreeMap<Engine, Sum>,
    /// The sites of its sources, and how often the explorer has reached each.
    pub sites: Vec<Reached>,
    /// The errors, for people. Empty where nothing is.
    pub wrong: Vec<String>,
    /// Whether it is broken on purpose.
    pub broken: bool,
}

/// The work of a checker on all scenarios of a lock.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Sum {
    /// Scenarios.
    pub scenarios: usize,
    /// Scenarios that failed.
    pub failed: usize,
    /// Executions.
    pub executions: u64,
    /// The bound up to which all executions of every scenario were run, the long ones aside. None
    /// for random checkers, or where not even the lowest was.
    pub complete_to: Option<u64>,
}

/// A site, with one of its outcomes.
#[derive(Debug, Serialize)]
pub struct Reached {
    /// Its source, below the folder of the crates.
    pub file: &'static str,
    /// Its line.
    pub line: u32,
    /// The function that it is in.
    pub function: &'static str,
    /// The operation.
    pub call: &'static str,
    /// The outcome.
    pub outcome: coverage::Outcome,
    /// How often it was reached.
    pub times: u64,
    /// Whether this lock has no use for it.
    pub lacking: bool,
    /// The unit test that reaches it, where no checker can.
    pub unit_tested: Option<&'static str>,
}

impl Reached {
    fn new(
        lock: &str,
        source: &Source,
        site: &Site,
        outcome: coverage::Outcome,
        of: &Coverage,
    ) -> Self {
        let lacks = |it: &&Unreachable| it.source == source.path && it.locks.contains(&lock);
        let tested = UNIT_TESTED.iter().filter(|it| it.source == source.path);
        Reached {
            file: source.path,
            line: site.line,
            function: site.function,
            call: site.call,
            outcome,
            times: of.times(source.path, site.line, site.column, outcome),
            lacking: (UNREACHABLE.iter().filter(lacks))
                .any(|it| it.sites.iter().any(|name| site.is_named(name))),
            unit_tested: tested
                .clone()
                .find(|it| site.is_named(it.site))
                .map(|it| it.test),
        }
    }

    /// Whether it has been reached: in this run, or in a unit test.
    fn is_covered(&self) -> bool {
        self.times > 0 || self.unit_tested.is_some()
    }
}

/// For people.
impl fmt::Display for Reached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Reached {
            file,
            line,
            function,
            call,
            outcome,
            ..
        } = self;
        write!(f, "{file}:{line}, {function}: {call}")?;
        match outcome {
            coverage::Outcome::Reached => Ok(()),
            coverage::Outcome::Done => f.write_str(" that succeeds"),
            coverage::Outcome::Refused => f.write_str(" that fails"),
        }
    }
}

impl Report {
    /// Puts outcomes together. `whole`: all checkers have run all scenarios of these locks, so that
    /// every site must have been reached.
    pub fn new(effort: Effort, seed: u64, outcomes: Vec<Outcome>, whole: bool) -> Self {
        let mut locks = Vec::new();
        let options = effort.options(seed);
        for lock in Engine::Explore.locks() {
            let of_lock: Vec<_> = outcomes
                .iter()
                .filter(|outcome| outcome.lock == lock.name)
                .collect();
            if !of_lock.is_empty() {
                locks.push(Row::new(&lock, &of_lock, whole, &options));
            }
        }
        Report {
            effort,
            seed,
            locks,
            outcomes,
        }
    }

    /// Whether nothing is wrong.
    pub fn is_good(&self) -> bool {
        self.locks.iter().all(|row| row.wrong.is_empty())
    }

    /// The results as a table, and what is wrong below it.
    pub fn text(&self) -> String {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header(["lock", "explore", "≤", "shuttle", "sites", ""]);
        for column in 1..5 {
            table
                .column_mut(column)
                .expect("a column")
                .set_cell_alignment(CellAlignment::Right);
        }
        for row in &self.locks {
            table.add_row(row.cells());
        }
        let mut text = format!(
            "{table}\nexecutions of each checker; ≤: complete up to so many departures in every scenario but the long ones\n"
        );
        for row in &self.locks {
            for wrong in &row.wrong {
                let _ = writeln!(text, "\n{}: {wrong}", row.lock);
            }
        }
        text
    }
}

/// The steps of a trace, for people: an execution without end has thousands, all alike.
fn shortened(trace: &[String]) -> Vec<String> {
    const FIRST: usize = 200;
    const LAST: usize = 40;
    let Some(left_out) = trace
        .len()
        .checked_sub(FIRST + LAST)
        .filter(|&more| more > 1)
    else {
        return trace.to_vec();
    };
    let mut steps = trace[..FIRST].to_vec();
    steps.push(format!("... {left_out} more: --json has them all ..."));
    steps.extend_from_slice(&trace[FIRST + left_out..]);
    steps
}

/// The program that runs these checks: one of their own, or one that may have more locks.
fn program() -> String {
    let mut args = env::args_os();
    let path = args.next().map(PathBuf::from);
    let name = path.as_deref().and_then(Path::file_name);
    let name = name.map_or("overlock-model".into(), |name| name.to_string_lossy());
    match args.next() {
        Some(subcommand) if subcommand == "model" => format!("{name} model"),
        _ => name.into_owned(),
    }
}

impl Row {
    fn new(lock: &Lock, outcomes: &[&Outcome], whole: bool, options: &str) -> Self {
        let mut engines = BTreeMap::<Engine, Sum>::new();
        let mut coverage = Coverage::default();
        let mut wrong = Vec::new();
        let mut found = Vec::new();
        for outcome in outcomes {
            let sum = engines.entry(outcome.engine).or_default();
            sum.scenarios += 1;
            sum.executions += outcome.executions;
            coverage.add(&outcome.coverage);
            if let Some(failure) = &outcome.failure {
                sum.failed += 1;
                found.push(outcome.engine.name());
                if lock.broken_for.is_empty() {
                    let mut text = format!(
                        "{} fails on {}: {failure}",
                        outcome.scenario,
                        outcome.engine.name()
                    );
                    for step in shortened(&failure.trace) {
                        let _ = write!(text, "\n    {step}");
                    }
                    let _ = write!(
                        text,
                        "\n  to see it again: {} --locks {} --scenarios {} --engines {}{options}",
                        program(),
                        lock.name,
                        outcome.scenario,
                        outcome.engine.name()
                    );
                    wrong.push(text);
                }
            }
        }
        for (&engine, sum) in &mut engines {
            let searched =
                (outcomes.iter()).filter(|outcome| outcome.engine == engine && !outcome.long);
            // None comes before all bounds.
            sum.complete_to = searched.map(|outcome| outcome.complete_to).min().flatten();
        }
        for engine in engines.keys().map(|engine| engine.name()) {
            if lock.broken_for.contains(&engine) && !found.contains(&engine) {
                wrong.push(format!("it is broken, and {engine} has not noticed"));
            }
        }
        let sites = sites(lock.name, &coverage);
        if lock.broken_for.is_empty() {
            let is_added = added().iter().any(|it| it.name == lock.name);
            if whole && sites.is_empty() && !is_added {
                wrong.push(
                    "no source of it is listed: SOURCES in lab/model/src/sources/list.rs"
                        .to_owned(),
                );
            }
            for site in &sites {
                if whole && !site.is_covered() && !site.lacking {
                    wrong.push(format!("the explorer has not reached {site}"));
                }
                if site.times > 0 && site.lacking {
                    wrong.push(format!(
                        "it has reached {site}, and the list says that it cannot"
                    ));
                }
            }
        }
        wrong.dedup();
        Row {
            lock: lock.name,
            engines,
            sites,
            wrong,
            broken: !lock.broken_for.is_empty(),
        }
    }

    fn cells(&self) -> Vec<String> {
        let engine = |engine| self.engines.get(&engine).cloned().unwrap_or_default();
        let [explore, shuttle] = Engine::ALL.map(engine);
        let bound = |sum: &Sum| {
            sum.complete_to
                .map_or_else(String::new, |bound| bound.to_string())
        };
        let has: Vec<_> = self.sites.iter().filter(|site| !site.lacking).collect();
        let reached = has.iter().filter(|site| site.is_covered()).count();
        let coverage = match has.len() {
            0 => "–".to_owned(),
            all => format!("{reached}/{all}"),
        };
        let verdict = match (self.broken, self.wrong.is_empty()) {
            (_, false) => "WRONG",
            (true, true) => "found, as it must be",
            (false, true) => "ok",
        };
        vec![
            self.lock.to_owned(),
            grouped(explore.executions),
            bound(&explore),
            grouped(shuttle.executions),
            coverage,
            verdict.to_owned(),
        ]
    }
}

/// The sites of the sources of a lock, with each of their outcomes.
fn sites(lock: &str, coverage: &Coverage) -> Vec<Reached> {
    let mut all = Vec::new();
    for source in SOURCES.iter().filter(|source| source.locks.contains(&lock)) {
        for site in source.sites() {
            for &outcome in site.outcomes() {
                all.push(Reached::new(lock, source, &site, outcome, coverage));
            }
        }
    }
    all
}

fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::{Failure, Kind};
    use crate::run::run;

    /// The text of a failure's report after `to see it again`.
    fn again(effort: Effort, seed: u64) -> String {
        let outcome = Outcome {
            lock: "kernel_mutex",
            scenario: "two".to_owned(),
            engine: Engine::Explore,
            executions: 1,
            complete_to: None,
            long: false,
            seconds: 0.0,
            failure: Some(Failure::new(Kind::Panic, "a test".to_owned())),
            coverage: Coverage::default(),
        };
        let text = Report::new(effort, seed, vec![outcome], false).text();
        let (_, command) = text
            .split_once(&format!(
                "to see it again: {} --locks kernel_mutex --scenarios two ",
                program()
            ))
            .expect("a command");
        command.trim_end().to_owned()
    }

    #[test]
    fn the_command_to_see_it_again_says_all_that_is_not_usual() {
        assert_eq!(again(Effort::QUICK, 1), "--engines explore");
        assert_eq!(again(Effort::LONG, 7), "--engines explore --long --seed 7");
        let few = Effort {
            walks: 5,
            ..Effort::QUICK
        };
        assert_eq!(again(few, 1), "--engines explore --walks 5");
        let other = Effort {
            walks: 2,
            schedules: 3,
            ..Effort::LONG
        };
        assert_eq!(
            again(other, 1),
            "--engines explore --long --walks 2 --schedules 3"
        );
    }

    /// `try` finds the lock free, or held, and waits for nothing.
    #[test]
    fn a_lock_whose_slow_path_was_not_entered_is_wrong() {
        let little = Effort {
            departures: 0,
            executions: 10,
            walks: 10,
            schedules: 0,
        };
        let outcomes = run(
            &[Engine::Explore],
            |lock, scenario| lock.name == "queued" && scenario.name == "try",
            little,
            1,
            1,
            |_| (),
            |_| true,
        );
        let some = Report::new(little, 1, outcomes.clone(), false);
        assert!(some.is_good());
        let all = Report::new(little, 1, outcomes, true);
        assert!(!all.is_good());
        let wrong = all.locks[0].wrong.join("\n");
        assert!(wrong.contains("lock_queued: P::wait_until"), "{wrong}");
        assert!(!wrong.contains("unlock:"), "{wrong}");
    }

    #[test]
    fn a_lock_without_a_listed_source_is_wrong() {
        let mut lock = Lock {
            name: "unlisted",
            scenarios: Vec::new(),
            broken_for: &[],
        };
        let row = |lock: &Lock, whole| Row::new(lock, &[], whole, "");
        let whole = row(&lock, true);
        let wrong = whole.wrong.join("\n");
        assert!(wrong.contains("lab/model/src/sources/list.rs"), "{wrong}");
        assert_eq!(whole.cells()[4..], ["–", "WRONG"]);
        assert!(row(&lock, false).wrong.is_empty());
        lock.broken_for = &["explore"];
        assert!(row(&lock, true).wrong.is_empty());
    }

    #[test]
    fn a_long_trace_is_shortened_in_the_middle() {
        let trace = |steps: usize| (0..steps).map(|step| step.to_string()).collect::<Vec<_>>();
        assert_eq!(shortened(&trace(241)), trace(241));
        let all = trace(20_000);
        let short = shortened(&all);
        assert_eq!(short.len(), 241);
        assert_eq!(short[200], "... 19760 more: --json has them all ...");
        assert_eq!(
            (&short[..200], &short[201..]),
            (&all[..200], &all[19_960..])
        );
    }
}
