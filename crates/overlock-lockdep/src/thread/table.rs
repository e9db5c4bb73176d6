//! The threads' records, and their owners.

use std::cell::Cell;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, compiler_fence};
use std::{mem, ptr};

use overlock_linux::__private::calls::thread_id;

use super::super::class::ClassId;
use super::super::gate::is_blind;
use super::super::lives;
use super::{Held, THREADS, Thread};
use crate::mapped::{Mapped, Zeroed};

// SAFETY: zero bytes are a valid value of each field: a free record.
unsafe impl Zeroed for Thread {}

static TABLE: Mapped<[Thread; THREADS]> = Mapped::new();

/// One more than the highest record that was ever in use.
static IN_USE: AtomicUsize = AtomicUsize::new(0);

/// Threads that went unseen, since all records were taken.
pub(in super::super) static UNSEEN: AtomicU32 = AtomicU32::new(0);

/// Stands in for the record of threads that have none: always busy.
static WITHOUT: Thread = Thread {
    busy: AtomicBool::new(true),
    ..Thread::INIT
};

thread_local! {
    /// The thread's record, once it has looked for one; [`WITHOUT`] if none was free.
    static MINE: Cell<Option<&'static Thread>> = const { Cell::new(None) };
}

/// All records that may be in use.
pub(in super::super) fn all() -> &'static [Thread] {
    // Acquire: pairs with `take`; a thread that is seen to hold or wait for a lock is in this
    // range.
    let in_use = IN_USE.load(Acquire);
    match TABLE.get().filter(|_| in_use != 0) {
        Some(table) => &table[..in_use.min(THREADS)],
        None => &[],
    }
}

/// A thread that was not seen to acquire the lock is about to release it. Returns the number of the
/// thread that was seen to hold it exclusively, and its acquisition.
pub(in super::super) fn lose(lock: usize) -> Option<(u32, Held)> {
    all()
        .iter()
        .find_map(|thread| Some((thread.id(), thread.lose(lock)?)))
}

/// The calling thread's record, with exclusive access: no handler touches it until this is dropped
/// (T3).
pub(in super::super) struct Entered(&'static Thread);

impl std::ops::Deref for Entered {
    type Target = Thread;

    #[inline]
    fn deref(&self) -> &Thread {
        self.0
    }
}

impl Drop for Entered {
    #[inline]
    fn drop(&mut self) {
        // SeqCst, for the compiler only: there are only the thread's own handlers to keep out.
        compiler_fence(SeqCst);
        self.0.busy.store(false, Relaxed);
    }
}

/// `None` where the thread has no record, or is inside already.
#[inline]
pub(in super::super) fn enter() -> Option<Entered> {
    match MINE.get() {
        None => take().enter(),
        Some(thread) => thread.enter(),
    }
}

/// As [`enter`], without taking a record.
#[inline]
pub(in super::super) fn enter_known() -> Option<Entered> {
    MINE.get()?.enter()
}

/// The calling thread jumps out of its handlers. One may have interrupted the validator, whose call
/// then never ends.
pub(in super::super) fn leave() {
    if let Some(thread) = MINE.get().filter(|thread| !ptr::eq(*thread, &WITHOUT)) {
        thread.busy.store(false, Relaxed);
    }
}

/// Whether the calling thread has [nothing to check](Thread::is_idle).
#[inline]
pub(in super::super) fn is_idle() -> bool {
    MINE.get().is_some_and(Thread::is_idle)
}

/// See [`Thread::last_class`], of the calling thread.
#[inline]
pub(in super::super) fn last_class(lock: usize, mark: u32) -> Option<ClassId> {
    MINE.get()?.last_class(lock, mark)
}

impl Thread {
    #[inline]
    fn enter(&'static self) -> Option<Entered> {
        if self.busy.load(Relaxed) {
            return None;
        }
        self.busy.store(true, Relaxed);
        // SeqCst, for the compiler only, as in `drop`.
        compiler_fence(SeqCst);
        Some(Entered(self))
    }
}

#[cold]
#[inline(never)]
fn take() -> &'static Thread {
    if is_blind() {
        MINE.set(Some(&WITHOUT));
        return &WITHOUT;
    }
    let id = thread_id();
    let table = TABLE.get().map_or(&[][..], |table| table);
    let found = table.iter().position(|thread| {
        // Acquire: pairs with `give`, whose thread emptied the record.
        thread.id() == 0 && (thread.id.compare_exchange(0, id, Acquire, Relaxed)).is_ok()
    });
    if let Some(thread) = MINE.get() {
        // A handler has interrupted this, and has taken one for the thread.
        if let Some(index) = found {
            table[index].id.store(0, Release); // pairs with the acquire above
        }
        return thread;
    }
    let thread = match found {
        Some(index) => {
            // Release: pairs with `all`.
            IN_USE.fetch_max(index + 1, Release);
            &table[index]
        }
        None => {
            UNSEEN.fetch_add(1, Relaxed);
            &WITHOUT
        }
    };
    MINE.set(Some(thread));
    if found.is_some() {
        // Relaxed: the sum is the only data.
        TAKEN.fetch_add(1, Relaxed);
        hook();
    }
    thread
}

/// How often a thread has taken a record.
static TAKEN: AtomicU32 = AtomicU32::new(0);

/// Whether more than one thread has used a lock.
pub(in super::super) fn are_several() -> bool {
    TAKEN.load(Relaxed) > 1
}

/// The hook of threads that take a record: a `fn()`.
static HOOK: AtomicPtr<()> = AtomicPtr::new({
    #[cfg(feature = "hooks")]
    let hook: fn() = crate::hooks::thread_begins;
    #[cfg(not(feature = "hooks"))]
    let hook: fn() = || ();
    hook as *mut ()
});

pub(in super::super) fn set_hook(hook: fn()) {
    // Relaxed, as below: the address is the only data.
    HOOK.store(hook as *mut (), Relaxed);
}

fn hook() {
    let hook = HOOK.load(Relaxed);
    // SAFETY: only such functions are ever stored.
    let hook = unsafe { mem::transmute::<*mut (), fn()>(hook) };
    hook();
}

/// The thread ends: its record becomes free. If it still takes a lock, it gets another record.
pub(in super::super) fn give(thread: Entered) {
    lives::end(thread.life.load(Relaxed));
    thread.clear();
    let record = thread.0;
    drop(thread);
    MINE.set(None);
    // Release: pairs with the acquire in `take`.
    record.id.store(0, Release);
}

/// After fork() in the child: the calling thread has another id, and is the only one.
pub(in super::super) fn only_this_is_left() {
    let mine = MINE.get();
    if is_blind() {
        MINE.set(Some(&WITHOUT));
    }
    for thread in all() {
        if mine.is_some_and(|mine| ptr::eq(mine, thread)) {
            let id = thread_id();
            thread.id.store(id, Relaxed);
            lives::goes_on(thread.life.load(Relaxed));
        } else {
            lives::end(thread.life.load(Relaxed));
            thread.clear();
            thread.busy.store(false, Relaxed);
            thread.id.store(0, Release); // pairs with the acquire in `take`
        }
    }
}
