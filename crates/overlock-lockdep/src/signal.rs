//! Locks and signal handlers.
//!
//! A class that is waited for in the handler of a signal must not be held where that signal can
//! arrive: the handler would wait for the thread that it interrupted. For each class two sets of
//! signals are kept, separately for readers and others. One has the signals in whose handlers it
//! was waited for, the other those that were not blocked when it was acquired outside of handlers.
//! A signal in both is reported.
//!
//! The rule also holds over several steps. A class A that is waited for in the handler must not be
//! held while a class B is requested, perhaps through others, if B is held where the signal can
//! arrive. The handler would wait for a thread that waits for the interrupted one. So the
//! [graph](super::graph) is searched for such a class from each class of a handler. The search runs
//! whichever part comes last: a wait in a handler, a dependency, or a signal that was not blocked.
//!
//! Two threads that complete it together do not miss each other. One publishes for which signals a
//! class matters ([`matters`](Usage::matters), U1), then loads how it was acquired
//! ([`outside`](Usage::outside), U2). The other publishes how it was acquired (U3), then loads for
//! which signals it matters (U4). All four are sequentially consistent, so one of them sees what
//! the other has published. Dependencies are added and followed inside the gate.
//!
//! The signal mask costs a system call. It is read at the first acquisition of a class, at a new
//! dependency, and at each acquisition of a class that matters to a handler, until all signals in
//! question were seen.

use std::cell::Cell;
use std::fmt::{self, Write};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

use super::check::Known;
use super::class::{self, ClassId, Nodes};
use super::gate::{self, Quiet};
use super::out::Out;
use super::report::{self, Finding};
use super::site::How;
use super::thread::{Held, Thread};
use super::{GATE, GRAPH, notice};
use crate::mapped::Zeroed;

struct Usage {
    /// Reasons for [`acquired`] to check the class: [`ASKED`], [`MATTERS`], [`WATCHED`].
    flags: AtomicU8,
    /// Signals in whose handlers it was waited for: in a mode that only writers block, and
    /// otherwise.
    inside: [AtomicU64; 2],
    /// Signals that could arrive when it was acquired: as a reader, and otherwise.
    outside: [AtomicU64; 2],
    /// Signals whose handlers wait for it, or for a class that leads to it.
    matters: AtomicU64,
}

/// The mask was read once.
const ASKED: u8 = 1;
/// [`Usage::matters`] is not empty.
const MATTERS: u8 = 2;
/// [`check::watched`](super::check::watched) is to know of each use.
const WATCHED: u8 = 4;

/// The signals of a thread's own faults, and of `abort`.
pub(super) const SYNCHRONOUS: u64 = bit(libc::SIGSEGV)
    | bit(libc::SIGBUS)
    | bit(libc::SIGFPE)
    | bit(libc::SIGILL)
    | bit(libc::SIGTRAP)
    | bit(libc::SIGSYS)
    | bit(libc::SIGABRT);

/// The classes that were waited for in handlers, and their number. Beyond the capacity they are
/// checked for themselves, and not for what they lead to.
static WAITED: [AtomicU32; 1024] = [const { AtomicU32::new(0) }; 1024];
static WAITED_COUNT: AtomicU32 = AtomicU32::new(0);

// SAFETY: zero bytes are a valid value of each field.
unsafe impl Zeroed for Usage {}

static TABLE: Nodes<Usage> = Nodes::new();

/// `None` without memory.
fn usage(class: ClassId) -> Option<&'static Usage> {
    TABLE.make(class.node() as usize)
}

/// The node is free, and will be another lock's.
pub(super) fn forget(node: u32) {
    if let Some(usage) = TABLE.get(node as usize) {
        usage.flags.store(0, Relaxed);
        usage.matters.store(0, Relaxed);
        for index in [0, 1] {
            usage.inside[index].store(0, Relaxed);
            usage.outside[index].store(0, Relaxed);
        }
    }
}

impl Usage {
    /// Returns the signals by which a holder's handler would wait for the holder.
    fn conflicts(&self) -> u64 {
        let [reads, waits] = [0, 1].map(|index| self.inside[index].load(Relaxed));
        // U2
        let [read, held] = [0, 1].map(|index| self.outside[index].load(SeqCst));
        waits & (read | held) | reads & held
    }

    /// Returns the signals that could arrive at an acquisition which blocks a requester: a
    /// recursive reader, or any other.
    fn open(&self, as_reader: bool) -> u64 {
        // U2
        let [read, held] = [0, 1].map(|index| self.outside[index].load(SeqCst));
        if as_reader { held } else { read | held }
    }

    fn matters_to(&self, signals: u64) {
        // Relaxed: a thread that misses this checks at its next acquisition of the class.
        self.flags.fetch_or(MATTERS, Relaxed);
        // U1
        self.matters.fetch_or(signals, SeqCst);
    }
}

pub(super) const fn bit(signal: i32) -> u64 {
    match signal {
        1..=64 => 1 << (signal - 1),
        _ => 0,
    }
}

/// The thread, in a handler, is about to wait for it.
#[cold]
pub(super) fn waits(me: &Thread, wanted: &Held) {
    if wanted.class == ClassId::NONE {
        return;
    }
    let Some(usage) = usage(wanted.class) else {
        return;
    };
    let index = usize::from(!wanted.how.is_recursive());
    let signals = me.signals().load(Relaxed);
    if usage.inside[index].fetch_or(signals, Relaxed) & signals == signals {
        return; // nothing new
    }
    let node = wanted.class.node();
    if !waited().any(|waited| waited == node) {
        let count = WAITED_COUNT.fetch_add(1, Relaxed);
        match WAITED.get(count as usize) {
            Some(place) => place.store(node, Relaxed),
            None => notice::once(notice::WAITED),
        }
    }
    usage.matters_to(signals);
    judge(me, wanted);
    chains_of(me, wanted.class, wanted);
}

fn waited() -> impl Iterator<Item = u32> {
    let count = WAITED_COUNT.load(Relaxed) as usize;
    WAITED.iter().take(count).map(|node| node.load(Relaxed))
}

#[inline]
pub(super) fn acquired(me: &Thread, held: &Held) {
    let usage = TABLE.get(held.class.node() as usize);
    if usage.is_none_or(|usage| usage.flags.load(Relaxed) != ASKED) {
        check(me, held);
    }
}

#[cold]
#[inline(never)]
fn check(me: &Thread, held: &Held) {
    let Some(usage) = usage(held.class) else {
        return;
    };
    if usage.flags.load(Relaxed) & WATCHED != 0 {
        super::check::watched(me, held);
    }
    let seen = usage.outside[usize::from(!held.how.is_shared())].load(Relaxed);
    let asked = usage.flags.load(Relaxed) & ASKED != 0;
    if !(asked && usage.matters.load(Relaxed) & !seen == 0) {
        ask(me, held);
    }
}

/// Uses of this class are to be [watched](super::check::watched).
pub(super) fn watch(class: u32) {
    if let Some(usage) = TABLE.make(class as usize) {
        usage.flags.fetch_or(WATCHED, Relaxed);
    }
}

pub(super) fn watch_no_more(class: u32) {
    if let Some(usage) = TABLE.get(class as usize) {
        usage.flags.fetch_and(!WATCHED, Relaxed);
    }
}

/// Reads which signals could arrive.
#[cold]
#[inline(never)]
pub(super) fn ask(me: &Thread, held: &Held) {
    if held.class == ClassId::NONE || me.signals().load(Relaxed) != 0 {
        return; // in a handler: the interrupted code's locks were checked when they were acquired
    }
    let Some(usage) = usage(held.class) else {
        return;
    };
    let index = usize::from(!held.how.is_shared());
    let open = !blocked();
    // U3
    let new = open & !usage.outside[index].fetch_or(open, SeqCst);
    usage.flags.fetch_or(ASKED, Relaxed);
    // U4
    if new & usage.matters.load(SeqCst) != 0 {
        judge(me, held);
        chains(me, held);
    }
}

/// Checks all that a handler's wait may lead to; `last` is the part that was missing.
pub(super) fn chains(me: &Thread, last: &Held) {
    for node in waited() {
        chains_of(me, ClassId::new(node, 0), last);
    }
}

fn chains_of(me: &Thread, class: ClassId, last: &Held) {
    let Some(start) = usage(class) else {
        return;
    };
    // A request that waits behind everything is searched first: it finds all that the other would.
    for (index, how) in [(1, How::EXCLUSIVE), (0, How::SHARED_RECURSIVE)] {
        // A class held where the signal can arrive has been reported for that.
        let signals = start.inside[index].load(Relaxed) & !start.conflicts();
        if signals == 0 {
            continue;
        }
        let arrive = Cell::new(0);
        let mut is_end = |end: u32, as_reader| {
            let end = class::family(end);
            let Some(usage) = TABLE.make(end as usize) else {
                return false;
            };
            usage.matters_to(signals);
            arrive.set(signals & usage.open(as_reader) & !usage.conflicts());
            arrive.get() != 0 && !report::is_reported_chain(class, ClassId::new(end, 0))
        };
        // Until all are reported; by then all that matter are marked.
        loop {
            let quiet = Quiet::begin();
            let found = GATE.enter(&quiet).and_then(|inside| {
                let start = (class.node(), how);
                GRAPH.leads(start, &mut is_end, &Known(&inside), &inside)
            });
            drop(quiet);
            let Some((end, path)) = found else { break };
            let finding = Finding::Chain {
                last: *last,
                waits: class,
                interrupts: ClassId::new(class::family(end), 0),
                signals: arrive.get(),
                path: &path,
            };
            report::make(me, &finding);
        }
    }
}

fn judge(me: &Thread, used: &Held) {
    let signals = usage(used.class).map_or(0, Usage::conflicts);
    if signals != 0 {
        report::make(
            me,
            &Finding::Signal {
                used: *used,
                signals,
            },
        );
    }
}

/// Returns the signals that the thread has blocked.
fn blocked() -> u64 {
    match cfg!(miri) {
        true => 0,
        false => gate::mask(libc::SIG_BLOCK, None),
    }
}

pub(super) fn list(out: &mut Out, signals: u64) -> fmt::Result {
    out.write_char(' ')?;
    for signal in (1..=64).filter(|signal| signals & bit(*signal) != 0) {
        write!(out, " {signal}")?;
    }
    writeln!(out)
}
