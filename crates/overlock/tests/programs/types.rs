//! Programs for the types: their guards, and the data behind them.

use std::sync::Arc;
use std::time::Duration;

use overlock::guard::{Guard, MappedGuard};
use overlock::lock::{ArcLockGuard, Lock, LockGuard, MappedLockGuard};
use overlock::rwlock::{ReadGuard, SharedLock, UpgradableReadGuard, WriteGuard};
use overlock_core::raw::{ConstLock, RawFairLock, RawFairRwLock, RawTimedLock};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::runner::check;

/// A guard can be mapped to a part of it.
type Data = [u32; 2];

/// Ways to acquire; without waiting, it only tries.
#[derive(Clone, Copy, Debug)]
enum Way {
    Wait,
    Try,
    For(u16),
}

fn way() -> impl Strategy<Value = Way> {
    prop_oneof![
        Just(Way::Wait),
        Just(Way::Try),
        (0..100_u16).prop_map(Way::For),
    ]
}

fn micros(micros: u16) -> Duration {
    Duration::from_micros(micros.into())
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Lock(Way),
    LockArc(Way),
    Map(usize),
    Set(u32),
    Bump,
    /// Sets the data in a section of its own, within the guard's.
    Unlocked(u32),
    Drop,
    UnlockFair,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => way().prop_map(Op::Lock),
        2 => way().prop_map(Op::LockArc),
        2 => (0..2_usize).prop_map(Op::Map),
        2 => any::<u32>().prop_map(Op::Set),
        1 => Just(Op::Bump),
        1 => any::<u32>().prop_map(Op::Unlocked),
        2 => Just(Op::Drop),
        1 => Just(Op::UnlockFair),
    ]
}

enum Held<'a, R: RawFairLock> {
    Guard(LockGuard<'a, R, Data>),
    Arc(ArcLockGuard<R, Data>),
    Part(usize, MappedLockGuard<'a, R, u32>),
}

impl<R: RawFairLock> Held<'_, R> {
    fn assert_is(&self, data: Data) {
        match self {
            Held::Guard(guard) => assert_eq!(**guard, data),
            Held::Arc(guard) => assert_eq!(**guard, data),
            Held::Part(part, guard) => assert_eq!(**guard, data[*part]),
        }
    }
}

fn mutex<R: RawFairLock + RawTimedLock + ConstLock>(program: &[Op]) {
    let lock = Arc::new(Lock::<R, Data>::new([0; 2]));
    let mut data = [0; 2];
    let mut held: Option<Held<'_, R>> = None;
    for &op in program {
        held = match (op, held) {
            (Op::Lock(way), held) => {
                let guard = match way {
                    Way::Wait if held.is_none() => Some(lock.lock()),
                    Way::Wait | Way::Try => lock.try_lock(),
                    Way::For(time) => lock.try_lock_for(micros(time)),
                };
                assert_eq!(guard.is_some(), held.is_none(), "{op:?}");
                held.or(guard.map(Held::Guard))
            }
            (Op::LockArc(way), held) => {
                let guard = match way {
                    Way::Wait if held.is_none() => Some(lock.lock_arc()),
                    Way::Wait | Way::Try => lock.try_lock_arc(),
                    Way::For(time) => lock.try_lock_arc_for(micros(time)),
                };
                assert_eq!(guard.is_some(), held.is_none(), "{op:?}");
                held.or(guard.map(Held::Arc))
            }
            (Op::Map(part), Some(Held::Guard(guard))) => Some(Held::Part(
                part,
                LockGuard::map(guard, |data| &mut data[part]),
            )),
            (Op::Set(value), Some(mut held)) => {
                match &mut held {
                    Held::Guard(guard) => guard[0] = value,
                    Held::Arc(guard) => guard[0] = value,
                    Held::Part(_, guard) => **guard = value,
                }
                data[if let Held::Part(part, _) = held {
                    part
                } else {
                    0
                }] = value;
                Some(held)
            }
            (Op::Bump, Some(mut held)) => {
                match &mut held {
                    Held::Guard(guard) => Guard::bump(guard),
                    Held::Arc(guard) => Guard::bump(guard),
                    Held::Part(..) => {}
                }
                Some(held)
            }
            (Op::Unlocked(value), Some(Held::Guard(mut guard))) => {
                data = [value; 2];
                Guard::unlocked(&mut guard, || *lock.lock() = data);
                Some(Held::Guard(guard))
            }
            (Op::UnlockFair, Some(held)) => {
                match held {
                    Held::Guard(guard) => Guard::unlock_fair(guard),
                    Held::Arc(guard) => Guard::unlock_fair(guard),
                    Held::Part(_, guard) => MappedGuard::unlock_fair(guard),
                }
                None
            }
            (Op::Drop, _) => None,
            (_, held) => held,
        };
        assert_eq!(lock.is_locked(), held.is_some(), "{op:?}");
        if let Some(held) = &held {
            held.assert_is(data);
        }
    }
    drop(held);
    let lock = Arc::into_inner(lock).expect("no guard holds on to it");
    assert_eq!(lock.into_inner(), data);
}

#[derive(Clone, Copy, Debug)]
enum RwOp {
    Read(Way),
    Write(Way),
    Upgradable(Way),
    /// The rest applies to one of the guards, if it is of the kind.
    Set(usize, u32),
    SetUpgraded(usize, u32),
    Upgrade(usize, Way),
    Downgrade(usize),
    DowngradeToUpgradable(usize),
    Bump(usize),
    Drop(usize),
    UnlockFair(usize),
}

fn rw_op() -> impl Strategy<Value = RwOp> {
    let which = 0..4_usize;
    prop_oneof![
        4 => way().prop_map(RwOp::Read),
        3 => way().prop_map(RwOp::Write),
        3 => way().prop_map(RwOp::Upgradable),
        2 => (which.clone(), any::<u32>()).prop_map(|(which, value)| RwOp::Set(which, value)),
        2 => (which.clone(), any::<u32>()).prop_map(|(which, value)| RwOp::SetUpgraded(which, value)),
        2 => (which.clone(), way()).prop_map(|(which, way)| RwOp::Upgrade(which, way)),
        2 => which.clone().prop_map(RwOp::Downgrade),
        2 => which.clone().prop_map(RwOp::DowngradeToUpgradable),
        1 => which.clone().prop_map(RwOp::Bump),
        4 => which.clone().prop_map(RwOp::Drop),
        1 => which.prop_map(RwOp::UnlockFair),
    ]
}

enum RwHeld<'a, R: RawFairRwLock> {
    Read(ReadGuard<'a, R, u32>),
    Write(WriteGuard<'a, R, u32>),
    Upgradable(UpgradableReadGuard<'a, R, u32>),
}

fn rwlock<R: RawFairRwLock + ConstLock>(program: &[RwOp]) {
    use RwHeld::{Read, Upgradable, Write};
    let lock = SharedLock::<R, u32>::new(0);
    let mut data = 0;
    let mut guards: Vec<RwHeld<'_, R>> = Vec::new();
    for &op in program {
        let writer = guards.iter().any(|guard| matches!(guard, Write(_)));
        let upgradable = guards.iter().any(|guard| matches!(guard, Upgradable(_)));
        let alone = guards.len() == 1;
        let mut take =
            |which: usize| (!guards.is_empty()).then(|| guards.swap_remove(which % guards.len()));
        let got = match op {
            RwOp::Read(way) => {
                let guard = match way {
                    Way::Wait if !writer => Some(lock.read()),
                    Way::Wait | Way::Try => lock.try_read(),
                    Way::For(time) => lock.try_read_for(micros(time)),
                };
                assert_eq!(guard.is_some(), !writer, "{op:?}");
                guard.map(Read)
            }
            RwOp::Write(way) => {
                let free = guards.is_empty();
                let guard = match way {
                    Way::Wait if free => Some(lock.write()),
                    Way::Wait | Way::Try => lock.try_write(),
                    Way::For(time) => lock.try_write_for(micros(time)),
                };
                assert_eq!(guard.is_some(), free, "{op:?}");
                guard.map(Write)
            }
            RwOp::Upgradable(way) => {
                let free = !writer && !upgradable;
                let guard = match way {
                    Way::Wait if free => Some(lock.upgradable_read()),
                    Way::Wait | Way::Try => lock.try_upgradable_read(),
                    Way::For(time) => lock.try_upgradable_read_for(micros(time)),
                };
                assert_eq!(guard.is_some(), free, "{op:?}");
                guard.map(Upgradable)
            }
            RwOp::Upgrade(which, way) => match take(which) {
                Some(Upgradable(guard)) => {
                    let result = match way {
                        Way::Wait if alone => Ok(Guard::upgrade(guard)),
                        Way::Wait | Way::Try => Guard::try_upgrade(guard),
                        Way::For(time) => Guard::try_upgrade_for(guard, micros(time)),
                    };
                    assert_eq!(result.is_ok(), alone, "{op:?}");
                    Some(result.map_or_else(Upgradable, Write))
                }
                other => other,
            },
            RwOp::Set(which, value) => {
                let mut guard = take(which);
                if let Some(Write(guard)) = &mut guard {
                    **guard = value;
                    data = value;
                }
                guard
            }
            RwOp::SetUpgraded(which, value) => {
                let mut guard = take(which);
                if let Some(Upgradable(guard)) = &mut guard {
                    let set = guard.try_with_upgraded(|data| *data = value).is_some();
                    assert_eq!(set, alone, "{op:?}");
                    data = if set { value } else { data };
                }
                guard
            }
            RwOp::Downgrade(which) => match take(which) {
                Some(Write(guard)) => Some(Read(WriteGuard::downgrade(guard))),
                Some(Upgradable(guard)) => Some(Read(UpgradableReadGuard::downgrade(guard))),
                other => other,
            },
            RwOp::DowngradeToUpgradable(which) => match take(which) {
                Some(Write(guard)) => Some(Upgradable(Guard::downgrade_to_upgradable(guard))),
                other => other,
            },
            RwOp::Bump(which) => {
                let mut guard = take(which);
                match &mut guard {
                    Some(Read(guard)) => Guard::bump(guard),
                    Some(Write(guard)) => Guard::bump(guard),
                    Some(Upgradable(guard)) => Guard::bump(guard),
                    None => {}
                }
                guard
            }
            RwOp::UnlockFair(which) => {
                match take(which) {
                    Some(Read(guard)) => Guard::unlock_fair(guard),
                    Some(Write(guard)) => Guard::unlock_fair(guard),
                    Some(Upgradable(guard)) => Guard::unlock_fair(guard),
                    None => {}
                }
                None
            }
            RwOp::Drop(which) => {
                drop(take(which));
                None
            }
        };
        guards.extend(got);
        assert_eq!(lock.is_locked(), !guards.is_empty(), "{op:?}");
        for guard in &guards {
            let seen = match guard {
                Read(guard) => **guard,
                Write(guard) => **guard,
                Upgradable(guard) => **guard,
            };
            assert_eq!(seen, data, "{op:?}");
        }
    }
    drop(guards);
    assert_eq!(lock.into_inner(), data);
}

macro_rules! tests {
    ($run:ident, $op:expr; $($name:ident: $raw:ty;)*) => {$(
        #[test]
        fn $name() {
            check(vec($op, 0..50), |program| $run::<$raw>(program));
        }
    )*};
}

tests! { mutex, op();
    overlock_mutex: overlock::RawMutex;
    sleep_mutex: overlock::sleep::KernelMutex;
}

tests! { rwlock, rw_op();
    overlock_rwlock: overlock::RawRwLock;
}
