//! The effect of each operation of the guards on its acquisition: nothing is released twice or in
//! the wrong way, and nothing is forgotten. Guards: G2 of the module `guard`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use overlock::guard::{Fair, Guard, MappedGuard, MappedReadGuard};
use overlock::lock::{Lock, LockGuard};
use overlock::rwlock::{ArcWriteGuard, ReadGuard, SharedLock, UpgradableReadGuard, WriteGuard};

use crate::ledger::How::{self, Locked, Read, Upgradable, Write};
use crate::ledger::{Ledger, Token};

type Pair = (u32, u32);

fn lock() -> Lock<Ledger, Pair> {
    Lock::new((1, 2))
}

fn shared() -> SharedLock<Ledger, Pair> {
    SharedLock::new((1, 2))
}

/// The records of a lock.
trait Books {
    fn books(&self) -> &Ledger;

    fn expect(&self, done: &[&str], held: &[How]) {
        assert_eq!(self.books().done(), done);
        assert_eq!(self.books().held(), held);
    }
}

impl<T: ?Sized> Books for Lock<Ledger, T> {
    fn books(&self) -> &Ledger {
        // SAFETY: only the records are read.
        unsafe { self.raw() }
    }
}

impl<T: ?Sized> Books for SharedLock<Ledger, T> {
    fn books(&self) -> &Ledger {
        // SAFETY: as above.
        unsafe { self.raw() }
    }
}

fn panics<V>(f: impl FnOnce() -> V) {
    assert!(catch_unwind(AssertUnwindSafe(f)).is_err());
}

/// The guard's `drop`, `unlock_fair`, `leak`, `into_token`.
#[test]
fn a_guard_releases_what_it_has() {
    let lock = lock();
    drop(lock.lock());
    lock.expect(&["lock", "unlock"], &[]);
    drop(lock.try_lock());
    lock.expect(&["try_lock", "unlock"], &[]);
    Guard::unlock_fair(lock.lock());
    lock.expect(&["lock", "unlock_fair"], &[]);
    Guard::leak(lock.lock());
    lock.expect(&["lock"], &[Locked]);
    let lock = self::lock();
    let token = Guard::into_token(lock.lock());
    lock.expect(&["lock"], &[Locked]);
    // SAFETY: the token of the guard that is gone.
    drop(unsafe { lock.make_guard_unchecked(token) });
    lock.expect(&["unlock"], &[]);
    let token = Guard::into_token(lock.lock());
    // SAFETY: as above.
    unsafe { lock.force_unlock_fair(token) };
    lock.expect(&["lock", "unlock_fair"], &[]);
}

/// `released_by` and its `Again`, `with_token`.
#[test]
fn a_guard_gets_a_new_token_where_it_lets_go_for_a_while() {
    let lock = lock();
    let mut guard = lock.lock();
    Guard::unlocked(&mut guard, || lock.expect(&["lock", "unlock"], &[]));
    Guard::unlocked_fair(&mut guard, || lock.expect(&["lock", "unlock_fair"], &[]));
    Guard::bump(&mut guard);
    lock.expect(&["lock", "unlock_fair", "lock"], &[Locked]);
    panics(|| Guard::unlocked(&mut guard, || panic!("as a test")));
    lock.expect(&["unlock", "lock"], &[Locked]);
    panics(|| Guard::unlocked_fair(&mut guard, || panic!("as a test")));
    lock.expect(&["unlock_fair", "lock"], &[Locked]);
    drop(guard);
    lock.expect(&["unlock"], &[]);
}

/// The implementations of `Fair` for `Read`, `Write` and `Upgradable`, which must not be mixed up.
#[test]
fn readers_and_writers_let_go_fairly() {
    fn all<M>(
        acquire: impl Fn(&SharedLock<Ledger, Pair>) -> Guard<&SharedLock<Ledger, Pair>, M>,
        arc: impl Fn(&Arc<SharedLock<Ledger, Pair>>) -> Guard<Arc<SharedLock<Ledger, Pair>>, M>,
        [take, give]: [&'static str; 2],
        how: How,
    ) where
        M: Fair<Raw = Ledger, Token = Token>,
    {
        let lock = Arc::new(shared());
        Guard::unlock_fair(acquire(&lock));
        lock.expect(&[take, give], &[]);
        let mut guard = acquire(&lock);
        Guard::unlocked_fair(&mut guard, || lock.expect(&[take, give], &[]));
        Guard::bump(&mut guard);
        lock.expect(&[take, give, take], &[how]);
        panics(|| Guard::unlocked_fair(&mut guard, || panic!("as a test")));
        lock.expect(&[give, take], &[how]);
        drop(guard);
        lock.books().done();
        let same = Guard::into_arc_fair(arc(&lock));
        same.expect(&[take, give], &[]);
        Guard::unlock_fair(arc(&lock));
        same.expect(&[take, give], &[]);
    }
    all(
        |lock| lock.read(),
        |lock| lock.read_arc(),
        ["read", "unlock_read_fair"],
        Read,
    );
    all(
        |lock| lock.write(),
        |lock| lock.write_arc(),
        ["write", "unlock_write_fair"],
        Write,
    );
    all(
        |lock| lock.upgradable_read(),
        |lock| lock.upgradable_read_arc(),
        ["upgradable", "unlock_upgradable_fair"],
        Upgradable,
    );

    let lock = shared();
    MappedReadGuard::unlock_fair(ReadGuard::map(lock.read(), |pair| &pair.0));
    lock.expect(&["read", "unlock_read_fair"], &[]);
    MappedGuard::unlock_fair(WriteGuard::map(lock.write(), |pair| &mut pair.0));
    lock.expect(&["write", "unlock_write_fair"], &[]);
    let token = Guard::into_token(lock.read());
    // SAFETY: the token of the guard that is gone, here and below.
    unsafe { lock.force_unlock_read_fair(token) };
    lock.expect(&["read", "unlock_read_fair"], &[]);
    let token = Guard::into_token(lock.write());
    // SAFETY: as above.
    unsafe { lock.force_unlock_write_fair(token) };
    lock.expect(&["write", "unlock_write_fair"], &[]);
}

/// The first attempts in `acquire_until`, `read_before`, `write_before`, `upgradable_before`.
#[test]
fn the_clock_is_asked_only_where_a_lock_is_not_free() {
    let (lock, shared) = (lock(), shared());
    drop(lock.try_lock_for(Duration::ZERO));
    lock.expect(&["try_lock", "unlock"], &[]);
    lock.books().refuse(true);
    assert!(lock.try_lock_until(Instant::now()).is_none());
    drop(shared.try_read_for(Duration::ZERO));
    drop(shared.try_write_until(Instant::now()));
    drop(shared.try_upgradable_read_for(Duration::ZERO));
    let done = [
        "try_read",
        "unlock_read",
        "try_write",
        "unlock_write",
        "try_upgradable",
    ];
    shared.expect(&[&done[..], &["unlock_upgradable"]].concat(), &[]);
}

/// `Held::of`, which must not release, and `Held`'s `drop`, which must.
#[test]
fn a_mapped_guard_takes_the_acquisition_over() {
    let lock = lock();
    let guard = LockGuard::map(lock.lock(), |pair| &mut pair.1);
    let guard = MappedGuard::map(guard, |part| part);
    lock.expect(&["lock"], &[Locked]);
    drop(guard);
    lock.expect(&["unlock"], &[]);

    let Err(guard) = LockGuard::try_map(lock.lock(), |_| None::<&mut u32>) else {
        unreachable!()
    };
    let Err((guard, ())) = LockGuard::try_map_or_err(guard, |_| Err::<&mut u32, _>(())) else {
        unreachable!()
    };
    let guard = LockGuard::try_map(guard, |pair| Some(&mut pair.0)).unwrap();
    let Err(guard) = MappedGuard::try_map(guard, |_| None::<&mut u32>) else {
        unreachable!()
    };
    let Err((guard, ())) = MappedGuard::try_map_or_err(guard, |_| Err::<&mut u32, _>(())) else {
        unreachable!()
    };
    let guard = MappedGuard::try_map(guard, |part| Some(part)).unwrap();
    lock.expect(&["lock"], &[Locked]);
    MappedGuard::unlock_fair(guard);
    lock.expect(&["unlock_fair"], &[]);

    panics(|| LockGuard::map(lock.lock(), |_| -> &mut u32 { panic!("as a test") }));
    lock.expect(&["lock", "unlock"], &[]);
    let guard = LockGuard::map(lock.lock(), |pair| &mut pair.0);
    panics(|| MappedGuard::map(guard, |_| -> &mut u32 { panic!("as a test") }));
    lock.expect(&["lock", "unlock"], &[]);

    let shared = shared();
    let part = ReadGuard::map(shared.read(), |pair| &pair.0);
    let part = MappedReadGuard::try_map(part, |part| Some(part)).unwrap();
    let Err(part) = MappedReadGuard::try_map(part, |_| None::<&u32>) else {
        unreachable!()
    };
    let Err((part, ())) = MappedReadGuard::try_map_or_err(part, |_| Err::<&u32, _>(())) else {
        unreachable!()
    };
    shared.expect(&["read"], &[Read]);
    drop(part);
    drop(WriteGuard::map(shared.write(), |pair| &mut pair.0));
    shared.expect(&["unlock_read", "write", "unlock_write"], &[]);
}

/// `into_arc`, `into_arc_fair`; and the order in `drop`: the `Arc` goes last.
#[test]
fn an_arc_outlives_the_release() {
    let lock = Arc::new(lock());
    let guard = lock.lock_arc();
    assert_eq!(Arc::strong_count(&lock), 2);
    let same = Guard::into_arc(guard);
    lock.expect(&["lock", "unlock"], &[]);
    drop(Guard::into_arc_fair(same.lock_arc()));
    lock.expect(&["lock", "unlock_fair"], &[]);
    Guard::unlock_fair(same.lock_arc());
    drop(lock);
    let guard = same.lock_arc();
    drop(same);
    // The records, and so the raw lock, still exist when it is released.
    drop(guard);
    let shared = Arc::new(shared());
    let same = Guard::into_arc(ArcWriteGuard::downgrade(shared.write_arc()));
    assert_eq!(Arc::strong_count(&same), 2);
    shared.expect(&["write", "downgrade", "unlock_read"], &[]);
}

/// The raw operations that `downgrade`, `downgrade_to_upgradable`, `upgrade` call.
#[test]
fn a_writer_is_released_as_what_it_has_become() {
    let lock = shared();
    let reader = WriteGuard::downgrade(lock.write());
    lock.expect(&["write", "downgrade"], &[Read]);
    drop(reader);
    let upgradable = Guard::downgrade_to_upgradable(lock.write());
    lock.expect(
        &["unlock_read", "write", "downgrade_to_upgradable"],
        &[Upgradable],
    );
    let writer = Guard::upgrade(upgradable);
    lock.expect(&["upgrade"], &[Write]);
    let upgradable = Guard::downgrade_to_upgradable(writer);
    let reader = UpgradableReadGuard::downgrade(upgradable);
    lock.expect(
        &["downgrade_to_upgradable", "downgrade_upgradable"],
        &[Read],
    );
    drop(reader);
    lock.expect(&["unlock_read"], &[]);
    let mut upgradable = lock.upgradable_read();
    Guard::unlocked(&mut upgradable, || ());
    lock.expect(
        &["upgradable", "unlock_upgradable", "upgradable"],
        &[Upgradable],
    );
}

/// `put_token` in `with_upgraded_by`, and the `Err` of `upgraded_by`.
#[test]
fn an_upgradable_reader_keeps_its_acquisition_where_it_cannot_upgrade() {
    let lock = shared();
    let upgradable = lock.upgradable_read();
    lock.books().refuse(true);
    let Err(upgradable) = Guard::try_upgrade(upgradable) else {
        unreachable!()
    };
    let Err(upgradable) = Guard::try_upgrade_for(upgradable, Duration::ZERO) else {
        unreachable!()
    };
    let Err(mut upgradable) = Guard::try_upgrade_until(upgradable, Instant::now()) else {
        unreachable!()
    };
    assert!(upgradable.try_with_upgraded(|_| unreachable!()).is_none());
    assert!(
        upgradable
            .try_with_upgraded_for(Duration::ZERO, |_| unreachable!())
            .is_none()
    );
    assert!(
        upgradable
            .try_with_upgraded_until(Instant::now(), |_| unreachable!())
            .is_none()
    );
    lock.books().done();
    drop(upgradable);
    lock.expect(&["unlock_upgradable"], &[]);
}

/// `Back` in `while_writer`.
#[test]
fn an_upgradable_reader_is_one_again_after_it_was_the_writer() {
    let lock = shared();
    let mut upgradable = lock.upgradable_read();
    let look = |_: &mut Pair| assert_eq!(lock.books().held(), [Write]);
    upgradable.with_upgraded(look);
    upgradable.try_with_upgraded(look).unwrap();
    upgradable
        .try_with_upgraded_for(Duration::ZERO, look)
        .unwrap();
    upgradable
        .try_with_upgraded_until(Instant::now(), look)
        .unwrap();
    let back = "downgrade_to_upgradable";
    let done = [
        "upgradable",
        "upgrade",
        back,
        "try_upgrade",
        back,
        "upgrade_until",
        back,
    ];
    lock.expect(
        &[&done[..], &["upgrade_until", back]].concat(),
        &[Upgradable],
    );
    panics(|| upgradable.with_upgraded(|_| panic!("as a test")));
    lock.expect(&["upgrade", back], &[Upgradable]);
    drop(upgradable);
    lock.expect(&["unlock_upgradable"], &[]);
}
