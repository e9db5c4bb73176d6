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
const RULES: [(&str, Kind); 46] = [
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
    // The C library's own, as the heap's.
    ("lll_lock_wait_private", lock("futex")),
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
    // GLib
    ("g_mutex_lock", lock("mutex")),
    ("g_cond_wait", event("cond")),
    // Qt
    ("QBasicMutex::lock", lock("mutex")),
    ("QMutex::lock", lock("mutex")),
    ("QRecursiveMutex::", lock("mutex")),
    ("QSemaphore::", event("sem")),
    // GNU's OpenMP: its workers wait for each other, and so wake those that they wait for.
    ("GOMP_critical", lock("mutex")),
    ("GOMP_atomic_start", lock("mutex")),
    ("omp_set_lock", lock("mutex")),
    ("omp_set_nest_lock", lock("mutex")),
    ("GOMP_", event("barrier")),
];

/// Parts of the paths of our own locks' sources: the functions have common names, and are inlined.
const FILES: [(&str, Kind); 13] = [
    ("overlock-core/src/sleep/overlock", lock("mutex")),
    ("overlock-core/src/sleep/rt_mutex", lock("mutex")),
    ("overlock-core/src/sleep/ww_mutex", lock("mutex")),
    ("overlock-core/src/sleep/condvar", event("cond")),
    ("overlock-core/src/sleep/semaphore", event("sem")),
    ("overlock-core/src/sleep/barrier", event("barrier")),
    ("overlock-core/src/sleep/once", lock("futex")),
    ("overlock-core/src/rw", lock("write")),
    ("overlock-preload/src/mutex", lock("mutex")),
    ("overlock-preload/src/rwlock", lock("write")),
    ("overlock-preload/src/cond.rs", event("cond")),
    ("overlock-preload/src/sem", event("sem")),
    ("overlock-preload/src/barrier.rs", event("barrier")),
];

/// Parts of the names of their functions for readers.
const READS: [&str; 3] = ["read", "rdlock", "shared"];

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

/// A function and its source.
pub type Named<'a> = (&'a str, Option<&'a str>);

/// The kind that the innermost of these functions waits for that is known, and whether that is one
/// of pthread's. `word` is the futex's value.
pub fn kind<'a>(
    functions: impl Iterator<Item = Named<'a>> + Clone,
    operation: u32,
    word: u32,
) -> Option<(Kind, bool)> {
    let (kind, is_pthreads) = functions.clone().find_map(rule)?;
    // Of our own rwlocks the innermost functions are common to readers and writers.
    let reads = |(name, file): Named<'_>| {
        let is_ours = file.is_some_and(|file| FILES.iter().any(|(part, _)| file.contains(part)));
        is_ours && READS.iter().any(|part| name.contains(part))
    };
    if kind.name == "write" && !is_pthreads && functions.clone().any(reads) {
        return Some((lock("read"), false));
    }
    // Its mutex, with waiters, as the C library's function takes it at its end.
    if kind.name == "cond" && operation & COMMAND == PLAIN_WAIT && word == 2 {
        return Some((lock("mutex"), is_pthreads));
    }
    let mut functions = functions;
    // Without the types of the arguments.
    let plain = |name: &'a str| name.split('(').next().unwrap_or_default();
    let is_lock = functions.any(|(name, _)| LOCKS.iter().any(|part| plain(name).ends_with(part)));
    let kind = match kind.name {
        "cond" if is_lock => lock("cond as lock"),
        "sem" if is_lock => lock("sem as lock"),
        _ => kind,
    };
    Some((kind, is_pthreads))
}

fn rule((function, file): Named<'_>) -> Option<(Kind, bool)> {
    let ours = file.and_then(|file| FILES.iter().find(|(part, _)| file.contains(part)));
    if let Some((_, kind)) = ours {
        return Some((*kind, false));
    }
    // Rust's symbols have types in angles, or have not.
    let function = without_versions(&function.replace(['<', '>'], ""));
    let found = RULES.iter().find(|(part, _)| function.contains(part));
    found.map(|(part, kind)| (*kind, part.starts_with("pthread_")))
}

/// A name without Abseil's namespaces of its versions, as `lts_20220623::`.
fn without_versions(name: &str) -> String {
    let mut parts = Vec::new();
    for part in name.split("::") {
        let digits = part.strip_prefix("lts_").unwrap_or_default();
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            parts.push(part);
        }
    }
    parts.join("::")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(functions: &[&str], operation: u32, word: u32) -> Option<&'static str> {
        let functions = functions.iter().map(|&name| (name, None));
        kind(functions, operation, word).map(|(kind, _)| kind.name)
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
        let typed = ["pthread_cond_wait", "ObjectMonitor::enter(JavaThread*)"];
        assert_eq!(of(&typed, 9 | private | 256, 0), Some("cond as lock"));
        let rust = [
            "syscall",
            "<std::sys::sync::mutex::futex::Mutex>::lock_contended",
        ];
        assert_eq!(of(&rust, 9 | private, 2), Some("mutex"));
        let park = ["<std::sys::sync::thread_parking::futex::Parker>::park"];
        assert_eq!(of(&park, 9 | private, 0), Some("futex"));
        let python = ["sem_clockwait", "PyThread_acquire_lock_timed"];
        assert_eq!(of(&python, 9 | private | 256, 0), Some("sem as lock"));
        let abseil = ["syscall", "absl::lts_20220623::Mutex::LockSlow(int)"];
        assert_eq!(of(&abseil, private, 0), Some("mutex"));
        let glib = ["syscall", "g_mutex_lock", "f"];
        assert_eq!(of(&glib, private, 2), Some("mutex"));
        let openmp = ["GOMP_barrier", "work"];
        assert_eq!(of(&openmp, private, 0), Some("barrier"));
        assert_eq!(of(&["syscall", "f"], private, 2), None);
    }

    #[test]
    fn our_own_locks_are_known_by_their_sources() {
        let at = |function, file| kind([(function, Some(file))].into_iter(), 0, 1);
        let is =
            |found: Option<(Kind, bool)>| found.map(|(kind, is)| (kind.name, kind.is_event, is));
        let mutex = at(
            "lock_slow<Linux>",
            "/src/crates/overlock-core/src/sleep/overlock.rs",
        );
        assert_eq!(is(mutex), Some(("mutex", false, false)));
        let core = "/src/crates/overlock-core/src/rw/raw.rs";
        let functions = [("wait_counted", Some(core)), ("read_slow", Some(core))];
        let inner = kind(functions.into_iter(), 0, 1);
        assert_eq!(is(inner), Some(("read", false, false)));
        let read = at(
            "rdlock_slowly",
            "crates/overlock-preload/src/rwlock/functions.rs",
        );
        assert_eq!(is(read), Some(("read", false, false)));
        let wait = at(
            "wait",
            "/src/crates/overlock-core/src/sleep/condvar/wait.rs",
        );
        assert_eq!(is(wait), Some(("cond", true, false)));
        let pthreads = at("___pthread_mutex_lock", "nptl/pthread_mutex_lock.c");
        assert_eq!(is(pthreads), Some(("mutex", false, true)));
    }
}
