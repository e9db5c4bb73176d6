//! Reports: a finding in the format that users of the kernel's validator know, and as a line of
//! JSON.
//!
//! Nothing here allocates, and no reporting thread is inside the gate: names come from the loader,
//! which has a lock of its own. For the same reason, a thread that reports waits for another report
//! to end, but not for ever.

mod json;
mod text;

use std::fmt::{self, Write};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::class::ClassId;
use super::gate::{Gate, Quiet};
use super::graph::Path;
use super::out::{JSON, Out};
use super::site::Site;
use super::tally::{self, Tally};
use super::thread::{Held, Thread};
use super::trace::Trace;
use super::wait::Circle;
use overlock_linux::__private::extras;

/// A mistake, or a future one.
pub(super) enum Finding<'a> {
    /// The requested class was held somewhere where, over some steps, `held` was requested.
    Order {
        held: Held,
        wanted: Held,
        path: &'a Path,
        note: Note,
    },
    /// Another lock of the same class is held.
    Class {
        held: Held,
        wanted: Held,
    },
    /// The thread waits for itself.
    Again {
        held: Held,
        wanted: Held,
    },
    /// Readers that would wait for a writer between them.
    ReadAgain {
        held: Held,
        wanted: Held,
    },
    /// A handler may interrupt the holder of a lock that the handler waits for.
    Signal {
        used: Held,
        signals: u64,
    },
    /// A class that handlers wait for was held where, over some steps, a class was requested that
    /// they can interrupt. `last` has completed it.
    Chain {
        last: Held,
        waits: ClassId,
        interrupts: ClassId,
        signals: u64,
        path: &'a Path,
    },
    /// It is about to release a lock that it does not hold; the known holder.
    Release {
        at: Held,
        holder: Option<(u32, Held)>,
    },
    /// The thread is at its end.
    Exit {
        held: Held,
    },
    Sleep {
        held: Held,
        at: Held,
    },
    /// Threads that wait for each other now.
    Deadlock(&'a Circle),
}

/// More about a cycle.
#[derive(Clone, Copy)]
pub(super) enum Note {
    None,
    /// The shortest cycle cannot happen, and the search for another was given up.
    Unknown,
    /// Only one thread has used a lock so far.
    Only,
    /// Thread `by` made it before another one had used a lock. Now another one does.
    Early {
        used: Held,
        by: u32,
    },
}

impl Finding<'_> {
    fn kind(&self) -> (u8, &'static str, &'static str) {
        match self {
            Finding::Order {
                note: Note::Only, ..
            } => (
                10,
                "order-of-one",
                "locks in two orders, on the only thread so far",
            ),
            Finding::Order { .. } => (0, "order", "possible circular locking dependency detected"),
            Finding::Class { .. } => (1, "class", "possible recursive locking within a class"),
            Finding::Again { .. } => (
                2,
                "recursion",
                "recursive locking: the thread waits for itself",
            ),
            Finding::ReadAgain { .. } => (
                3,
                "read-recursion",
                "possible deadlock of a reader with itself: a writer may come between",
            ),
            Finding::Signal { .. } => (
                4,
                "signal",
                "inconsistent use of a lock in a signal handler",
            ),
            Finding::Chain { .. } => (
                CHAIN,
                "signal-chain",
                "possible circular locking dependency through a signal handler",
            ),
            Finding::Release { .. } => (9, "release", "release of a lock that is not held"),
            Finding::Exit { .. } => (5, "exit", "thread exits with locks held"),
            Finding::Sleep { .. } => (6, "sleep", "sleeping with locks held"),
            Finding::Deadlock(_) => (7, "deadlock", "deadlock detected"),
        }
    }

    fn is_warning(&self) -> bool {
        match self {
            Finding::Sleep { .. } => true,
            Finding::Order { note, .. } => matches!(note, Note::Only),
            _ => false,
        }
    }

    /// The place of the finding.
    fn site(&self) -> Site {
        match self {
            Finding::Order {
                note: Note::Early { used, .. },
                ..
            } => used.site,
            Finding::Order { wanted, .. }
            | Finding::Class { wanted, .. }
            | Finding::Again { wanted, .. }
            | Finding::ReadAgain { wanted, .. } => wanted.site,
            Finding::Signal { used, .. } => used.site,
            Finding::Chain { last, .. } => last.site,
            Finding::Sleep { at, .. } | Finding::Release { at, .. } => at.site,
            Finding::Exit { .. } | Finding::Deadlock(_) => Site::NONE,
        }
    }

    /// The identity under which it is reported once.
    fn about(&self) -> (usize, usize) {
        let subject = |held: &Held| super::class::subject(held.class.node());
        let family = |held: &Held| super::class::subject(super::class::family(held.class.node()));
        match self {
            Finding::Order { held, wanted, .. } => {
                let [a, b] = [held, wanted].map(subject);
                (a.min(b), a.max(b))
            }
            Finding::Class { wanted, .. }
            | Finding::Again { wanted, .. }
            | Finding::ReadAgain { wanted, .. } => (family(wanted), 0),
            Finding::Signal { used, .. } => (family(used), 0),
            Finding::Chain {
                waits, interrupts, ..
            } => ends(*waits, *interrupts),
            Finding::Exit { held } => (family(held), held.site.to_bits()),
            Finding::Release { at, .. } => (family(at), at.site.to_bits()),
            Finding::Sleep { held, at } => (family(held), at.site.to_bits()),
            Finding::Deadlock(circle) => circle.about(),
        }
    }
}

const CHAIN: u8 = 8;

fn ends(waits: ClassId, interrupts: ClassId) -> (usize, usize) {
    (
        super::class::subject(waits.node()),
        super::class::subject(interrupts.node()),
    )
}

/// Whether a [`Finding::Chain`] between the two has been reported.
pub(super) fn is_reported_chain(waits: ClassId, interrupts: ClassId) -> bool {
    let (a, b) = ends(waits, interrupts);
    super::notice::is_reported(CHAIN, a, b)
}

/// Begins the line of JSON behind a report for the reader of the FIFO.
const FOR_PROGRAMS: char = '\x1d';

static REPORTS: AtomicU32 = AtomicU32::new(0);
static WARNINGS: AtomicU32 = AtomicU32::new(0);

/// Errors found, and warnings.
pub(super) fn counts() -> [usize; 2] {
    [&REPORTS, &WARNINGS].map(|count| count.load(Relaxed) as usize)
}

/// The reporting thread.
static REPORT: Gate = Gate::new();

/// The longest wait for another report, whose thread may be stuck for reasons of the program's.
const TIMEOUT: Duration = Duration::from_millis(200);

pub(super) fn reset() {
    REPORT.reset();
}

/// Reports the finding, unless one like it was reported.
#[cold]
#[inline(never)]
pub(super) fn make(me: &Thread, finding: &Finding<'_>) {
    let (number, name, title) = finding.kind();
    let (a, b) = finding.about();
    if !super::notice::first(number, a, b) {
        return;
    }
    let _errno = Errno::keep();
    let (count, in_tally): (_, fn(&Tally) -> &AtomicU32) = match finding.is_warning() {
        true => (&WARNINGS, |tally| &tally.warnings),
        false => (&REPORTS, |tally| &tally.reports),
    };
    // A collector that parks this thread may need what the loader and the reader hold meanwhile.
    let quiet = Quiet::begin();
    let _endable = quiet.endable();
    let trace = Trace::here(finding.site());
    let _report = REPORT.enter_within(TIMEOUT, &quiet);
    // An `Out` does not fail.
    if let Some(mut out) = Out::text() {
        let _marks = out.marks();
        let _ = text::write(&mut out, me, finding, title, &trace);
        if out.has_reader() {
            let _ = out.write_char(FOR_PROGRAMS);
            let _ = json::write(&mut out, me, finding, (name, title), &trace);
        }
    }
    if let Some(mut out) = Out::new(&JSON) {
        let _ = json::write(&mut out, me, finding, (name, title), &trace);
    }
    // After the report is readable: another thread may poll the number.
    count.fetch_add(1, Relaxed);
    tally::add(in_tally);
}

/// Restores `errno` when dropped: the functions that lock leave it alone.
struct Errno(i32);

impl Errno {
    fn keep() -> Errno {
        // SAFETY: no preconditions.
        let place = unsafe { libc::__errno_location() };
        // SAFETY: the thread's own.
        Errno(unsafe { *place })
    }
}

impl Drop for Errno {
    fn drop(&mut self) {
        // SAFETY: no preconditions.
        let place = unsafe { libc::__errno_location() };
        // SAFETY: the thread's own.
        unsafe { *place = self.0 };
    }
}

/// Returns the calling thread's name and number.
struct Task(u32);

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut name = [0u8; 16]; // the kernel's limit
        if !cfg!(miri) && extras::are_granted() {
            // SAFETY: writes at most 16 bytes, the last of them 0.
            unsafe {
                overlock_linux::__private::system_call!(
                    libc::SYS_prctl,
                    libc::PR_GET_NAME,
                    name.as_mut_ptr()
                )
            };
        }
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(16);
        for chunk in name[..end].utf8_chunks() {
            f.write_str(chunk.valid())?;
        }
        write!(f, "/{}", self.0)
    }
}
