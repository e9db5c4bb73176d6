//! Which lock or event a wait for a futex is for, by the functions that wait.

/// A kind of lock or event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// As in the document.
    pub name: &'static str,
    pub is_event: bool,
}

const fn lock(name: &'static str) -> Kind {
    Kind {
        name,
        is_event: false,
    }
}

const fn event(name: &'static str) -> Kind {
    Kind {
        name,
        is_event: true,
    }
}

/// A futex of which no more is known: a lock if those that wait for it also wake others.
pub const fn unknown(is_lock: bool) -> Kind {
    Kind {
        name: "futex",
        is_event: !is_lock,
    }
}

/// Parts of functions' names, in the order in which they count: of a stack the innermost function
/// decides that has one of them.
const RULES: [(&str, Kind); 34] = [
    ("pthread_mutex_cond_lock", lock("mutex")),
    ("pthread_mutex_", lock("mutex")),
    ("pthread_rwlock_rdlock", lock("read")),
    ("pthread_rwlock_timedrdlock", lock("read")),
    ("pthread_rwlock_clockrdlock", lock("read")),
    ("pthread_rwlock_", lock("write")),
    ("pthread_cond_", event("cond")),
    ("pthread_barrier_", event("barrier")),
    ("pthread_join", event("futex")),
    ("pthread_clockjoin", event("futex")),
    ("pthread_timedjoin", event("futex")),
    ("sem_wait", event("sem")),
    ("sem_timedwait", event("sem")),
    ("sem_clockwait", event("sem")),
    // Rust's library.
    ("mutex::futex::Mutex::lock_contended", lock("mutex")),
    ("rwlock::futex::RwLock::read_contended", lock("read")),
    ("rwlock::futex::RwLock::write_contended", lock("write")),
    ("condvar::futex::Condvar", event("cond")),
    ("std::thread::park", event("futex")),
    ("std::sys::sync::thread_parking", event("futex")),
    ("std::sys::sync::once::", lock("futex")),
    // parking_lot
    ("RawMutex::lock_slow", lock("mutex")),
    ("RawRwLock::lock_shared_slow", lock("read")),
    ("RawRwLock::lock_exclusive_slow", lock("write")),
    ("RawRwLock::wait_for_readers", lock("write")),
    ("parking_lot::condvar::Condvar", event("cond")),
    // Go's runtime: a thread without work, and its own locks.
    ("runtime.lock2", lock("mutex")),
    ("runtime.notesleep", event("futex")),
    ("runtime.notetsleep", event("futex")),
    // Abseil
    ("absl::Mutex::Lock", lock("mutex")),
    ("absl::Mutex::Await", event("cond")),
    ("absl::CondVar", event("cond")),
    // C++: a counter or a flag.
    ("std::__atomic_", event("futex")),
    ("std::atomic", event("futex")),
];

/// Functions that make a lock of a condition or a semaphore.
const LOCKS: [&str; 6] = [
    "ObjectMonitor::enter",
    "Monitor::lock",
    "Mutex::lock",
    "PyThread_acquire_lock_timed",
    "take_gil",
    "PyMutex_Lock",
];

/// FUTEX_WAIT; the C library's conditions and semaphores wait by FUTEX_WAIT_BITSET.
const PLAIN_WAIT: u32 = 0;
const COMMAND: u32 = 127;

/// The kind that the innermost of these functions waits for that is known. `word` is the futex's
/// value.
pub fn kind<'a>(
    functions: impl Iterator<Item = &'a str> + Clone,
    operation: u32,
    word: u32,
) -> Option<Kind> {
    let rule = |function: &str| RULES.iter().find(|(part, _)| function.contains(part));
    let (_, kind) = functions.clone().find_map(rule)?;
    // Its mutex, with waiters, as the C library's function takes it at its end.
    if kind.name == "cond" && operation & COMMAND == PLAIN_WAIT && word == 2 {
        return Some(lock("mutex"));
    }
    let mut functions = functions;
    let is_lock = functions.any(|function| LOCKS.iter().any(|part| function.ends_with(part)));
    Some(match kind.name {
        "cond" if is_lock => lock("cond as lock"),
        "sem" if is_lock => lock("sem as lock"),
        _ => *kind,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(functions: &[&str], operation: u32, word: u32) -> Option<&'static str> {
        kind(functions.iter().copied(), operation, word).map(|kind| kind.name)
    }

    #[test]
    fn the_innermost_known_function_says_what_is_waited_for() {
        let private = 128;
        assert_eq!(
            of(&["__lll_lock_wait", "pthread_mutex_lock", "f"], private, 2),
            Some("mutex")
        );
        let condition = ["futex_wait", "pthread_cond_wait@@GLIBC_2.3.2", "f"];
        assert_eq!(of(&condition, 9 | private | 256, 0), Some("cond"));
        assert_eq!(of(&condition, private, 2), Some("mutex"));
        let java = [
            "pthread_cond_wait",
            "os::PlatformEvent::park",
            "ObjectMonitor::enter",
        ];
        assert_eq!(of(&java, 9 | private | 256, 0), Some("cond as lock"));
        let python = ["sem_clockwait", "PyThread_acquire_lock_timed"];
        assert_eq!(of(&python, 9 | private | 256, 0), Some("sem as lock"));
        assert_eq!(of(&["syscall", "f"], private, 2), None);
    }
}
