//! Validates lock order while the program runs.
//!
//! A deadlock needs an unlucky moment; the lock order that makes it possible exists all the time.
//! The validator notes which classes of locks are taken while which others are held. It reports the
//! first acquisition whose order contradicts an earlier one, though nothing has gone wrong yet. The
//! ideas are those of the Linux kernel's lockdep, from its published description. Findings, cost,
//! and how to read a report: `docs/use/lock-order.md` in the repository.
//!
//! The types of crate `overlock` call it with their feature `lockdep`. The functions below serve
//! locks of any kind, such as replaced functions of a C library. They allocate nothing (but
//! [`deadlocks`]), never panic, call no function of pthread, and leave `errno` alone. They may be
//! called before `main` and in signal handlers.
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

#[cfg(not(target_os = "linux"))]
compile_error!(
    "overlock-lockdep works on Linux only. A program for other systems too names the features \
     `lockdep` and `deadlock_detection` of overlock under \
     [target.'cfg(target_os = \"linux\")'.dependencies]"
);

#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;
mod check;
mod class;
mod gate;
mod graph;
#[cfg(feature = "hooks")]
mod hooks;
mod lives;
mod locks;
mod mapped;
mod notice;
mod out;
mod report;
mod settings;
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
pub use settings::{Evidence, Nesting, set_evidence, set_nesting};
pub use site::{How, Site};
pub use tally::{Tally, set_tally};

use class::Origin;
use gate::{Gate, Inside};
use graph::Graph;
use report::Finding;
use std::sync::atomic::AtomicU32;
use thread::Held;

/// Protects the tables of classes, locks and dependencies.
static GATE: Gate = Gate::new();

static GRAPH: Graph = Graph::new();

/// Makes room where many locks are gone.
fn sweep(inside: &Inside<'_>) {
    if class::wants_sweep() {
        sweep_now(inside);
    }
}

fn sweep_now(inside: &Inside<'_>) {
    GRAPH.sweep(&check::Known(inside), inside);
    class::sweep(inside, signal::forget);
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
/// hexadecimal, `\x1f`, the unmarked text, and `\x1e`. Behind each report comes a line of `\x1d`
/// and the same as JSON, as for [`set_json`].
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
    init(lock, None, site);
}

/// As [`lock_init`], for a lock with a [mark](class_of_marked).
pub fn lock_init_marked(lock: usize, mark: &AtomicU32, site: Site) {
    init(lock, Some(mark), site);
}

fn init(lock: usize, mark: Option<&AtomicU32>, site: Site) {
    // A lock that is held is made anew, or its memory was reused: in a child of fork, often.
    drop_held(lock);
    locks::init(lock, mark, site);
}

fn drop_held(lock: usize) {
    if let Some(me) = thread::enter_known() {
        me.drop_all(lock);
    }
}

/// The lock is destroyed; its memory may become another's.
pub fn lock_destroy(lock: usize) {
    drop_held(lock);
    locks::forget(lock);
}

/// Returns the class of the lock at this address: that of [`lock_init`], or one of its own for a
/// lock with a static initialiser.
#[inline]
pub fn class_of_lock(lock: usize) -> ClassId {
    locks::class_of(lock)
}

/// As [`class_of_lock`], for a lock that has four unused bytes: its mark, which is 0 at first. The
/// validator writes it, so it knows a new lock, that was never destroyed, in reused memory.
#[inline]
pub fn class_of_marked(lock: usize, mark: &AtomicU32) -> ClassId {
    locks::class_of_marked(lock, mark)
}

/// Returns the class of the lock at this address, if it is known.
pub fn known_class(lock: usize) -> Option<ClassId> {
    locks::known(lock)
}

fn held(lock: usize, class: ClassId, how: How, site: Site) -> Held {
    Held {
        lock,
        class: class.at(lock),
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
    if __private::releases(lock) {
        return;
    }
    if let Some(_me) = thread::enter() {
        thread::lose(lock);
    }
}

/// As [`release`], for a lock that only its holder may release. Reports a release by a thread if
/// another one is known to hold it.
#[inline(always)]
pub fn release_own(lock: usize, site: Site) {
    if !__private::releases(lock) {
        release_others(lock, site);
    }
}

#[cold]
#[inline(never)]
fn release_others(lock: usize, site: Site) {
    let Some(me) = thread::enter() else {
        return;
    };
    let Some((holder, held)) = thread::lose(lock) else {
        return;
    };
    if locks::is_current(lock, held.class) {
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

/// Returns the threads that wait for each other now, or for themselves, by the kernel's numbers.
/// Each list is a deadlock; cycles with a thread in common are one.
/// Deadlocks that were returned before are left out; two threads that ask at a time may both get
/// one. A wait with a limit is none. It allocates: not for signal handlers.
pub fn deadlocks() -> Vec<Vec<u32>> {
    wait::untold()
}

/// The calling thread is about to sleep, or to wait for something other than a lock. Warns if it
/// holds a lock other than `but` (0 for none): that of a condition variable.
pub fn sleeps(but: usize, site: Site) {
    let Some(me) = thread::enter_known() else {
        return;
    };
    let is_other = |held: &Held| held.lock != but && locks::is_current(held.lock, held.class);
    if let Some(held) = me.held().find(is_other) {
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
    let is_current = |held: &Held| locks::is_current(held.lock, held.class);
    if let Some(held) = me.held().find(is_current) {
        report::make(&me, &Finding::Exit { held });
    }
    thread::give(me);
}

/// After fork() in the child: forget the other threads, their locks and waits.
pub fn fork_child() {
    GATE.inherit();
    report::reset();
    thread::only_this_is_left();
    if gate::is_blind() {
        notice::once(notice::BLIND);
    }
}

/// The caller has no room for a further handler of a signal: its calls of [`enter_signal`] are
/// missing. Says so once.
pub fn signal_handlers_are_full() {
    notice::once(notice::HANDLERS);
}

/// The calling thread enters the handler of a signal. Pass the result to [`exit_signal`].
///
/// `SIGSEGV`, `SIGBUS`, `SIGFPE`, `SIGILL`, `SIGTRAP`, `SIGSYS` and `SIGABRT` count as ordinary
/// code: the thread itself has brought them about, where it is.
pub fn enter_signal(signal: i32) -> u64 {
    let Some(me) = thread::enter() else {
        return 0; // the handler has interrupted this function or another of the validator's: see `thread`
    };
    let before = me.signals().load(Relaxed);
    // The child of a vfork has its parent's record, and need not return from the handler.
    // The signals of a thread's own faults come at a place of its own choice.
    if me.is_this() && signal::bit(signal) & signal::SYNCHRONOUS == 0 {
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
    thread::leave();
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

/// The examples of the crate's page are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
