//! Signal handlers: with `OVERLOCK_LOCKDEP`, the validator of lock order is told when one begins
//! and ends. Without it, each function here is glibc's.
//!
//! # How
//!
//! In place of the program's handler the kernel gets the address of a *stub*: a few instructions
//! that go to `enter` with their own address as one more argument. A stub is for one handler, for
//! ever: `HANDLERS` is only added to. So the kernel stays the only one that knows which handler a
//! signal has. There is nothing that another thread, a handler, or a child of vfork (which shares
//! our memory, and not its parent's handlers) could find half done; a signal that is under way
//! while its handler is replaced gets the handler that it was delivered to; the flags mean what
//! they mean, as each handler gets whatever the kernel gave the stub; and the old handler that a
//! program asks for is found by the stub's address alone, whoever has installed it.
//!
//! Beyond 1024 different handlers the program's own is installed, and not seen.
//!
//! # Handlers that are left by a jump
//!
//! A thread that calls `siglongjmp` or its kind is taken to leave all the handlers that it is in.
//! Where it jumps within one, the rest of that is seen as ordinary code: what it locks is then not
//! reported, where it could have been. The same goes for `setcontext`. One that is left by
//! an exception or `swapcontext` is taken to go on. (What `swapcontext` saves must be the program's
//! own frame, to which it may come back more than once.)

use core::ffi::{c_int, c_void};
use core::mem::transmute;
use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Release};
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use libc::{SIG_DFL, SIG_ERR, SIG_IGN};

use crate::real::{Early, missing};
use crate::{config, order};

/// The most handlers that are told apart.
const STUBS: usize = 1024;

/// Bytes of a stub.
const STUB: usize = 16;

/// The program's handler of each stub; 0 for a free one. What is not free does not change.
static HANDLERS: [AtomicUsize; STUBS] = [const { AtomicUsize::new(0) }; STUBS];

/// The stubs, one after the other. Each leaves all as it is but the register of a fourth argument,
/// which gets an address within it.
#[unsafe(naked)]
unsafe extern "C" fn stubs() {
    #[cfg(target_arch = "x86_64")]
    core::arch::naked_asm!(
        ".balign {size}, 0xcc",
        ".rept {count}",
        "lea rcx, [rip]",
        "jmp {enter}",
        ".balign {size}, 0xcc",
        ".endr",
        size = const STUB,
        count = const STUBS,
        enter = sym enter,
    );
    #[cfg(target_arch = "aarch64")]
    core::arch::naked_asm!(
        ".balign {size}",
        ".rept {count}",
        "adr x3, .",
        "b {enter}",
        ".balign {size}",
        ".endr",
        size = const STUB,
        count = const STUBS,
        enter = sym enter,
    );
}

/// The address of the first stub.
fn first() -> usize {
    (stubs as *const () as usize).next_multiple_of(STUB)
}

/// What has a stub there, if one has: its number.
fn number(address: usize) -> Option<usize> {
    let distance = address.checked_sub(first())?;
    (distance / STUB < STUBS).then_some(distance / STUB)
}

/// Where a stub goes: the program's handler, between two calls of the validator's. On the stack
/// there is nothing that would have to be dropped, should the handler jump, end the thread or
/// throw.
unsafe extern "C-unwind" fn enter(
    signal: c_int,
    info: *mut c_void,
    context: *mut c_void,
    stub: usize,
) {
    let Some(number) = number(stub) else { return };
    // Acquire: pairs with the release in `seen`.
    let handler = HANDLERS[number].load(Acquire);
    // SAFETY: the kernel has been given this stub for this handler only. It takes a signal's number
    // and, where the program has asked for them, the two others; they are passed in the
    // registers in which they came, which a function of fewer arguments does not look at.
    let handler: unsafe extern "C-unwind" fn(c_int, *mut c_void, *mut c_void) =
        unsafe { transmute(handler) };
    let before = order::enter_signal(signal);
    // SAFETY: this is the signal that the kernel delivers to it, with what belongs to it.
    unsafe { handler(signal, info, context) };
    order::exit_signal(before);
}

/// What stands for no function, but for something to be done: `SIG_DFL`, `SIG_IGN`, `SIG_HOLD` (2,
/// of `sigset`), `SIG_ERR`.
fn is_function(handler: usize) -> bool {
    ![SIG_DFL, SIG_IGN, 2, SIG_ERR].contains(&handler)
}

/// What the kernel gets for a handler.
fn seen(handler: usize) -> usize {
    if !is_function(handler) || number(handler).is_some() {
        return handler;
    }
    let start = handler.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    for step in 0..STUBS {
        let number = start.wrapping_add(step) % STUBS;
        // Release: pairs with the acquire in `enter`. Relaxed where it is this handler's or
        // another's already: then that is all there is to see.
        let before = HANDLERS[number].compare_exchange(0, handler, Release, Relaxed);
        if before.is_ok() || before == Err(handler) {
            return first() + number * STUB;
        }
    }
    handler
}

/// The program's handler for what the kernel has.
fn programs(handler: usize) -> usize {
    match number(handler) {
        // Relaxed: it was there before the kernel had the stub.
        Some(number) => HANDLERS[number].load(Relaxed),
        None => handler,
    }
}

static SIGACTION: Early = Early::new(c"sigaction");
static SIGNAL: Early = Early::new(c"signal");
static SYSV_SIGNAL: Early = Early::new(c"sysv_signal");
static SIGSET: Early = Early::new(c"sigset");
static LONGJMP: Early = Early::new(c"siglongjmp");
static LONGJMP_CHK: Early = Early::new(c"__longjmp_chk");
static SETCONTEXT: Early = Early::new(c"setcontext");

/// When the library is loaded.
pub fn start() {
    for function in [
        &SIGACTION,
        &SIGNAL,
        &SYSV_SIGNAL,
        &SIGSET,
        &LONGJMP,
        &LONGJMP_CHK,
        &SETCONTEXT,
    ] {
        function.find();
    }
}

/// `sigaction`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn sigaction(
    signal: c_int,
    new: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> c_int {
    type Sigaction =
        unsafe extern "C" fn(c_int, *const libc::sigaction, *mut libc::sigaction) -> c_int;
    let function = SIGACTION.get();
    if function.is_null() {
        return missing();
    }
    // SAFETY: glibc's function of this name has this type.
    let function: Sigaction = unsafe { transmute(function) };
    if !config::get().lockdep {
        // SAFETY: the caller's promise.
        return unsafe { function(signal, new, old) };
    }
    // SAFETY: the caller's promise: null, or valid for reads.
    let mut copy = unsafe { new.as_ref() }.copied();
    if let Some(copy) = &mut copy {
        copy.sa_sigaction = seen(copy.sa_sigaction);
    }
    let new = copy.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: the caller's promise for `old`; the rest is its own, but for a handler that does what
    // its does.
    let result = unsafe { function(signal, new, old) };
    if result != 0 {
        return result;
    }
    // SAFETY: the caller's promise: null, or valid for writes, and glibc has written to it.
    if let Some(old) = unsafe { old.as_mut() } {
        old.sa_sigaction = programs(old.sa_sigaction);
    }
    0
}

/// The functions that take a handler and return the one before.
unsafe fn exchange(function: &Early, signal: c_int, handler: usize) -> usize {
    let function = function.get();
    if function.is_null() {
        missing();
        return SIG_ERR;
    }
    // SAFETY: glibc's functions of these names have this type.
    let function: unsafe extern "C" fn(c_int, usize) -> usize = unsafe { transmute(function) };
    if !config::get().lockdep {
        // SAFETY: the caller's promise.
        return unsafe { function(signal, handler) };
    }
    // SAFETY: the caller's promise, and the stub does what the handler does.
    programs(unsafe { function(signal, seen(handler)) })
}

macro_rules! exchanging {
    ($($name:ident => $function:ident;)*) => {$(
        #[doc = concat!("`", stringify!($name), "`.")]
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub unsafe extern "C" fn $name(signal: c_int, handler: usize) -> usize {
            // SAFETY: the caller's promise.
            unsafe { exchange(&$function, signal, handler) }
        }
    )*};
}

exchanging! {
    signal => SIGNAL;
    bsd_signal => SIGNAL;
    ssignal => SIGNAL;
    sysv_signal => SYSV_SIGNAL;
    __sysv_signal => SYSV_SIGNAL;
    sigset => SIGSET;
}

/// Another name of [`sigaction`].
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn __sigaction(
    signal: c_int,
    new: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { sigaction(signal, new, old) }
}

/// Leaves the handlers that the thread is in.
fn leave() {
    if config::get().lockdep {
        order::leave_signals();
    }
}

unsafe fn jump(function: &Early, to: *mut c_void, value: c_int) -> ! {
    leave();
    let function = function.get();
    if function.is_null() {
        // SAFETY: it has no preconditions. There is no way to go on.
        unsafe { libc::abort() };
    }
    // SAFETY: glibc's functions of these names have this type.
    let function: unsafe extern "C-unwind" fn(*mut c_void, c_int) -> ! =
        unsafe { transmute(function) };
    // SAFETY: the caller's promise. Here, too, nothing would have to be dropped.
    unsafe { function(to, value) }
}

macro_rules! jumping {
    ($($name:ident => $function:ident;)*) => {$(
        #[doc = concat!("`", stringify!($name), "`.")]
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub unsafe extern "C-unwind" fn $name(to: *mut c_void, value: c_int) -> ! {
            // SAFETY: the caller's promise.
            unsafe { jump(&$function, to, value) }
        }
    )*};
}

jumping! {
    longjmp => LONGJMP;
    _longjmp => LONGJMP;
    siglongjmp => LONGJMP;
    __longjmp_chk => LONGJMP_CHK;
}

/// `setcontext`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn setcontext(to: *const c_void) -> c_int {
    leave();
    let function = SETCONTEXT.get();
    if function.is_null() {
        return missing();
    }
    // SAFETY: glibc's function of this name has this type.
    let function: unsafe extern "C-unwind" fn(*const c_void) -> c_int =
        unsafe { transmute(function) };
    // SAFETY: the caller's promise. As in `jump`.
    unsafe { function(to) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails where a stub is given anew, or to two.
    #[test]
    fn each_handler_has_a_stub_of_its_own_until_there_are_no_more() {
        let handlers: Vec<usize> = (0..STUBS + 2).map(|number| 0x10000 + number * 8).collect();
        let stubs: Vec<usize> = handlers.iter().map(|handler| seen(*handler)).collect();
        let known = stubs.iter().filter(|stub| number(**stub).is_some());
        assert_eq!(known.count(), STUBS);
        for (handler, stub) in handlers.iter().zip(&stubs) {
            assert_eq!(programs(*stub), *handler);
            assert_eq!(seen(*handler), *stub);
            // One that a program has found out by other means.
            assert_eq!(seen(*stub), *stub);
        }
        for what in [SIG_DFL, SIG_IGN, SIG_ERR, 2] {
            assert_eq!((seen(what), programs(what)), (what, what));
        }
    }
}
