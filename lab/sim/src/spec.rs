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
pub(crate) use file::presets;
pub use key::{Domain, Field, Key, Words};

/// Something that has presets, and keys that change them.
pub trait Spec: Clone + 'static {
    /// The word for it in messages.
    const WHAT: &'static str;
    /// Limits that concern several keys.
    const RULES: &'static [Rule<Self>] = &[];
    /// Keys that are not fields; [`narrow`](Self::narrow) takes their values.
    const NARROWING: &'static [&'static str] = &[];
    /// Switches of former versions, and the key of each that is now 0 for none.
    const FORMER: &'static [(&'static str, &'static str)] = &[];
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

/// A limit that concerns several keys.
#[derive(Clone, Copy, Debug)]
pub struct Rule<T> {
    /// The keys. The first whose value was given has the blame.
    pub keys: &'static [&'static str],
    /// The limit in words.
    pub what: &'static str,
    /// Whether it holds.
    pub holds: fn(&T) -> bool,
}

/// The first rule that does not hold.
pub(crate) fn broken_rule<T: Spec>(of: &T) -> Option<&'static Rule<T>> {
    T::RULES.iter().find(|rule| !(rule.holds)(of))
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

/// Why a text describes nothing.
struct Fault {
    /// The key that has the blame, if one that was given has.
    key: Option<String>,
    why: String,
}

impl Fault {
    fn of(key: &str, why: String) -> Self {
        let key = Some(key.to_owned());
        Self { key, why }
    }
}

/// Bases beside the presets: their names, and how to get each.
pub type Bases<'a, T> = &'a [(&'static str, &'a dyn Fn() -> T)];

/// The preset of that name.
pub(crate) fn preset<T: Spec>(name: &str) -> Option<&'static T> {
    T::presets().iter().find(|preset| preset.name() == name)
}

/// The preset or the base of that name.
fn named<T: Spec>(name: &str, bases: Bases<'_, T>) -> Result<T, String> {
    let base = || bases.iter().find(|(other, _)| *other == name);
    preset(name)
        .cloned()
        .or_else(|| base().map(|(_, get)| get()))
        .ok_or_else(|| {
            let (what, names) = (T::WHAT, names(bases));
            format!("unknown {what} '{name}'; the {what}s are {names}")
        })
}

/// The names of all presets and bases.
fn names<T: Spec>(bases: Bases<'_, T>) -> String {
    let presets = T::presets().iter().map(T::name);
    let names: Vec<&str> = presets.chain(bases.iter().map(|(name, _)| *name)).collect();
    names.join(", ")
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
    changed(of, None, true, [(key, value)]).map_err(|fault| Error(fault.why))
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
    overridden(text, |name| match is_file(name) {
        true => file::parse(name, &contents(name)?, bases),
        false => named(name, bases).map_err(Error),
    })
}

/// Returns the name of what such a text changes: a preset, or another base; of a file, its base.
/// It may not exist.
///
/// # Errors
///
/// The file is unreadable, is not TOML, or has no base that is a string.
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
    let wrong = |why: String| Error(format!("{text}: {why}"));
    let mut parts = text.split(':');
    let base = base(parts.next().unwrap_or_default())?;
    let pairs = parts.map(|part| match part.split_once('=') {
        Some((key, value)) => Ok((key.trim(), value)),
        None => Err(wrong(format!("'{part}' must be KEY=VALUE"))),
    });
    let pairs: Vec<_> = pairs.collect::<Result<_, _>>()?;
    changed(base, None, true, pairs).map_err(|fault| wrong(fault.why))
}

/// Returns `base` with these values of keys. It has its canonical name, and says in its description
/// which keys have changed, unless `about` describes it. With `bare`, times may be plain numbers.
fn changed<'t, T: Spec>(
    base: T,
    about: Option<String>,
    bare: bool,
    pairs: impl IntoIterator<Item = (&'t str, &'t str)>,
) -> Result<T, Fault> {
    let mut changed = base.clone();
    let (mut given, mut narrowing) = (Vec::new(), Vec::new());
    for (name, text) in pairs {
        let blame = |why| Fault::of(name, why);
        if given.contains(&name) {
            return Err(blame(format!("{name} is there twice")));
        }
        given.push(name);
        match T::NARROWING.contains(&name) {
            true => narrowing.push((name, text)),
            false => assign(&mut changed, name, text, bare).map_err(blame)?,
        }
    }
    if let Some(rule) = broken_rule(&changed) {
        let named = T::keys().iter().filter(|key| rule.keys.contains(&key.name));
        let value = |key: &Key<T>| Some(format!("{} is {}", key.name, key.shown(&changed)?));
        let values = named.filter_map(value).collect::<Vec<_>>().join(", ");
        let first = rule.keys.iter().find(|key| given.contains(key));
        return Err(Fault {
            key: first.map(|key| (*key).to_owned()),
            why: format!("{} ({values})", rule.what),
        });
    }
    let about = about.unwrap_or_else(|| match differences(&base, &changed).as_str() {
        "" => base.about().to_owned(),
        some => format!("{}, with {}", base.about(), some.replace(':', ", ")),
    });
    changed.rename(canonical(&base, &changed), about);
    for (key, value) in narrowing {
        let refused = |why| Fault::of(key, format!("{key} {value}: {why}"));
        changed = changed.narrow(value).map_err(refused)?;
    }
    Ok(changed)
}

/// Changes a key.
fn assign<T: Spec>(of: &mut T, name: &str, text: &str, bare: bool) -> Result<(), String> {
    let key = T::keys().iter().find(|key| key.name == name);
    key.ok_or_else(|| unknown::<T>(name))?.set(of, text, bare)
}

/// Returns the canonical name of what a preset has become: the preset's with the keys that differ.
pub fn name<T: Spec>(of: &T) -> String {
    canonical(of, of)
}

/// The preset below a name, with what differs from it.
fn canonical<T: Spec>(before: &T, changed: &T) -> String {
    let base = before.name().split(':').next().unwrap_or_default();
    // A measured base has no preset: its own values are the base.
    let (base, preset) = preset(base).map_or((before.name(), before), |preset| (base, preset));
    match differences(preset, changed) {
        none if none.is_empty() => base.to_owned(),
        some => format!("{base}:{some}"),
    }
}

fn differences<T: Spec>(base: &T, changed: &T) -> String {
    let differing = T::keys().iter().filter_map(|key| {
        let value = key.shown(changed)?;
        (key.get(base) != key.get(changed)).then(|| format!("{}={value}", key.name))
    });
    differing.collect::<Vec<_>>().join(":")
}

/// The message for a key that does not exist.
fn unknown<T: Spec>(name: &str) -> String {
    let keys = T::keys().iter().map(|key| key.name);
    let names: Vec<&str> = keys.chain(T::NARROWING.iter().copied()).collect();
    let former = T::FORMER.iter().find(|(former, _)| *former == name);
    let meant = match former {
        Some((_, key)) => format!("; did you mean '{key}', 0 for none? The"),
        None => meant(name, &names),
    };
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
        let Some(value) = key.shown(of) else {
            continue;
        };
        let Key {
            name, about, kind, ..
        } = key;
        let range = match kind {
            Domain::Flag => String::new(),
            _ => format!(": {kind}"),
        };
        let quote = match kind {
            Domain::Time(..) | Domain::Word(_) => "\"",
            _ => "",
        };
        // Writing to a string does not fail.
        let _ = write!(text, "\n# {about}{range}\n{name} = {quote}{value}{quote}\n");
    }
    text
}
