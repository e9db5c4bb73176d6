//! Keys, the kinds of their values, and the fields behind them.

use std::fmt;

use super::Spec;
use crate::time::Time;

/// A key of a machine, a host or a workload.
#[derive(Clone, Copy)]
pub struct Key<T> {
    /// Its name.
    pub name: &'static str,
    /// Its meaning.
    pub about: &'static str,
    /// Its valid values.
    pub kind: Domain,
    /// The key that has to be true for this one to exist.
    pub part: Option<&'static str>,
    field: Access<T>,
}

/// The field of a key, unless it has no such part.
type Access<T> = fn(&mut T) -> Option<&mut dyn Field>;

impl<T> fmt::Debug for Key<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Key").field(&self.name).finish()
    }
}

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

/// A key's value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// See [`Domain::Time`].
    Time(Time),
    /// See [`Domain::Count`].
    Count(u64),
    /// See [`Domain::Share`].
    Share(f64),
    /// See [`Domain::Flag`].
    Flag(bool),
    /// See [`Domain::Word`].
    Word(&'static str),
}

/// A field that a key can read and change.
pub trait Field {
    /// Returns its value, as one of that kind.
    fn value(&self, kind: &Domain) -> Value;
    /// Changes it. A value of another kind changes nothing.
    fn assign(&mut self, value: Value);
}

impl<T: Clone> Key<T> {
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
            part: None,
            field,
        }
    }

    /// The same, which exists only if the flag `part` is true.
    pub(crate) const fn of(self, part: &'static str) -> Self {
        Self {
            part: Some(part),
            ..self
        }
    }

    /// Returns its value, unless there is no such part.
    pub fn get(&self, of: &T) -> Option<Value> {
        (self.field)(&mut of.clone()).map(|field| field.value(&self.kind))
    }
}

impl<T: Spec> Key<T> {
    /// Changes it.
    pub(super) fn set(&self, of: &mut T, value: Value) -> Result<(), String> {
        let Some(field) = (self.field)(of) else {
            return Err(self.missing(of));
        };
        field.assign(value);
        Ok(())
    }

    /// Why `of` has no such key.
    fn missing(&self, of: &T) -> String {
        if let Some(part) = self.part {
            return format!("{} needs {part}=true", self.name);
        }
        let (name, what) = (of.name(), T::WHAT);
        let keys = T::keys().iter().filter(|key| key.get(of).is_some());
        let keys: Vec<&str> = keys.map(|key| key.name).collect();
        let keys = match keys.as_slice() {
            [] => "it has none".to_owned(),
            keys => format!("it has {}", keys.join(", ")),
        };
        format!("the {what} {name} has no key '{}'; {keys}", self.name)
    }
}

impl Domain {
    /// Reads a value. With `bare`, a time may be a plain number, of nanoseconds. `None` if it is
    /// not of this kind, or out of range.
    pub(super) fn parse(&self, text: &str, bare: bool) -> Option<Value> {
        let text = text.trim();
        match *self {
            Self::Time(least, most) => time(text, bare)
                .filter(|time| (least..=most).contains(time))
                .map(Value::Time),
            Self::Count(least, most) => text
                .parse()
                .ok()
                .filter(|count| (least..=most).contains(count))
                .map(Value::Count),
            Self::Share(least, most) => text
                .parse()
                .ok()
                .filter(|share| (least..=most).contains(share))
                // Adding zero makes minus zero plus zero: one value, one name.
                .map(|share: f64| Value::Share(share + 0.0)),
            Self::Flag => text.parse().ok().map(Value::Flag),
            Self::Word(words) => words
                .iter()
                .find(|word| **word == text)
                .map(|word| Value::Word(word)),
        }
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

fn time(text: &str, bare: bool) -> Option<Time> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let scale = match &text[digits.len()..] {
        "" if bare => 1e3,
        unit => UNITS.iter().find(|(name, _)| *name == unit)?.1,
    };
    let number: f64 = digits.trim_end().parse().ok()?;
    (number >= 0.0).then(|| Time::ps((number * scale).round() as u64))
}

/// The time in the largest unit of which it has at least one.
fn shown(time: Time) -> String {
    let ps = time.as_ps() as f64;
    let fits = UNITS[1..].iter().rfind(|(_, scale)| ps >= *scale);
    let (unit, scale) = fits.unwrap_or(&UNITS[1]);
    format!("{}{unit}", ps / scale)
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(least, most) => {
                write!(f, "a time from {} to {}", shown(*least), shown(*most))
            }
            Self::Count(least, most) => write!(f, "a whole number from {least} to {most}"),
            Self::Share(least, most) => write!(f, "a number from {least} to {most}"),
            Self::Flag => f.write_str("true or false"),
            Self::Word(words) => write!(f, "one of {}", words.join(", ")),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(time) => f.write_str(&shown(*time)),
            Self::Count(count) => count.fmt(f),
            Self::Share(share) => share.fmt(f),
            Self::Flag(flag) => flag.fmt(f),
            Self::Word(word) => f.write_str(word),
        }
    }
}

/// Fields of which a key is the value.
macro_rules! fields {
    ($($type:ty: $kind:ident($value:ident) = $shown:expr, $assigned:expr;)+) => {$(
        impl Field for $type {
            fn value(&self, _: &Domain) -> Value {
                let $value = *self;
                Value::$kind($shown)
            }

            fn assign(&mut self, value: Value) {
                if let Value::$kind($value) = value {
                    *self = $assigned;
                }
            }
        }
    )+};
}

fields! {
    Time: Time(time) = time, time;
    u64: Count(count) = count, count;
    usize: Count(count) = count as u64, count as Self;
    bool: Flag(flag) = flag, flag;
}

/// A number, or nanoseconds where the key is a time.
impl Field for f64 {
    fn value(&self, kind: &Domain) -> Value {
        match kind {
            Domain::Time(..) => Value::Time(Time::from_ns(*self)),
            _ => Value::Share(*self),
        }
    }

    fn assign(&mut self, value: Value) {
        match value {
            Value::Time(time) => *self = time.as_ns_f64(),
            Value::Share(share) => *self = share,
            _ => {}
        }
    }
}

/// A part that is there if a flag is true.
pub trait Part: Copy {
    /// The one that a flag begins with.
    const USUAL: Self;
}

impl<P: Part> Field for Option<P> {
    fn value(&self, _: &Domain) -> Value {
        Value::Flag(self.is_some())
    }

    fn assign(&mut self, value: Value) {
        *self = (value == Value::Flag(true)).then(|| self.unwrap_or(P::USUAL));
    }
}

/// Makes an enumeration a field whose values are words.
macro_rules! words {
    ($type:ident: $($variant:ident = $word:literal),+) => {
        impl $type {
            const WORDS: &'static [&'static str] = &[$($word),+];
        }

        impl Field for $type {
            fn value(&self, _: &Domain) -> Value {
                Value::Word(match self {
                    $(Self::$variant => $word),+
                })
            }

            fn assign(&mut self, value: Value) {
                *self = match value {
                    $(Value::Word($word) => Self::$variant,)+
                    _ => return,
                };
            }
        }
    };
}
pub(crate) use words;
