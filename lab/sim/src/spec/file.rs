//! Files in TOML.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Bases, Changes, Domain, Error, Refused, Spec, Value, named};

/// Larger files are not what they are named as.
const MOST_BYTES: u64 = 1 << 20;

/// Whether a name is that of a file: it has a slash, or ends in `.toml`.
pub fn is_file(name: &str) -> bool {
    name.contains('/') || name.ends_with(".toml")
}

/// Returns the name of what a file changes: a preset, or another base.
pub(super) fn base(path: &str) -> Result<String, Error> {
    let text = contents(path)?;
    let table = table(path, &text)?;
    let base = table.get_ref().get("base").ok_or_else(|| {
        let what = "the machine, host or workload that the file changes";
        Error(format!("{path}: base is missing: {what}"))
    })?;
    match base.get_ref() {
        DeValue::String(base) => Ok(base.to_string()),
        _ => Err(at(
            path,
            &text,
            base.span(),
            "base must be a string".to_owned(),
        )),
    }
}

/// Reads a file that may be one of a machine, a host or a workload.
pub(super) fn contents(path: &str) -> Result<String, Error> {
    let unreadable = |error: &dyn std::fmt::Display| Error(format!("{path}: {error}"));
    let about = fs::metadata(path).map_err(|error| unreadable(&error))?;
    if !about.is_file() || about.len() > MOST_BYTES {
        return Err(unreadable(&format!(
            "must be a regular file of at most {MOST_BYTES} bytes"
        )));
    }
    fs::read_to_string(path).map_err(|error| unreadable(&error))
}

/// The error at a place in a file.
fn at(path: &str, text: &str, span: Range<usize>, why: String) -> Error {
    let line = 1 + text.as_bytes()[..span.start.min(text.len())]
        .iter()
        .filter(|byte| **byte == b'\n')
        .count();
    Error(format!("{path}:{line}: {why}"))
}

fn table<'t>(path: &str, text: &'t str) -> Result<Spanned<DeTable<'t>>, Error> {
    DeTable::parse(text).map_err(|error| {
        let span = error.span().unwrap_or(0..0);
        let what = match (error.message(), text.get(span.clone())) {
            ("duplicate key", Some(key)) => format!("{key} is there twice"),
            (message, _) => message.to_owned(),
        };
        at(path, text, span, what)
    })
}

/// Reads a file's content; `path` is for messages.
pub(super) fn parse<T: Spec>(path: &str, text: &str, bases: Bases<'_, T>) -> Result<T, Error> {
    let at = |span, why| at(path, text, span, why);
    let table = table(path, text)?;
    let (mut base, mut about, mut changes) = (None, None, Changes::default());
    let mut spans = HashMap::new();
    let mut entries: Vec<_> = table.get_ref().iter().collect();
    // In the order of the file, but the base first: it says what the file describes.
    entries.sort_by_key(|(key, _)| (key.get_ref() != "base", key.span().start));
    for (key, value) in entries {
        let span = key.span();
        let key = key.get_ref().as_ref();
        let string = || match value.get_ref() {
            DeValue::String(text) => Ok(text.as_ref()),
            _ => Err(at(value.span(), format!("{key} must be a string"))),
        };
        match key {
            "base" => base = Some(named(string()?, bases).map_err(|why| at(value.span(), why))?),
            "about" if string()?.contains(char::is_control) => {
                return Err(at(value.span(), "about must be one line".to_owned()));
            }
            "about" => about = Some(string()?.to_owned()),
            _ => {
                let shown = shown(value.get_ref());
                let quoted = matches!(value.get_ref(), DeValue::String(_));
                changes
                    .add::<T>(key, |kind| typed(kind, quoted, &shown), &shown)
                    .map_err(|why| at(span.clone(), why))?;
                spans.insert(key.to_owned(), span);
            }
        }
    }
    let base = base.ok_or_else(|| {
        let names: Vec<&str> = T::presets().iter().map(T::name).collect();
        let (what, names) = (T::WHAT, names.join(", "));
        Error(format!(
            "{path}: base is missing: the {what} that the file changes, one of {names}"
        ))
    })?;
    let about = about.unwrap_or_else(|| base.about().to_owned());
    changes.apply(base, about).map_err(|Refused { key, why }| {
        let span = key.and_then(|key| spans.get(key));
        match span {
            Some(span) => at(span.clone(), why),
            None => Error(format!("{path}: {why}")),
        }
    })
}

/// The value if it has the type that the kind has in a file: strings for times and words.
fn typed(kind: &Domain, quoted: bool, text: &str) -> Option<Value> {
    let wanted = matches!(kind, Domain::Time(..) | Domain::Word(_));
    (quoted == wanted).then(|| kind.parse(text, false))?
}

/// The value as text, without quotes.
fn shown<'a>(value: &'a DeValue<'_>) -> Cow<'a, str> {
    match value {
        DeValue::String(text) => Cow::Borrowed(text),
        DeValue::Integer(number) => Cow::Borrowed(number.as_str()),
        DeValue::Float(number) => Cow::Borrowed(number.as_str()),
        DeValue::Boolean(flag) => Cow::Owned(flag.to_string()),
        DeValue::Datetime(_) => Cow::Borrowed("a date"),
        DeValue::Array(_) => Cow::Borrowed("a list"),
        DeValue::Table(_) => Cow::Borrowed("a table"),
    }
}
