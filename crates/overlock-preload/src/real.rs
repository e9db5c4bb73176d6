//! glibc's own functions, for objects that stay glibc's.

use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use libc::{clockid_t, timespec};

use crate::elf;

/// Result if glibc lacks a function. glibc has had all of them since 2.34, and most for far longer.
const MISSING: c_int = libc::ENOSYS;

/// Sets errno to `ENOSYS`, and returns -1: the result if glibc lacks a function that reports errors
/// by errno.
#[cold]
pub(crate) fn missing() -> c_int {
    // SAFETY: it has no preconditions.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: the thread's own.
    unsafe { *errno = libc::ENOSYS };
    -1
}

/// Returns the next definition of `name` after ours, or null. A library between this one and the C
/// library may have one of its own.
pub(crate) fn find(name: &CStr) -> *mut c_void {
    elf::next(name)
}

/// A function of glibc's whose first call may be in a signal handler. It is
/// [looked up](Early::find) when the library is loaded.
#[derive(Debug)]
pub(crate) struct Early(&'static CStr, AtomicPtr<c_void>);

impl Early {
    pub(crate) const fn new(name: &'static CStr) -> Early {
        Early(name, AtomicPtr::new(core::ptr::null_mut()))
    }

    /// Returns its address, or null if glibc lacks it.
    #[inline]
    pub(crate) fn get(&self) -> *mut c_void {
        // Relaxed: no other data depends on the address, and looking it up twice is harmless.
        let known = self.1.load(Relaxed);
        if known.is_null() { self.find() } else { known }
    }

    #[cold]
    pub(crate) fn find(&self) -> *mut c_void {
        let found = find(self.0);
        self.1.store(found, Relaxed);
        found
    }
}

/// Defines functions that call `before` and then the C library's function of the same name:
/// `name(arguments) -> result: before, the result if the C library lacks it;`. After that there may
/// be an attempt to do without it, `|| attempt`, of type `Option<result>`.
macro_rules! interpose {
    ($($name:ident($($arg:ident: $type:ty),*) -> $result:ty: $before:path, $missing:expr $(, $object:expr, || $attempt:expr)?;)*) => {
        $(
            #[doc = concat!("`", stringify!($name), "`.")]
            #[cfg_attr(not(test), unsafe(no_mangle))]
            pub unsafe extern "C-unwind" fn $name($($arg: $type),*) -> $result {
                $before();
                $(
                    // The attempt is no cancellation point.
                    crate::cancel::act();
                    let object: Option<usize> = $object;
                    let waits = object.and_then(|_| crate::stat::Event::begin());
                    if let Some(result) = $attempt {
                        crate::events::over(waits, object, result);
                        return result;
                    }
                )?
                let function = functions::$name.get();
                if function.is_null() {
                    return $missing;
                }
                type Function = unsafe extern "C-unwind" fn($($type),*) -> $result;
                // SAFETY: glibc's function of this name has this type.
                let function = unsafe { core::mem::transmute::<*mut core::ffi::c_void, Function>(function) };
                // SAFETY: the caller's promise. No value here needs to be dropped.
                let result = unsafe { function($($arg),*) };
                $(
                    let _: Option<usize> = $object;
                    crate::events::over(waits, object, result);
                )?
                result
            }
        )*

        #[allow(non_upper_case_globals)] // the functions' own names
        mod functions {
            use crate::real::Early;

            $(
                pub(super) static $name: Early = {
                    let name = concat!(stringify!($name), "\0").as_bytes();
                    match core::ffi::CStr::from_bytes_with_nul(name) {
                        Ok(name) => Early::new(name),
                        Err(_) => panic!("a name with a zero in it"), // when this is compiled
                    }
                };
            )*
        }

        /// Looks all of them up when the library is loaded.
        pub(crate) fn start() {
            $(functions::$name.find();)*
        }
    };
}
pub(crate) use interpose;

/// Looks a function up, also for later calls. A function of its own: callers that then wait take
/// less stack.
#[cold]
#[inline(never)]
fn find_once(known: &AtomicPtr<c_void>, name: &str) -> *mut c_void {
    let Ok(name) = CStr::from_bytes_with_nul(name.as_bytes()) else {
        return core::ptr::null_mut();
    };
    let found = find(name);
    known.store(found, Relaxed);
    found
}

macro_rules! functions {
    ($($name:ident($($arg:ident: $type:ty),*);)*) => {
        $(
            /// glibc's function of this name, or `ENOSYS`.
            #[inline]
            pub unsafe fn $name($($arg: $type),*) -> c_int {
                // Relaxed: no other data depends on the address, and looking it up twice is
                // harmless.
                let mut known = known::$name.load(Relaxed);
                if known.is_null() {
                    known = find_once(&known::$name, concat!(stringify!($name), "\0"));
                    if known.is_null() {
                        return MISSING;
                    }
                }
                // SAFETY: glibc's function of this name has this type. Functions that wait may be
                // cancelled, and then unwind.
                let function: unsafe extern "C-unwind" fn($($type),*) -> c_int = unsafe { core::mem::transmute(known) };
                // SAFETY: the caller's promise.
                unsafe { function($($arg),*) }
            }
        )*

        #[allow(non_upper_case_globals)] // the functions' own names
        mod known {
            use super::{AtomicPtr, c_void};

            $(pub(super) static $name: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());)*
        }

        /// Looks all of them up.
        pub(crate) fn find_all() {
            $(find_once(&known::$name, concat!(stringify!($name), "\0"));)*
        }
    };
}

functions! {
    pthread_mutex_init(mutex: *mut c_void, attr: *const c_void);
    pthread_mutex_destroy(mutex: *mut c_void);
    pthread_mutex_lock(mutex: *mut c_void);
    pthread_mutex_trylock(mutex: *mut c_void);
    pthread_mutex_timedlock(mutex: *mut c_void, at: *const timespec);
    pthread_mutex_clocklock(mutex: *mut c_void, clock: clockid_t, at: *const timespec);
    pthread_mutex_unlock(mutex: *mut c_void);
    pthread_cond_init(cond: *mut c_void, attr: *const c_void);
    pthread_cond_destroy(cond: *mut c_void);
    pthread_cond_signal(cond: *mut c_void);
    pthread_cond_broadcast(cond: *mut c_void);
    pthread_cond_wait(cond: *mut c_void, mutex: *mut c_void);
    pthread_cond_timedwait(cond: *mut c_void, mutex: *mut c_void, at: *const timespec);
    pthread_cond_clockwait(cond: *mut c_void, mutex: *mut c_void, clock: clockid_t, at: *const timespec);
    pthread_cancel(thread: libc::pthread_t);
    pthread_setschedparam(thread: libc::pthread_t, policy: c_int, param: *const libc::sched_param);
    pthread_setschedprio(thread: libc::pthread_t, priority: c_int);
    sched_setscheduler(thread: libc::pid_t, policy: c_int, param: *const libc::sched_param);
    sched_setparam(thread: libc::pid_t, param: *const libc::sched_param);
    pthread_rwlock_init(lock: *mut c_void, attr: *const c_void);
    pthread_rwlock_destroy(lock: *mut c_void);
    pthread_rwlock_rdlock(lock: *mut c_void);
    pthread_rwlock_wrlock(lock: *mut c_void);
    pthread_rwlock_tryrdlock(lock: *mut c_void);
    pthread_rwlock_trywrlock(lock: *mut c_void);
    pthread_rwlock_timedrdlock(lock: *mut c_void, at: *const timespec);
    pthread_rwlock_timedwrlock(lock: *mut c_void, at: *const timespec);
    pthread_rwlock_clockrdlock(lock: *mut c_void, clock: clockid_t, at: *const timespec);
    pthread_rwlock_clockwrlock(lock: *mut c_void, clock: clockid_t, at: *const timespec);
    pthread_rwlock_unlock(lock: *mut c_void);
    pthread_spin_init(lock: *mut c_void, shared: c_int);
    pthread_spin_destroy(lock: *mut c_void);
    pthread_spin_lock(lock: *mut c_void);
    pthread_spin_trylock(lock: *mut c_void);
    pthread_spin_unlock(lock: *mut c_void);
    pthread_barrier_init(barrier: *mut c_void, attr: *const c_void, count: u32);
    pthread_barrier_destroy(barrier: *mut c_void);
    pthread_barrier_wait(barrier: *mut c_void);
    sem_init(sem: *mut c_void, shared: c_int, value: u32);
    sem_destroy(sem: *mut c_void);
    sem_wait(sem: *mut c_void);
    sem_trywait(sem: *mut c_void);
    sem_timedwait(sem: *mut c_void, at: *const timespec);
    sem_clockwait(sem: *mut c_void, clock: clockid_t, at: *const timespec);
    sem_post(sem: *mut c_void);
    sem_getvalue(sem: *mut c_void, value: *mut c_int);
}
