//! Children of fork: a handler repairs the platform's tables as soon as the child runs. Each lock
//! has an `after_fork` of its own.

use overlock::Linux;

/// Runs when the library is loaded.
extern "C" fn register() {
    unsafe extern "C" fn child() {
        // SAFETY: the C library calls this in a child, which has one thread. The header asks
        // callers of fork for the rest.
        unsafe { Linux::after_fork() };
    }
    // SAFETY: the handler has the required type, and the library is never unloaded. The call fails
    // only without memory; children then lack the repair.
    unsafe { libc::pthread_atfork(None, None, Some(child)) };
}

// SAFETY: the section is an array of such functions, which the loader calls.
#[used]
#[unsafe(link_section = ".init_array")]
static REGISTER: extern "C" fn() = register;
