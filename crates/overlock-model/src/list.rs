//! The locks that are checked, with their diagrams and scenarios.

use overlock_core::diagram::{Diagram, Drawn};
use overlock_core::raw::{RawLock, RawRwLock};
use overlock_core::sleep;
use overlock_core::spin;
use overlock_core::spin::busted::{Busted, BustedRw, LostKick, NoExclusion, Relaxed};

use crate::scenario::{Scenario, several, waiting};
use crate::world::World;
use crate::{exclusive_scenarios, reader_writer_scenarios};

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
    /// Whether it is broken on purpose, and by which checkers that must be found. Empty for the others.
    pub broken_for: &'static [&'static str],
}

const ALL: &[&str] = &["explore", "shuttle", "loom"];
/// Shuttle is sequentially consistent.
const WEAK: &[&str] = &["explore", "loom"];

/// All locks, in the world of one checker.
pub fn locks<W: World>() -> Vec<Lock> {
    macro_rules! spinning {
        ($($name:ident: $lock:ident, $kind:ident;)*) => {
            [$(exclusive::<spin::$lock<W>>(exclusive_scenarios!(W, spin::$lock<W>))),*]
        };
    }
    macro_rules! sleeping {
        ($($name:ident: $lock:ident, $kind:ident;)*) => {
            [$(exclusive::<sleep::$lock<W>>(exclusive_scenarios!(W, sleep::$lock<W>))),*]
        };
    }
    macro_rules! reader_writer {
        ($($name:ident: $module:ident::$lock:ident;)*) => {
            [$(shared::<overlock_core::$module::$lock<W>>(
                reader_writer_scenarios!(W, overlock_core::$module::$lock<W>),
            )),*]
        };
    }
    let mut all = Vec::new();
    all.extend(overlock_core::spin_locks!(spinning));
    all.push(named::<spin::LazyFastQueue<W>>(
        "fast_queue_lazy",
        exclusive_scenarios!(W, spin::LazyFastQueue<W>),
    ));
    // Signal handlers may try spinning locks alone.
    let handlers = all.len();
    all.extend(overlock_core::sleep_locks!(sleeping));
    all.push(exclusive::<sleep::RtMutex<W>>(exclusive_scenarios!(
        W,
        sleep::RtMutex<W>
    )));
    all.extend(overlock_core::rw_locks!(reader_writer));
    all.push(named::<sleep::WwMutex<W>>("ww_mutex", {
        let mut scenarios = exclusive_scenarios!(W, sleep::WwMutex<W>);
        scenarios.extend(several::ww_mutex::<W>());
        scenarios
    }));
    all.push(named::<sleep::Semaphore<W>>(
        "semaphore",
        waiting::semaphore::<W>(),
    ));
    all.push(named::<sleep::Condvar<W>>("condvar", {
        let with_mutex = waiting::condvar::<W, sleep::Mutex<W>>();
        let with_overlock = waiting::condvar::<W, spin::Overlock<W>>();
        (with_mutex
            .into_iter()
            .map(|scenario| scenario.with("mutex")))
        .chain(
            with_overlock
                .into_iter()
                .map(|scenario| scenario.with("overlock")),
        )
        .collect()
    }));
    all.push(named::<sleep::Once<W>>("once", waiting::once::<W>()));
    all.push(named::<sleep::Barrier<W>>(
        "barrier",
        waiting::barrier::<W>(),
    ));
    all.push(named::<sleep::Osq<W>>("osq", waiting::osq::<W>()));
    for lock in &mut all[handlers..] {
        lock.scenarios.retain(|scenario| !scenario.setting.signals);
    }
    all.extend([
        busted(
            "busted_no_exclusion",
            ALL,
            exclusive_scenarios!(W, Busted<W, NoExclusion>),
        ),
        busted(
            "busted_lost_kick",
            ALL,
            exclusive_scenarios!(W, Busted<W, LostKick>),
        ),
        busted(
            "busted_relaxed",
            WEAK,
            exclusive_scenarios!(W, Busted<W, Relaxed>),
        ),
        busted("busted_rw", ALL, reader_writer_scenarios!(W, BustedRw<W>)),
    ]);
    all
}

fn exclusive<L: RawLock + Drawn>(scenarios: Vec<Scenario>) -> Lock {
    named::<L>(L::NAME, scenarios)
}

fn shared<L: RawRwLock + Drawn>(scenarios: Vec<Scenario>) -> Lock {
    named::<L>(L::NAME, scenarios)
}

fn named<L: Drawn>(name: &'static str, scenarios: Vec<Scenario>) -> Lock {
    Lock {
        name,
        diagrams: L::DIAGRAMS,
        lacks: L::LACKS,
        scenarios,
        broken_for: &[],
    }
}

fn busted(
    name: &'static str,
    broken_for: &'static [&'static str],
    scenarios: Vec<Scenario>,
) -> Lock {
    Lock {
        name,
        diagrams: &[],
        lacks: &[],
        scenarios,
        broken_for,
    }
}
