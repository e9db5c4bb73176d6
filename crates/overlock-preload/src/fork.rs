//! Children of fork(): makes every object usable in the child.
//!
//! The child is a copy of one thread and of all memory, so the lists of its locks name waiters that
//! do not exist in it. So the child begins a new *generation*. Each object carries the generation
//! in which it was made or last used. The first user of an object of an earlier generation makes it
//! forget its waiters. (An object that the forking thread owns stays owned: POSIX has a handler of
//! `pthread_atfork` unlock it in the child.)
//!
//! `_Fork` and a bare system call run no handlers. So the kernel clears a mark in every
//! child with memory of its own, and the child begins its generation as soon as it uses an object
//! in another way than the fast path. On that, nothing of a thread that does not exist can be in
//! its way.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize};

use overlock::Linux;
use overlock_core::links::backoff_sleep;
use overlock_core::{Platform, Spin};
use overlock_linux::__private::{extras, system_call};

use crate::thread::me;
use crate::{cond, config, order, stat};

static GENERATION: AtomicU32 = AtomicU32::new(0);

/// Stands in for a generation while a thread updates the object to the new one.
const UPDATING: u32 = u32::MAX;

/// Returns the process's generation: the number of forks between the program's start and it.
#[inline]
pub fn generation() -> u32 {
    // Relaxed: written before the child's first other thread is created.
    GENERATION.load(Relaxed)
}

/// A page that the kernel clears in children.
#[derive(Debug)]
#[repr(C, align(4096))]
struct Mark {
    /// 0 in a child that has not begun its generation, or if the kernel was not asked.
    begun: AtomicU32,
    /// The thread that begins the generation, by its [name](me); 0 for none yet.
    by: AtomicUsize,
    unused: [u8; PAGE - 16],
}

const PAGE: usize = 4096;
const _: () = assert!(size_of::<Mark>() == PAGE);

static MARK: Mark = Mark::new();

/// Of [`Mark::begun`]: the generation is the process's.
const BEGUN: u32 = 2;

/// Whether the kernel clears [`MARK`].
static CLEARS: AtomicBool = AtomicBool::new(false);

/// Begins the generation of a child that has run no handlers.
#[inline(always)]
pub fn check() {
    // Acquire: pairs with the release of the thread that has begun it.
    if MARK.begun.load(Acquire) != BEGUN && CLEARS.load(Relaxed) {
        check_slowly();
    }
}

#[cold]
#[inline(never)]
fn check_slowly() {
    MARK.begin(begin);
}

impl Mark {
    const fn new() -> Self {
        Mark {
            begun: AtomicU32::new(0),
            by: AtomicUsize::new(0),
            unused: [0; PAGE - 16],
        }
    }

    /// Begins the generation by `begin`, or waits until another thread of the child has. A handler
    /// that interrupts its own thread in `begin` cannot wait for that: it begins once more, and the
    /// thread finishes what is done already.
    fn begin(&self, begin: impl FnOnce()) {
        // Relaxed: the names are told apart, and `begun` publishes the rest.
        match self.by.compare_exchange(0, me(), Relaxed, Relaxed) {
            Err(other) if other != me() => {
                // Acquire: pairs with the store below.
                while self.begun.load(Acquire) != BEGUN {
                    backoff_sleep::<Linux>();
                }
            }
            _ => {
                begin();
                // Release: pairs with `check` and the loop above.
                self.begun.store(BEGUN, Release);
            }
        }
    }
}

/// Begins a generation, in a child.
fn begin() {
    GENERATION.store(generation().wrapping_add(1) % (UPDATING - 1), Relaxed);
    // SAFETY: this is the child's only thread, or no other has waited: each wait begins with
    // `check`, and ends it for all.
    unsafe { Linux::after_fork() };
    cond::after_fork();
    stat::after_fork();
    order::after_fork();
    config::generation_changed();
}

/// Registers the handler that runs after fork() in the child, and asks the kernel to clear the mark
/// in all children.
pub fn register() {
    unsafe extern "C" fn child() {
        // Another handler may have used an object before this one.
        match CLEARS.load(Relaxed) {
            true => check(),
            false => begin(),
        }
    }
    // SAFETY: the handler has the type that is asked for. Registration fails only without memory;
    // then children keep the state of their parent.
    unsafe { libc::pthread_atfork(None, None, Some(child)) };
    let (mark, size) = (&raw const MARK, size_of::<Mark>());
    MARK.begun.store(BEGUN, Relaxed);
    let advise = |advice: i32| {
        // SAFETY: a page of this library's own; the call changes what a child finds there.
        unsafe { system_call!(libc::SYS_madvise, mark, size, advice) }
    };
    // Emulators may ignore all advice, and then there is none that they refuse.
    const NO_ADVICE: i32 = -1;
    let ask = || advise(NO_ADVICE) != 0 && advise(libc::MADV_WIPEONFORK) == 0;
    // SAFETY: it has no preconditions.
    let is_page = unsafe { libc::getauxval(libc::AT_PAGESZ) } as usize == PAGE;
    // Before Linux 4.14, and where a page has another size, there are only the handlers.
    let clears = is_page && extras::ask(ask) == Some(true);
    CLEARS.store(clears, Relaxed);
}

/// Polls of an object that another thread is updating, before the thread backs off. The update
/// takes a few stores.
const POLLS: u32 = 1000;

/// Updates an object to the process's generation, by `forget` if it is of another.
#[inline(always)]
pub fn update(of: &AtomicU32, forget: impl FnOnce()) {
    check();
    // Acquire, as in the loop below.
    if of.load(Acquire) != generation() {
        update_slowly(of, forget);
    }
}

#[cold]
fn update_slowly(of: &AtomicU32, forget: impl FnOnce()) {
    let now = generation();
    loop {
        let limit = Spin::Polls(POLLS);
        let Ok(seen) = Linux::wait_until(of, Acquire, limit, |seen: u32| seen != UPDATING) else {
            backoff_sleep::<Linux>();
            continue;
        };
        if seen == now {
            return;
        }
        // Acquire, as the load above: pairs with the store below.
        if of
            .compare_exchange(seen, UPDATING, Acquire, Relaxed)
            .is_ok()
        {
            forget();
            // Release: a thread that sees the generation sees what `forget` has stored.
            of.store(now, Release);
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails ("does not end") where a handler waits for the thread that it has interrupted.
    #[test]
    fn a_handler_that_interrupts_the_begin_of_a_generation_begins_it() {
        let (mark, mut begins) = (Mark::new(), 0);
        mark.begin(|| {
            mark.begin(|| begins += 1);
            assert_eq!(mark.begun.load(Relaxed), BEGUN);
        });
        assert_eq!(begins, 1);
    }

    /// Fails where both begin it.
    #[test]
    fn another_thread_waits_until_the_generation_has_begun() {
        let (mark, done) = (Mark::new(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            mark.begin(|| {
                scope.spawn(|| {
                    mark.begin(|| unreachable!("it is begun twice"));
                    assert!(done.load(Relaxed));
                });
                std::thread::sleep(std::time::Duration::from_millis(20));
                done.store(true, Relaxed);
            });
        });
    }
}
