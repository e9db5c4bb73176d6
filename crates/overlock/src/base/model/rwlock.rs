//! Readers and writers. A writer that waits keeps new readers out, so that a thread which reads
//! twice deadlocks here in some execution.

use std::fmt;
use std::marker::PhantomData;

use overlock_core::Deadline;
use overlock_core::raw::{
    ConstLock, RawDowngradeRwLock, RawFairRwLock, RawRecursiveRwLock, RawRwLock, RawSendLock,
    RawTimedRwLock, RawUpgradeRwLock,
};

use super::monitor::{Limit, Monitor};

#[derive(Clone, Copy)]
struct State {
    /// The upgradable one is among them.
    readers: u32,
    writes: bool,
    upgradable: bool,
    /// Writers that wait, and an upgrade that does.
    wanted: u32,
}

/// In the place of a lock of [`overlock_core::rw`]. `RECURSIVE`: writers that wait keep nobody out.
pub struct RwLock<P, const RECURSIVE: bool>(Monitor<State>, PhantomData<fn() -> P>);

/// In the place of [`overlock_core::rw::OverlockRw`].
pub type OverlockRw<P> = RwLock<P, false>;
/// In the place of [`overlock_core::rw::PerCpuRwSem`].
pub type PerCpuRwSem<P> = RwLock<P, false>;
/// In the place of [`overlock_core::rw::RecursiveRw`].
pub type RecursiveRw<P> = RwLock<P, true>;

fn read_recursive(state: &mut State) -> Option<()> {
    (!state.writes).then(|| state.readers += 1)
}

fn write(state: &mut State) -> Option<()> {
    (!state.writes && state.readers == 0).then(|| state.writes = true)
}

fn upgrade(state: &mut State) -> Option<()> {
    (state.readers == 1).then(|| {
        (state.readers, state.upgradable, state.writes) = (0, false, true);
    })
}

fn by(deadline: impl Into<Deadline>) -> Limit<'static> {
    Limit {
        deadline: Some(deadline.into()),
        cancel: None,
    }
}

impl<P: 'static, const RECURSIVE: bool> RwLock<P, RECURSIVE> {
    fn read_step(state: &mut State) -> Option<()> {
        (RECURSIVE || state.wanted == 0).then(|| read_recursive(state))?
    }

    fn upgradable_step(state: &mut State) -> Option<()> {
        (!state.upgradable).then(|| Self::read_step(state))??;
        state.upgradable = true;
        Some(())
    }

    /// Does `step`, and keeps readers out until then.
    fn wanted(&self, limit: Limit<'_>, step: fn(&mut State) -> Option<()>) -> Option<()> {
        let mut waits = false;
        let step = |state: &mut State| {
            let done = step(state);
            match done {
                None if !waits => state.wanted += 1,
                Some(()) if waits => state.wanted -= 1,
                _ => {}
            }
            waits = true;
            done
        };
        let done = self.0.until_limit(limit, step);
        if done.is_none() {
            self.0.change(|state| state.wanted -= 1);
        }
        done
    }
}

// SAFETY: the state names no thread.
unsafe impl<P, const RECURSIVE: bool> RawSendLock for RwLock<P, RECURSIVE> {}

impl<P: 'static, const RECURSIVE: bool> ConstLock for RwLock<P, RECURSIVE> {
    const INIT: Self = RwLock(
        Monitor::new(State {
            readers: 0,
            writes: false,
            upgradable: false,
            wanted: 0,
        }),
        PhantomData,
    );
}

// SAFETY: the state counts the acquisitions, and changes under the monitor's lock.
unsafe impl<P: 'static, const RECURSIVE: bool> RawRwLock for RwLock<P, RECURSIVE> {
    type Read = ();
    type Write = ();
    const NAME: &'static str = "model_rw";

    fn read(&self) {
        self.0.until(Self::read_step);
    }

    fn try_read(&self) -> Option<()> {
        self.0.look(Self::read_step)
    }

    unsafe fn unlock_read(&self, (): ()) {
        // Not where a wait has unwound with this acquisition.
        self.0
            .change(|state| state.readers = state.readers.saturating_sub(1));
    }

    fn write(&self) {
        self.wanted(Limit::NONE, write);
    }

    fn try_write(&self) -> Option<()> {
        self.0.look(write)
    }

    unsafe fn unlock_write(&self, (): ()) {
        self.0.change(|state| state.writes = false);
    }

    fn is_locked(&self) -> bool {
        self.0.look(|state| state.writes || state.readers > 0)
    }

    fn is_write_locked(&self) -> bool {
        self.0.look(|state| state.writes)
    }

    fn is_contended(&self) -> bool {
        self.0.has_sleepers()
    }
}

// SAFETY: as above.
unsafe impl<P: 'static, const RECURSIVE: bool> RawTimedRwLock for RwLock<P, RECURSIVE> {
    fn read_until(&self, deadline: impl Into<Deadline>) -> Option<()> {
        self.0.until_limit(by(deadline), Self::read_step)
    }

    fn write_until(&self, deadline: impl Into<Deadline>) -> Option<()> {
        self.wanted(by(deadline), write)
    }
}

// SAFETY: as above.
unsafe impl<P: 'static, const RECURSIVE: bool> RawRecursiveRwLock for RwLock<P, RECURSIVE> {
    fn read_recursive(&self) {
        self.0.until(read_recursive);
    }

    fn try_read_recursive(&self) -> Option<()> {
        self.0.look(read_recursive)
    }

    fn read_recursive_until(&self, deadline: impl Into<Deadline>) -> Option<()> {
        self.0.until_limit(by(deadline), read_recursive)
    }
}

// SAFETY: as above.
unsafe impl<P: 'static, const RECURSIVE: bool> RawDowngradeRwLock for RwLock<P, RECURSIVE> {
    unsafe fn downgrade(&self, (): ()) {
        self.0
            .change(|state| (state.writes, state.readers) = (false, 1));
    }
}

// SAFETY: as above.
unsafe impl<P: 'static, const RECURSIVE: bool> RawUpgradeRwLock for RwLock<P, RECURSIVE> {
    type Upgradable = ();

    fn upgradable(&self) {
        self.0.until(Self::upgradable_step);
    }

    fn try_upgradable(&self) -> Option<()> {
        self.0.look(Self::upgradable_step)
    }

    fn upgradable_until(&self, deadline: impl Into<Deadline>) -> Option<()> {
        self.0.until_limit(by(deadline), Self::upgradable_step)
    }

    unsafe fn unlock_upgradable(&self, (): ()) {
        self.0.change(|state| {
            (state.readers, state.upgradable) = (state.readers.saturating_sub(1), false);
        });
    }

    unsafe fn upgrade(&self, (): ()) {
        self.wanted(Limit::NONE, upgrade);
    }

    unsafe fn try_upgrade(&self, (): ()) -> Result<(), ()> {
        self.0.look(upgrade).ok_or(())
    }

    unsafe fn upgrade_until(&self, (): (), deadline: impl Into<Deadline>) -> Result<(), ()> {
        self.wanted(by(deadline), upgrade).ok_or(())
    }

    unsafe fn downgrade_upgradable(&self, (): ()) {
        self.0.change(|state| state.upgradable = false);
    }

    unsafe fn downgrade_to_upgradable(&self, (): ()) {
        self.0.change(|state| {
            (state.writes, state.readers, state.upgradable) = (false, 1, true);
        });
    }
}

// SAFETY: as above.
unsafe impl<P: 'static, const RECURSIVE: bool> RawFairRwLock for RwLock<P, RECURSIVE> {
    unsafe fn unlock_read_fair(&self, (): ()) {
        // SAFETY: the caller's promise.
        unsafe { self.unlock_read(()) }
    }

    unsafe fn unlock_write_fair(&self, (): ()) {
        // SAFETY: the caller's promise.
        unsafe { self.unlock_write(()) }
    }

    unsafe fn unlock_upgradable_fair(&self, (): ()) {
        // SAFETY: the caller's promise.
        unsafe { self.unlock_upgradable(()) }
    }
}

impl<P, const RECURSIVE: bool> fmt::Debug for RwLock<P, RECURSIVE> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
