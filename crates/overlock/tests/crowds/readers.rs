//! Common parts of the reader-writer locks' tests: data under such a lock, and the lock's abilities
//! beyond [`RawRwLock`].

use std::cell::UnsafeCell;
use std::thread;
use std::time::Duration;

use overlock::System;
use overlock::rw::{
    RawDowngradeRwLock, RawFairRwLock, RawRwLock, RawTimedRwLock, RawUpgradeRwLock,
};
use overlock_core::Instant;
use overlock_core::Platform;

use crate::watch::ThreadState;

/// Two numbers that are equal whenever nobody writes.
pub struct Pair<L> {
    pub lock: L,
    numbers: UnsafeCell<[u64; 2]>,
}

// SAFETY: the numbers are written only by an exclusive holder, and read only by a holder.
unsafe impl<L: RawRwLock> Sync for Pair<L> {}

impl<L: RawRwLock> Pair<L> {
    pub fn new() -> Self {
        Pair {
            lock: L::INIT,
            numbers: UnsafeCell::new([0; 2]),
        }
    }

    /// Reads before and after `inside`: nobody has written meanwhile. The caller holds the lock.
    pub fn inspect(&self, inside: impl FnOnce()) -> u64 {
        let pointer = self.numbers.get();
        // SAFETY: the caller holds the lock.
        let before = unsafe { (*pointer)[0] };
        inside();
        // SAFETY: as above.
        let after = unsafe { (*pointer)[1] };
        assert_eq!(
            before,
            after,
            "somebody wrote beside a reader of {}",
            L::NAME
        );
        after
    }

    /// One write, with `inside` between its halves. Returns the number of writes so far. The caller
    /// holds the lock exclusively.
    pub fn change(&self, inside: impl FnOnce()) -> u64 {
        // SAFETY: the caller holds the lock exclusively.
        let numbers = unsafe { &mut *self.numbers.get() };
        numbers[0] += 1;
        inside();
        numbers[1] += 1;
        assert_eq!(
            numbers[0],
            numbers[1],
            "two writers were inside {}",
            L::NAME
        );
        numbers[1]
    }

    pub fn end_read(&self, token: L::Read) {
        // SAFETY: callers pass the token of their acquisition of this lock.
        unsafe { self.lock.unlock_read(token) };
    }

    pub fn end_write(&self, token: L::Write) {
        // SAFETY: callers pass the token of their acquisition of this lock.
        unsafe { self.lock.unlock_write(token) };
    }

    pub fn count(&self) -> u64 {
        let token = self.lock.read();
        let count = self.inspect(|| {});
        self.end_read(token);
        count
    }
}

pub struct Timed<L: RawRwLock> {
    pub read: fn(&L, Instant) -> Option<L::Read>,
    pub write: fn(&L, Instant) -> Option<L::Write>,
}

pub type Downgrade<L> = unsafe fn(&L, <L as RawRwLock>::Write) -> <L as RawRwLock>::Read;

/// A section that begins as the lock's upgradable reader; returns the number of its writes.
pub type Section<L> = fn(&Pair<L>, &ThreadState, &mut Random) -> u64;

/// Acquires the lock, calls the first function, releases fairly and acquires again, calls the
/// second, and releases.
pub type FairRelock<L> = fn(&L, &dyn Fn(), &dyn Fn());

/// The abilities of a lock beyond [`RawRwLock`].
pub struct Extras<L: RawRwLock> {
    pub timed: Option<Timed<L>>,
    pub downgrade: Option<Downgrade<L>>,
    pub upgradable_section: Option<Section<L>>,
    pub fair_relocks: Option<[(&'static str, FairRelock<L>); 6]>,
}

impl<L: RawRwLock> Extras<L> {
    pub fn basic() -> Self {
        Extras {
            timed: None,
            downgrade: None,
            upgradable_section: None,
            fair_relocks: None,
        }
    }
}

impl<L: RawTimedRwLock + RawDowngradeRwLock> Extras<L> {
    pub fn timed() -> Self {
        Extras {
            timed: Some(Timed {
                read: L::read_until,
                write: L::write_until,
            }),
            downgrade: Some(L::downgrade),
            ..Self::basic()
        }
    }
}

impl<L: RawFairRwLock> Extras<L> {
    pub fn full() -> Self {
        let fair_relocks: [(&'static str, FairRelock<L>); 6] = [
            ("unlock_read_fair", |lock, before, after| {
                let token = lock.read();
                before();
                // SAFETY: the token of each call is that of the acquisition before, here and below.
                unsafe { lock.unlock_read_fair(token) };
                let token = lock.read();
                after();
                // SAFETY: as above.
                unsafe { lock.unlock_read(token) };
            }),
            ("bump_read", |lock, before, after| {
                let token = lock.read();
                before();
                // SAFETY: as above.
                let token = unsafe { lock.bump_read(token) };
                after();
                // SAFETY: as above.
                unsafe { lock.unlock_read(token) };
            }),
            ("unlock_write_fair", |lock, before, after| {
                let token = lock.write();
                before();
                // SAFETY: as above.
                unsafe { lock.unlock_write_fair(token) };
                let token = lock.write();
                after();
                // SAFETY: as above.
                unsafe { lock.unlock_write(token) };
            }),
            ("bump_write", |lock, before, after| {
                let token = lock.write();
                before();
                // SAFETY: as above.
                let token = unsafe { lock.bump_write(token) };
                after();
                // SAFETY: as above.
                unsafe { lock.unlock_write(token) };
            }),
            ("unlock_upgradable_fair", |lock, before, after| {
                let token = lock.upgradable();
                before();
                // SAFETY: as above.
                unsafe { lock.unlock_upgradable_fair(token) };
                let token = lock.upgradable();
                after();
                // SAFETY: as above.
                unsafe { lock.unlock_upgradable(token) };
            }),
            ("bump_upgradable", |lock, before, after| {
                let token = lock.upgradable();
                before();
                // SAFETY: as above.
                let token = unsafe { lock.bump_upgradable(token) };
                after();
                // SAFETY: as above.
                unsafe { lock.unlock_upgradable(token) };
            }),
        ];
        Extras {
            upgradable_section: Some(upgradable_section::<L>),
            fair_relocks: Some(fair_relocks),
            ..Self::timed()
        }
    }
}

/// A deadline below 0.3 ms from now: some are met, some are not.
pub fn soon(random: &mut Random) -> Instant {
    System::now().plus_nanos(random.below(300_000))
}

/// Acquires as the upgradable reader, perhaps upgrades, and releases, each in one of the ways. The
/// data that it reads stays the same until it writes.
fn upgradable_section<L: RawUpgradeRwLock>(
    pair: &Pair<L>,
    state: &ThreadState,
    random: &mut Random,
) -> u64 {
    let lock = &pair.lock;
    let token = match random.below(3) {
        0 => lock.try_upgradable(),
        1 => {
            state.waits(true);
            lock.upgradable_until(soon(random))
        }
        _ => {
            state.waits(false);
            Some(lock.upgradable())
        }
    };
    let Some(token) = token else { return 0 };
    state.is_inside();
    let seen = pair.inspect(|| random.pause(64));
    let upgraded = match random.below(5) {
        0 => {
            // SAFETY: the token of each call is that of the call before, here and below.
            let token = unsafe { lock.downgrade_upgradable(token) };
            assert_eq!(pair.inspect(|| random.pause(64)), seen, "{}", L::NAME);
            pair.end_read(token);
            return 0;
        }
        1 => Err(token),
        // SAFETY: as above.
        2 => unsafe { lock.try_upgrade(token) },
        3 => {
            state.waits(true);
            let deadline = soon(random);
            // SAFETY: as above.
            unsafe { lock.upgrade_until(token, deadline) }
        }
        _ => {
            state.waits(false);
            // SAFETY: as above.
            Ok(unsafe { lock.upgrade(token) })
        }
    };
    state.is_inside();
    match upgraded {
        Ok(token) => {
            assert_eq!(pair.change(|| random.pause(64)), seen + 1, "{}", L::NAME);
            if random.once_in(2) {
                // SAFETY: as above.
                let token = unsafe { lock.downgrade_to_upgradable(token) };
                assert_eq!(pair.inspect(|| random.pause(64)), seen + 1, "{}", L::NAME);
                // SAFETY: as above.
                unsafe { lock.unlock_upgradable(token) };
            } else {
                pair.end_write(token);
            }
            1
        }
        Err(token) => {
            assert_eq!(pair.inspect(|| {}), seen, "{}", L::NAME);
            // SAFETY: as above.
            unsafe { lock.unlock_upgradable(token) };
            0
        }
    }
}

/// Xorshift: the same from run to run, as far as threads are.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % limit
    }

    /// True once in `times`, on average.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// A short pause: none, or the CPU yielded for a moment or for a while.
    pub fn pause(&mut self, seldom: u64) {
        if self.once_in(seldom) {
            thread::yield_now();
        } else if self.once_in(4 * seldom) {
            thread::sleep(Duration::from_nanos(self.below(50_000)));
        }
    }
}
