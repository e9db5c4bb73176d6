use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use libc::{EAGAIN, EBUSY, ETIMEDOUT};
use overlock_core::Platform;

use super::*;

fn new() -> RwLock {
    RwLock::new(0)
}

/// The word of the recommended lock, behind its gate.
fn word(lock: &RwLock) -> &AtomicU32 {
    &lock.lock[size_of::<Recommended>() / 4 - 1]
}

fn soon() -> Option<Deadline> {
    Some(Linux::now().plus_nanos(5_000_000).into())
}

#[test]
fn too_many_readers_are_refused() {
    let lock = new();
    assert_eq!(lock.read(None, 0), 0);
    assert_eq!(word(&lock).load(Relaxed), 1);
    lock.release();
    word(&lock).store(1 << 24, Relaxed);
    assert_eq!([lock.read(None, 0), lock.try_read(0)], [EAGAIN; 2]);
    assert_eq!(word(&lock).load(Relaxed), 1 << 24);
}

#[test]
fn timed_waits_that_give_up_return_etimedout() {
    let lock = new();
    assert_eq!(lock.read(None, 0), 0);
    let other = || thread::scope(|s| s.spawn(|| lock.write(soon(), 0)).join().unwrap());
    assert_eq!([other(), other()], [ETIMEDOUT; 2]);
    assert_eq!(lock.try_write(0), EBUSY);
    lock.release();
    assert_eq!(lock.write(None, 0), 0);
    let other =
        |passing| thread::scope(|s| s.spawn(|| lock.take_share(passing, soon())).join().unwrap());
    assert_eq!(
        [Passing::Never, Passing::Later, Passing::AtOnce].map(other),
        [ETIMEDOUT; 3]
    );
    lock.release();
    assert_eq!(word(&lock).load(Relaxed), 0);
}

/// Fails where a waiting writer is not visible, or `Passing` is ignored.
#[test]
fn recursive_readers_barge_past_waiting_writers_unless_these_are_preferred() {
    for (kind, result) in [(0, 0), (PREFER_WRITER, EBUSY)] {
        let lock = RwLock::new(kind);
        assert_eq!(lock.read(None, 0), 0);
        thread::scope(|s| {
            s.spawn(|| {
                assert_eq!(lock.write(None, 0), 0);
                lock.release();
            });
            while word(&lock).load(Relaxed) == 1 {
                thread::yield_now();
            }
            assert_eq!(lock.try_read(0), result);
            if result == 0 {
                assert_eq!(lock.read(None, 0), 0);
                lock.release();
                lock.release();
            }
            lock.release();
        });
        assert_eq!(word(&lock).load(Relaxed), 0);
    }
}
