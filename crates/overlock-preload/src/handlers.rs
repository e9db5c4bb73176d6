//! Signal handlers. Each thread knows which signals it has handled, so that a wait that begins with
//! a spin ends as it would have in the kernel (`waits`). With `OVERLOCK_LOCKDEP`,
//! the lock validator learns when a handler begins and ends. Without spins and validator, each
//! function here is glibc's.
//!
//! # How
//!
//! In place of the program's handler the kernel gets the address of a *stub*: a few instructions
//! that jump to `pass` with their own address as one more argument. That jumps to the handler, and
//! leaves no frame of ours on the stack unless the validator is there. A stub belongs to one
//! handler for ever: `HANDLERS` is only added to. So only the kernel keeps which handler a signal
//! has, and this follows:
//!
//! - Other threads, signal handlers and children of vfork() never find a half-done update. (Such a
//!   child shares our memory, but not its parent's handlers.)
//! - A signal that is being delivered while its handler is replaced gets the handler that it was
//!   delivered to.
//! - Flags keep their meaning, as each handler gets all that the kernel gave the stub.
//! - The old handler that a program asks for is found by the stub's address alone.
//!
//! Beyond 1024 different handlers the program's own is installed, and nobody here sees it. Nor does
//! anybody see a handler that a program installs by a system call of its own.
//!
//! # Handlers left by a jump
//!
//! A thread that calls `siglongjmp`, `longjmp` or `setcontext` is assumed to leave all the handlers
//! that it runs. If it jumps within one, the rest of that handler is seen as ordinary code, so its
//! locks are not reported where they could have been. A handler that is left by an exception or by
//! `swapcontext` is assumed to go on. (`swapcontext` must save the program's own frame, to which it
//! may return more than once, so it cannot be interposed.)

use core::ffi::{c_int, c_void};
use core::mem::transmute;
use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Release};
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use libc::{SIG_DFL, SIG_ERR, SIG_IGN};
use overlock_linux::__private::{extras, jump_out, spin, system_call};

use crate::real::{Early, missing};
use crate::site::with_site;
use crate::thread::Wait;
use crate::{config, ends, order};

/// The number of different handlers that have stubs.
const STUBS: usize = 1024;

const STUB: usize = 16;

/// The program's handler of each stub; 0 for a free stub. An entry that is not 0 does not change.
static HANDLERS: [AtomicUsize; STUBS] = [const { AtomicUsize::new(0) }; STUBS];

/// The stubs, one after the other. Each changes only the register of a fourth argument, which gets
/// an address within the stub.
#[unsafe(naked)]
unsafe extern "C" fn stubs() {
    #[cfg(target_arch = "x86_64")]
    core::arch::naked_asm!(
        ".balign {size}, 0xcc",
        ".rept {count}",
        "lea rcx, [rip]",
        "jmp {pass}",
        ".balign {size}, 0xcc",
        ".endr",
        size = const STUB,
        count = const STUBS,
        pass = sym pass,
    );
    #[cfg(target_arch = "aarch64")]
    core::arch::naked_asm!(
        ".balign {size}",
        ".rept {count}",
        "adr x3, .",
        "b {pass}",
        ".balign {size}",
        ".endr",
        size = const STUB,
        count = const STUBS,
        pass = sym pass,
    );
}

/// The address of the first stub.
fn first() -> usize {
    (stubs as *const () as usize).next_multiple_of(STUB)
}

/// Returns the number of the stub at this address, if it is one.
fn number(address: usize) -> Option<usize> {
    let distance = address.checked_sub(first())?;
    (distance / STUB < STUBS).then_some(distance / STUB)
}

/// Target of the stubs: jumps to what [`note`] says, with all arguments.
#[unsafe(naked)]
unsafe extern "C" fn pass() {
    #[cfg(target_arch = "x86_64")]
    core::arch::naked_asm!(
        ".cfi_startproc",
        "push rdi",
        "push rsi",
        "push rdx",
        "push rcx",
        "sub rsp, 8",
        ".cfi_adjust_cfa_offset 40",
        "mov rsi, rcx",
        "call {note}",
        "add rsp, 8",
        "pop rcx",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        ".cfi_adjust_cfa_offset -40",
        "jmp rax",
        ".cfi_endproc",
        note = sym note,
    );
    #[cfg(target_arch = "aarch64")]
    core::arch::naked_asm!(
        "stp x29, x30, [sp, #-48]!",
        "stp x0, x1, [sp, #16]",
        "stp x2, x3, [sp, #32]",
        "mov x1, x3",
        "bl {note}",
        "mov x16, x0",
        "ldp x2, x3, [sp, #32]",
        "ldp x0, x1, [sp, #16]",
        "ldp x29, x30, [sp], #48",
        "br x16",
        note = sym note,
    );
}

/// Notes that the thread handles the signal. Returns the function to jump to.
unsafe extern "C" fn note(signal: c_int, stub: usize) -> usize {
    // The kernel ends a wait for its first signal, by the flags that this has then.
    if Wait::get() & (Wait::BEGUN | Wait::SIGNALLED) == Wait::BEGUN {
        let ends = if restarts(signal) { 0 } else { Wait::ENDS };
        Wait::add(Wait::SIGNALLED | ends);
    }
    match number(stub) {
        // Acquire: pairs with the release in `stub_of`.
        Some(number) if !config::get().lockdep => HANDLERS[number].load(Acquire),
        _ => enter as *const () as usize,
    }
}

/// Whether waits go on after the signal's handler.
fn restarts(signal: c_int) -> bool {
    /// The kernel's `struct sigaction`, as far as it is of interest, and room for the rest.
    #[repr(C)]
    struct Action {
        handler: usize,
        flags: usize,
        rest: [usize; 2],
    }
    let mut action = Action {
        handler: 0,
        flags: 0,
        rest: [0; 2],
    };
    let (none, old): (*const Action, _) = (ptr::null(), &raw mut action);
    // SAFETY: valid for the write; nothing is changed.
    let ask = || unsafe { system_call!(libc::SYS_rt_sigaction, signal, none, old, 8usize) };
    extras::ask(ask) == Some(0) && action.flags & libc::SA_RESTART as usize != 0
}

/// Calls the program's handler between two calls of the validator. No value
/// here needs to be dropped, should the handler jump, end the thread or throw.
unsafe extern "C-unwind" fn enter(
    signal: c_int,
    info: *mut c_void,
    context: *mut c_void,
    stub: usize,
) {
    let Some(number) = number(stub) else { return };
    // Acquire: pairs with the release in `stub_of`.
    let handler = HANDLERS[number].load(Acquire);
    // SAFETY: the kernel has been given this stub for this handler only. It takes a signal's number
    // and, where the program has asked for them, the two others. They are passed in the registers
    // in which they came, which a function of fewer arguments does not read.
    let handler: unsafe extern "C-unwind" fn(c_int, *mut c_void, *mut c_void) =
        unsafe { transmute(handler) };
    let before = order::enter_signal(signal);
    // SAFETY: this is the signal that the kernel delivers to it, with its arguments.
    unsafe { handler(signal, info, context) };
    order::exit_signal(before);
}

/// Whether it is a function, and not one of `SIG_DFL`, `SIG_IGN`, `SIG_HOLD` (2, of `sigset`),
/// `SIG_ERR`.
fn is_function(handler: usize) -> bool {
    ![SIG_DFL, SIG_IGN, 2, SIG_ERR].contains(&handler)
}

/// Returns the stub for a handler; the handler itself if none is wanted, it is no function or a
/// stub, or no stub is free.
fn stub_of(handler: usize) -> usize {
    let is_wanted = spin::is_on() || config::get().lockdep || cfg!(test);
    if !is_wanted || !is_function(handler) || number(handler).is_some() {
        return handler;
    }
    let start = handler.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    for step in 0..STUBS {
        let number = start.wrapping_add(step) % STUBS;
        // Release: pairs with the acquires in `note` and `enter`. Relaxed if the stub is this
        // handler's or another's already: then no other data depends on it.
        let before = HANDLERS[number].compare_exchange(0, handler, Release, Relaxed);
        if before.is_ok() || before == Err(handler) {
            return first() + number * STUB;
        }
    }
    order::signal_handlers_are_full();
    handler
}

/// Returns the program's handler for the address that the kernel has.
fn programs(handler: usize) -> usize {
    match number(handler) {
        // Relaxed: it was stored before the kernel got the stub.
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

/// Looks all functions up when the library is loaded.
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
    // SAFETY: the caller's promise: null, or valid for reads.
    let mut copy = unsafe { new.as_ref() }.copied();
    if let Some(copy) = &mut copy {
        copy.sa_sigaction = stub_of(copy.sa_sigaction);
    }
    let new = copy.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: the caller's promise for `old`; `new` is a copy of the caller's, with a stub that
    // does what the handler does.
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

/// Calls a function that sets a handler and returns the one before.
unsafe fn exchange(function: &Early, signal: c_int, handler: usize) -> usize {
    let function = function.get();
    if function.is_null() {
        missing();
        return SIG_ERR;
    }
    // SAFETY: glibc's functions of these names have this type.
    let function: unsafe extern "C" fn(c_int, usize) -> usize = unsafe { transmute(function) };
    // SAFETY: the caller's promise, and the stub does what the handler does.
    programs(unsafe { function(signal, stub_of(handler)) })
}

macro_rules! exchanging {
    ($($name:ident => $function:ident;)*) => {$(
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

with_site! {
    // An old name.
    fn __sigaction(3) => sigaction;
}

/// Reports that the thread leaves all handlers that it runs.
pub(crate) fn leave() {
    jump_out();
    ends::has_again();
    if Wait::swap(0) & Wait::INSIDE != 0 {
        extras::jump_out();
    }
    if config::get().lockdep {
        order::leave_signals();
    }
}

unsafe fn jump(function: &Early, to: *mut c_void, value: c_int) -> ! {
    leave();
    let function = function.get();
    if function.is_null() {
        // SAFETY: it has no preconditions. This function cannot return.
        unsafe { libc::abort() };
    }
    // SAFETY: glibc's functions of these names have this type.
    let function: unsafe extern "C-unwind" fn(*mut c_void, c_int) -> ! =
        unsafe { transmute(function) };
    // SAFETY: the caller's promise. No value here needs to be dropped.
    unsafe { function(to, value) }
}

macro_rules! jumping {
    ($($name:ident => $function:ident;)*) => {$(
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

    /// Fails where a stub is reused, or given to two handlers.
    #[test]
    fn each_handler_has_its_own_stub_until_none_is_free() {
        let handlers: Vec<usize> = (0..STUBS + 2).map(|number| 0x10000 + number * 8).collect();
        let stubs: Vec<usize> = handlers.iter().map(|handler| stub_of(*handler)).collect();
        let known = stubs.iter().filter(|stub| number(**stub).is_some());
        assert_eq!(known.count(), STUBS);
        for (handler, stub) in handlers.iter().zip(&stubs) {
            assert_eq!(programs(*stub), *handler);
            assert_eq!(stub_of(*handler), *stub);
            // The program may know the stub's address.
            assert_eq!(stub_of(*stub), *stub);
        }
        for what in [SIG_DFL, SIG_IGN, SIG_ERR, 2] {
            assert_eq!((stub_of(what), programs(what)), (what, what));
        }
    }
}
