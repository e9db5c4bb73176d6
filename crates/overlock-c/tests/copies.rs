//! Several copies of the locks' code in a process, as plugins bring them: this test's own, and two
//! of the library. The mutex and the reader-writer lock have all of their state in their own words,
//! and the kernel's queue is one for all copies.
#![cfg(not(miri))]

mod common;

use std::cell::UnsafeCell;
use std::ffi::{CString, c_int, c_void};
use std::fs;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use overlock::rw::{OverlockRw, RawRwLock};
use overlock::sleep::{ConstLock, Overlock, RawLock};

/// A function of a library for a lock at this address.
type Call = unsafe extern "C" fn(*mut c_void) -> c_int;

/// Loads a library for ever.
fn load(path: &Path) -> *mut c_void {
    let path = CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: a library of ours, whose constructors may run.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    assert!(!library.is_null());
    library
}

fn call(library: *mut c_void, name: &str) -> Call {
    let name = CString::new(name).unwrap();
    // SAFETY: a library that stays loaded.
    let found = unsafe { libc::dlsym(library, name.as_ptr()) };
    assert!(!found.is_null());
    // SAFETY: each name below is that of a function of this type.
    unsafe { std::mem::transmute::<*mut c_void, Call>(found) }
}

struct Shared {
    mutex: Overlock,
    rwlock: OverlockRw,
    under_mutex: UnsafeCell<u64>,
    under_rwlock: [UnsafeCell<u64>; 2],
}

// SAFETY: the data are used under the locks.
unsafe impl Sync for Shared {}

static SHARED: Shared = Shared {
    mutex: ConstLock::INIT,
    rwlock: ConstLock::INIT,
    under_mutex: UnsafeCell::new(0),
    under_rwlock: [const { UnsafeCell::new(0) }; 2],
};

/// Adds to a count, and returns it.
///
/// # Safety
///
/// The caller holds its lock, for writing if it adds anything.
unsafe fn add(count: &UnsafeCell<u64>, more: u64) -> u64 {
    // SAFETY: the caller's promise.
    let mut now = unsafe { count.get().read() };
    if more > 0 {
        now += more;
        // SAFETY: as above.
        unsafe { count.get().write(now) };
    }
    now
}

/// The operations of a copy: lock and unlock; then read, unlock, write, unlock.
type Copy = [Box<dyn Fn() + Send + Sync>; 6];

fn of_library(library: *mut c_void) -> Copy {
    let of = |name: &str, is_mutex: bool| -> Box<dyn Fn() + Send + Sync> {
        let call = call(library, name);
        Box::new(move || {
            let lock: *const c_void = match is_mutex {
                true => (&raw const SHARED.mutex).cast(),
                false => (&raw const SHARED.rwlock).cast(),
            };
            // SAFETY: a lock of the function's type, which the caller holds if it releases it.
            assert_eq!(unsafe { call(lock.cast_mut()) }, 0);
        })
    };
    [
        of("ovl_mutex_lock", true),
        of("ovl_mutex_unlock", true),
        of("ovl_rwlock_rdlock", false),
        of("ovl_rwlock_rdunlock", false),
        of("ovl_rwlock_wrlock", false),
        of("ovl_rwlock_wrunlock", false),
    ]
}

fn of_this() -> Copy {
    [
        Box::new(|| RawLock::lock(&SHARED.mutex)),
        // SAFETY: the caller holds it.
        Box::new(|| unsafe { RawLock::unlock(&SHARED.mutex, ()) }),
        Box::new(|| RawRwLock::read(&SHARED.rwlock)),
        // SAFETY: as above.
        Box::new(|| unsafe { SHARED.rwlock.unlock_read(()) }),
        Box::new(|| RawRwLock::write(&SHARED.rwlock)),
        // SAFETY: as above.
        Box::new(|| unsafe { SHARED.rwlock.unlock_write(()) }),
    ]
}

const ROUNDS: u64 = 300;

fn use_locks([lock, unlock, read, unlock_read, write, unlock_write]: &Copy) {
    // Others go to sleep meanwhile.
    let stay = |round| {
        if round % 16 == 0 {
            thread::sleep(Duration::from_micros(100));
        }
    };
    let [one, other] = &SHARED.under_rwlock;
    for round in 0..ROUNDS {
        lock();
        // SAFETY: under the mutex.
        unsafe { add(&SHARED.under_mutex, 1) };
        stay(round);
        unlock();
        write();
        // SAFETY: under the lock, for writing.
        unsafe { add(one, 1) };
        stay(round + 8);
        // SAFETY: as above.
        unsafe { add(other, 1) };
        unlock_write();
        read();
        // SAFETY: under the lock, for reading.
        let both = [one, other].map(|count| unsafe { add(count, 0) });
        assert_eq!(both[0], both[1]);
        unlock_read();
    }
}

#[test]
fn copies_of_the_code_share_mutexes_and_reader_writer_locks() {
    let workshop = common::Workshop::new();
    let library = workshop.path().join("liboverlock.so.0");
    let [one, other] = ["one.so", "other.so"].map(|name| {
        let copy = workshop.path().join(name);
        fs::copy(&library, &copy).unwrap();
        load(&copy)
    });
    let name = "ovl_mutex_lock";
    assert!(!std::ptr::fn_addr_eq(call(one, name), call(other, name)));
    let copies: &[Copy] = Box::leak(Box::new([of_library(one), of_library(other), of_this()]));

    const THREADS: u64 = 6;
    let (done, ends) = mpsc::channel();
    for thread in 0..THREADS as usize {
        let done = done.clone();
        thread::spawn(move || {
            use_locks(&copies[thread % copies.len()]);
            done.send(()).unwrap();
        });
    }
    for _ in 0..THREADS {
        let end = ends.recv_timeout(Duration::from_secs(100));
        end.expect("a thread failed, or waits for ever");
    }
    let [one, other] = &SHARED.under_rwlock;
    // SAFETY: the threads are done.
    let counts = [&SHARED.under_mutex, one, other].map(|count| unsafe { add(count, 0) });
    assert_eq!(counts, [THREADS * ROUNDS; 3]);
}
