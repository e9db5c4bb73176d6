//! Scenarios for reader-writer locks.

mod barging;
mod freed;
mod scripts;

use std::sync::Arc;

use overlock_core::platform::{Atomic, Instant};
use overlock_core::raw::{
    RawDowngradeRwLock, RawFairRwLock, RawRwLock, RawTimedRwLock, RawUpgradeRwLock,
};
use overlock_core::rw::PerCpuRwSem;
use overlock_family::rw::Qrwlock;

pub use self::barging::barging;
use self::scripts::Act::{self, *};
use self::scripts::{IN_HANDLERS, SCRIPTS, Script, VISIBLE};
use super::Scenario;
use super::workers::rest;
use crate::arena::Placed;
use crate::explore::exec::step;
use crate::world::{Data, World};

type Within<L, T> = fn(&L, Instant) -> Option<T>;
type Timing<L> = (
    Within<L, <L as RawRwLock>::Read>,
    Within<L, <L as RawRwLock>::Write>,
);
/// Performs the acts of a kind.
type Perform<W, L> = fn(&Shared<W, L>, Act);

/// The abilities of a lock beyond its first trait.
#[derive(Debug)]
pub struct Abilities<W: World, L: RawRwLock> {
    timed: Option<Timing<L>>,
    downgrade: Option<Perform<W, L>>,
    upgrade: Option<Perform<W, L>>,
    fair: Option<Perform<W, L>>,
    passing: Option<Perform<W, L>>,
    in_handler: Option<fn(&L) -> L::Read>,
}

impl<W: World, L: RawRwLock> Clone for Abilities<W, L> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W: World, L: RawRwLock> Copy for Abilities<W, L> {}

impl<W: World, L: RawTimedRwLock + RawDowngradeRwLock> Abilities<W, L> {
    pub fn timed() -> Self {
        Abilities {
            timed: Some((L::read_until, L::write_until)),
            downgrade: Some(Shared::downgrade),
            ..Self::basic()
        }
    }
}

impl<W: World, L: RawFairRwLock> Abilities<W, L> {
    pub fn full() -> Self {
        Abilities {
            upgrade: Some(Shared::upgrade),
            fair: Some(Shared::fair),
            ..Self::timed()
        }
    }
}

impl<W: World, L: RawRwLock> Abilities<W, L> {
    pub fn basic() -> Self {
        Abilities {
            timed: None,
            downgrade: None,
            upgrade: None,
            fair: None,
            passing: None,
            in_handler: None,
        }
    }

    fn suffice(&self, acts: &[Act]) -> bool {
        acts.iter().all(|act| match act {
            ReadPast | ReadLater | TryReadPast | ReadPastWithin(_) | ReadAgain | ReadRanked
            | WriteRanked | WriteRankedWithin(_) => self.passing.is_some(),
            Read | TryRead | ReadFor(_) | ReadOther | ReadUnderOther | Write | TryWrite
            | Interrupted => true,
            ReadWithin(_) | WriteWithin(_) => self.timed.is_some(),
            Downgrade => self.downgrade.is_some(),
            Upgradable
            | UpgradableOverOther
            | TryUpgradable
            | UpgradableWithin(_)
            | Upgrade
            | TryUpgrade
            | UpgradeWithin(_)
            | DowngradeUpgradable
            | DowngradeToUpgradable => self.upgrade.is_some(),
            ReadFair | WriteFair | UpgradableFair | BumpRead | BumpWrite => self.fair.is_some(),
            ReadTwice => self.in_handler.is_some(),
        })
    }
}

/// The scenarios for a lock with these abilities.
pub fn scenarios<W: World, L: RawRwLock>(abilities: Abilities<W, L>) -> Vec<Scenario> {
    of_scripts(abilities, SCRIPTS)
}

/// The scenarios for the lock whose readers are visible from the second on.
pub fn visible<W: World>() -> Vec<Scenario> {
    of_scripts(Abilities::<W, PerCpuRwSem<W>>::timed(), VISIBLE)
}

/// The scenarios for the lock that a signal handler may read whatever it has interrupted, but for a
/// writer.
pub fn in_handlers<W: World>() -> Vec<Scenario> {
    let abilities = Abilities::<W, Qrwlock<W>> {
        in_handler: Some(|lock| lock.read_in_handler()),
        ..Abilities::basic()
    };
    of_scripts(abilities, IN_HANDLERS)
}

fn of_scripts<W: World, L: RawRwLock>(
    abilities: Abilities<W, L>,
    scripts: &'static [Script],
) -> Vec<Scenario> {
    played(abilities, scripts, play)
}

/// The acts of each thread.
type Threads = &'static [&'static [Act]];

fn played<W: World, L: RawRwLock>(
    abilities: Abilities<W, L>,
    scripts: &'static [Script],
    play: fn(Abilities<W, L>, Threads),
) -> Vec<Scenario> {
    scripts
        .iter()
        .filter(|script| script.2.iter().all(|acts| abilities.suffice(acts)))
        .map(|&Script(name, setting, threads)| Scenario {
            name: name.to_owned(),
            threads: threads.len(),
            setting,
            body: Arc::new(move || play(abilities, threads)),
        })
        .collect()
}

/// The data that the threads share.
#[derive(Debug)]
pub struct Shared<W: World, L> {
    lock: L,
    guarded: W::Data,
    /// Another lock, where a thread uses one: it guards nothing.
    other: Option<L>,
    /// A thread that stays sleeps on this; nobody kicks it.
    nobody: W::U32,
}

fn play<W: World, L: RawRwLock>(abilities: Abilities<W, L>, threads: Threads) {
    let shared = Placed::new(Shared::<W, L>::new(threads));
    let run = move |shared: &'static Shared<W, L>, acts: &[Act]| {
        acts.iter().for_each(|&act| shared.perform(abilities, act));
    };
    let others: Vec<_> = threads[1..]
        .iter()
        .map(|acts| {
            let shared = shared.share();
            W::spawn(move || run(shared, acts))
        })
        .collect();
    run(shared.share(), threads[0]);
    others.into_iter().for_each(W::join);
    assert!(
        !shared.lock.is_locked(),
        "the lock is held when all threads have ended"
    );
    assert!(
        !shared.lock.is_contended(),
        "somebody waits when all threads have ended"
    );
    let token = shared
        .lock
        .try_write()
        .expect("a free lock that nobody waits for");
    // SAFETY: just acquired by this thread.
    unsafe { shared.lock.unlock_write(token) };
    // SAFETY: all other threads have ended.
    unsafe { shared.end() };
}

impl<W: World, L: RawRwLock> Shared<W, L> {
    fn new(threads: Threads) -> Self {
        Shared {
            lock: L::INIT,
            guarded: W::Data::new(),
            other: threads
                .iter()
                .flat_map(|acts| acts.iter())
                .any(|act| matches!(act, ReadOther | ReadUnderOther | UpgradableOverOther))
                .then_some(L::INIT),
            nobody: W::U32::ZERO,
        }
    }

    fn perform(&'static self, abilities: Abilities<W, L>, act: Act) {
        let deadline = |nanos| W::now().plus_nanos(nanos);
        let special = |perform: Option<fn(&Self, Act)>| perform.expect("checked before")(self, act);
        match act {
            Read => self.read_and_unlock(Some(self.lock.read())),
            TryRead => self.read_and_unlock(self.lock.try_read()),
            ReadFor(nanos) => {
                let token = self.lock.read();
                self.guarded.read();
                rest::<W>(&self.nobody, nanos);
                self.read_and_unlock(Some(token));
            }
            ReadOther => {
                let other = self.other.as_ref().expect("created for this");
                let token = other.read();
                W::breathe();
                // SAFETY: just acquired by this thread.
                unsafe { other.unlock_read(token) };
            }
            ReadUnderOther => self.over_other(|| self.read_and_unlock(Some(self.lock.read()))),
            ReadWithin(nanos) => {
                let (read, _) = abilities.timed.expect("checked before");
                self.read_and_unlock(read(&self.lock, deadline(nanos)));
            }
            Write => self.write_and_unlock(Some(self.lock.write())),
            TryWrite => self.write_and_unlock(self.lock.try_write()),
            WriteWithin(nanos) => {
                let (_, write) = abilities.timed.expect("checked before");
                self.write_and_unlock(write(&self.lock, deadline(nanos)));
            }
            Interrupted => {
                step::signal(Box::new(|| self.read_and_unlock(self.lock.try_read())));
                self.write_and_unlock(Some(self.lock.write()));
                step::unsignal();
            }
            ReadTwice => {
                let read = abilities.in_handler.expect("checked before");
                step::signal(Box::new(move || {
                    self.read_and_unlock(Some(read(&self.lock)));
                }));
                self.read_and_unlock(Some(self.lock.read()));
                step::unsignal();
            }
            ReadPast | ReadLater | TryReadPast | ReadPastWithin(_) | ReadAgain | ReadRanked
            | WriteRanked | WriteRankedWithin(_) => {
                special(abilities.passing);
            }
            Downgrade => special(abilities.downgrade),
            Upgradable
            | UpgradableOverOther
            | TryUpgradable
            | UpgradableWithin(_)
            | Upgrade
            | TryUpgrade
            | UpgradeWithin(_)
            | DowngradeUpgradable
            | DowngradeToUpgradable => {
                special(abilities.upgrade);
            }
            ReadFair | WriteFair | UpgradableFair | BumpRead | BumpWrite => special(abilities.fair),
        }
    }

    /// Writes the other lock around `f`.
    fn over_other(&self, f: impl FnOnce()) {
        let other = self.other.as_ref().expect("created for this");
        let token = other.write();
        f();
        // SAFETY: just acquired by this thread.
        unsafe { other.unlock_write(token) };
    }

    fn inspect(&self) {
        self.guarded.read();
        W::breathe();
        self.guarded.read();
    }

    fn change(&self) {
        self.guarded.write();
        W::breathe();
        self.guarded.write();
    }

    fn read_and_unlock(&self, token: Option<L::Read>) {
        if let Some(token) = token {
            self.inspect();
            // SAFETY: the caller has just acquired the lock with this token.
            unsafe { self.lock.unlock_read(token) };
        }
    }

    fn write_and_unlock(&self, token: Option<L::Write>) {
        if let Some(token) = token {
            self.change();
            // SAFETY: as above.
            unsafe { self.lock.unlock_write(token) };
        }
    }
}

impl<W: World, L: RawDowngradeRwLock> Shared<W, L> {
    fn downgrade(&self, _: Act) {
        let token = self.lock.write();
        self.change();
        // SAFETY: just acquired by this thread.
        self.read_and_unlock(Some(unsafe { self.lock.downgrade(token) }));
    }
}

impl<W: World, L: RawUpgradeRwLock> Shared<W, L> {
    fn upgrade(&self, act: Act) {
        let lock = &self.lock;
        let deadline = |nanos| W::now().plus_nanos(nanos);
        if act == DowngradeToUpgradable {
            let token = lock.write();
            self.change();
            // SAFETY: just acquired by this thread.
            return self.leave(unsafe { lock.downgrade_to_upgradable(token) });
        }
        let token = match act {
            TryUpgradable => lock.try_upgradable(),
            UpgradableWithin(nanos) => lock.upgradable_until(deadline(nanos)),
            _ => Some(lock.upgradable()),
        };
        let Some(token) = token else { return };
        self.inspect();
        let outcome = match act {
            // SAFETY: acquired above by this thread.
            Upgrade => Ok(unsafe { lock.upgrade(token) }),
            // SAFETY: acquired above by this thread.
            TryUpgrade => unsafe { lock.try_upgrade(token) },
            // SAFETY: acquired above by this thread.
            UpgradeWithin(nanos) => unsafe { lock.upgrade_until(token, deadline(nanos)) },
            UpgradableOverOther => {
                self.over_other(W::breathe);
                Err(token)
            }
            DowngradeUpgradable => {
                // SAFETY: acquired above by this thread.
                let token = unsafe { lock.downgrade_upgradable(token) };
                return self.read_and_unlock(Some(token));
            }
            _ => Err(token),
        };
        match outcome {
            Ok(token) => self.write_and_unlock(Some(token)),
            Err(token) => self.leave(token),
        }
    }

    fn leave(&self, token: L::Upgradable) {
        self.inspect();
        // SAFETY: the caller has just acquired the lock with this token.
        unsafe { self.lock.unlock_upgradable(token) };
    }
}

impl<W: World, L: RawFairRwLock> Shared<W, L> {
    fn fair(&self, act: Act) {
        let lock = &self.lock;
        match act {
            ReadFair => {
                let token = lock.read();
                self.inspect();
                // SAFETY: just acquired by this thread.
                unsafe { lock.unlock_read_fair(token) };
            }
            UpgradableFair => {
                let token = lock.upgradable();
                self.inspect();
                // SAFETY: just acquired by this thread.
                unsafe { lock.unlock_upgradable_fair(token) };
            }
            BumpRead => {
                let token = lock.read();
                self.inspect();
                // SAFETY: just acquired by this thread.
                self.read_and_unlock(Some(unsafe { lock.bump_read(token) }));
            }
            BumpWrite => {
                let token = lock.write();
                self.change();
                // SAFETY: just acquired by this thread.
                self.write_and_unlock(Some(unsafe { lock.bump_write(token) }));
            }
            _ => {
                let token = lock.write();
                self.change();
                // SAFETY: just acquired by this thread.
                unsafe { lock.unlock_write_fair(token) };
            }
        }
    }
}
