//! Changes of threads' policies and priorities, which decide who is served first.

use core::ffi::c_int;

use libc::{pid_t, pthread_t, sched_param};
use overlock_linux::__private::rank;

use crate::real;

macro_rules! changes {
    ($($name:ident($($arg:ident: $type:ty),*);)*) => {$(
        #[doc = concat!("`", stringify!($name), "`.")]
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub unsafe extern "C" fn $name($($arg: $type),*) -> c_int {
            // SAFETY: the caller's promise.
            let result = unsafe { real::$name($($arg),*) };
            rank::changed();
            result
        }
    )*};
}

changes! {
    pthread_setschedparam(thread: pthread_t, policy: c_int, param: *const sched_param);
    pthread_setschedprio(thread: pthread_t, priority: c_int);
    sched_setscheduler(thread: pid_t, policy: c_int, param: *const sched_param);
    sched_setparam(thread: pid_t, param: *const sched_param);
}
