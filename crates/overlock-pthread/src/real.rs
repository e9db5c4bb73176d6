//! glibc's own functions, for the objects that stay its own.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use libc::{clockid_t, timespec};

unsafe extern "C" {
    fn dlvsym(handle: *mut c_void, name: *const c_char, version: *const c_char) -> *mut c_void;
}

/// What a function that is not there returns: glibc has had all of them since 2.34, and most for
/// ever.
const MISSING: c_int = libc::ENOSYS;

/// What a function that is not there returns, of those that say why by `errno`.
#[cold]
pub(crate) fn missing() -> c_int {
    // SAFETY: it has no preconditions.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: the thread's own.
    unsafe { *errno = libc::ENOSYS };
    -1
}

/// The next definition of `name` after ours. Condition variables have two in old ABIs' glibc, and
/// the first that the linker finds may be the old one; `version` is where the current one came.
pub(crate) fn find(name: &CStr, version: Option<&CStr>) -> *mut c_void {
    if let Some(version) = version {
        // SAFETY: the strings end with a zero; RTLD_NEXT is valid in a library.
        let found = unsafe { dlvsym(libc::RTLD_NEXT, name.as_ptr(), version.as_ptr()) };
        if !found.is_null() {
            return found;
        }
    }
    // SAFETY: as above.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }
}

/// A function of glibc's that may be called first where none can be looked for, in a handler of a
/// signal: it is [found](Early::find) when the library is loaded.
#[derive(Debug)]
pub(crate) struct Early(&'static CStr, AtomicPtr<c_void>);

impl Early {
    pub(crate) const fn new(name: &'static CStr) -> Early {
        Early(name, AtomicPtr::new(core::ptr::null_mut()))
    }

    /// Null where there is none.
    #[inline]
    pub(crate) fn get(&self) -> *mut c_void {
        // Relaxed: the address is all there is to see, and finding it twice is harmless.
        let known = self.1.load(Relaxed);
        if known.is_null() { self.find() } else { known }
    }

    #[cold]
    pub(crate) fn find(&self) -> *mut c_void {
        let found = find(self.0, None);
        self.1.store(found, Relaxed);
        found
    }
}

/// Functions of the C library's that do something of ours before: `name(its arguments) -> what it
/// returns: what is done, what is returned where the C library has none;`
macro_rules! interpose {
    ($($name:ident($($arg:ident: $type:ty),*) -> $result:ty: $tell:path, $missing:expr;)*) => {
        $(
            #[doc = concat!("`", stringify!($name), "`.")]
            #[cfg_attr(not(test), unsafe(no_mangle))]
            pub unsafe extern "C-unwind" fn $name($($arg: $type),*) -> $result {
                $tell();
                let function = functions::$name.get();
                if function.is_null() {
                    return $missing;
                }
                type Function = unsafe extern "C-unwind" fn($($type),*) -> $result;
                // SAFETY: glibc's function of this name has this type.
                let function = unsafe { core::mem::transmute::<*mut core::ffi::c_void, Function>(function) };
                // SAFETY: the caller's promise. There is nothing here that would have to be
                // dropped.
                unsafe { function($($arg),*) }
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

        /// When the library is loaded.
        pub(crate) fn start() {
            $(functions::$name.find();)*
        }
    };
}
pub(crate) use interpose;

/// Finds a function for the calls to come, too. By itself: callers that wait later take less of the
/// stack.
#[cold]
#[inline(never)]
fn find_once(known: &AtomicPtr<c_void>, name: &str, version: Option<&CStr>) -> *mut c_void {
    let Ok(name) = CStr::from_bytes_with_nul(name.as_bytes()) else {
        return core::ptr::null_mut();
    };
    let found = find(name, version);
    known.store(found, Relaxed);
    found
}

macro_rules! functions {
    ($($name:ident($($arg:ident: $type:ty),*) $(@ $version:literal)?;)*) => {
        $(
            /// glibc's function of this name, or `ENOSYS`.
            #[inline]
            pub unsafe fn $name($($arg: $type),*) -> c_int {
                static KNOWN: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
                // Relaxed: the address is all there is to see, and finding it twice is harmless.
                let mut known = KNOWN.load(Relaxed);
                if known.is_null() {
                    let version: Option<&CStr> = None $(.or(Some($version)))?;
                    known = find_once(&KNOWN, concat!(stringify!($name), "\0"), version);
                    if known.is_null() {
                        return MISSING;
                    }
                }
                // SAFETY: glibc's function of this name has this type. Those that wait may be
                // cancelled: then they unwind.
                let function: unsafe extern "C-unwind" fn($($type),*) -> c_int = unsafe { core::mem::transmute(known) };
                // SAFETY: the caller's promise.
                unsafe { function($($arg),*) }
            }
        )*
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
    pthread_cond_init(cond: *mut c_void, attr: *const c_void) @ c"GLIBC_2.3.2";
    pthread_cond_destroy(cond: *mut c_void) @ c"GLIBC_2.3.2";
    pthread_cond_signal(cond: *mut c_void) @ c"GLIBC_2.3.2";
    pthread_cond_broadcast(cond: *mut c_void) @ c"GLIBC_2.3.2";
    pthread_cond_wait(cond: *mut c_void, mutex: *mut c_void) @ c"GLIBC_2.3.2";
    pthread_cond_timedwait(cond: *mut c_void, mutex: *mut c_void, at: *const timespec) @ c"GLIBC_2.3.2";
    pthread_cond_clockwait(cond: *mut c_void, mutex: *mut c_void, clock: clockid_t, at: *const timespec);
    pthread_cancel(thread: libc::pthread_t);
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
