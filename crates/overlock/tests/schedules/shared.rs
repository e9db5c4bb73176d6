//! The reader-writer locks.

use std::thread;

use overlock_core::raw::RawRwLock;

use crate::extras::{FairRw, RwExtras, Upgrades, rw_extras_of};
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
        if let (0, Some(upgrades)) = (iteration % 3, &extras.upgrades) {
            let token = (upgrades.acquire)(lock, How::Wait, true).expect("it waits");
            thread::yield_now();
            let seen = self.data.get();
            // SAFETY: the token is of this lock and this thread, here and below.
            unsafe { (upgrades.unlock)(lock, token) };
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
        match (iteration % 3, &extras.fair) {
            // SAFETY: as above.
            (1, Some(fair)) => unsafe { (fair.unlock_read)(lock, token) },
            (2, Some(fair)) => {
                // SAFETY: as above.
                let token = unsafe { (fair.bump_read)(lock, token) };
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
        if let (1, Some(upgrades)) = (iteration % 3, &extras.upgrades) {
            return self.upgrade(upgrades, extras.fair.as_ref());
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
        match (iteration % 3, extras.downgrade, &extras.fair) {
            (2, _, Some(fair)) => {
                // SAFETY: as above.
                let token = unsafe { (fair.bump_write)(lock, token) };
                assert!(self.data.get() >= written, "a write was undone");
                // SAFETY: as above.
                unsafe { (fair.unlock_write)(lock, token) };
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
    fn upgrade(&self, upgrades: &Upgrades<L>, fair: Option<&FairRw<L>>) {
        let lock = &self.lock;
        let acquire = |how| (upgrades.acquire)(lock, how, true);
        let upgradable = acquire(How::Soon(500)).or_else(|| acquire(How::Wait));
        let mut upgradable = upgradable.expect("it waits");
        let seen = self.data.get();
        thread::yield_now();
        let mut ways = [How::Try, How::Soon(500), How::Wait].into_iter();
        let token = loop {
            let how = ways.next().expect("the last one waits");
            // SAFETY: as above.
            match unsafe { (upgrades.upgrade)(lock, upgradable, how, true) } {
                Ok(token) => break token,
                Err(token) => upgradable = token,
            }
        };
        assert_eq!(self.data.get(), seen, "a writer came between");
        self.data.add_one();
        // SAFETY: as above.
        let mut upgradable = unsafe { (upgrades.downgrade_write)(lock, token) };
        assert_eq!(self.data.get(), seen + 1, "a writer came between");
        if let Some(fair) = fair {
            // SAFETY: as above.
            upgradable = unsafe { (fair.bump_upgradable)(lock, upgradable) };
        }
        let seen = self.data.get();
        // SAFETY: as above.
        let token = unsafe { (upgrades.downgrade)(lock, upgradable) };
        assert_eq!(self.data.get(), seen, "a writer came between");
        self.end_read(token);
    }
}

fn shares<L: RawRwLock>(extras: fn() -> RwExtras<L>) {
    let shared = &Shared {
        lock: L::create().expect("the lock can be created"),
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
    ($($name:ident: $module:ident::$lock:ident;)*) => {$(
        #[test]
        fn $name() {
            shares(|| rw_extras_of!(overlock::rw::$lock));
        }
    )*};
}

overlock_family::rw_locks!(tests);
