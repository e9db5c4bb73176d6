//! Machines, hosts and workloads as text: presets, keys that change them, files.
//!
//! One list of keys for each ([`Spec::keys`]) serves files, command lines, [`toml()`] and the
//! documents. A value has a canonical name: its preset with the keys that differ, in the order of
//! the list. So a result names what it was simulated on without the file that described it.

mod file;
mod key;
#[cfg(test)]
mod tests;

use std::fmt::Write;

pub use file::is_file;
pub use key::{Domain, Field, Key, Value};
pub(crate) use key::{Part, words};

/// Something that has presets, and keys that change them.
pub trait Spec: Clone + 'static {
    /// The word for it in messages.
    const WHAT: &'static str;
    /// Keys that are not fields; [`narrow`](Self::narrow) takes their values.
    const NARROWING: &'static [&'static str] = &[];
    /// Its keys, in the order in which they are printed and assigned.
    fn keys() -> &'static [Key<Self>];
    /// Its presets.
    fn presets() -> &'static [Self];
    /// Its name.
    fn name(&self) -> &str;
    /// Its description.
    fn about(&self) -> &str;
    /// Changes its name and its description.
    fn rename(&mut self, name: String, about: String);
    /// Checks limits that concern several keys.
    ///
    /// # Errors
    ///
    /// Says what is wrong, and between which keys.
    fn check(&self) -> Result<(), Contradiction>;
    /// Returns the part of it that a narrowing key leaves. It keeps its name.
    ///
    /// # Errors
    ///
    /// Says what would be valid.
    fn narrow(self, value: &str) -> Result<Self, String> {
        let _ = value;
        Ok(self)
    }
}

/// Values that are valid one by one, but not together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// The keys whose values they are. The first that was given has the blame.
    pub keys: &'static [&'static str],
    /// The rule that they break.
    pub why: String,
}

/// Text that names no machine, host or workload.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

impl Error {
    /// An error with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

/// Bases beside the presets: their names, and how to get each.
pub type Bases<'a, T> = &'a [(&'static str, &'a dyn Fn() -> T)];

/// The preset or the base of that name.
fn named<T: Spec>(name: &str, bases: Bases<'_, T>) -> Result<T, String> {
    let preset = T::presets().iter().find(|preset| preset.name() == name);
    let base = || bases.iter().find(|(other, _)| *other == name);
    preset
        .cloned()
        .or_else(|| base().map(|(_, get)| get()))
        .ok_or_else(|| {
            let presets = T::presets().iter().map(T::name);
            let names: Vec<&str> = presets.chain(bases.iter().map(|(name, _)| *name)).collect();
            let (what, names) = (T::WHAT, names.join(", "));
            format!("unknown {what} '{name}'; the {what}s are {names}")
        })
}

/// Values of keys, checked one by one.
#[derive(Debug, Default)]
struct Changes {
    /// Indices into the keys.
    values: Vec<(usize, Value)>,
    /// Narrowing keys and their values.
    narrowing: Vec<(&'static str, String)>,
}

/// Why values do not go with each other or with what they change.
struct Refused {
    /// The key whose value it is, if it is one of those that were given.
    key: Option<&'static str>,
    why: String,
}

/// Returns what a preset with changed keys is: `NAME:KEY=VALUE:KEY=VALUE`. Times may be plain
/// numbers, which are nanoseconds.
///
/// # Errors
///
/// Names the unknown preset or key, or says what a value must be.
pub fn parse<T: Spec>(text: &str) -> Result<T, Error> {
    overridden(text, |name| named(name, &[]).map_err(Error))
}

/// Returns `of` with another value of a key, which is read as [`parse`] reads it.
///
/// # Errors
///
/// Names the unknown key, or says what its value must be.
pub fn with<T: Spec>(of: T, key: &str, value: &str) -> Result<T, Error> {
    changed(of, [(key, value)]).map_err(Error)
}

/// As [`parse`], where the name may also be one of `bases`, or a file ([`is_file`]).
///
/// # Errors
///
/// Those of [`parse`]. In a file they have its name and the line. A file may be unreadable, too.
pub fn read<T: Spec>(text: &str, bases: Bases<'_, T>) -> Result<T, Error> {
    read_in(text, bases, file::contents)
}

/// As [`read`], where `contents` has the text of a file of that name.
///
/// # Errors
///
/// Those of [`read`].
pub fn read_in<T: Spec>(
    text: &str,
    bases: Bases<'_, T>,
    contents: impl FnOnce(&str) -> Result<String, Error>,
) -> Result<T, Error> {
    overridden(text, |name| {
        if is_file(name) {
            file::parse(name, &contents(name)?, bases)
        } else {
            named(name, bases).map_err(Error)
        }
    })
}

/// Returns the name of what such a text changes: a preset, or another base; of a file, its base.
/// It may not exist.
///
/// # Errors
///
/// The file is unreadable, is not TOML, or has no base.
pub fn base(text: &str) -> Result<String, Error> {
    let name = text.split(':').next().unwrap_or_default();
    match is_file(name) {
        true => file::base(name),
        false => Ok(name.to_owned()),
    }
}

fn overridden<T: Spec>(
    text: &str,
    base: impl FnOnce(&str) -> Result<T, Error>,
) -> Result<T, Error> {
    let mut parts = text.split(':');
    let base = base(parts.next().unwrap_or_default())?;
    let pairs = parts.map(|part| match part.split_once('=') {
        Some((key, value)) => Ok((key.trim(), value)),
        None => Err(format!("'{part}' must be KEY=VALUE")),
    });
    let pairs: Result<Vec<_>, String> = pairs.collect();
    let whole = pairs.and_then(|pairs| changed(base, pairs));
    whole.map_err(|why| Error(format!("{text}: {why}")))
}

/// `of` with these values of keys.
fn changed<'t, T: Spec>(
    of: T,
    pairs: impl IntoIterator<Item = (&'t str, &'t str)>,
) -> Result<T, String> {
    let mut changes = Changes::default();
    for (key, value) in pairs {
        changes.add::<T>(key, |kind| kind.parse(value, true), value)?;
    }
    let about = of.about().to_owned();
    changes.apply(of, about).map_err(|refused| refused.why)
}

impl Changes {
    /// Adds the value of a key, as `parse` reads it; `shown` is the value for a message.
    fn add<T: Spec>(
        &mut self,
        name: &str,
        parse: impl FnOnce(&Domain) -> Option<Value>,
        shown: &str,
    ) -> Result<(), String> {
        let twice = || Err(format!("{name} is there twice"));
        if let Some(narrowing) = T::NARROWING.iter().find(|key| **key == name) {
            if self.narrowing.iter().any(|(other, _)| other == narrowing) {
                return twice();
            }
            self.narrowing.push((narrowing, shown.to_owned()));
            return Ok(());
        }
        let Some(index) = T::keys().iter().position(|key| key.name == name) else {
            return Err(unknown::<T>(name));
        };
        let kind = &T::keys()[index].kind;
        let value = parse(kind).ok_or_else(|| match kind {
            Domain::Time(..) if kind.parse(shown, true).is_some() => {
                format!("{name} needs a unit, as in \"{shown}ns\"")
            }
            _ if shown.is_empty() => format!("{name} must be {kind}"),
            _ => format!("{name} must be {kind}, not {shown}"),
        })?;
        if self.values.iter().any(|(other, _)| *other == index) {
            return twice();
        }
        self.values.push((index, value));
        Ok(())
    }

    /// Returns `base` with these values. It has its canonical name, and says in its description
    /// which keys have changed.
    fn apply<T: Spec>(mut self, base: T, about: String) -> Result<T, Refused> {
        if self.values.is_empty() && self.narrowing.is_empty() && about == base.about() {
            return Ok(base);
        }
        // A key that has the part of another precedes it.
        self.values.sort_by_key(|(index, _)| *index);
        let mut changed = base;
        let before = changed.clone();
        for &(index, value) in &self.values {
            let key = &T::keys()[index];
            key.set(&mut changed, value).map_err(|why| Refused {
                key: Some(key.name),
                why,
            })?;
        }
        changed
            .check()
            .map_err(|contradiction| self.refused(&changed, &contradiction))?;
        let differences = differences(&before, &changed);
        let name = canonical(&before, &changed);
        let about = match differences.as_str() {
            _ if about != before.about() => about,
            "" => about,
            some => format!("{about}, with {}", some.replace(':', ", ")),
        };
        changed.rename(name, about);
        for (key, value) in &self.narrowing {
            changed = changed.narrow(value).map_err(|why| Refused {
                key: Some(key),
                why: format!("{key} {value}: {why}"),
            })?;
        }
        Ok(changed)
    }

    /// The refusal of values of `of` that contradict each other, with all of them.
    fn refused<T: Spec>(&self, of: &T, contradiction: &Contradiction) -> Refused {
        let Contradiction { keys, why } = contradiction;
        let named = || T::keys().iter().filter(|key| keys.contains(&key.name));
        let values = named().filter_map(|key| Some(format!("{} is {}", key.name, key.get(of)?)));
        let values = values.collect::<Vec<_>>().join(", ");
        let given = |key: &&str| {
            let mut given = self.values.iter().map(|(index, _)| T::keys()[*index].name);
            given.any(|name| name == *key)
        };
        Refused {
            key: keys.iter().copied().find(given),
            why: format!("{why} ({values})"),
        }
    }
}

/// Returns the canonical name of what a preset has become: the preset's with the keys that differ.
pub fn name<T: Spec>(of: &T) -> String {
    canonical(of, of)
}

/// The preset below a name, with what differs from it.
fn canonical<T: Spec>(before: &T, changed: &T) -> String {
    let base = before.name().split(':').next().unwrap_or_default();
    let preset = T::presets().iter().find(|preset| preset.name() == base);
    // A measured base has no preset: its own values are the base.
    let (base, preset) = match preset {
        Some(preset) => (base, preset),
        None => (before.name(), before),
    };
    match differences(preset, changed) {
        none if none.is_empty() => base.to_owned(),
        some => format!("{base}:{some}"),
    }
}

fn differences<T: Spec>(base: &T, changed: &T) -> String {
    let differing = T::keys().iter().filter_map(|key| {
        let value = key.get(changed)?;
        (key.get(base) != Some(value)).then(|| format!("{}={value}", key.name))
    });
    differing.collect::<Vec<_>>().join(":")
}

/// The message for a key that does not exist.
fn unknown<T: Spec>(name: &str) -> String {
    let keys = T::keys().iter().map(|key| key.name);
    let names: Vec<&str> = keys.chain(T::NARROWING.iter().copied()).collect();
    let meant = meant(name, &names);
    format!(
        "unknown key '{name}'{meant} keys of a {} are {}",
        T::WHAT,
        names.join(", ")
    )
}

/// The question whether a name means one of `names` that is like it, if there is one, and the
/// article of what follows.
pub fn meant(name: &str, names: &[&str]) -> String {
    let near = |other: &&&str| strsim::jaro_winkler(name, other);
    let nearest = names.iter().max_by(|a, b| near(a).total_cmp(&near(b)));
    match nearest {
        Some(other) if near(&other) > 0.8 => format!("; did you mean '{other}'? The"),
        _ => "; the".to_owned(),
    }
}

/// Returns a file that describes `of`: every key with its meaning and its range.
pub fn toml<T: Spec>(of: &T) -> String {
    let name = of.name().split(':').next().unwrap_or_default();
    let mut text = format!(
        "# Keys that a file leaves out are those of its base.\nbase = \"{name}\"\nabout = \"{}\"\n",
        of.about().replace('\\', "\\\\").replace('"', "\\\"")
    );
    for key in T::keys() {
        let Some(value) = key.get(of) else {
            continue;
        };
        let value = match value {
            Value::Time(_) | Value::Word(_) => format!("\"{value}\""),
            _ => value.to_string(),
        };
        let range = match key.kind {
            Domain::Flag => String::new(),
            kind => format!(": {kind}"),
        };
        // Writing to a string does not fail.
        let _ = write!(text, "\n# {}{range}\n{} = {value}\n", key.about, key.name);
    }
    text
}
