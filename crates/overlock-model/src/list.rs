//! The locks that are checked, with their diagrams and scenarios.

use overlock_core::diagram::{Diagram, HasDiagram};
use overlock_core::raw::{RawLock, RawRwLock};
use overlock_core::sleep;
use overlock_core::spin;
use overlock_core::spin::faulty::{BustedRw, Faulty, LostKick, NoExclusion, Relaxed};

use crate::scenario::{Scenario, reader_writer, several, waiting};
use crate::world::World;
use crate::{exclusive_scenarios, reader_writer_scenarios};

/// A lock to check.
#[derive(Debug)]
pub struct Lock {
    /// Its name in tables and options.
    pub name: &'static str,
    /// Its state diagrams.
    pub diagrams: &'static [&'static Diagram],
    /// Transitions that it does not have, by their texts.
    pub lacks: &'static [&'static str],
    /// What to do with it.
    pub scenarios: Vec<Scenario>,
    /// Whether it is broken on purpose, and by which checkers that must be found. Empty for the
    /// others.
    pub broken_for: &'static [&'static str],
}

const ALL: &[&str] = &["explore", "shuttle", "loom"];
/// Shuttle is sequentially consistent.
const WEAK: &[&str] = &["explore", "loom"];

/// Whether a build has been restricted to other locks: `OVERLOCK_MODEL_ONLY=queued,mutex cargo
/// build` compiles these alone, in a small part of the time. For checks of mutants, each of which
/// is a build.
const fn left_out(name: &str) -> bool {
    match option_env!("OVERLOCK_MODEL_ONLY") {
        Some(list) => !names(list, name),
        None => false,
    }
}

/// Whether a list, separated by commas, names `name`.
pub(crate) const fn names(list: &str, name: &str) -> bool {
    let (list, name) = (list.as_bytes(), name.as_bytes());
    let mut start = 0;
    while start + name.len() <= list.len() {
        let mut same = 0;
        while same < name.len() && list[start + same] == name[same] {
            same += 1;
        }
        let end = start + name.len();
        if same == name.len() && (end == list.len() || list[end] == b',') {
            return true;
        }
        while start < list.len() && list[start] != b',' {
            start += 1;
        }
        start += 1;
    }
    false
}

/// All locks, in the world of one checker.
pub fn locks<W: World>() -> Vec<Lock> {
    let mut all = Vec::new();
    // A constant condition keeps what is left out from being compiled at all.
    macro_rules! add {
        ($name:expr, $lock:expr) => {
            if const { !left_out($name) } {
                all.push($lock);
            }
        };
    }
    macro_rules! spinning {
        ($($name:ident: $lock:ident, $kind:ident;)*) => {
            $(add!(stringify!($name), exclusive::<spin::$lock<W>>(exclusive_scenarios!(W, spin::$lock<W>)));)*
        };
    }
    macro_rules! sleeping {
        ($($name:ident: $lock:ident, $kind:ident;)*) => {
            $(add!(stringify!($name), exclusive::<sleep::$lock<W>>(exclusive_scenarios!(W, sleep::$lock<W>)));)*
        };
    }
    macro_rules! reader_writer {
        ($($name:ident: $module:ident::$lock:ident;)*) => {
            $(add!(stringify!($name), shared::<overlock_core::$module::$lock<W>>(
                reader_writer_scenarios!(W, overlock_core::$module::$lock<W>),
            ));)*
        };
    }
    overlock_core::spin_locks!(spinning);
    add!(
        "fast_queue_lazy",
        named::<spin::LazyFastQueue<W>>(
            "fast_queue_lazy",
            exclusive_scenarios!(W, spin::LazyFastQueue<W>),
        )
    );
    let spinning = all.len();
    overlock_core::sleep_locks!(sleeping);
    add!(
        "rt_mutex",
        exclusive::<sleep::RtMutex<W>>(exclusive_scenarios!(W, sleep::RtMutex<W>))
    );
    overlock_core::rw_locks!(reader_writer);
    for lock in &mut all {
        if const { !left_out("overlock") } && lock.name == "overlock" {
            // Who waits for a condition may become a sleeper of the lock.
            let adopted = waiting::condvar::<W, sleep::Overlock<W>>().into_iter();
            let adopted = adopted.filter(|it| ["one-locked", "within-locked"].contains(&&*it.name));
            lock.scenarios.extend(adopted.map(|it| it.with("condvar")));
        }
        if const { !left_out("overlock_rw") } && lock.name == "overlock_rw" {
            lock.scenarios.extend(reader_writer::passing::<W>());
        }
        if const { !left_out("percpu_rwsem") } && lock.name == "percpu_rwsem" {
            lock.scenarios.extend(reader_writer::visible::<W>());
        }
    }
    add!(
        "ww_mutex",
        named::<sleep::WwMutex<W>>("ww_mutex", {
            let mut scenarios = exclusive_scenarios!(W, sleep::WwMutex<W>);
            scenarios.extend(several::ww_mutex::<W>());
            scenarios
        })
    );
    add!(
        "semaphore",
        named::<sleep::Semaphore<W>>("semaphore", waiting::semaphore::<W>())
    );
    add!(
        "condvar",
        named::<sleep::Condvar<W>>("condvar", {
            let with_mutex = waiting::condvar::<W, sleep::Mutex<W>>();
            let with_overlock = waiting::condvar::<W, sleep::Overlock<W>>();
            (with_mutex
                .into_iter()
                .map(|scenario| scenario.with("mutex")))
            .chain(
                with_overlock
                    .into_iter()
                    .map(|scenario| scenario.with("overlock")),
            )
            .collect()
        })
    );
    add!(
        "once",
        named::<sleep::Once<W>>("once", waiting::once::<W>())
    );
    add!(
        "barrier",
        named::<sleep::Barrier<W>>("barrier", waiting::barrier::<W>())
    );
    add!("osq", named::<sleep::Osq<W>>("osq", waiting::osq::<W>()));
    // Signal handlers may try locks that spin and the recommended mutex, and release a semaphore.
    for lock in &mut all[spinning..] {
        if !["overlock", "qrwlock", "semaphore"].contains(&lock.name) {
            lock.scenarios.retain(|scenario| !scenario.setting.signals);
        }
    }
    add!(
        "faulty_no_exclusion",
        faulty(
            "faulty_no_exclusion",
            ALL,
            exclusive_scenarios!(W, Faulty<W, NoExclusion>)
        )
    );
    add!(
        "faulty_lost_kick",
        faulty(
            "faulty_lost_kick",
            ALL,
            exclusive_scenarios!(W, Faulty<W, LostKick>)
        )
    );
    add!(
        "faulty_relaxed",
        faulty(
            "faulty_relaxed",
            WEAK,
            exclusive_scenarios!(W, Faulty<W, Relaxed>)
        )
    );
    add!(
        "faulty_rw",
        faulty("faulty_rw", ALL, reader_writer_scenarios!(W, BustedRw<W>))
    );
    all
}

fn exclusive<L: RawLock + HasDiagram>(scenarios: Vec<Scenario>) -> Lock {
    named::<L>(L::NAME, scenarios)
}

fn shared<L: RawRwLock + HasDiagram>(scenarios: Vec<Scenario>) -> Lock {
    named::<L>(L::NAME, scenarios)
}

fn named<L: HasDiagram>(name: &'static str, scenarios: Vec<Scenario>) -> Lock {
    Lock {
        name,
        diagrams: L::DIAGRAMS,
        lacks: L::UNREACHABLE,
        scenarios,
        broken_for: &[],
    }
}

fn faulty(
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
