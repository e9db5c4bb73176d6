//! Waits of programs that call `syscall` for their futexes: Rust's std, crossbeam, rayon,
//! parking_lot, GLib, libstdc++, Abseil, TBB.
//!
//! The [policy](overlock_linux::__private::spin) stands before FUTEX_WAIT and FUTEX_WAIT_BITSET. A
//! thread that spins looks as if it had been slow to enter the kernel, which may happen to any
//! thread. If the word changes meanwhile, the answer is that of a kernel that finds another value:
//! EAGAIN. If a signal is handled that the kernel would end the wait for, it is EINTR. All else
//! goes on to the next `syscall`.
//!
//! A word of this process alone is polled by loads, after the kernel has read it once. One that is
//! shared with others may be on a page that goes away, as when its file is truncated: there the
//! kernel looks each time.

use core::cell::Cell;
use core::ffi::{c_int, c_long};
use core::mem;
use core::sync::atomic::AtomicU32;

use libc::timespec;
use overlock_linux::__private::spin::{self, Spun, Watch};
use overlock_linux::__private::{clock, extras, system_call};
use overlock_shared::ObjectKind;

use crate::config;
use crate::sandbox::{result, syscall_slowly};
use crate::stat;
use crate::thread::Wait;

/// The bits of an operation that are not its number.
const OPTIONS: c_int = libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME;

/// `syscall` of SYS_futex.
pub(crate) unsafe extern "C-unwind" fn futex(
    number: c_long,
    word: usize,
    operation: usize,
    value: usize,
    time: usize,
    other: usize,
    mask: usize,
) -> c_long {
    let next = || {
        // SAFETY: the caller's promise.
        unsafe { syscall_slowly(number, word, operation, value, time, other, mask) }
    };
    match operation as c_int & !OPTIONS {
        libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET if is_valid(operation as c_int, mask) => {
            let waits = stat::Event::begin();
            let spun = spin_futex(word, operation as c_int, value as u32, time);
            let answer = match spun {
                Spun::Ready | Spun::AtOnce => result(ANOTHER),
                Spun::Interrupted => result(-libc::EINTR as isize),
                Spun::Over | Spun::Unfit | Spun::Needless => {
                    let since = spin::now();
                    let answer = next();
                    if answer == 0 {
                        spin::woken(word, since);
                    }
                    answer
                }
            };
            if let Some(waits) = waits {
                let error = std::io::Error::last_os_error().raw_os_error();
                let is_change = error == Some(libc::EAGAIN);
                let gave_up = answer < 0 && !is_change;
                stat::keeping_errno(|| waits.over(word, ObjectKind::Futex, 0, gave_up));
            }
            answer
        }
        libc::FUTEX_WAKE | libc::FUTEX_WAKE_BITSET | libc::FUTEX_WAKE_OP => {
            spin::wakes(word);
            next()
        }
        _ => next(),
    }
}

/// Whether the kernel compares the word: it refuses some arguments before.
fn is_valid(operation: c_int, mask: usize) -> bool {
    match operation & !OPTIONS == libc::FUTEX_WAIT_BITSET {
        true => mask as u32 != 0,
        false => operation & libc::FUTEX_CLOCK_REALTIME == 0,
    }
}

/// The kernel's answer for a word with another value.
const ANOTHER: isize = -(libc::EAGAIN as isize);

/// Looks at the word as the kernel does: a requeue of nobody, which compares it. 0 if it has this
/// value; the kernel's errno if there is no word at this address.
fn look(word: usize, value: u32) -> isize {
    let operation = libc::FUTEX_CMP_REQUEUE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the kernel checks the address. It moves no sleeper.
    unsafe { system_call!(libc::SYS_futex, word, operation, 0u32, 0usize, word, value) }
}

/// Spins before a wait for a futex. Interrupted only if the kernel would say EINTR.
fn spin_futex(word: usize, operation: c_int, value: u32, time: usize) -> Spun {
    let is_private = operation & libc::FUTEX_PRIVATE_FLAG != 0;
    // A wait with an end is not restarted after a handler.
    interruptibly(word, time != 0, |until| {
        if !is_far(operation, time) {
            return Spun::Unfit;
        }
        let spins = || {
            let word = core::ptr::with_exposed_provenance_mut(word);
            // SAFETY: the kernel has read a word there, a moment ago. A program that unmaps it and
            // waits for it is on its own: docs/design/spins.md.
            spin::until_changed(unsafe { AtomicU32::from_ptr(word) }, value, until)
        };
        if is_private && was_seen(word, until) {
            return spins();
        }
        match look(word, value) {
            0 if is_private => {
                SEEN.set((word, until));
                spins()
            }
            0 => spin_looking(word, value, until),
            ANOTHER => Spun::AtOnce,
            // The kernel says why.
            _ => Spun::Needless,
        }
    })
}

thread_local! {
    /// The address of a word that the kernel has read for this thread, and the end of that spin.
    static SEEN: Cell<(usize, u64)> = const { Cell::new((0, 0)) };
}

/// For how long a look at a word or a file is good enough, in [`spin::now`]'s unit.
pub(crate) const SIGHT: u64 = 1_000_000;

fn was_seen(word: usize, now: u64) -> bool {
    let (seen, at) = SEEN.get();
    seen == word && now.saturating_sub(at) < SIGHT
}

/// The shortest time to the end of a wait with a spin, so that it is late by a twentieth at most.
pub(crate) const LEAST_NS: i64 = 1_000_000;

/// Whether the wait's end is far enough away.
fn is_far(operation: c_int, time: usize) -> bool {
    if time == 0 {
        return true;
    }
    if !is_readable(time, size_of::<timespec>()) {
        return false;
    }
    let time: *const timespec = core::ptr::with_exposed_provenance(time);
    // SAFETY: the kernel has just read it.
    let time = unsafe { time.read_unaligned() };
    if !is_time(&time) {
        return false;
    }
    if operation & !OPTIONS == libc::FUTEX_WAIT_BITSET {
        let clock = match operation & libc::FUTEX_CLOCK_REALTIME {
            0 => libc::CLOCK_MONOTONIC,
            _ => libc::CLOCK_REALTIME,
        };
        return is_far_by(clock, &time);
    }
    nanos(&time) >= LEAST_NS
}

/// Whether the kernel takes it for a time: it refuses others, whatever the state of the object.
pub(crate) fn is_time(time: &timespec) -> bool {
    time.tv_sec >= 0 && (0..1_000_000_000).contains(&time.tv_nsec)
}

/// The time in nanoseconds.
pub(crate) fn nanos(time: &timespec) -> i64 {
    time.tv_sec
        .saturating_mul(1_000_000_000)
        .saturating_add(time.tv_nsec)
}

/// Whether this moment of the clock is far enough away.
fn is_far_by(clock: libc::clockid_t, end: &timespec) -> bool {
    nanos(end).saturating_sub_unsigned(clock::read(clock)) >= LEAST_NS
}

fn spin_looking(word: usize, value: u32, until: u64) -> Spun {
    let watch = Watch::begin();
    while look(word, value) == 0 {
        if watch.has_noticed() {
            return Spun::Interrupted;
        }
        if spin::now() >= until {
            return Spun::Over;
        }
        core::hint::spin_loop();
    }
    // Or there is no page any more: the caller loads the word, or asks the kernel, once more.
    Spun::Ready
}

/// Whether the kernel can read both ends of so many bytes, which are fewer than a page.
pub(crate) fn is_readable(address: usize, bytes: usize) -> bool {
    let is_readable = |address: usize| look(address & !3, 0) != -(libc::EFAULT as isize);
    is_readable(address) && is_readable(address + bytes - 1)
}

/// Whether the kernel can write both ends of so many bytes, which are fewer than a page. It stores
/// something there.
pub(crate) fn is_writable(address: usize, bytes: usize) -> bool {
    let none: *const u64 = core::ptr::null();
    let is_writable = |address: usize| {
        let how = libc::SIG_BLOCK;
        // SAFETY: the kernel checks the address, where it stores the mask. It changes nothing else.
        unsafe { system_call!(libc::SYS_rt_sigprocmask, how, none, address, 8usize) == 0 }
    };
    is_writable(address) && is_writable(address + bytes - 8)
}

/// Spins by the policy, which calls `poll` with the time of its end, or does not. `poll` looks at
/// least once, and may make system calls. `Interrupted` only if a signal was handled that ends the
/// wait: by a handler without SA_RESTART, or by any.
pub(crate) fn interruptibly(
    object: usize,
    ends_by_any: bool,
    mut poll: impl FnMut(u64) -> Spun,
) -> Spun {
    if config::leaves_others() {
        return Spun::Unfit;
    }
    let mut poll = |until| {
        let Some(inside) = extras::enter() else {
            return Spun::Unfit;
        };
        Wait::add(Wait::INSIDE);
        let spun = poll(until);
        // Unless a handler has jumped, and left in the thread's place.
        if Wait::remove(Wait::INSIDE) & Wait::INSIDE == 0 {
            mem::forget(inside);
        }
        // A signal does not say that anybody wants the CPU.
        match spun {
            Spun::Interrupted if Wait::get() & Wait::SIGNALLED != 0 => Spun::Over,
            spun => spun,
        }
    };
    let before = Wait::swap(Wait::BEGUN);
    let mut spun = spin::spin(object, false, &mut poll);
    let state = Wait::swap(before);
    let is_signalled = state & Wait::SIGNALLED != 0;
    if is_signalled && matches!(spun, Spun::Over | Spun::Interrupted) {
        // The kernel looks at the object before it looks for signals.
        spun = poll(spin::now());
    }
    let is_ended = is_signalled && (ends_by_any || state & Wait::ENDS != 0);
    match spun {
        Spun::Over | Spun::Interrupted if is_ended => Spun::Interrupted,
        Spun::Interrupted => Spun::Over,
        spun => spun,
    }
}

/// Spins on a word that lives as long as the call, before a semaphore's wait.
pub(crate) fn spin_interruptibly(word: &AtomicU32, expected: u32, is_timed: bool) -> Spun {
    interruptibly(word.as_ptr().addr(), is_timed, |until| {
        spin::until_changed(word, expected, until)
    })
}
