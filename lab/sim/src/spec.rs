//! Machines, hosts and workloads as text: presets, keys that change them, files.
//!
//! One list of keys for each ([`Spec::KEYS`]) serves files, command lines, [`toml()`] and the
//! documents. A value has a canonical name: its preset with the keys that differ, in the order of
//! the list. So a result names what it was simulated on without the file that described it.
//!
//! Each is a table of TOML, in which a change replaces the value of a key. An error is a text that
//! names the key and says what is valid, or else the line of a file that is not TOML.

mod key;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::Path;
use std::{fs, io};

use serde::Serialize;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

pub(crate) use key::keys;
pub use key::{Domain, Key};

/// Something that has presets, and keys that change them. It is serialised as a table with a value
/// for each key. One that can be renamed has its `name` and a description, `about`, there too.
pub trait Spec: Clone + DeserializeOwned + Serialize + 'static {
    /// The word for it in messages.
    const WHAT: &'static str;
    /// Its keys, in the order in which they are printed.
    const KEYS: &'static [&'static [Key]];
    /// The key of [`using_cores`](Self::using_cores), if it has that.
    const CORES: Option<&'static str> = None;

    /// Its presets.
    fn presets() -> &'static [Self];

    /// Its name.
    fn name(&self) -> &str;

    /// Its description.
    fn about(&self) -> &str;

    /// Limits of several keys: whether each holds, and a text with the names of the keys.
    fn rules(&self) -> Vec<(bool, &'static str)> {
        Vec::new()
    }

    /// The first limit that does not hold.
    fn broken_rule(&self) -> Option<&'static str> {
        self.rules()
            .into_iter()
            .find_map(|(holds, rule)| (!holds).then_some(rule))
    }

    /// Returns the part of it that has so many cores, with the same name.
    ///
    /// # Errors
    ///
    /// Says what would be valid.
    fn using_cores(&self, cores: &str) -> Result<Self, String> {
        Err(format!("a {} has no {cores} cores", Self::WHAT))
    }

    /// Returns all keys.
    fn keys() -> impl Iterator<Item = &'static Key> {
        Self::KEYS.iter().copied().flatten()
    }
}

/// Larger files are not what they are named as.
const MOST_BYTES: u64 = 1 << 20;

/// Bases beside the presets: their names, and how to get each.
pub type Bases<'a, T> = &'a [(&'static str, &'a dyn Fn() -> T)];

/// The preset of that name.
pub(crate) fn preset<T: Spec>(name: &str) -> Option<&'static T> {
    T::presets().iter().find(|preset| preset.name() == name)
}

/// The preset or the base of that name.
fn named<T: Spec>(name: &str, bases: Bases<'_, T>) -> Result<T, String> {
    let base = || bases.iter().find(|(other, _)| *other == name);
    let found = preset(name).cloned().or_else(|| Some(base()?.1()));
    found.ok_or_else(|| format!("unknown {} '{name}'; {}", T::WHAT, names(bases)))
}

/// The names of all presets and bases, as part of a message.
fn names<T: Spec>(bases: Bases<'_, T>) -> String {
    let presets = T::presets().iter().map(T::name);
    let names: Vec<&str> = presets.chain(bases.iter().map(|base| base.0)).collect();
    format!("the {}s are {}", T::WHAT, names.join(", "))
}

/// Returns what a preset with changed keys is: `NAME:KEY=VALUE:KEY=VALUE`. Times may be plain
/// numbers, which are nanoseconds.
pub fn parse<T: Spec>(text: &str) -> Result<T, String> {
    read_in(text, &[], |_| Err("no file is read here".to_owned()))
}

/// Returns `of` with another value of a key, which is read as [`parse`] reads it.
pub fn with<T: Spec>(of: &T, key: &str, value: &str) -> Result<T, String> {
    changed(of, None, [(key, value)])
}

/// As [`parse`], where the name may also be one of `bases`, or a file ([`is_file`]).
pub fn read<T: Spec>(text: &str, bases: Bases<'_, T>) -> Result<T, String> {
    read_in(text, bases, |name| contents(name.as_ref()))
}

/// As [`read`], where `contents` has the text of a file of that name.
pub fn read_in<T: Spec>(
    text: &str,
    bases: Bases<'_, T>,
    contents: impl FnOnce(&str) -> Result<String, String>,
) -> Result<T, String> {
    let mut words = text.split(':');
    let name = words.next().unwrap_or_default();
    let base = match is_file(name) {
        true => file(&contents(name)?, bases).map_err(|why| format!("{name}: {why}"))?,
        false => named(name, bases)?,
    };
    let pairs: Result<Vec<_>, &str> = words.map(|word| word.split_once('=').ok_or(word)).collect();
    match pairs {
        Ok(pairs) if pairs.is_empty() => Ok(base),
        Ok(pairs) => changed(&base, None, pairs).map_err(|why| format!("{text}: {why}")),
        Err(word) => Err(format!("{text}: '{word}' must be KEY=VALUE")),
    }
}

/// Whether a name is that of a file: it has a slash, or ends in `.toml`.
pub fn is_file(name: &str) -> bool {
    name.contains('/') || name.ends_with(".toml")
}

/// The text of such a file.
pub fn contents(path: &Path) -> Result<String, String> {
    let read = || match fs::metadata(path)? {
        about if about.is_file() && about.len() <= MOST_BYTES => fs::read_to_string(path),
        _ => Err(io::Error::other("must be a regular file of at most 1 MiB")),
    };
    read().map_err(|error| format!("{}: {error}", path.display()))
}

/// Returns the name of what such a text changes: a preset, or another base; of a file, its base.
/// It may not exist.
pub fn base(text: &str) -> Result<String, String> {
    let name = text.split(':').next().unwrap_or_default();
    if !is_file(name) {
        return Ok(name.to_owned());
    }
    let base = parsed(&contents(name.as_ref())?).and_then(|mut table| base_of(&mut table));
    base.map_err(|why| format!("{name}: {why}"))
}

fn parsed(text: &str) -> Result<Table, String> {
    text.parse::<Table>().map_err(|error| {
        let before = text.bytes().take(error.span().map_or(0, |span| span.start));
        let line = 1 + before.filter(|byte| *byte == b'\n').count();
        format!("line {line}: {}", error.message())
    })
}

fn base_of(table: &mut Table) -> Result<String, String> {
    let what = "the machine, host or workload that the file changes";
    take(table, "base")?.ok_or_else(|| format!("base is missing: {what}"))
}

/// Takes a line of text out of a table.
fn take(table: &mut Table, key: &str) -> Result<Option<String>, String> {
    match table.remove(key) {
        Some(Value::String(line)) if !line.contains(char::is_control) => Ok(Some(line)),
        None => Ok(None),
        _ => Err(format!("{key} must be a string of one line")),
    }
}

/// The machine, host or workload that a file describes.
fn file<T: Spec>(text: &str, bases: Bases<'_, T>) -> Result<T, String> {
    let mut table = parsed(text)?;
    let base = base_of(&mut table).map_err(|why| format!("{why}; {}", names(bases)))?;
    let about = take(&mut table, "about")?;
    let pairs = table.iter().map(|(key, value)| match value {
        // With its point: it is not a whole number.
        Value::Float(_) => (&**key, value.to_string()),
        _ => (&**key, shown(value)),
    });
    changed(&named(&base, bases)?, about, pairs)
}

/// Reads presets: a table for each. Its keys differ from those of the preset above that it names as
/// its base, if it names one.
///
/// # Panics
///
/// If the text has a mistake.
pub(crate) fn presets<T: Spec>(text: &str) -> Vec<T> {
    let mut presets = Table::new();
    for (name, own) in parsed(text).expect("the presets are TOML") {
        let mut own: Table = own.try_into().expect("a preset is a table");
        let base = own.remove("base");
        let is_known = |name: &str| name == "about" || T::keys().any(|key| key.name == name);
        let unknown = own.keys().find(|name| !is_known(name));
        assert_eq!(unknown, None, "a key of {name}");
        let base = base.map(|base| &presets[base.as_str().expect("a name")]);
        let mut preset = base.and_then(Value::as_table).cloned().unwrap_or_default();
        preset.extend(own);
        preset.insert("name".to_owned(), name.clone().into());
        presets.insert(name, preset.into());
    }
    let presets = presets.into_iter().map(|(_, preset)| preset.try_into());
    presets
        .collect::<Result<_, _>>()
        .expect("each preset has all keys")
}

/// Returns `base` with these values of keys. It has its canonical name, and says in its description
/// which keys have changed, unless `about` describes it.
fn changed<T: Spec, V: AsRef<str>>(
    base: &T,
    about: Option<String>,
    pairs: impl IntoIterator<Item = (impl AsRef<str>, V)>,
) -> Result<T, String> {
    let before = table(base);
    let (mut after, mut cores, mut given) = (before.clone(), None, BTreeSet::new());
    for (name, text) in pairs {
        let (name, text) = (name.as_ref().trim(), text.as_ref());
        if !given.insert(name.to_owned()) {
            return Err(format!("{name} is there twice"));
        }
        let key = T::keys().find(|key| key.name == name);
        match key.zip(after.get_mut(name)) {
            Some((Key { kind, .. }, value)) => {
                *value = kind.parse(text).ok_or_else(|| match text {
                    "" => format!("{name} must be {kind}"),
                    _ => format!("{name} must be {kind}, not {text}"),
                })?;
            }
            None if T::CORES == Some(name) => cores = Some(text.to_owned()),
            None => return Err(unknown(base, name)),
        }
    }
    let differing = differences::<T>(&before, &after);
    let about = about.unwrap_or_else(|| match &*differing {
        "" => base.about().to_owned(),
        some => format!("{}, with {}", base.about(), some.replace(':', ", ")),
    });
    after.insert("about".to_owned(), about.into());
    after.insert("name".to_owned(), canonical(base, &after).into());
    let changed: T = after
        .clone()
        .try_into()
        .expect("each key has a valid value");
    if let Some(rule) = changed.broken_rule() {
        let is_named = |key: &Key| rule.split([' ', ',']).any(|word| word == key.name);
        return Err(format!("{rule} ({})", joined::<T>(&after, is_named)));
    }
    match cores {
        Some(cores) => changed
            .using_cores(&cores)
            .map_err(|why| format!("cores {cores}: {why}")),
        None => Ok(changed),
    }
}

/// Returns the canonical name of what a preset has become: the preset's with the keys that differ.
pub fn name<T: Spec>(of: &T) -> String {
    canonical(of, &table(of))
}

/// Whether it has the key of that name.
pub fn has<T: Spec>(of: &T, key: &str) -> bool {
    table(of).contains_key(key)
}

fn table<T: Spec>(of: &T) -> Table {
    Table::try_from(of).expect("it is a table of values")
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        // Without the point of a whole number.
        Value::Float(number) => number.to_string(),
        other => other.to_string(),
    }
}

/// The keys that are `wanted`, with their values: `KEY=VALUE:KEY=VALUE`.
fn joined<T: Spec>(table: &Table, wanted: impl Fn(&Key) -> bool) -> String {
    let wanted = T::keys().filter(|key| wanted(key));
    let pairs = wanted.filter_map(|key| Some((key.name, shown(table.get(key.name)?))));
    let pairs: Vec<String> = pairs
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    pairs.join(":")
}

/// The keys that have another value in `after`, with that.
fn differences<T: Spec>(before: &Table, after: &Table) -> String {
    joined::<T>(after, |key| before.get(key.name) != after.get(key.name))
}

/// The name of the preset below `before`, with what differs in `after`.
fn canonical<T: Spec>(before: &T, after: &Table) -> String {
    // A measured base has no preset: its own values are the base.
    let base = preset(first_word(before)).unwrap_or(before);
    match &*differences::<T>(&table(base), after) {
        "" => base.name().to_owned(),
        some => format!("{}:{some}", base.name()),
    }
}

fn first_word<T: Spec>(of: &T) -> &str {
    of.name().split(':').next().unwrap_or_default()
}

/// The message for a key that does not exist.
fn unknown<T: Spec>(of: &T, name: &str) -> String {
    let table = table(of);
    let keys = T::keys().filter(|key| table.contains_key(key.name));
    let keys: Vec<&str> = keys.map(|key| key.name).chain(T::CORES).collect();
    let (meant, of, all) = (meant(name, &keys), first_word(of), keys.join(", "));
    match &*all {
        "" => format!("unknown key '{name}'; {of} has no keys"),
        _ => format!("unknown key '{name}'{meant} keys of {of} are {all}"),
    }
}

/// The question whether a name means one of `names` that is like it, if there is one, and the
/// article of what follows.
pub fn meant(name: &str, names: &[&str]) -> String {
    let near = |other: &&&str| strsim::jaro_winkler(name, other);
    let nearest = names.iter().max_by(|a, b| near(a).total_cmp(&near(b)));
    let begun = names.iter().filter(|other| other.starts_with(name));
    match nearest {
        // The beginning of several names means none of them.
        Some(other) if near(&other) > 0.8 && begun.count() < 2 => {
            format!("; did you mean '{other}'? The")
        }
        _ => "; the".to_owned(),
    }
}

/// Returns a file that describes `of`: every key with its meaning and its range.
pub fn toml<T: Spec>(of: &T) -> String {
    let (table, base, about) = (table(of), first_word(of), Value::from(of.about()));
    let keys = T::keys().filter_map(|Key { name, about, kind }| {
        let value = table.get(*name)?;
        Some(format!("\n# {about}: {kind}\n{name} = {value}\n"))
    });
    let keys: String = keys.collect();
    format!(
        "# Keys that a file leaves out are those of its base.\nbase = \"{base}\"\n\
         about = {about}\n{keys}"
    )
}
