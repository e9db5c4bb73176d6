//! Each lock, a few acquisitions on three threads: small enough for Miri to run on many seeds, each of which is another schedule
//! and another choice of the old values that weak memory allows. `scripts/miri --seeds 64` does so.

mod common;

use std::cell::UnsafeCell;
use std::thread;

use common::Pair;
use overlock::rw::RawRwLock;
use overlock::spin::RawLock;

const THREADS: usize = 3;
const SECTIONS: usize = 3;

fn excludes<L: RawLock>() {
    let pair = &Pair::<L>::new();
    let tried: usize = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                scope.spawn(|| {
                    for _ in 0..SECTIONS {
                        pair.section(pair.lock.lock(), thread::yield_now);
                    }
                    let token = pair.lock.try_lock();
                    let got = usize::from(token.is_some());
                    token
                        .into_iter()
                        .for_each(|token| pair.section(token, || {}));
                    got
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    assert_eq!(pair.count() as usize, THREADS * SECTIONS + tried);
    assert!(!pair.lock.is_locked() && !pair.lock.is_contended());
}

struct Shared<L> {
    lock: L,
    data: UnsafeCell<usize>,
}

// SAFETY: the data is written only by who holds the lock alone, and read only by who holds it.
unsafe impl<L: RawRwLock> Sync for Shared<L> {}

impl<L: RawRwLock> Shared<L> {
    fn read(&self) -> usize {
        let token = self.lock.read();
        // SAFETY: the lock is held for reading.
        let seen = unsafe { *self.data.get() };
        // SAFETY: just acquired by this thread.
        unsafe { self.lock.unlock_read(token) };
        seen
    }

    fn write(&self) {
        let token = self.lock.write();
        // SAFETY: the lock is held alone.
        unsafe { *self.data.get() += 1 };
        // SAFETY: just acquired by this thread.
        unsafe { self.lock.unlock_write(token) };
    }
}

fn shares<L: RawRwLock>() {
    let shared = &Shared {
        lock: L::create().expect("the lock can be created"),
        data: UnsafeCell::new(0),
    };
    thread::scope(|scope| {
        for writer in 0..THREADS {
            scope.spawn(move || {
                let mut last = 0;
                for round in 0..SECTIONS {
                    if round == writer {
                        shared.write();
                    }
                    let seen = shared.read();
                    assert!(seen >= last, "a write was undone");
                    last = seen;
                }
            });
        }
    });
    assert_eq!(shared.read(), THREADS);
    assert!(!shared.lock.is_locked() && !shared.lock.is_contended());
}

macro_rules! spinning {
    ($($name:ident: $lock:ident, $kind:ident;)*) => {$(
        #[test]
        fn $name() {
            excludes::<overlock::core::spin::$lock<overlock::Linux>>();
        }
    )*};
}

macro_rules! sleeping {
    ($($name:ident: $lock:ident, $kind:ident;)*) => {$(
        #[test]
        fn $name() {
            excludes::<overlock::core::sleep::$lock<overlock::Linux>>();
        }
    )*};
}

macro_rules! reader_writer {
    ($($name:ident: $module:ident::$lock:ident;)*) => {$(
        #[test]
        fn $name() {
            shares::<overlock::core::$module::$lock<overlock::Linux>>();
        }
    )*};
}

overlock::core::spin_locks!(spinning);
overlock::core::sleep_locks!(sleeping);
overlock::core::rw_locks!(reader_writer);
