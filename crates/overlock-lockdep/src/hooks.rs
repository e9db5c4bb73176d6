//! Notices ends of threads and forks without calls by the user.

use std::ffi::c_void;

use overlock_linux::__private::ExitKey;

/// Ends the threads' records.
static KEY: ExitKey = ExitKey::new(end);

/// Arranges for the calls at this thread's end and in children of fork.
pub(super) fn thread_begins() {
    // SAFETY: the handler only stores to the validator's tables. If it is refused, children keep
    // their parent's threads in the tables.
    let created = || _ = unsafe { libc::pthread_atfork(None, None, Some(child)) };
    // If it is refused, the thread's end goes unnoticed.
    KEY.set(1, created);
}

unsafe extern "C" fn end(_: *mut c_void) {
    super::thread_exits();
}

unsafe extern "C" fn child() {
    super::fork_child();
}
