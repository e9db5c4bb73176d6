//! The locks that are checked, with their diagrams and scenarios.

use overlock_core::diagram::Diagram;
use overlock_core::raw::{RawLock, RawRwLock};
use overlock_core::sleep::Mutex;
use overlock_core::spin::Overlock;

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
}

/// All locks, in the world of one checker.
pub fn locks<W: World>() -> Vec<Lock> {
    macro_rules! spin {
        ($($name:ident: $lock:ident, $kind:ident;)*) => {
            [$(exclusive::<overlock_core::spin::$lock<W>>(exclusive_scenarios!(W, overlock_core::spin::$lock<W>))),*]
        };
    }
    macro_rules! sleep {
        ($($name:ident: $lock:ident, $kind:ident;)*) => {
            [$(exclusive::<overlock_core::sleep::$lock<W>>(exclusive_scenarios!(W, overlock_core::sleep::$lock<W>))),*]
        };
    }
    macro_rules! rw {
        ($($name:ident: $module:ident::$lock:ident;)*) => {
            [$(reader_writer::<overlock_core::$module::$lock<W>>(reader_writer_scenarios!(W, overlock_core::$module::$lock<W>))),*]
        };
    }
    let mut all = Vec::new();
    all.extend(overlock_core::spin_locks!(spin));
    // Signal handlers may try spinning locks alone.
    let handlers = all.len();
    all.extend(overlock_core::sleep_locks!(sleep));
    all.extend(overlock_core::rw_locks!(rw));
    for lock in &mut all[handlers..] {
        lock.scenarios.retain(|scenario| !scenario.setting.signals);
    }
    all.push(Lock {
        name: "semaphore",
        diagrams: &[],
        lacks: &[],
        scenarios: waiting::semaphore::<W>(),
    });
    all.push(Lock {
        name: "condvar",
        diagrams: &[],
        lacks: &[],
        scenarios: waiting::condvar::<W, Mutex<W>>(),
    });
    all.push(Lock {
        name: "condvar_o",
        diagrams: &[],
        lacks: &[],
        scenarios: waiting::condvar::<W, Overlock<W>>(),
    });
    all.push(Lock {
        name: "once",
        diagrams: &[],
        lacks: &[],
        scenarios: waiting::once::<W>(),
    });
    all.push(Lock {
        name: "barrier",
        diagrams: &[],
        lacks: &[],
        scenarios: waiting::barrier::<W>(),
    });
    all.push(Lock {
        name: "osq",
        diagrams: &[],
        lacks: &[],
        scenarios: waiting::osq::<W>(),
    });
    all.push(Lock {
        name: "ww_mutex",
        diagrams: &[],
        lacks: &[],
        scenarios: several::ww_mutex::<W>(),
    });
    all
}

fn exclusive<L: RawLock>(scenarios: Vec<Scenario>) -> Lock {
    Lock {
        name: L::NAME,
        diagrams: &[],
        lacks: &[],
        scenarios,
    }
}

fn reader_writer<L: RawRwLock>(scenarios: Vec<Scenario>) -> Lock {
    Lock {
        name: L::NAME,
        diagrams: &[],
        lacks: &[],
        scenarios,
    }
}
