//! Settings of the rules.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

static REPORTS_NESTING: AtomicBool = AtomicBool::new(false);
static TELLS_THREADS_APART: AtomicBool = AtomicBool::new(false);

/// The meaning of two locks of one class that are held together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
#[non_exhaustive]
pub enum Nesting {
    /// None, until two threads' orders of the same locks contradict each other: such locks are
    /// tracked one by one. The default.
    Follow = 0,
    /// A report, as in the kernel, unless the caller gives the levels ([`level`](super::level)).
    Report = 1,
}

/// Sets the meaning of two locks of one class, from now on.
pub fn set_nesting(nesting: Nesting) {
    // Relaxed, as all here: the value is the only data.
    REPORTS_NESTING.store(nesting == Nesting::Report, Relaxed);
}

/// The evidence for a deadlock that makes a cycle of dependencies worth a report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Evidence {
    /// The cycle, whichever threads have made its dependencies. The default: a test often has one
    /// thread where the program will have several.
    Orders,
    /// That different threads made its dependencies, which existed at one time: that of a program
    /// as it is. Other cycles are [counted](super::Tally::alone). One that was made before a
    /// second thread used a lock is reported when another thread uses a lock of it.
    Threads,
}

/// Sets what makes a cycle worth a report. Call it before there is a second thread.
pub fn set_evidence(evidence: Evidence) {
    TELLS_THREADS_APART.store(evidence == Evidence::Threads, Relaxed);
}

pub(super) fn nesting() -> Nesting {
    match REPORTS_NESTING.load(Relaxed) {
        true => Nesting::Report,
        false => Nesting::Follow,
    }
}

/// Whether a dependency is known with the threads that made it.
pub(super) fn tells_threads_apart() -> bool {
    TELLS_THREADS_APART.load(Relaxed)
}
