//! Wrappers: functions that do nothing but lock, or wait, for their callers. A row is named by the
//! first caller that is none, since a wrapper is the same for all locks.

use super::symbols::{Place, is_librarys};

/// The place that names a stack, which begins with the call.
pub fn named(stack: &[Place]) -> Option<&Place> {
    let is_end = |place: &Place| {
        let ends = [
            "start_thread",
            "clone",
            "clone3",
            "_start",
            "__libc_start_call_main",
        ];
        (place.function.as_deref()).is_none_or(|name| ends.contains(&name))
    };
    let known = stack.iter().take_while(|place| !is_end(place));
    known
        .clone()
        .find(|place| !is_wrapper(place))
        .or_else(|| stack.first())
}

fn is_wrapper(place: &Place) -> bool {
    let is_brought = place.file.as_deref().is_some_and(is_librarys);
    place
        .function
        .as_deref()
        .is_some_and(|name| is_brought || is_known(name) || is_spoken(name))
}

/// By the beginnings of their names, those of much used libraries.
fn is_known(name: &str) -> bool {
    const BEGINNINGS: [&str; 36] = [
        "std::mutex::",
        "std::timed_mutex::",
        "std::recursive_mutex::",
        "std::recursive_timed_mutex::",
        "std::shared_mutex::",
        "std::shared_timed_mutex::",
        "std::__shared_",
        "std::__timed_mutex",
        "std::__mutex_base",
        "std::lock_guard",
        "std::unique_lock",
        "std::shared_lock",
        "std::scoped_lock",
        "std::condition_variable",
        "std::_V2::condition_variable",
        "std::__condvar",
        "std::counting_semaphore",
        "std::sys::",
        "std::sync::",
        "std::thread::park",
        "std::thread::thread::Thread::park",
        "<std::sync::",
        "<std::sys::",
        "parking_lot",
        "lock_api::",
        "<parking_lot",
        "<lock_api::",
        "crossbeam_utils::sync::",
        "absl::",
        "boost::",
        "folly::",
        "tbb::",
        "QMutex::",
        "QWaitCondition::",
        "__gthread_",
        "pthread_",
    ];
    BEGINNINGS.iter().any(|begin| name.starts_with(begin))
}

/// By the words of its name: a lock, and what one does with it; in front of them there may be the
/// name of a library.
fn is_spoken(name: &str) -> bool {
    const LOCKS: [&str; 20] = [
        "lock",
        "locks",
        "lck",
        "mutex",
        "mtx",
        "rwlock",
        "rdlock",
        "wrlock",
        "spinlock",
        "trylock",
        "futex",
        "sem",
        "semaphore",
        "cond",
        "condvar",
        "latch",
        "monitor",
        "timedlock",
        "timedwait",
        "gil",
    ];
    const VERBS: [&str; 44] = [
        "take",
        "acquire",
        "get",
        "enter",
        "wait",
        "init",
        "initialize",
        "new",
        "create",
        "try",
        "timed",
        "shared",
        "exclusive",
        "read",
        "write",
        "rd",
        "wr",
        "thread",
        "native",
        "internal",
        "impl",
        "slow",
        "slowpath",
        "path",
        "fast",
        "do",
        "os",
        "raw",
        "rec",
        "recursive",
        "for",
        "until",
        "begin",
        "grab",
        "obtain",
        "down",
        "alloc",
        "make",
        "with",
        "timeout",
        "rw",
        "critical",
        "section",
        "static",
    ];
    // Without the arguments and the generation mark of compilers.
    let name = name.split(['(', '<', '.']).next().unwrap_or_default();
    let last = name.rsplit("::").next().unwrap_or_default();
    let words = words(last);
    let is_lock = |word: &String| LOCKS.contains(&word.as_str());
    let is_said = |word: &String| is_lock(word) || VERBS.contains(&word.as_str());
    words.iter().any(is_lock)
        && words.iter().skip(1).all(is_said)
        && (words.len() > 1 || words.iter().all(is_lock))
}

/// The words of a name, in small letters.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut was_small = false;
    let mut begins = true;
    for letter in name.chars() {
        if !letter.is_ascii_alphabetic() {
            begins = true;
            was_small = false;
            continue;
        }
        if begins || was_small && letter.is_ascii_uppercase() {
            words.push(String::new());
        }
        begins = false;
        was_small = letter.is_ascii_lowercase();
        if let Some(word) = words.last_mut() {
            word.push(letter.to_ascii_lowercase());
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrappers_are_told_from_functions_that_do_something() {
        for name in [
            "lock_take",
            "lock_init",
            "uv_mutex_lock",
            "g_mutex_lock_slowpath",
            "caml_mutex_lock",
            "rb_native_mutex_lock",
            "apr_thread_mutex_lock",
            "CRYPTO_THREAD_read_lock",
            "Lck__Lock",
            "osl_acquireMutex",
            "PR_Lock",
            "std::mutex::lock()",
            "std::condition_variable::wait(std::unique_lock<std::mutex>&)",
            "parking_lot::raw_mutex::RawMutex::lock_slow",
            "take_gil",
            "Server::Mutex::lock",
        ] {
            assert!(is_known(name) || is_spoken(name), "{name}");
        }
        for name in [
            "insert",
            "short_section",
            "take_slot",
            "lock_account",
            "unblock",
            "read_clock",
            "main",
            "work",
            "read",
            "std::vector<int>::push_back(int const&)",
        ] {
            assert!(!is_known(name) && !is_spoken(name), "{name}");
        }
    }
}
