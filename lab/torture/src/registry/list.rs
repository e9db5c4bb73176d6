//! The list itself.

use overlock::Linux;
use overlock_core::facts::{Bound, Facts, HasFacts};
use overlock_core::raw::RawRwLock;
use overlock_core::sleep::ww_mutex::{Class, Rule};
use overlock_core::sleep::{Overlock, RtMutex};

use super::{Entry, Make};
use crate::subject::exclusive::ExclusiveExtras;
use crate::subject::{
    Cells, Contexts, Exclusive, Gathering, GuardedMutex, GuardedRwLock, Permits, Queue, Shared,
    SharedExtras,
};

static WOUND_WAIT: Class<Linux> = Class::new();
static WAIT_DIE: Class<Linux> = Class::with_rule(Rule::WaitDie);
static OPTIMISTIC: Class<Linux> = Class::optimistic();

pub fn all() -> Vec<Entry> {
    let mut all = sleeping();
    all.extend(spinning());
    all.push(rt_mutex());
    all.extend(reader_writer());
    all.extend(others());
    all.extend(types());
    all
}

fn spinning() -> Vec<Entry> {
    macro_rules! entries {
        ($($name:ident: $lock:ident, $kind:ident, $can:ident;)*) => {
            vec![$(crate::entry!(false, $can, overlock_family::spin::$lock)()),*]
        };
    }
    overlock_family::spin_locks!(entries)
}

fn sleeping() -> Vec<Entry> {
    macro_rules! entries {
        ($($name:ident: $lock:ident, $kind:ident, $can:ident;)*) => {
            vec![$(crate::entry!(false, $can, overlock_family::sleep::$lock)()),*]
        };
    }
    overlock_family::sleep_locks!(entries)
}

fn reader_writer() -> Vec<Entry> {
    macro_rules! entries {
        ($($name:ident: $module:ident::$lock:ident, $can:ident;)*) => {
            vec![$({
                const FACTS: Facts = <overlock::rw::$lock as HasFacts>::FACTS;
                entry(stringify!($name), FACTS, |_| {
                    let extras = SharedExtras::<overlock::rw::$lock>::$can();
                    Ok(Box::new(Shared::new(extras, &FACTS)))
                })
            }),*]
        };
    }
    overlock_family::rw_locks!(entries)
}

fn rt_mutex() -> Entry {
    // Its waiters are served by priority, which boosts change.
    let about = "mutex with priority inheritance, by the kernel";
    sleeper("rt_mutex", Bound::None, about, |_| {
        let extras = ExclusiveExtras::<RtMutex<Linux>>::timed();
        Ok(Box::new(Exclusive::new(extras, &Facts::SLEEPING)?))
    })
}

#[rustfmt::skip]
fn others() -> Vec<Entry> {
    vec![
        entry(Permits::NAME, Permits::FACTS, |_| Ok(Box::new(Shared::new(Permits::extras(), &Permits::FACTS)))),
        sleeper("condvar", Bound::None, "a bounded queue over overlock", |_| Ok(Box::new(Queue::<Overlock<Linux>>::new()?))),
        sleeper("condvar_kernel_mutex", Bound::None, "a bounded queue over kernel_mutex", |_| Ok(Box::new(Queue::<overlock::sleep::KernelMutex>::new()?))),
        sleeper("once", Bound::None, "initialisation, with panics", |_| Ok(Box::new(Cells::new()))),
        sleeper("barrier", Bound::None, "all threads wait for each other", |threads| Ok(Box::new(Gathering::new(threads)))),
        sleeper("ww_mutex", Bound::Finite, "several locks in any order, wound-wait", |_| Ok(Box::new(Contexts::new(&WOUND_WAIT)))),
        sleeper("ww_mutex_wait_die", Bound::Finite, "several locks in any order, wait-die", |_| Ok(Box::new(Contexts::new(&WAIT_DIE)))),
        sleeper("ww_mutex_optimistic", Bound::Finite, "several locks in any order, without a queue node at first", |_| Ok(Box::new(Contexts::new(&OPTIMISTIC)))),
    ]
}

#[rustfmt::skip]
fn types() -> Vec<Entry> {
    const BOUND: Bound = Overlock::<Linux>::FACTS.bound;
    vec![
        sleeper("overlock-mutex", BOUND, "overlock::Mutex and its guards", |_| Ok(Box::new(GuardedMutex::new()))),
        sleeper("overlock-rwlock", BOUND, "overlock::RwLock and its guards", |_| Ok(Box::new(GuardedRwLock::new()))),
    ]
}

/// The locks that are broken on purpose.
pub fn flaws() -> Vec<(&'static str, Entry)> {
    use std::time::Duration;

    use overlock_core::facts::Waiting;
    use overlock_family::spin::faulty::{
        Faulty, FaultyRw, Lingering, LostKick, NoExclusion, Relaxed, Starving,
    };

    macro_rules! faulty {
        ($flaw:ty) => {
            faulty!($flaw, false)
        };
        ($flaw:ty, $freed:literal) => {
            |_| {
                let extras = ExclusiveExtras::<Faulty<Linux, $flaw>>::basic();
                const FACTS: Facts = Facts {
                    freed_by_last_user: $freed,
                    ..Facts::SLEEPING
                };
                Ok(Box::new(Exclusive::new(extras, &FACTS)?))
            }
        };
    }
    /// The first sleeper is bypassed while it wakes up.
    const WOKEN: Bound = Bound::Within(Duration::ZERO);

    let spins = |entry: Entry| {
        let waiting = Waiting::Spins;
        let facts = Facts {
            waiting,
            ..entry.facts
        };
        Entry { facts, ..entry }
    };
    vec![
        (
            "no-exclusion",
            sleeper(
                "faulty_no_exclusion",
                WOKEN,
                "two can enter",
                faulty!(NoExclusion),
            ),
        ),
        (
            "lost-kick",
            sleeper(
                "faulty_lost_kick",
                WOKEN,
                "some sleepers are not kicked",
                faulty!(LostKick),
            ),
        ),
        (
            "starving",
            spins(sleeper(
                "faulty_starving",
                Bound::Order,
                "last come, first served",
                faulty!(Starving),
            )),
        ),
        (
            "relaxed",
            spins(sleeper(
                "faulty_relaxed",
                Bound::None,
                "its release orders nothing; only a sanitizer sees that",
                faulty!(Relaxed),
            )),
        ),
        (
            "lingering",
            sleeper(
                "faulty_lingering",
                WOKEN,
                "its unlock touches what may be freed; only a sanitizer sees that",
                faulty!(Lingering, true),
            ),
        ),
        (
            "rw",
            spins(sleeper(
                "faulty_rw",
                Bound::None,
                "a writer does not check for readers",
                |_| {
                    let extras = SharedExtras::<FaultyRw<Linux>>::basic();
                    Ok(Box::new(Shared::new(extras, &Facts::SLEEPING)))
                },
            )),
        ),
    ]
}

fn entry(name: &'static str, facts: Facts, make: Make) -> Entry {
    Entry {
        name,
        facts,
        model: false,
        make,
    }
}

/// Something that is in none of overlock-core's lists, whose waiters sleep.
fn sleeper(name: &'static str, bound: Bound, about: &'static str, make: Make) -> Entry {
    let facts = Facts {
        about,
        bound,
        ..Facts::SLEEPING
    };
    entry(name, facts, make)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lock_has_its_line() {
        for entry in all() {
            assert!(!entry.facts.about.is_empty(), "{}", entry.name);
        }
    }

    #[test]
    fn names_are_there_once() {
        let mut names: Vec<_> = all().iter().map(|entry| entry.name).collect();
        names.sort_unstable();
        let many = names.len();
        names.dedup();
        assert_eq!(names.len(), many);
    }
}
