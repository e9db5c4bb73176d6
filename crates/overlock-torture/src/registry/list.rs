//! The list itself.

use std::time::Duration;

use overlock::Linux;
use overlock_core::raw::RawRwLock;
use overlock_core::sleep::Overlock;
use overlock_core::sleep::RtMutex;
use overlock_core::sleep::ww_mutex::{Class, Rule};

use super::Entry;
use crate::bound::{Bound, Waiting};
use crate::subject::exclusive::exclusive_extras;
use crate::subject::shared::shared_extras;
use crate::subject::{
    Cells, Contexts, Exclusive, Gathering, GuardedMutex, GuardedRwLock, Permits, Queue, Shared,
    Subject,
};

/// What the lists of overlock-core do not tell of a lock: what its docs promise.
struct Note {
    name: &'static str,
    bound: Bound,
    waiting: Waiting,
    most_threads: Option<usize>,
    about: &'static str,
}

const SPINS: Waiting = Waiting::Spins;
const SPINS_LONG: Waiting = Waiting::SpinsLong;
const SLEEPS: Waiting = Waiting::Sleeps;

/// `overlock`'s: after 4 ms a waiter that was woken in vain asks for a handoff, one at a time.
const OVERLOCK: Bound = Bound::Each(Duration::from_millis(4));
/// `rwsem`'s: 4 ms for each waiter.
const RWSEM: Bound = Bound::Each(Duration::from_millis(4));
/// The first sleeper is passed while it wakes up.
const WOKEN: Bound = Bound::Within(Duration::ZERO);

#[rustfmt::skip]
const NOTES: &[Note] = &[
    Note { name: "overlock", bound: OVERLOCK, waiting: SLEEPS, most_threads: None, about: "the one we recommend" },
    Note { name: "ticket", bound: Bound::Order, waiting: SPINS, most_threads: Some(57_344), about: "first come, first served, by number" },
    Note { name: "backoff_ticket", bound: Bound::Order, waiting: SPINS, most_threads: Some(57_344), about: "ticket with proportional back-off" },
    Note { name: "pv_ticket", bound: Bound::Order, waiting: SPINS_LONG, most_threads: Some(28_672), about: "paravirtual ticket, 16-bit numbers" },
    Note { name: "pv_ticket_small", bound: Bound::Order, waiting: SPINS_LONG, most_threads: Some(127), about: "paravirtual ticket, 8-bit numbers" },
    Note { name: "pv_ticket_tail_flag", bound: Bound::Order, waiting: SPINS_LONG, most_threads: Some(28_672), about: "paravirtual ticket as first published" },
    Note { name: "mcs", bound: Bound::Order, waiting: SPINS, most_threads: None, about: "classic queue" },
    Note { name: "fast_queue", bound: Bound::Order, waiting: SPINS, most_threads: None, about: "queue with one exchange to lock and one store to unlock" },
    Note { name: "queued", bound: Bound::Order, waiting: SPINS, most_threads: None, about: "queue in 4 bytes, with a pending bit" },
    Note { name: "unfair", bound: Bound::None, waiting: SPINS, most_threads: None, about: "test and set" },
    Note { name: "pv_queued", bound: Bound::Running, waiting: SPINS_LONG, most_threads: None, about: "paravirtual queue" },
    Note { name: "hybrid", bound: Bound::Running, waiting: SPINS_LONG, most_threads: None, about: "paravirtual queue with an unfair mode" },
    Note { name: "hybrid_short", bound: Bound::Running, waiting: SPINS_LONG, most_threads: None, about: "hybrid with a spin threshold for user space" },
    Note { name: "mutex", bound: WOKEN, waiting: SLEEPS, most_threads: None, about: "the kernel's mutex, woken waiters spin beside the queue" },
    Note { name: "mutex_inside", bound: WOKEN, waiting: SLEEPS, most_threads: None, about: "mutex whose woken waiters spin in the queue" },
    Note { name: "mutex_none", bound: WOKEN, waiting: SLEEPS, most_threads: None, about: "mutex whose woken waiters do not spin" },
    Note { name: "overlock_rw", bound: Bound::None, waiting: SLEEPS, most_threads: None, about: "the reader-writer lock we recommend; some of the readers pass" },
    Note { name: "percpu_rwsem", bound: OVERLOCK, waiting: SLEEPS, most_threads: None, about: "reading touches no shared line" },
    Note { name: "qrwlock", bound: Bound::Finite, waiting: SPINS, most_threads: None, about: "queued reader-writer spinlock" },
    Note { name: "rwsem", bound: RWSEM, waiting: SLEEPS, most_threads: None, about: "the kernel's reader-writer semaphore, spinning on readers for a time" },
    Note { name: "rwsem_none", bound: RWSEM, waiting: SLEEPS, most_threads: None, about: "rwsem that does not spin on readers" },
    Note { name: "rwsem_count", bound: RWSEM, waiting: SLEEPS, most_threads: None, about: "rwsem that spins on readers for a count" },
];

/// Sleeping locks that signal handlers may try, by their docs.
const TRIED_IN_HANDLERS: &[&str] = &["overlock"];

/// Reader-writer locks that signal handlers may try to read, by their docs. All spinlocks may be
/// tried.
const READ_IN_HANDLERS: &[&str] = &["overlock_rw", "percpu_rwsem", "semaphore"];

/// Locks that whoever acquires them last may free, by their docs: while the unlock that let it in
/// may not have returned.
const FREED: &[&str] = &[
    "overlock",
    "ticket",
    "backoff_ticket",
    "pv_ticket",
    "pv_ticket_small",
    "mcs",
    "fast_queue",
    "queued",
    "unfair",
    "pv_queued",
    "hybrid",
    "hybrid_short",
    "mutex",
    "mutex_inside",
    "mutex_none",
    "overlock_rw",
];

static WOUND_WAIT: Class<Linux> = Class::new();
static WAIT_DIE: Class<Linux> = Class::with_rule(Rule::WaitDie);

/// All of them.
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
        ($($name:ident: $lock:ident, $kind:ident;)*) => {
            vec![$(noted(stringify!($name), |_| {
                let extras = exclusive_extras!(overlock::spin::$lock);
                let freed = FREED.contains(&stringify!($name));
                Ok(Box::new(Exclusive::new(extras, true, freed)?))
            })),*]
        };
    }
    overlock_core::spin_locks!(entries)
}

fn sleeping() -> Vec<Entry> {
    macro_rules! entries {
        ($($name:ident: $lock:ident, $kind:ident;)*) => {
            vec![$(noted(stringify!($name), |_| {
                let extras = exclusive_extras!(overlock_core::sleep::$lock<Linux>);
                let freed = FREED.contains(&stringify!($name));
                let in_handlers = TRIED_IN_HANDLERS.contains(&stringify!($name));
                Ok(Box::new(Exclusive::new(extras, in_handlers, freed)?))
            })),*]
        };
    }
    overlock_core::sleep_locks!(entries)
}

fn reader_writer() -> Vec<Entry> {
    macro_rules! entries {
        ($($name:ident: $module:ident::$lock:ident;)*) => {
            vec![$(noted(stringify!($name), |_| {
                let extras = shared_extras!(overlock::rw::$lock);
                let in_handlers = READ_IN_HANDLERS.contains(&stringify!($name));
                let freed = FREED.contains(&stringify!($name));
                Ok(Box::new(Shared::new(extras, in_handlers, freed)?))
            })),*]
        };
    }
    overlock_core::rw_locks!(entries)
}

fn rt_mutex() -> Entry {
    // Its waiters are served by priority, which boosts change.
    let about = "mutex with priority inheritance, by the kernel";
    sleeper("rt_mutex", Bound::None, about, |_| {
        let extras = exclusive_extras!(RtMutex<Linux>);
        Ok(Box::new(Exclusive::new(extras, false, false)?))
    })
}

#[rustfmt::skip]
fn others() -> Vec<Entry> {
    vec![
        sleeper("semaphore", Bound::Order, "permits: a reader takes one, a writer all", |_| {
            let in_handlers = READ_IN_HANDLERS.contains(&Permits::NAME);
            Ok(Box::new(Shared::new(Permits::extras(), in_handlers, false)?))
        }),
        sleeper("condvar", Bound::None, "a bounded queue over overlock", |_| Ok(Box::new(Queue::<Overlock<Linux>>::new()?))),
        sleeper("condvar_mutex", Bound::None, "a bounded queue over mutex", |_| Ok(Box::new(Queue::<overlock::sleep::KernelMutex>::new()?))),
        sleeper("once", Bound::None, "initialisation, with panics", |_| Ok(Box::new(Cells::new()))),
        sleeper("barrier", Bound::None, "all threads wait for each other", |threads| Ok(Box::new(Gathering::new(threads)))),
        sleeper("ww_mutex", Bound::Finite, "several locks in any order, wound-wait", |_| Ok(Box::new(Contexts::new(&WOUND_WAIT)))),
        sleeper("ww_mutex_wait_die", Bound::Finite, "several locks in any order, wait-die", |_| Ok(Box::new(Contexts::new(&WAIT_DIE)))),
    ]
}

#[rustfmt::skip]
fn types() -> Vec<Entry> {
    vec![
        sleeper("overlock-mutex", OVERLOCK, "overlock::Mutex and its guards", |_| Ok(Box::new(GuardedMutex::new()))),
        sleeper("overlock-rwlock", OVERLOCK, "overlock::RwLock and its guards", |_| Ok(Box::new(GuardedRwLock::new()))),
    ]
}

/// The locks that are broken on purpose.
#[cfg(feature = "inject")]
pub fn flaws() -> Vec<(&'static str, Entry)> {
    use overlock_core::spin::faulty::{
        BustedRw, Faulty, Lingering, LostKick, NoExclusion, Relaxed, Starving,
    };

    macro_rules! faulty {
        ($flaw:ty) => {
            faulty!($flaw, false)
        };
        ($flaw:ty, $freed:literal) => {
            |_| {
                let extras = exclusive_extras!(Faulty<Linux, $flaw>);
                Ok(Box::new(Exclusive::new(extras, false, $freed)?))
            }
        };
    }
    let spins = |entry| Entry {
        waiting: SPINS,
        ..entry
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
                "a writer does not look for readers",
                |_| {
                    let extras = shared_extras!(BustedRw<Linux>);
                    Ok(Box::new(Shared::new(extras, false, false)?))
                },
            )),
        ),
    ]
}

type Make = fn(usize) -> Result<Box<dyn Subject>, overlock_core::raw::CreateError>;

/// A lock of overlock-core's lists by its line in [`NOTES`].
fn noted(name: &'static str, make: Make) -> Entry {
    let note = NOTES.iter().find(|note| note.name == name);
    Entry {
        name,
        about: note.map_or("", |note| note.about),
        bound: note.map_or(Bound::None, |note| note.bound),
        waiting: note.map_or(SLEEPS, |note| note.waiting),
        most_threads: note.and_then(|note| note.most_threads),
        make,
    }
}

/// Something else, whose waiters sleep.
fn sleeper(name: &'static str, bound: Bound, about: &'static str, make: Make) -> Entry {
    Entry {
        name,
        about,
        bound,
        waiting: SLEEPS,
        most_threads: None,
        make,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lock_has_its_note_and_every_note_its_lock() {
        let all = all();
        for entry in &all {
            assert!(
                !entry.about.is_empty(),
                "{} has no line in NOTES",
                entry.name
            );
        }
        for note in NOTES {
            assert!(
                all.iter().any(|entry| entry.name == note.name),
                "{}",
                note.name
            );
        }
        for name in READ_IN_HANDLERS.iter().chain(FREED) {
            assert!(all.iter().any(|entry| entry.name == *name), "{name}");
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
