//! The system calls: `futex`, the only one that is necessary, and `membarrier`, which may be
//! refused.
//!
//! They are [raw](super::syscall), so no function of the C library is called, `errno` stays as it
//! was, and no cancellation point is passed.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

use overlock_core::Deadline;
use overlock_core::platform::Kick;

use super::{Linux, extras, spin};

/// The commands of `membarrier`, by the kernel's numbers.
#[derive(Clone, Copy)]
pub(super) enum Membarrier {
    Expedited = 1 << 3,
    RegisterExpedited = 1 << 4,
}

/// Android's apps run under a filter that kills who makes a call that is not on its list. `futex`
/// is on it. `membarrier` and the `futex` with times of 64 bits, for machines of 32, came to the
/// list later, and `futex_waitv` has not.
const IS_FILTERED: bool = cfg!(target_os = "android");

/// Runs the command. False if the system refuses it.
pub(super) fn membarrier(what: Membarrier) -> bool {
    !cfg!(miri)
        && !IS_FILTERED
        // SAFETY: a barrier, or the right to one.
        && unsafe { crate::system_call!(libc::SYS_membarrier, what as i32, 0) } == 0
}

/// When to look at a clock of the program's own again. Not inlined: the stacks of waits are small.
#[cold]
#[inline(never)]
fn next_look(at: Deadline) -> u64 {
    at.instant::<Linux>().as_nanos()
}

/// `struct __kernel_timespec`: 64 bits on every machine.
#[repr(C)]
pub(super) struct Time {
    seconds: i64,
    nanos: i64,
}

impl Time {
    #[inline]
    pub(super) fn new(nanos: u64) -> Self {
        Time {
            seconds: (nanos / 1_000_000_000) as i64,
            nanos: (nanos % 1_000_000_000) as i64,
        }
    }
}

/// Returns the moment, and its clock.
fn timespec(at: Deadline) -> (Time, libc::clockid_t) {
    let (nanos, clock) = match at {
        Deadline::Monotonic(at) => (at.as_nanos(), libc::CLOCK_MONOTONIC),
        Deadline::Wall(nanos) => (nanos, libc::CLOCK_REALTIME),
        Deadline::Own { .. } => (next_look(at), libc::CLOCK_MONOTONIC),
    };
    (Time::new(nanos), clock)
}

/// As the type that Miri knows the call by.
fn address(until: Option<&Time>) -> *const libc::timespec {
    until.map_or(core::ptr::null(), |time| core::ptr::from_ref(time).cast())
}

/// The call that takes a [`Time`]: on machines of 32 bits it has a number of its own, the same on
/// all of them.
const FUTEX: libc::c_long = match cfg!(target_pointer_width = "64") {
    true => libc::SYS_futex,
    false => 422,
};

/// Any wake-up ends the sleep, whatever its bits are.
const MATCH_ANY: u32 = libc::FUTEX_BITSET_MATCH_ANY as u32;
/// A system call's answer: there is no such call.
const NO_CALL: isize = -(libc::ENOSYS as isize);

/// Sleeps by the call whose times have 32 bits, all that Linux before 5.1 has on such machines. A
/// moment after 2038 ends the sleep in 2038: spuriously, as any sleep may end.
#[cold]
#[inline(never)]
fn wait_by_old_call(
    word: &AtomicU32,
    operation: libc::c_int,
    expected: u32,
    until: Option<&Time>,
) -> isize {
    #[repr(C)]
    struct OldTime {
        seconds: i32,
        nanos: i32,
    }
    let until = until.map(|time| OldTime {
        seconds: i32::try_from(time.seconds).unwrap_or(i32::MAX),
        nanos: time.nanos as i32,
    });
    // SAFETY: a word, and a time or none, that outlive the call.
    unsafe {
        crate::system_call!(
            libc::SYS_futex,
            word.as_ptr(),
            operation,
            expected,
            until
                .as_ref()
                .map_or(core::ptr::null(), core::ptr::from_ref),
            core::ptr::null_mut::<u32>(),
            MATCH_ANY,
        )
    }
}

/// Makes the call, with an operation that takes a time or none. Returns the kernel's answer.
#[inline]
pub(super) fn until(
    word: &AtomicU32,
    operation: libc::c_int,
    expected: u32,
    until: Option<&Time>,
) -> isize {
    if FUTEX != libc::SYS_futex && IS_FILTERED {
        return wait_by_old_call(word, operation, expected, until);
    }
    // SAFETY: a word, and a time or none, that outlive the call.
    let answer = unsafe {
        crate::system_call!(
            FUTEX,
            word.as_ptr(),
            operation,
            expected,
            address(until),
            core::ptr::null_mut::<u32>(),
            MATCH_ANY,
        )
    };
    if FUTEX != libc::SYS_futex && answer == NO_CALL {
        return wait_by_old_call(word, operation, expected, until);
    }
    answer
}

/// Sleeps while the word has the expected value, and returns the kernel's answer.
#[inline]
pub fn sleep(word: &AtomicU32, expected: u32, end: Option<Deadline>) -> isize {
    let end = end.map(timespec);
    let mut operation = libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG;
    if let Some((_, libc::CLOCK_REALTIME)) = end {
        operation |= libc::FUTEX_CLOCK_REALTIME;
    }
    let end = end.as_ref().map(|(time, _)| time);
    until(word, operation, expected, end)
}

/// Sleeps, and returns whether the thread may have been kicked.
pub(super) fn wait(word: &AtomicU32, expected: u32, until: Option<Deadline>) -> bool {
    let since = super::clock::ticks();
    let woken = sleep(word, expected, until) == 0;
    if woken {
        spin::woken(word.as_ptr().addr(), since);
    }
    woken
}

/// Wakes the sleepers of the word at this address, which may be gone.
#[allow(clippy::not_unsafe_ptr_arg_deref)] // the kernel does not
pub(super) fn wake(word: *const AtomicU32, whom: Kick) {
    let most = match whom {
        Kick::One => 1u32,
        Kick::All => i32::MAX as u32,
    };
    spin::wakes(word.addr());
    // SAFETY: the kernel finds sleepers by the address, and does not touch the word. (Not
    // `word.addr()`: Miri finds them by the pointer's target.)
    unsafe {
        crate::system_call!(
            libc::SYS_futex,
            word.cast::<u32>().cast_mut(),
            libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
            most,
        )
    };
}

/// Moves a sleeper of `from` to `to`. False if the system refuses, as Miri does.
pub(super) fn requeue(from: &AtomicU32, to: &AtomicU32) -> bool {
    if cfg!(miri) {
        return false;
    }
    let operation = libc::FUTEX_REQUEUE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: as above, for both addresses.
    let moved = unsafe {
        crate::system_call!(
            libc::SYS_futex,
            from.as_ptr(),
            operation,
            0,
            1usize,
            to.as_ptr(),
        )
    };
    moved >= 0
}

/// Not 0: the system cannot let a thread sleep on two words, or is not to be called. A third word
/// of the sleepers on two.
static ONE_WORD: AtomicU32 = AtomicU32::new((cfg!(miri) || IS_FILTERED) as u32);

/// Ends sleeps on two words, and wakes those under way.
pub(super) fn give_up() {
    ONE_WORD.store(1, Relaxed);
    wake(&ONE_WORD, Kick::All);
}

/// Sleeps until one of two words differs from its expected value, or is kicked, or spuriously.
/// False if the system cannot do that.
pub(super) fn wait_either(words: [(&AtomicU32, u32); 2], until: Option<Deadline>) -> bool {
    if ONE_WORD.load(Relaxed) != 0 {
        return false;
    }
    let [word, other] = words;
    let answer = extras::ask(|| wait_any([word, other, (&ONE_WORD, 0)], until));
    let Some(answer) = answer else {
        return false;
    };
    const AGAIN: isize = -(libc::EAGAIN as isize);
    const INTERRUPTED: isize = -(libc::EINTR as isize);
    const LATE: isize = -(libc::ETIMEDOUT as isize);
    let done = matches!(answer, 0..|AGAIN| INTERRUPTED | LATE);
    if !done {
        give_up();
    }
    done
}

fn wait_any(words: [(&AtomicU32, u32); 3], until: Option<Deadline>) -> isize {
    /// `struct futex_waitv`.
    #[repr(C)]
    struct Wait {
        expected: u64,
        word: u64,
        flags: u32,
        reserved: u32,
    }
    const SIZE_U32: u32 = 2;
    let waits = words.map(|(word, expected)| Wait {
        expected: expected.into(),
        word: word.as_ptr().expose_provenance() as u64,
        flags: SIZE_U32 | libc::FUTEX_PRIVATE_FLAG as u32,
        reserved: 0,
    });
    let until = until.map(timespec);
    let (time, clock) = match &until {
        Some((time, clock)) => (Some(time), *clock),
        None => (None, libc::CLOCK_MONOTONIC),
    };
    // SAFETY: three waiters and a time, or none, that outlive the call.
    unsafe {
        crate::system_call!(
            libc::SYS_futex_waitv,
            waits.as_ptr(),
            3,
            0,
            address(time),
            clock,
        )
    }
}
