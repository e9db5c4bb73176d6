//! The locks that are checked, with their diagrams and scenarios.

use overlock_core::diagram::{Diagram, Drawn};
use overlock_core::raw::RawLock;

use crate::exclusive_scenarios;
use crate::scenario::Scenario;
use crate::world::World;

/// A lock to check.
#[derive(Debug)]
pub struct Lock {
    /// Its name in tables and options.
    pub name: &'static str,
    /// Its state diagrams.
    pub diagrams: &'static [&'static Diagram],
    /// Arrows that it does not have, by their texts.
    pub lacks: &'static [&'static str],
    /// What to do with it.
    pub scenarios: Vec<Scenario>,
}

/// All locks, in the world of one checker.
pub fn locks<W: World>() -> Vec<Lock> {
    vec![exclusive::<overlock_core::spin::Queued<W>>(
        exclusive_scenarios!(W, overlock_core::spin::Queued<W>),
    )]
}

fn exclusive<L: RawLock + Drawn>(scenarios: Vec<Scenario>) -> Lock {
    Lock {
        name: L::NAME,
        diagrams: L::DIAGRAMS,
        lacks: L::LACKS,
        scenarios,
    }
}
