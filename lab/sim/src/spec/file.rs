//! Files in TOML: those of users, and the presets.

use std::borrow::Cow;
use std::fs;
use std::ops::Range;

use toml::de::{DeTable, DeValue};

use super::{Bases, Error, Fault, Spec, assign, changed, named, names};

/// Larger files are not what they are named as.
const MOST_BYTES: u64 = 1 << 20;

/// Whether a name is that of a file: it has a slash, or ends in `.toml`.
pub fn is_file(name: &str) -> bool {
    name.contains('/') || name.ends_with(".toml")
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

/// Returns what `read` makes of the table that is the text of a file. `path` is for messages, which
/// have the line of the key that has the blame.
fn read<R>(
    path: &str,
    text: &str,
    read: impl FnOnce(&DeTable<'_>) -> Result<R, Fault>,
) -> Result<R, Error> {
    let at = |span: Range<usize>, why: String| {
        let before = &text.as_bytes()[..span.start.min(text.len())];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        Error(format!("{path}:{line}: {why}"))
    };
    let table = DeTable::parse(text).map_err(|error| {
        let span = error.span().unwrap_or(0..0);
        let what = match (error.message(), text.get(span.clone())) {
            ("duplicate key", Some(key)) => format!("{key} is there twice"),
            (message, _) => message.to_owned(),
        };
        at(span, what)
    })?;
    read(table.get_ref()).map_err(|Fault { key, why }| {
        let entry = key.and_then(|key| table.get_ref().get_key_value(key.as_str()));
        match entry {
            Some((key, _)) => at(key.span(), why),
            None => Error(format!("{path}: {why}")),
        }
    })
}

/// Reads a file's content.
pub(super) fn parse<T: Spec>(path: &str, text: &str, bases: Bases<'_, T>) -> Result<T, Error> {
    read(path, text, |table| {
        let base = base_of(table).map_err(|Fault { key, why }| {
            let why = format!("{why}; the {}s are {}", T::WHAT, names(bases));
            Fault { key, why }
        })?;
        let base = named(base, bases).map_err(|why| Fault::of("base", why))?;
        let (about, pairs) = entries(table)?;
        let pairs = pairs.iter().map(|(key, text)| (*key, text.as_ref()));
        changed(base, about, false, pairs)
    })
}

/// Returns the name of what a file changes: a preset, or another base.
pub(super) fn base(path: &str) -> Result<String, Error> {
    read(path, &contents(path)?, |table| Ok(base_of(table)?.into()))
}

fn base_of<'t>(table: &'t DeTable<'_>) -> Result<&'t str, Fault> {
    let base = table.get("base").ok_or_else(|| Fault {
        key: None,
        why: "base is missing: the machine, host or workload that the file changes".to_owned(),
    })?;
    let base = base.get_ref().as_str();
    base.ok_or_else(|| Fault::of("base", "base must be a string".to_owned()))
}

/// Reads presets: a table for each. Its keys differ from those of the preset above that it names as
/// its base, if it names one.
///
/// # Panics
///
/// If the text has a mistake.
pub(crate) fn presets<T: Spec + Default>(text: &str) -> Vec<T> {
    let mut presets: Vec<T> = Vec::new();
    let all = read("presets", text, |tables| {
        for (name, table) in in_order(tables) {
            let table = table.as_table().expect("each preset is a table");
            let base = |name| presets.iter().find(|preset| preset.name() == name);
            let mut preset = match base_of(table) {
                Ok(name) => base(name).expect("the base is above").clone(),
                Err(_) => T::default(),
            };
            let (about, pairs) = entries(table)?;
            preset.rename(name.to_owned(), about.unwrap_or_default());
            for (key, text) in pairs {
                let changed = assign(&mut preset, key, &text, false);
                changed.map_err(|why| Fault::of(name, why))?;
            }
            presets.push(preset);
        }
        Ok(())
    });
    all.expect("a test reads the presets");
    presets
}

/// The description that a table has, and its keys with their values.
type Entries<'t> = (Option<String>, Vec<(&'t str, Cow<'t, str>)>);

fn entries<'t>(table: &'t DeTable<'_>) -> Result<Entries<'t>, Fault> {
    let mut about = None;
    let mut pairs = Vec::new();
    for (key, value) in in_order(table) {
        match (key, shown(value)) {
            ("base", _) => {}
            ("about", text) if text.contains(char::is_control) => {
                return Err(Fault::of(key, "about must be one line".to_owned()));
            }
            ("about", text) => about = Some(text.into_owned()),
            (_, text) => pairs.push((key, text)),
        }
    }
    Ok((about, pairs))
}

fn in_order<'t>(table: &'t DeTable<'t>) -> impl Iterator<Item = (&'t str, &'t DeValue<'t>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    let entries = entries.into_iter();
    entries.map(|(key, value)| (key.get_ref().as_ref(), value.get_ref()))
}

/// The value as text, without quotes.
fn shown<'t>(value: &'t DeValue<'_>) -> Cow<'t, str> {
    match value {
        DeValue::String(text) => Cow::Borrowed(text),
        // With its radix, since all keys are decimal.
        DeValue::Integer(number) => Cow::Owned(number.to_string()),
        DeValue::Float(number) => Cow::Borrowed(number.as_str()),
        DeValue::Boolean(flag) => Cow::Owned(flag.to_string()),
        other => Cow::Borrowed(other.type_str()),
    }
}
