//! Validates lock order while the program runs.
//!
//! A deadlock needs an unlucky moment; the lock order that makes it possible exists all the time.
//! The validator notes which classes of locks are taken while which others are held. It reports the
//! first acquisition whose order contradicts an earlier one, though nothing has gone wrong yet. The
//! ideas are those of the Linux kernel's lockdep, from its published description. Findings, cost,
//! and how to read a report: `docs/use/lock-order.md` in the repository.
//!
//! The types of crate `overlock` call it with their feature `lockdep`. The functions below serve
//! locks of any kind, such as replaced functions of a C library. They allocate nothing, never
//! panic, call no function of pthread, and leave `errno` alone. They may be called before `main`
//! and in signal handlers.
//!
//! # Calls around an acquisition
//!
//! 1. [`acquire`], before: validates the order, and reports a thread that would wait for itself
//!    before it does.
//! 2. If the lock is not free: [`begin_wait`], the wait, [`end_wait`]. They report a deadlock as it
//!    happens.
//! 3. [`acquired`], after.
//! 4. [`release`], before the lock is released.
//!
//! ```standalone_crate
//! use overlock_lockdep::{self as lockdep, How, Site};
//!
//! # lockdep::set_output(-1);
//! let class = lockdep::class_named("example");
//! let lock = 0x1000; // an address
//! lockdep::acquire(lock, class, How::EXCLUSIVE, Site::here());
//! // ... lock it ...
//! lockdep::acquired(lock, class, How::EXCLUSIVE, Site::here());
//! lockdep::acquire(lock, class, How::EXCLUSIVE, Site::here());
//! assert_eq!(lockdep::reports(), 1);
//! lockdep::release(lock);
//! ```
//!
//! For an acquisition that does not wait, call [`acquired`] alone, with [`How::trying`]. A thread
//! calls [`thread_exits`] at its end; the child of a fork calls [`fork_child`]. With the feature
//! `hooks` both calls happen by themselves.
#![deny(missing_docs)]

#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;
mod check;
mod class;
mod gate;
mod graph;
#[cfg(feature = "hooks")]
mod hooks;
mod mapped;
mod notice;
mod out;
mod report;
mod signal;
mod site;
mod symbol;
mod symtab;
mod tally;
mod thread;
mod trace;
mod wait;

use std::sync::atomic::Ordering::Relaxed;

pub use class::ClassId;
pub use site::{How, Site};
pub use tally::{Tally, set_tally};

use class::Origin;
use gate::Gate;
use graph::Graph;
use mapped::Mapped;
use report::Finding;
use thread::Held;
use trace::Trace;

/// Protects the tables of classes and dependencies.
static GATE: Gate = Gate::new();

/// Capacity for dependencies, and for what is known of others.
const EDGES: usize = if cfg!(miri) { 256 } else { 1 << 16 };

static GRAPH: Mapped<Graph<{ class::NODES }, EDGES, { 4 * EDGES }>> = Mapped::new();

/// Returns an edge of a path in the graph.
fn edge(number: u32) -> graph::Edge {
    // SAFETY: all paths are this graph's: there is no other.
    unsafe { GRAPH.edge(number) }
}

/// The meaning of two locks of one class that are held together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
#[non_exhaustive]
pub enum Nesting {
    /// None, until two threads' orders of the same locks contradict each other: such locks are
    /// tracked one by one. The default.
    Follow = 0,
    /// A report, as in the kernel, unless the caller gives the levels ([`level`]).
    Report = 1,
}

/// Sets the meaning of two locks of one class, from now on.
pub fn set_nesting(nesting: Nesting) {
    check::set_nesting(nesting);
}

/// Sets the output for reports as text: a file descriptor, 2 at first; negative for none.
pub fn set_output(fd: i32) {
    out::TEXT.store(fd, Relaxed);
}

/// Makes reports leave out callers in the object that contains this code: for a library without
/// code of the program's.
pub fn hide_own_frames() {
    trace::hide_own();
}

/// Sets the path of a FIFO (of up to 255 bytes) for reports as text. While a process has it open
/// for reading, reports go there, and not to [`set_output`]'s descriptor.
///
/// Each address of code or of a lock in them is marked, for a reader with debug information. The
/// mark is `\x1f`, the path of its object, `\x1f`, the offset from the object's load address in
/// hexadecimal, `\x1f`, the unmarked text, and `\x1e`.
///
/// Call it before there is a second thread.
pub fn set_reader(path: &std::ffi::CStr) {
    out::set_reader(path);
}

/// Sets the output for reports as lines of JSON: a file descriptor; negative for none, as at first.
pub fn set_json(fd: i32) {
    out::JSON.store(fd, Relaxed);
}

/// Returns the class of that name; equal names are one class.
pub fn class_named(name: &'static str) -> ClassId {
    class::class_of(Origin::Named(name))
}

/// Returns the class of the locks initialised at that place. [`ClassId::NONE`] for [`Site::NONE`].
pub fn class_of_site(site: Site) -> ClassId {
    if site == Site::NONE {
        return ClassId::NONE;
    }
    class::class_of(Origin::Site(site))
}

/// Returns the class for locks of `class` that are taken after others of it, in an order that the
/// caller knows: 1 after 0, which is `class` itself, 2 after 1.
pub fn level(class: ClassId, level: u8) -> ClassId {
    if level == 0 || class == ClassId::NONE {
        return class;
    }
    class::class_of(Origin::Level(class, level))
}

/// A lock is initialised at this address: its class is that of the place. Many programs initialise
/// all locks in one function. So if `site` is a code address, the callers of that function count
/// too, as far as a backtrace shows them.
pub fn lock_init(lock: usize, site: Site) {
    lock_destroy(lock);
    let class = match Trace::here(site).init(site) {
        Some(init) => class::class_of(Origin::Init(init)),
        None => class_of_site(site),
    };
    class::set_class(lock, class);
}

/// The lock is destroyed; its memory may become another's.
pub fn lock_destroy(lock: usize) {
    let class = class::known_class(lock).unwrap_or(ClassId::NONE);
    class::forget(lock, class);
}

/// Returns the class of the lock at this address: that of [`lock_init`], or one of its own for a
/// lock with a static initialiser.
#[inline]
pub fn class_of_lock(lock: usize) -> ClassId {
    match class::known_class(lock) {
        Some(class) => class,
        None => class_of_new(lock),
    }
}

#[cold]
fn class_of_new(lock: usize) -> ClassId {
    let class = class::class_of(Origin::Lock(lock));
    class::set_class(lock, class);
    class
}

fn held(lock: usize, class: ClassId, how: How, site: Site) -> Held {
    Held {
        lock,
        member: lock,
        class,
        how,
        site,
    }
}

/// The calling thread is about to wait for the lock, if it is not free.
#[inline]
pub fn acquire(lock: usize, class: ClassId, how: How, site: Site) {
    if !how.is_trying() {
        __private::wanted(&held(lock, class, how, site));
    }
}

/// The calling thread has acquired the lock.
// Always inlined, as those below: the held lock's fields then stay in registers, and the thread's
// record is found once.
#[inline(always)]
pub fn acquired(lock: usize, class: ClassId, how: How, site: Site) {
    __private::holds(&held(lock, class, how, site));
}

/// The calling thread is about to release the lock. If the validator has not seen it acquire the
/// lock, another thread may have.
#[inline]
pub fn release(lock: usize) {
    if !releases(lock)
        && let Some(_me) = thread::enter()
    {
        thread::lose(lock);
    }
}

/// As [`release`], for a lock that only its holder may release. Reports a release by a thread if
/// another one is known to hold it.
#[inline(always)]
pub fn release_own(lock: usize, site: Site) {
    if !releases(lock) {
        release_others(lock, site);
    }
}

/// Whether the calling thread was seen to hold it, and does not any more.
#[inline(always)]
fn releases(lock: usize) -> bool {
    thread::enter_known().is_some_and(|me| me.release(lock))
}

#[cold]
#[inline(never)]
fn release_others(lock: usize, site: Site) {
    if let Some(me) = thread::enter()
        && let Some((holder, held)) = thread::lose(lock)
    {
        let at = Held {
            site: site.or_caller(),
            ..held
        };
        let holder = Some((holder, held));
        report::make(&me, &Finding::Release { at, holder });
    }
}

/// The calling thread releases a free lock: reports it.
#[cold]
pub fn release_free(lock: usize, class: ClassId, site: Site) {
    if let Some(me) = thread::enter() {
        let at = held(lock, class, How::EXCLUSIVE, site.or_caller());
        report::make(&me, &Finding::Release { at, holder: None });
    }
}

/// The calling thread is about to hold the lock in another mode, without waiting: a writer becomes
/// a reader.
pub fn downgrade(lock: usize, how: How) {
    if let Some(me) = thread::enter_known() {
        me.change(lock, how);
    }
}

/// The calling thread begins to wait for the lock. Reports a deadlock that this completes.
pub fn begin_wait(lock: usize, class: ClassId, how: How, site: Site) {
    if !how.is_trying() {
        __private::waits(&held(lock, class, how, site));
    }
}

/// The wait has ended.
pub fn end_wait(lock: usize) {
    if let Some(me) = thread::enter_known() {
        wait::end(&me, lock);
    }
}

/// Whether threads wait for each other now; reports it.
pub fn check_deadlock() -> bool {
    thread::enter().is_some_and(|me| wait::check(&me))
}

/// The calling thread is about to sleep, or to wait for something other than a lock. Warns if it
/// holds a lock other than `but` (0 for none): that of a condition variable.
pub fn sleeps(but: usize, site: Site) {
    let Some(me) = thread::enter_known() else {
        return;
    };
    if let Some(held) = me.held().find(|held| held.lock != but) {
        let site = site.or_caller();
        let at = Held { site, ..held };
        report::make(&me, &Finding::Sleep { held, at });
    }
}

/// Has each thread call `hook` when the validator first meets it, and again when it meets it after
/// [`thread_exits`], so that the hook can arrange for that call. It may run in a signal handler.
/// There is one hook. With the feature `hooks` it is set from the start, and calls
/// [`thread_exits`].
pub fn on_thread(hook: fn()) {
    thread::set_hook(hook);
}

/// The calling thread ends. Reports the locks that it holds. If the thread calls other functions
/// afterwards, it has to call this again.
pub fn thread_exits() {
    let Some(me) = thread::enter_known() else {
        return;
    };
    if let Some(held) = me.held().next() {
        report::make(&me, &Finding::Exit { held });
    }
    thread::give(me);
}

/// After fork() in the child: forget the other threads, their locks and waits.
pub fn fork_child() {
    GATE.reset();
    report::reset();
    thread::only_this_is_left();
}

/// The calling thread enters the handler of a signal. Pass the result to [`exit_signal`].
pub fn enter_signal(signal: i32) -> u64 {
    let Some(me) = thread::enter() else {
        return 0; // the handler has interrupted this function or another of the validator's: see `thread`
    };
    let before = me.signals().load(Relaxed);
    // The child of a vfork has its parent's record, and need not return from the handler.
    if me.is_this() {
        me.signals().store(before | signal::bit(signal), Relaxed);
    }
    before
}

/// The handler ends. Takes the result of [`enter_signal`].
pub fn exit_signal(before: u64) {
    if let Some(me) = thread::enter_known() {
        me.signals().store(before, Relaxed);
    }
}

/// The calling thread leaves its handlers by a jump.
pub fn leave_signals() {
    if let Some(me) = thread::enter_known() {
        me.signals().store(0, Relaxed);
    }
}

/// Returns the number of mistakes found, without warnings, for a program's exit status for example.
pub fn reports() -> usize {
    report::counts()[0]
}

/// Returns the number of warnings: sleeping with locks held.
pub fn warnings() -> usize {
    report::counts()[1]
}

/// Returns the number of classes.
pub fn classes() -> usize {
    class::count()
}

/// Returns the number of dependencies.
pub fn dependencies() -> usize {
    GRAPH.edges()
}
