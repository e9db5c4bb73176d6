//! Keys, the kinds of their values, and the fields behind them.

use std::fmt;

use super::Spec;
use crate::time::Time;

/// A key of a machine, a host or a workload.
#[derive(Clone, Copy, Debug)]
pub struct Key<T> {
    /// Its name.
    pub name: &'static str,
    /// Its meaning.
    pub about: &'static str,
    /// Its valid values.
    pub kind: Domain,
    field: Access<T>,
}

/// The field of a key, unless it has no such part.
type Access<T> = fn(&mut T) -> Option<&mut dyn Field>;

/// The valid values of a key; numbers have a range, ends included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Domain {
    /// A time.
    Time(Time, Time),
    /// A whole number.
    Count(u64, u64),
    /// Any number.
    Share(f64, f64),
    /// Yes or no.
    Flag,
    /// One of several words.
    Word(&'static [&'static str]),
}

/// A field that a key can read and change. Its value is a number: of picoseconds for a time, 0 or 1
/// for a flag, the index of a word.
pub trait Field {
    /// Returns its value, as one of that kind.
    fn value(&self, kind: &Domain) -> f64;
    /// Changes it to a valid value of that kind.
    fn assign(&mut self, kind: &Domain, value: f64);
}

impl<T: Spec> Key<T> {
    /// A key of any kind.
    pub const fn new(
        name: &'static str,
        about: &'static str,
        kind: Domain,
        field: Access<T>,
    ) -> Self {
        Self {
            name,
            about,
            kind,
            field,
        }
    }

    /// Returns its value, unless there is no such part.
    pub fn get(&self, of: &T) -> Option<f64> {
        (self.field)(&mut of.clone()).map(|field| field.value(&self.kind))
    }

    /// Returns the text of its value, unless there is no such part.
    pub(super) fn shown(&self, of: &T) -> Option<String> {
        self.get(of).map(|value| self.kind.show(value))
    }

    /// Changes it to the value that `text` is. With `bare`, a time may be a plain number, of
    /// nanoseconds.
    pub(super) fn set(&self, of: &mut T, text: &str, bare: bool) -> Result<(), String> {
        let Self { name, kind, .. } = self;
        let value = kind.parse(text, bare).ok_or_else(|| match kind {
            _ if text.is_empty() => format!("{name} must be {kind}"),
            Domain::Time(..) if kind.parse(text, true).is_some() => {
                format!("{name} needs a unit, as in \"{text}ns\"")
            }
            _ => format!("{name} must be {kind}, not {text}"),
        })?;
        match (self.field)(of) {
            Some(field) => field.assign(kind, value),
            None => return Err(self.missing(of)),
        }
        Ok(())
    }

    /// Why `of` has no such key.
    fn missing(&self, of: &T) -> String {
        let keys = T::keys().iter().filter(|key| key.get(of).is_some());
        let keys: Vec<&str> = keys.map(|key| key.name).collect();
        let keys = match keys.as_slice() {
            [] => "none".to_owned(),
            keys => keys.join(", "),
        };
        let (key, name, what) = (self.name, of.name(), T::WHAT);
        format!("the {what} {name} has no key '{key}'; it has {keys}")
    }
}

/// Units of time in picoseconds.
const UNITS: [(&str, f64); 5] = [
    ("ps", 1.0),
    ("ns", 1e3),
    ("us", 1e6),
    ("ms", 1e9),
    ("s", 1e12),
];

fn time(text: &str, bare: bool) -> Option<f64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let scale = match &text[digits.len()..] {
        "" if bare => 1e3,
        unit => UNITS.iter().find(|(name, _)| *name == unit)?.1,
    };
    let number: f64 = digits.trim_end().parse().ok()?;
    Some((number * scale).round())
}

impl Domain {
    /// Returns its least and its largest value.
    fn range(&self) -> (f64, f64) {
        match *self {
            Self::Time(least, most) => (least.as_ps() as f64, most.as_ps() as f64),
            Self::Count(least, most) => (least as f64, most as f64),
            Self::Share(least, most) => (least, most),
            Self::Flag => (0.0, 1.0),
            Self::Word(words) => (0.0, (words.len() - 1) as f64),
        }
    }

    /// Reads a value. `None` if it is not of this kind, or out of range.
    fn parse(&self, text: &str, bare: bool) -> Option<f64> {
        let text = text.trim();
        let value = match self {
            Self::Time(..) => time(text, bare)?,
            Self::Count(..) => text.parse::<u64>().ok()? as f64,
            Self::Share(..) => text.parse().ok()?,
            Self::Flag => f64::from(text.parse::<bool>().ok()?),
            Self::Word(words) => words.iter().position(|word| *word == text)? as f64,
        };
        let (least, most) = self.range();
        // Adding zero makes minus zero plus zero: one value, one name.
        (least..=most).contains(&value).then_some(value + 0.0)
    }

    /// Returns the text of a value: a time in the largest unit of which it has at least one.
    pub(super) fn show(&self, value: f64) -> String {
        match self {
            Self::Time(..) => {
                let fits = UNITS[1..].iter().rfind(|(_, scale)| value >= *scale);
                let (unit, scale) = fits.unwrap_or(&UNITS[1]);
                format!("{}{unit}", value / scale)
            }
            Self::Count(..) | Self::Share(..) => value.to_string(),
            Self::Flag => (value != 0.0).to_string(),
            Self::Word(words) => words[value as usize].to_owned(),
        }
    }
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers = match self {
            Self::Time(..) => "time",
            Self::Count(..) => "whole number",
            Self::Share(..) => "number",
            Self::Flag => return f.write_str("true or false"),
            Self::Word(words) => return write!(f, "one of {}", words.join(", ")),
        };
        let (least, most) = self.range();
        let (least, most) = (self.show(least), self.show(most));
        write!(f, "a {numbers} from {least} to {most}")
    }
}

/// Fields of which a key is the value.
macro_rules! fields {
    ($($type:ty: $field:ident = $value:expr, $number:ident = $assigned:expr;)+) => {$(
        impl Field for $type {
            fn value(&self, _: &Domain) -> f64 {
                let $field = *self;
                $value
            }

            fn assign(&mut self, _: &Domain, $number: f64) {
                *self = $assigned;
            }
        }
    )+};
}

fields! {
    Time: time = time.as_ps() as f64, ps = Self::ps(ps as u64);
    u64: count = count as f64, number = number as Self;
    usize: count = count as f64, number = number as Self;
    bool: flag = f64::from(flag), number = number != 0.0;
    Option<Time>: time = time.map_or(0.0, |time| time.as_ps() as f64),
        ps = (ps > 0.0).then(|| Time::ps(ps as u64));
}

/// A number, or nanoseconds where the key is a time.
impl Field for f64 {
    fn value(&self, kind: &Domain) -> f64 {
        match kind {
            Domain::Time(..) => Time::from_ns(*self).as_ps() as Self,
            _ => *self,
        }
    }

    fn assign(&mut self, kind: &Domain, value: f64) {
        *self = match kind {
            Domain::Time(..) => value / 1e3,
            _ => value,
        };
    }
}

/// An enumeration whose values are words.
pub trait Words: Copy + PartialEq + 'static {
    /// Its values, and their words in the same order.
    const ALL: &'static [Self];
    const WORDS: &'static [&'static str];
}

impl<W: Words> Field for W {
    fn value(&self, _: &Domain) -> f64 {
        let index = Self::ALL.iter().position(|value| value == self);
        index.expect("the list has all values") as f64
    }

    fn assign(&mut self, _: &Domain, value: f64) {
        *self = Self::ALL[value as usize];
    }
}
