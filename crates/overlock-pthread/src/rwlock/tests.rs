use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use libc::{EAGAIN, EBUSY, ETIMEDOUT};
use overlock::core::Platform;

use super::raw::{CLOSED, FULL, READERS, WRITING};
use super::*;

fn new() -> RwLock {
    RwLock::new(0)
}

fn word(lock: &RwLock) -> &AtomicU32 {
    &lock.as_lock::<Recommended>().word
}

fn soon() -> Option<Instant> {
    Some(Linux::now().plus_nanos(5_000_000))
}

/// Fails where `count_in` takes no look at `FULL`, or leaves the reader counted.
#[test]
fn too_many_readers_are_refused() {
    let lock = new();
    word(&lock).store(FULL, Relaxed);
    assert_eq!([lock.read(None, 0), lock.try_read(0)], [EAGAIN; 2]);
    assert_eq!(word(&lock).load(Relaxed), FULL);
    word(&lock).store(FULL - 1, Relaxed);
    assert_eq!(lock.read(None, 0), 0);
    lock.release();
}

/// Fails where a writer at its limit leaves `CLOSED`, or does not open the gate.
#[test]
fn who_gives_up_leaves_nothing_behind() {
    let lock = new();
    assert_eq!(lock.read(None, 0), 0);
    let other = || thread::scope(|s| s.spawn(|| lock.write(soon(), 0)).join().unwrap());
    assert_eq!([other(), other()], [ETIMEDOUT; 2]);
    assert_eq!(word(&lock).load(Relaxed), 1);
    lock.release();
    assert_eq!(lock.write(None, 0), 0);
    let other = |passing| {
        let raw = lock.as_lock::<Recommended>();
        thread::scope(|s| s.spawn(|| raw.read(passing, soon())).join().unwrap())
    };
    assert_eq!(
        [Passing::Never, Passing::Later, Passing::AtOnce].map(other),
        [ETIMEDOUT; 3]
    );
    assert_eq!(word(&lock).load(Relaxed) & (READERS | WRITING), WRITING);
    lock.release();
    assert_eq!(word(&lock).load(Relaxed), 0);
}

/// Fails where `Passing` is not looked at: in `try_read`, in `read_slow`.
#[test]
fn only_those_that_may_pass_a_closed_lock() {
    let raw = new();
    let raw = raw.as_lock::<Recommended>();
    raw.word.store(CLOSED | 1, Relaxed);
    let attempts = [Passing::Never, Passing::Later, Passing::AtOnce];
    assert_eq!(attempts.map(|passing| raw.try_read(passing)), [EBUSY, 0, 0]);
    let start = Linux::now();
    assert_eq!(raw.read(Passing::AtOnce, None), 0);
    assert!(Linux::now().nanos_since(start) < PATIENCE_NS);
    assert_eq!(raw.word.load(Relaxed), CLOSED | 4);
}

/// Fails where the gate stays with a thread that is gone, or readers that waited beside a writer stay counted.
#[test]
fn a_child_forgets_who_waited() {
    let lock = new();
    let raw = lock.as_lock::<Recommended>();
    assert_eq!(lock.write(None, 0), 0);
    raw.lock_gate(None);
    raw.word.store(WRITING | CLOSED | 3, Relaxed);
    // SAFETY: there is no other thread that uses it.
    unsafe { raw.settle(true) };
    assert_eq!(raw.word.load(Relaxed), WRITING);
    lock.release();
    assert_eq!(lock.read(None, 0), 0);
    raw.lock_gate(None);
    raw.word.store(CLOSED | 1, Relaxed);
    // SAFETY: as above.
    unsafe { raw.settle(false) };
    lock.release();
    assert_eq!(lock.write(soon(), 0), 0);
}

/// Fails where `PASSING` does not wake all: with one of the two asleep for ever.
#[test]
fn all_that_pass_are_woken() {
    let lock = new();
    assert_eq!(lock.write(None, 0), 0);
    let raw = lock.as_lock::<Recommended>();
    thread::scope(|s| {
        for _ in 0..3 {
            s.spawn(|| assert_eq!(raw.read(Passing::AtOnce, None), 0));
        }
        while raw.word.load(Relaxed) & READERS != 3 {
            thread::yield_now();
        }
        thread::sleep(std::time::Duration::from_millis(20));
        lock.release();
    });
    assert_eq!(word(&lock).load(Relaxed), 3);
}
