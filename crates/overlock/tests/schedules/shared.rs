//! The reader-writer locks.

use std::thread;

use overlock_core::raw::RawRwLock;

use crate::extras::{FullRw, RwExtras};
use crate::how::How;
use crate::{Guarded, SECTIONS, THREADS, far, on_threads, soon};

struct Shared<L: RawRwLock> {
    lock: L,
    data: Guarded,
}

impl<L: RawRwLock> Shared<L> {
    fn end_read(&self, token: L::Read) {
        // SAFETY: callers pass the token of their acquisition of this lock.
        unsafe { self.lock.unlock_read(token) };
    }

    /// Reads in the given way, as far as the lock can.
    fn read(&self, iteration: usize, extras: &RwExtras<L>) -> usize {
        let lock = &self.lock;
        if let (0, Some(full)) = (iteration % 3, &extras.full) {
            assert!((full.upgradable)(lock, How::Wait, true), "it waits");
            thread::yield_now();
            let seen = self.data.get();
            // SAFETY: the token is of this lock and this thread, here and below.
            unsafe { (full.unlock_upgradable)(lock) };
            return seen;
        }
        let token = match (iteration % 3, extras.until) {
            (1, Some((read_until, _))) => Some(read_until(lock, far()).expect("there is time")),
            (2, Some((read_until, _))) => read_until(lock, soon()),
            _ => None,
        };
        let token = token.unwrap_or_else(|| lock.read());
        thread::yield_now();
        let seen = self.data.get();
        match (iteration % 3, &extras.full) {
            // SAFETY: as above.
            (1, Some(full)) => unsafe { (full.unlock_read_fair)(lock, token) },
            (2, Some(full)) => {
                // SAFETY: as above.
                let token = unsafe { (full.bump_read)(lock, token) };
                assert!(self.data.get() >= seen, "a write was undone");
                self.end_read(token);
            }
            _ => self.end_read(token),
        }
        seen
    }

    /// Writes once, in the given way, as far as the lock can.
    fn write(&self, iteration: usize, extras: &RwExtras<L>) {
        let lock = &self.lock;
        if let (1, Some(full)) = (iteration % 3, &extras.full) {
            return self.upgrade(full);
        }
        let token = match (iteration % 3, extras.until) {
            (2, Some((_, write_until))) => Some(write_until(lock, far()).expect("there is time")),
            (_, Some((_, write_until))) => write_until(lock, soon()),
            _ => None,
        };
        let token = token.unwrap_or_else(|| lock.write());
        thread::yield_now();
        self.data.add_one();
        let written = self.data.get();
        match (iteration % 3, extras.downgrade, &extras.full) {
            (2, _, Some(full)) => {
                // SAFETY: as above.
                let token = unsafe { (full.bump_write)(lock, token) };
                assert!(self.data.get() >= written, "a write was undone");
                // SAFETY: as above.
                unsafe { (full.unlock_write_fair)(lock, token) };
            }
            (_, Some(downgrade), _) => {
                // SAFETY: as above.
                let token = unsafe { downgrade(lock, token) };
                assert_eq!(self.data.get(), written, "a writer came between");
                self.end_read(token);
            }
            // SAFETY: as above.
            _ => unsafe { lock.unlock_write(token) },
        }
    }

    /// Writes once, as the upgradable reader that becomes the writer; then it is the upgradable
    /// reader, and a reader.
    fn upgrade(&self, full: &FullRw<L>) {
        let lock = &self.lock;
        let upgradable = |how| (full.upgradable)(lock, how, true);
        assert!(
            upgradable(How::Soon(500)) || upgradable(How::Wait),
            "it waits"
        );
        let seen = self.data.get();
        thread::yield_now();
        let mut ways = [How::Try, How::Soon(500), How::Wait].into_iter();
        // SAFETY: as above.
        let token = ways.find_map(|how| unsafe { (full.upgrade)(lock, how, true) });
        let token = token.expect("the last one waits");
        assert_eq!(self.data.get(), seen, "a writer came between");
        self.data.add_one();
        // SAFETY: as above.
        unsafe { (full.downgrade_to_upgradable)(lock, token) };
        assert_eq!(self.data.get(), seen + 1, "a writer came between");
        // SAFETY: as above.
        unsafe { (full.bump_upgradable)(lock) };
        let seen = self.data.get();
        // SAFETY: as above.
        let token = unsafe { (full.downgrade_upgradable)(lock) };
        assert_eq!(self.data.get(), seen, "a writer came between");
        self.end_read(token);
    }
}

fn shares<L: RawRwLock>(extras: fn() -> RwExtras<L>) {
    let shared = &Shared {
        lock: L::INIT,
        data: Guarded::new(),
    };
    on_threads(THREADS, |number| {
        let extras = extras();
        let mut last = 0;
        for round in 0..SECTIONS {
            if round == number {
                shared.write(number, &extras);
            }
            let seen = shared.read(number + round, &extras);
            assert!(seen >= last, "a write was undone");
            last = seen;
        }
        0
    });
    assert_eq!(shared.read(0, &extras()), THREADS);
    assert!(!shared.lock.is_locked() && !shared.lock.is_contended());
}

macro_rules! tests {
    ($($name:ident: $module:ident::$lock:ident, $can:ident;)*) => {$(
        #[test]
        fn $name() {
            shares(RwExtras::<overlock::rw::$lock>::$can);
        }
    )*};
}

overlock_family::rw_locks!(tests);
