//! Locks and signal handlers.
//!
//! A class that is waited for in the handler of a signal must not be held where that signal can arrive: the handler would wait for
//! the thread that it interrupted. For each class two sets of signals are kept, by whether readers or others used it: those in whose
//! handlers it was waited for, and those that were not blocked where it was acquired outside of handlers. A signal in both is reported.
//!
//! Asking the kernel for the mask takes a system call. It is asked at the first acquisition of a class, where a new
//! dependency is seen, and at each acquisition of a class that was waited for in a handler.

use std::fmt::{self, Write};
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU8, AtomicU64};

use super::class::{ClassId, NODES};
use super::out::Out;
use super::report::{self, Finding};
use super::thread::{Held, Thread};

struct Usage {
    /// What [`acquired`] has to look at: [`ASKED`], [`IN_HANDLERS`].
    flags: AtomicU8,
    /// Signals in whose handlers it was waited for: as one that only writers block, and otherwise.
    inside: [AtomicU64; 2],
    /// Signals that could arrive where it was acquired: as a reader, and otherwise.
    outside: [AtomicU64; 2],
}

/// The mask was asked for once.
const ASKED: u8 = 1;
/// Was waited for in a handler.
const IN_HANDLERS: u8 = 2;

static TABLE: [Usage; NODES] = [const {
    Usage {
        flags: AtomicU8::new(0),
        inside: [const { AtomicU64::new(0) }; 2],
        outside: [const { AtomicU64::new(0) }; 2],
    }
}; NODES];

fn usage(class: ClassId) -> &'static Usage {
    &TABLE[usize::from(class.index())]
}

impl Usage {
    /// The signals by which a holder's handler would wait for the holder.
    fn conflicts(&self) -> u64 {
        let [reads, waits] = [0, 1].map(|index| self.inside[index].load(Relaxed));
        let [read, held] = [0, 1].map(|index| self.outside[index].load(Relaxed));
        waits & (read | held) | reads & held
    }
}

pub(super) fn bit(signal: i32) -> u64 {
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
    let usage = usage(wanted.class);
    let index = usize::from(!wanted.how.is_recursive());
    usage.inside[index].fetch_or(me.signals().load(Relaxed), Relaxed);
    usage.flags.fetch_or(IN_HANDLERS, Relaxed);
    judge(me, wanted);
}

/// The thread has acquired it.
#[inline]
pub(super) fn acquired(me: &Thread, held: &Held) {
    if usage(held.class).flags.load(Relaxed) != ASKED {
        ask(me, held);
    }
}

/// Asks what could arrive.
#[cold]
#[inline(never)]
pub(super) fn ask(me: &Thread, held: &Held) {
    if held.class == ClassId::NONE || me.signals().load(Relaxed) != 0 {
        return; // in a handler: what it interrupted is looked at where that was acquired
    }
    let usage = usage(held.class);
    let index = usize::from(!held.how.is_shared());
    usage.outside[index].fetch_or(!blocked(), Relaxed);
    if usage.flags.fetch_or(ASKED, Relaxed) & IN_HANDLERS != 0 {
        judge(me, held);
    }
}

fn judge(me: &Thread, used: &Held) {
    let signals = usage(used.class).conflicts();
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

/// The signals that the thread has blocked.
fn blocked() -> u64 {
    let mut blocked = 0u64;
    if cfg!(miri) {
        return blocked;
    }
    // Past the C library, whose function the caller may have replaced. Not by its function: that takes a set of another size.
    // SAFETY: reads the mask into the 8 bytes that the size says.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_BLOCK,
            ptr::null::<u64>(),
            &raw mut blocked,
            size_of::<u64>(),
        )
    };
    blocked
}

/// Which signals, and where they come in.
pub(super) fn describe(out: &mut Out, signals: u64) -> fmt::Result {
    out.write_str("\nwhose class is waited for in handlers of these signals, and held where they can arrive:\n ")?;
    for signal in (1..=64).filter(|signal| signals & bit(*signal) != 0) {
        write!(out, " {signal}")?;
    }
    writeln!(out)
}
