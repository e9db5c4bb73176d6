//! A table of sleepers over the standard library's mutexes and condition variables, for systems
//! whose waits on an address it does not show.
//!
//! A sleeper's entry lies on its own stack, and leaves its list before the sleeper returns. On
//! macOS and NetBSD the standard library allocates its mutexes and condition variables, so there a
//! global allocator cannot use these locks.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use overlock_core::platform::spread;

/// A power of two. Sleepers at different addresses may share a list.
const LISTS: usize = 64;

static TABLE: [Mutex<List>; LISTS] = [const { Mutex::new(List::new()) }; LISTS];

/// A thread that sleeps. Its list's mutex guards all of it.
struct Sleeper {
    address: usize,
    /// It has left the list.
    woken: Cell<bool>,
    next: Cell<*const Sleeper>,
    wakes: Condvar,
}

/// The sleepers, the first come first.
struct List {
    first: Cell<*const Sleeper>,
}

// SAFETY: the sleepers of a list are accessed by who holds its mutex, and are alive while they are
// in it.
unsafe impl Send for List {}

impl List {
    const fn new() -> List {
        List {
            first: Cell::new(ptr::null()),
        }
    }

    /// Appends a sleeper, which stays where it is until it has been taken out.
    fn add(&self, sleeper: &Sleeper) {
        let mut place = &self.first;
        // SAFETY: null, or a sleeper in the list, which is alive.
        while let Some(other) = unsafe { place.get().as_ref() } {
            place = &other.next;
        }
        place.set(sleeper);
    }

    /// Takes the first of the sleepers that are asked for out of the list.
    fn take(&self, is_asked_for: impl Fn(&Sleeper) -> bool) -> Option<&Sleeper> {
        let mut place = &self.first;
        // SAFETY: as above.
        while let Some(sleeper) = unsafe { place.get().as_ref() } {
            if is_asked_for(sleeper) {
                place.set(sleeper.next.get());
                return Some(sleeper);
            }
            place = &sleeper.next;
        }
        None
    }
}

fn list(address: usize) -> MutexGuard<'static, List> {
    let mutex = &TABLE[spread(address) as usize % LISTS];
    // A panic leaves no list half changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn wait(word: &AtomicU32, expected: u32, limit: Option<Duration>) -> bool {
    let address = word.as_ptr().addr();
    let mut list = list(address);
    // Relaxed: a waker that has changed the word takes the mutex after that. It comes first, and
    // this load sees the change, or it finds the sleeper in the list.
    if word.load(Relaxed) != expected {
        return false;
    }
    let sleeper = Sleeper {
        address,
        woken: Cell::new(false),
        next: Cell::new(ptr::null()),
        wakes: Condvar::new(),
    };
    list.add(&sleeper);
    // A condition variable's spurious wake-up is the caller's.
    list = match limit {
        None => sleeper
            .wakes
            .wait(list)
            .unwrap_or_else(PoisonError::into_inner),
        Some(limit) => {
            let ended = sleeper.wakes.wait_timeout(list, limit);
            let (list, _ended) = ended.unwrap_or_else(PoisonError::into_inner);
            // There is no clock that would run by itself.
            #[cfg(all(target_family = "wasm", target_os = "unknown"))]
            if _ended.timed_out() {
                crate::clock::slept(limit);
            }
            list
        }
    };
    if !sleeper.woken.get() {
        list.take(|other| ptr::eq(other, &sleeper));
    }
    sleeper.woken.get()
}

fn wake(word: *const AtomicU32, most: usize) {
    let address = word.addr();
    let list = list(address);
    for _ in 0..most {
        let Some(sleeper) = list.take(|sleeper| sleeper.address == address) else {
            return;
        };
        sleeper.woken.set(true);
        // With the mutex, which the sleeper needs before it goes away.
        sleeper.wakes.notify_one();
    }
}

pub(crate) fn wake_one(word: *const AtomicU32) {
    wake(word, 1);
}

pub(crate) fn wake_all(word: *const AtomicU32) {
    wake(word, usize::MAX);
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// Fails where a wake-up is lost between the look at the word and the sleep, or reaches a
    /// sleeper of another word.
    #[test]
    fn two_threads_that_wake_each_other_go_on() {
        let rounds = if cfg!(miri) { 20 } else { 20_000 };
        let words = [const { AtomicU32::new(0) }; 2];
        let other = AtomicU32::new(0);
        thread::scope(|scope| {
            scope.spawn(|| {
                while other.load(Relaxed) == 0 {
                    wait(&other, 0, None);
                }
            });
            for mine in 0..2 {
                let words = &words;
                scope.spawn(move || {
                    for round in 1..=rounds {
                        words[1 - mine].store(round, Relaxed);
                        wake_one(&words[1 - mine]);
                        while words[mine].load(Relaxed) < round {
                            wait(&words[mine], round - 1, None);
                        }
                    }
                });
            }
            while words.iter().any(|word| word.load(Relaxed) < rounds) {
                thread::yield_now();
            }
            other.store(1, Relaxed);
            wake_all(&other);
        });
    }

    #[test]
    fn a_sleeper_whose_time_is_over_leaves_the_list() {
        let word = AtomicU32::new(0);
        assert!(!wait(&word, 0, Some(Duration::from_millis(1))));
        let address = word.as_ptr().addr();
        assert!(
            list(address)
                .take(|sleeper| sleeper.address == address)
                .is_none()
        );
    }

    #[test]
    fn all_are_woken_and_those_of_other_words_are_not() {
        let words = [const { AtomicU32::new(0) }; 3];
        thread::scope(|scope| {
            let wait_for = |word: usize| {
                let word = &words[word];
                move || {
                    while word.load(Relaxed) == 0 {
                        wait(word, 0, None);
                    }
                }
            };
            let first: Vec<_> = (0..4).map(|_| scope.spawn(wait_for(0))).collect();
            let others: Vec<_> = (1..3).map(|word| scope.spawn(wait_for(word))).collect();
            words[0].store(1, Relaxed);
            wake_all(&words[0]);
            first.into_iter().for_each(|thread| thread.join().unwrap());
            assert!(others.iter().all(|thread| !thread.is_finished()));
            for word in &words[1..] {
                word.store(1, Relaxed);
                wake_one(word);
            }
        });
    }
}
