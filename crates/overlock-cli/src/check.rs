//! `overlock check`: what it does with the validator's reports.

pub mod document;
mod sarif;
pub mod suppress;

use std::fmt;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde::Serialize;
use serde_json::Value;

use crate::exit::Exit;
use crate::stat::Symbols;
use suppress::Suppressions;

/// Options for the reports.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Options {
    /// The format of the file of --report, whatever its name is
    #[arg(long, value_enum, value_name = "FORMAT", requires = "report")]
    format: Option<Format>,

    /// Leave out the reports that a line of this file names: deadlock:PATTERN, called_from:PATTERN
    /// or module:PATTERN. Each report says which line would name it
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    suppressions: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum Format {
    Text,
    Json,
    Sarif,
}

impl Options {
    /// The first option that is given, for a message.
    pub fn first(&self) -> Option<&'static str> {
        let format = self.format.map(|_| "--format");
        format.or(self.suppressions.as_ref().map(|_| "--suppressions"))
    }

    /// The file of suppressions, read.
    pub fn suppressions(&self) -> Result<Suppressions, Exit> {
        let Some(path) = &self.suppressions else {
            return Ok(Suppressions::default());
        };
        let refused =
            |error: &dyn fmt::Display| Exit::usage(format!("{}: {error}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| refused(&error))?;
        Suppressions::parse(&text).map_err(|error| refused(&error))
    }

    fn format(&self, path: &Path) -> Format {
        let ending = path.extension().and_then(|ending| ending.to_str());
        self.format.unwrap_or(match ending {
            Some("json") => Format::Json,
            Some("sarif") => Format::Sarif,
            _ => Format::Text,
        })
    }

    /// The text of the report's file.
    pub fn text(&self, path: &Path, document: &document::Document<'_>) -> String {
        match self.format(path) {
            Format::Text => document.to_string(),
            Format::Json => pretty(document),
            Format::Sarif => pretty(&sarif::of(document)),
        }
    }
}

fn pretty(value: &impl Serialize) -> String {
    // Its keys are strings, and it writes to memory: it does not fail.
    serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
}

/// A place in the program.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Spot {
    /// As reports show it.
    pub name: String,
    /// The function, if its name is known.
    pub function: Option<String>,
    /// The source file, where there is debug information.
    pub file: Option<String>,
    /// The line in it.
    pub line: Option<u32>,
    /// The program or library.
    pub module: Option<String>,
    /// Whether a rule says that the function only passes calls on to a lock.
    #[serde(skip)]
    pub is_wrapper: bool,
}

/// A report of the validator.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    /// `order`, `recursion` and others.
    pub kind: String,
    /// One line.
    pub title: String,
    /// Whether it is a warning only.
    pub warning: bool,
    /// The kernel's number of the thread.
    pub thread: u64,
    /// The line by which it was left out.
    pub suppressed: Option<String>,
    /// A line that would leave it out.
    pub suppress_with: String,
    /// The places where its locks were acquired, or wanted: the last one first.
    pub places: Vec<Spot>,
    /// The callers at the report.
    pub backtrace: Vec<Spot>,
    /// The callers at each dependency.
    pub dependencies: Vec<Vec<Spot>>,
    /// The text as `overlock check` prints it.
    pub text: String,
    /// All that the validator says, as the documents describe it.
    pub details: Value,
}

impl Report {
    /// The report of a line of JSON and its text.
    pub fn new(line: &str, text: String, symbols: &mut Symbols) -> Option<Self> {
        let mut details: Value = serde_json::from_str(line).ok()?;
        let places = sites(&details);
        let spots = |value: &Value, symbols: &mut Symbols| -> Vec<Spot> {
            let names = value.as_array().into_iter().flatten();
            let names = names.filter_map(Value::as_str);
            names.map(|name| Spot::of(name, symbols)).collect()
        };
        let places = places.iter().map(|name| Spot::of(name, symbols)).collect();
        let backtrace = spots(&details["backtrace"], symbols);
        let chain = details["chain"].as_array().cloned().unwrap_or_default();
        let callers = |edge: &Value| spots(&edge["callers"], symbols);
        let dependencies = chain.iter().map(callers).collect();
        name_all(&mut details, symbols);
        let word = |name: &str| details[name].as_str().unwrap_or_default().to_owned();
        let mut report = Self {
            kind: word("lockdep"),
            title: word("title"),
            warning: details["warning"].as_bool().unwrap_or(false),
            thread: details["thread"].as_u64().unwrap_or(0),
            suppressed: None,
            suppress_with: String::new(),
            places,
            backtrace,
            dependencies,
            text,
            details,
        };
        report.suppress_with = suppress::line_for(&report);
        Some(report)
    }

    /// All callers that it shows.
    pub fn callers(&self) -> impl Iterator<Item = &Spot> {
        self.backtrace
            .iter()
            .chain(self.dependencies.iter().flatten())
    }
}

/// The places of its locks in a report: those of the thread that reports first.
fn sites(details: &Value) -> Vec<String> {
    let of = |value: &Value, name: &str| value[name].as_str().map(str::to_owned);
    let mut sites: Vec<_> = ["wants", "uses", "releases", "first", "while"]
        .into_iter()
        .filter_map(|lock| of(&details[lock], "site"))
        .collect();
    sites.extend(of(details, "site"));
    for edge in details["chain"].as_array().into_iter().flatten() {
        sites.extend(
            ["taken_at", "held_at"]
                .into_iter()
                .filter_map(|at| of(edge, at)),
        );
    }
    for thread in details["threads"].as_array().into_iter().flatten() {
        sites.extend(of(&thread["wants"], "site"));
    }
    sites
}

impl Spot {
    /// The place with this text, in which addresses may be marked.
    fn of(text: &str, symbols: &mut Symbols) -> Self {
        let name = named(text, |path, at| symbols.at(path, at));
        let mut parts = text.splitn(4, '\x1f').skip(1);
        let (Some(path), Some(at)) = (parts.next(), parts.next()) else {
            return Self {
                name,
                ..Self::default()
            };
        };
        let at = u64::from_str_radix(at, 16).ok();
        let place = at.and_then(|at| symbols.place_at(Path::new(path), at));
        let place = place.as_ref();
        Self {
            name,
            function: place.and_then(|place| place.function.clone()),
            file: place.and_then(|place| place.file.clone()),
            line: place.and_then(|place| place.line),
            module: Some(path.to_owned()),
            is_wrapper: place.is_some_and(|place| place.is_wrapper),
        }
    }
}

/// Gives names to all marked addresses.
fn name_all(value: &mut Value, symbols: &mut Symbols) {
    match value {
        Value::String(text) => *text = named(text, |path, at| symbols.at(path, at)),
        Value::Array(all) => all.iter_mut().for_each(|each| name_all(each, symbols)),
        Value::Object(all) => all.values_mut().for_each(|each| name_all(each, symbols)),
        _ => {}
    }
}

/// A line with what `name` knows of the addresses that are marked in it:
/// [`set_reader`](overlock::lockdep::set_reader) says how.
pub fn named(line: &str, mut name: impl FnMut(&Path, u64) -> Option<String>) -> String {
    let mut parts = line.split('\x1f');
    let mut text = parts.next().unwrap_or_default().to_owned();
    while let Some(path) = parts.next() {
        let distance = parts
            .next()
            .and_then(|hex| u64::from_str_radix(hex, 16).ok());
        let (otherwise, rest) = match parts.next() {
            Some(part) => part.split_once('\x1e').unwrap_or((part, "")),
            None => ("", ""),
        };
        let known = distance.and_then(|distance| name(Path::new(path), distance));
        text += known.as_deref().unwrap_or(otherwise);
        text += rest;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marked_addresses_get_names_where_there_are_any() {
        let name = |path: &Path, distance: u64| {
            (path == Path::new("/a") && distance == 0x2f).then(|| "f() a.c:3".to_owned())
        };
        let marked = "at \x1f/a\x1f2f\x1fa(_Z1fv+0x2f)\x1e, then \x1f/b\x1f0\x1fb+0x0\x1e;\n";
        assert_eq!(named(marked, name), "at f() a.c:3, then b+0x0;\n");
        assert_eq!(named("plain\n", name), "plain\n");
        for cut in ["\x1f/a", "\x1f/a\x1f2f", "x\x1f/a\x1f2f\x1fa"] {
            assert!(!named(cut, name).contains('\x1f'));
        }
    }
}
