//! The constants of machines and hosts.

use std::fmt::{self, Display, Formatter};

use overlock_sim::host::Host;
use overlock_sim::machine::Machine;
use overlock_sim::spec::{self, Key, Spec};
use serde::{Serialize, Serializer};

use super::Site;

/// A constant of the cost model.
#[derive(Clone, Copy, Debug)]
pub enum Constant {
    /// Of machines.
    Machine(&'static Key<Machine>),
    /// Of hosts.
    Host(&'static Key<Host>),
}

impl Constant {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        let machines = spec::constants().map(Self::Machine);
        machines.chain(spec::constants().map(Self::Host))
    }

    /// The constant of that name.
    ///
    /// # Errors
    ///
    /// Says which there are.
    pub fn named(name: &str) -> Result<Self, String> {
        Self::all()
            .find(|constant| constant.name() == name)
            .ok_or_else(|| {
                let names: Vec<&str> = Self::all().map(Self::name).collect();
                let (meant, names) = (spec::meant(name, &names), names.join(", "));
                format!("unknown constant '{name}'{meant} constants are {names}")
            })
    }

    /// Its key.
    pub fn name(self) -> &'static str {
        match self {
            Self::Machine(key) => key.name,
            Self::Host(key) => key.name,
        }
    }

    /// Its meaning.
    pub fn about(self) -> &'static str {
        match self {
            Self::Machine(key) => key.about,
            Self::Host(key) => key.about,
        }
    }

    /// Whose it is.
    pub fn of(self) -> &'static str {
        match self {
            Self::Machine(_) => Machine::WHAT,
            Self::Host(_) => Host::WHAT,
        }
    }

    /// The site with so many times as much of it; `None` if that is the same.
    pub(super) fn changed(self, site: &Site, factor: f64) -> Result<Option<Site>, String> {
        let mut changed = site.clone();
        let assigned = match self {
            Self::Machine(key) => spec::scaled(&site.machine, key, factor)
                .map(|machine| changed.machine = machine)
                .map_err(|why| (site.machine.name(), why)),
            Self::Host(key) => spec::scaled(&site.host, key, factor)
                .map(|host| changed.host = host)
                .map_err(|why| (site.host.name(), why)),
        };
        match assigned {
            Ok(()) => Ok((changed != *site).then_some(changed)),
            Err((place, why)) => Err(format!("{self} times {factor} on {place}: {why}")),
        }
    }
}

impl Display for Constant {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Constant {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
