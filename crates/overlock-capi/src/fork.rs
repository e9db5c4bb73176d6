//! Children of fork: the platform's tables are put in order as soon as the child runs, each lock by
//! its own `after_fork`.

use overlock::Linux;

/// Runs when the library is loaded.
extern "C" fn register() {
    unsafe extern "C" fn child() {
        // SAFETY: the C library calls this in a child, which has one thread. The header asks
        // callers of fork for the rest.
        unsafe { Linux::after_fork() };
    }
    // SAFETY: the handler has the type that is asked for, and the library is never unloaded. It
    // fails only without memory; children are then as they would be without it.
    unsafe { libc::pthread_atfork(None, None, Some(child)) };
}

// SAFETY: the section is an array of such functions, which the loader calls.
#[used]
#[unsafe(link_section = ".init_array")]
static REGISTER: extern "C" fn() = register;
