//! Ends of threads and forks, noticed without calls of the user's.

use std::ffi::c_void;

use overlock_linux::__private::ExitKey;

/// Ends the threads' books.
static KEY: ExitKey = ExitKey::new(end);

/// Has the validator told when this thread ends, and the process that it is a child of fork.
pub(super) fn thread_begins() {
    // SAFETY: the handler only stores to the validator's tables. Where it is refused, children see
    // the threads of their parent.
    let created = || _ = unsafe { libc::pthread_atfork(None, None, Some(child)) };
    // Where it is refused the thread's end is not seen.
    KEY.set(1, created);
}

unsafe extern "C" fn end(_: *mut c_void) {
    super::thread_exits();
}

unsafe extern "C" fn child() {
    super::fork_child();
}
