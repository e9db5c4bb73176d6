//! Scenarios for mutual-exclusion locks.

mod timed;

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Release};

use overlock_core::platform::{Atomic, Instant, Spin};
use overlock_core::raw::{RawCancelLock, RawFairLock, RawLock, RawTimedLock};
use overlock_core::sleep::cancel::CancelToken;

use super::workers::rest;
use super::{Scenario, Setting};
use crate::arena::Placed;
use crate::explore::exec::step;
use crate::world::{Data, World};

/// One thing that a thread does with the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    /// Acquires, uses the data, releases.
    Lock,
    /// The same, if it need not wait.
    Try,
    /// The same, unless so many nanoseconds pass first.
    Within(u64),
    /// The same, unless somebody cancels it.
    Cancellable,
    /// Cancels those.
    Cancel,
    /// Holds the lock, cancels those, and releases it when so many of them have ended: nothing but
    /// the cancellation ends them.
    CancelInside(u32),
    /// Acquires, and hands the lock off to a sleeper.
    Fair,
    /// Acquires, lets the others come, and releases.
    Bump,
    /// Acquires the second lock alone.
    Second,
    /// Acquires the second lock while it has the first.
    Nested,
    /// Acquires; meanwhile, or never, a signal comes whose handler acquires the second lock.
    Interrupted,
    /// Acquires; meanwhile, or never, a signal comes whose handler tries to acquire the same lock.
    Tried,
    /// Acquires, stays for so many nanoseconds, and releases.
    Hold(u64),
    /// The same, and hands the lock off to a sleeper.
    HoldFair(u64),
    /// Lets so many nanoseconds pass.
    Rest(u64),
}

use Act::{
    Bump, Cancel, CancelInside, Cancellable, Fair, Hold, HoldFair, Interrupted, Lock, Nested, Rest,
    Second, Tried, Try, Within,
};

/// A line for each scenario: what each thread does, one after the other.
struct Script(&'static str, Setting, &'static [&'static [Act]]);

const PLAIN: Setting = Setting::PLAIN;
const ONE_NODE: Setting = Setting::ONE_NODE;
const NO_NODE: Setting = Setting::NO_NODE;
const ONE_CPU: Setting = Setting {
    parallelism: 1,
    ..PLAIN
};
const SLOW: Setting = Setting::SLOW;
const SIGNALS: Setting = Setting::SIGNALS;

#[rustfmt::skip]
const SCRIPTS: &[Script] = &[
    Script("two",         PLAIN,    &[&[Lock], &[Lock]]),
    Script("again",       PLAIN,    &[&[Lock, Lock], &[Lock, Lock]]),
    Script("three",       PLAIN,    &[&[Lock], &[Lock], &[Lock]]),
    Script("four",        PLAIN,    &[&[Lock], &[Lock], &[Lock], &[Lock]]),
    Script("try",         PLAIN,    &[&[Lock], &[Try, Try], &[Lock]]),
    Script("within",      PLAIN,    &[&[Lock], &[Within(1_000), Lock], &[Within(1_000)]]),
    Script("cancel",      PLAIN,    &[&[Lock, Cancel], &[Cancellable, Lock], &[Cancellable]]),
    Script("cancel-inside", ONE_CPU, &[&[CancelInside(1)], &[Cancellable]]),
    Script("cancel-both", PLAIN,    &[&[CancelInside(2)], &[Cancellable], &[Cancellable]]),
    Script("fair",        PLAIN,    &[&[Fair, Lock], &[Fair], &[Lock]]),
    Script("fair-within", PLAIN,    &[&[Fair, Lock], &[Within(1_000)], &[Fair]]),
    Script("bump",        PLAIN,    &[&[Bump], &[Lock], &[Bump]]),
    Script("nested",      PLAIN,    &[&[Nested], &[Nested], &[Lock]]),
    Script("one-node",    ONE_NODE, &[&[Lock], &[Lock, Lock], &[Lock]]),
    Script("no-node",     NO_NODE,  &[&[Lock], &[Lock], &[Lock]]),
    Script("no-node-try", NO_NODE,  &[&[Lock, Lock], &[Try], &[Lock]]),
    Script("one-cpu",     ONE_CPU,  &[&[Lock, Lock], &[Lock, Lock], &[Lock]]),
    Script("slow",        SLOW,     &[&[Lock, Lock, Lock], &[Lock, Lock, Lock], &[Lock, Lock]]),
    Script("interrupted", SIGNALS,  &[&[Interrupted], &[Nested], &[Lock]]),
    Script("interrupted-apart", SIGNALS, &[&[Interrupted], &[Lock], &[Second]]),
    Script("interrupted-both", SIGNALS, &[&[Interrupted], &[Interrupted]]),
    Script("tried",       SIGNALS,  &[&[Tried], &[Lock, Lock], &[Tried]]),
];

type Until<L> = fn(&L, Instant) -> Option<<L as RawLock>::Token>;
type UntilCancelled<L, W> = fn(&L, &CancelToken<W>) -> Option<<L as RawLock>::Token>;
type Unlock<L> = unsafe fn(&L, <L as RawLock>::Token);
type Again<L> = unsafe fn(&L, <L as RawLock>::Token) -> <L as RawLock>::Token;

/// The abilities of a lock beyond its first trait.
#[derive(Debug)]
pub struct Abilities<W: World, L: RawLock> {
    until: Option<Until<L>>,
    cancel: Option<UntilCancelled<L, W>>,
    fair: Option<(Unlock<L>, Again<L>)>,
}

impl<W: World, L: RawLock> Clone for Abilities<W, L> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W: World, L: RawLock> Copy for Abilities<W, L> {}

impl<W: World, L: RawTimedLock> Abilities<W, L> {
    pub fn timed() -> Self {
        Abilities {
            until: Some(L::lock_until),
            ..Self::basic()
        }
    }
}

impl<W: World, L: RawTimedLock + RawCancelLock<W> + RawFairLock> Abilities<W, L> {
    pub fn full() -> Self {
        Abilities {
            cancel: Some(|lock, token| lock.lock_cancellable(token, None)),
            fair: Some((L::unlock_fair, L::bump)),
            ..Self::timed()
        }
    }
}

impl<W: World, L: RawLock> Abilities<W, L> {
    pub fn basic() -> Self {
        Abilities {
            until: None,
            cancel: None,
            fair: None,
        }
    }

    fn suffice(&self, acts: &[Act]) -> bool {
        acts.iter().all(|act| match act {
            Within(_) => self.until.is_some(),
            Cancellable | Cancel | CancelInside(_) => self.cancel.is_some(),
            Fair | Bump | HoldFair(_) => self.fair.is_some(),
            Lock | Try | Second | Nested | Interrupted | Tried => true,
            Hold(_) | Rest(_) => true,
        })
    }
}

/// The scenarios for a lock with these abilities.
pub fn scenarios<W: World, L: RawLock<Token: 'static>>(
    abilities: Abilities<W, L>,
) -> Vec<Scenario> {
    let all = SCRIPTS.iter().chain(timed::scripts::<W>(L::NAME));
    all.filter(|script| script.2.iter().all(|acts| abilities.suffice(acts)))
        .map(|&Script(name, setting, threads)| Scenario {
            name: name.to_owned(),
            threads: threads.len(),
            setting,
            body: Arc::new(move || play(abilities, threads)),
        })
        .collect()
}

/// The data that the threads share.
struct Shared<W: World, L> {
    first: L,
    second: L,
    guarded_by_first: W::Data,
    guarded_by_second: W::Data,
    cancel: CancelToken<W>,
    /// How many that could be cancelled have ended.
    ended: W::U32,
    /// Resting threads sleep on this; nobody kicks it.
    nobody: W::U32,
}

fn play<W: World, L: RawLock<Token: 'static>>(
    abilities: Abilities<W, L>,
    threads: &'static [&'static [Act]],
) {
    let create = || L::create().expect("room for two locks");
    let shared = Placed::new(Shared::<W, L> {
        first: create(),
        second: create(),
        guarded_by_first: W::Data::new(),
        guarded_by_second: W::Data::new(),
        cancel: CancelToken::new(),
        ended: W::U32::ZERO,
        nobody: W::U32::ZERO,
    });
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
    for lock in [&shared.first, &shared.second] {
        assert!(
            !lock.is_locked(),
            "the lock is held when all threads have ended"
        );
        assert!(
            !lock.is_contended(),
            "somebody waits when all threads have ended"
        );
        let token = lock.try_lock().expect("a free lock that nobody waits for");
        // SAFETY: just acquired by this thread.
        unsafe { lock.unlock(token) };
    }
    // SAFETY: all other threads have ended.
    unsafe { shared.end() };
}

impl<W: World, L: RawLock<Token: 'static>> Shared<W, L> {
    fn perform(&'static self, abilities: Abilities<W, L>, act: Act) {
        let Shared { first, second, .. } = self;
        match act {
            Lock => self.use_and_unlock(first.lock()),
            Try => {
                if let Some(token) = first.try_lock() {
                    self.use_and_unlock(token);
                }
            }
            Within(nanos) => {
                let until = abilities.until.expect("checked before");
                if let Some(token) = until(first, W::now().plus_nanos(nanos)) {
                    self.use_and_unlock(token);
                }
            }
            Cancellable => {
                let cancellable = abilities.cancel.expect("checked before");
                if let Some(token) = cancellable(first, &self.cancel) {
                    self.use_and_unlock(token);
                }
                self.ended.fetch_add(1, Release);
            }
            Cancel => self.cancel.cancel(),
            CancelInside(others) => {
                let token = first.lock();
                self.cancel.cancel();
                let all = |ended: u32| ended == others;
                let _ = W::wait_until(&self.ended, Acquire, Spin::Forever, all);
                self.use_and_unlock(token);
            }
            Fair => {
                let (unlock, _) = abilities.fair.expect("checked before");
                let token = first.lock();
                section::<W>(&self.guarded_by_first);
                // SAFETY: acquired above by this thread.
                unsafe { unlock(first, token) };
            }
            HoldFair(nanos) => {
                let (unlock, _) = abilities.fair.expect("checked before");
                let token = first.lock();
                self.stay(nanos);
                // SAFETY: acquired above by this thread.
                unsafe { unlock(first, token) };
            }
            Hold(nanos) => self.hold(nanos),
            Rest(nanos) => self.rest(nanos),
            Bump => {
                let (_, bump) = abilities.fair.expect("checked before");
                let token = first.lock();
                section::<W>(&self.guarded_by_first);
                // SAFETY: acquired above by this thread.
                self.use_and_unlock(unsafe { bump(first, token) });
            }
            Second => self.use_second(second.lock()),
            Nested => {
                let token = first.lock();
                self.use_second(second.lock());
                self.use_and_unlock(token);
            }
            Interrupted => {
                step::signal(Box::new(|| self.use_second(second.lock())));
                self.use_and_unlock(first.lock());
                step::unsignal();
            }
            Tried => {
                step::signal(Box::new(|| {
                    if let Some(token) = first.try_lock() {
                        self.use_and_unlock(token);
                    }
                }));
                self.use_and_unlock(first.lock());
                step::unsignal();
            }
        }
    }

    fn rest(&self, nanos: u64) {
        rest::<W>(&self.nobody, nanos);
    }

    /// A critical section that takes a while.
    fn stay(&self, nanos: u64) {
        self.guarded_by_first.write();
        self.rest(nanos);
        self.guarded_by_first.write();
    }

    fn hold(&self, nanos: u64) {
        let token = self.first.lock();
        self.stay(nanos);
        // SAFETY: just acquired by this thread.
        unsafe { self.first.unlock(token) };
    }

    fn use_and_unlock(&self, token: L::Token) {
        section::<W>(&self.guarded_by_first);
        // SAFETY: the caller has just acquired the lock with this token.
        unsafe { self.first.unlock(token) };
    }

    fn use_second(&self, token: L::Token) {
        section::<W>(&self.guarded_by_second);
        // SAFETY: as above.
        unsafe { self.second.unlock(token) };
    }
}

/// A critical section: the first access is in order with the last owner's, the second with this
/// thread's first.
fn section<W: World>(data: &W::Data) {
    data.write();
    W::breathe();
    data.write();
}
