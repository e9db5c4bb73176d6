//! Keys, the kinds of their values, and structures that consist of them.

use std::fmt;
use std::str::FromStr;

use toml::Value;

use crate::time::Time;

/// A key of a machine, a host or a workload.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// Its meaning.
    pub about: &'static str,
    /// Its valid values.
    pub kind: Domain,
}

/// The valid values of a key; numbers have a range, ends included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Domain {
    /// A time.
    Time(Time, Time),
    /// A whole number.
    Count(usize, usize),
    /// Any number.
    Share(f64, f64),
    /// Yes or no.
    Flag,
    /// One of several words.
    Word(&'static [&'static str]),
}

impl Domain {
    /// Reads a value. `None` if it is not of this kind, or out of range.
    pub(super) fn parse(&self, text: &str) -> Option<Value> {
        fn within<V: FromStr + PartialOrd>(text: &str, least: V, most: V) -> Option<V> {
            let value = text.parse().ok();
            value.filter(|value| (least..=most).contains(value))
        }
        let text = text.trim();
        match *self {
            Self::Time(least, most) => Some(within(text, least, most)?.to_string().into()),
            Self::Count(least, most) => Some(Value::Integer(within(text, least, most)? as i64)),
            // Adding zero makes minus zero plus zero: one value, one name.
            Self::Share(least, most) => Some(Value::Float(within(text, least, most)? + 0.0)),
            Self::Flag => text.parse().ok().map(Value::Boolean),
            Self::Word(words) => words.contains(&text).then(|| text.into()),
        }
    }
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(least, most) => write!(f, "a time from {least} to {most}"),
            Self::Count(least, most) => write!(f, "a whole number from {least} to {most}"),
            Self::Share(least, most) => write!(f, "a number from {least} to {most}"),
            Self::Flag => f.write_str("true or false"),
            Self::Word(words) => write!(f, "one of {}", words.join(", ")),
        }
    }
}

/// Declares a structure and its keys. First come parts without a key, then the keys: the field, the
/// name of the key if it is another, the type, the valid values, and the meaning.
macro_rules! keys {
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $key:literal) => { $key };
    (
        $(#[$meta:meta])* $name:ident { $($(#[$part_meta:meta])* $part:ident: $part_type:ty,)* }
        $(
            $(#[$more:meta])*
            $field:ident $(as $key:literal)?: $type:ty = $kind:expr, $about:literal;
        )+
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, serde::Deserialize, serde::Serialize)]
        pub struct $name {
            $($(#[$part_meta])* pub $part: $part_type,)*
            $(#[doc = $about] $(#[$more])* $(#[serde(rename = $key)])? pub $field: $type,)+
        }

        impl $name {
            const OWN_KEYS: &'static [$crate::spec::Key] = &[$($crate::spec::Key {
                name: $crate::spec::keys!(@name $field $($key)?),
                about: $about,
                kind: $kind,
            }),+];
        }
    };
}

pub(crate) use keys;
