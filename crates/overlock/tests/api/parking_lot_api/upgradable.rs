// Included by parking_lot_api.rs: upgradable readers of `RwLock`.

#[test]
fn an_upgradable_reader_excludes_writers_and_its_kind() {
    let lock = api::RwLock::new(1);
    let reader: api::RwLockUpgradableReadGuard<'_, u32> = lock.upgradable_read();
    assert!(lock.is_locked());
    assert_eq!(*reader + *lock.try_read().unwrap(), 2);
    assert!(lock.try_write().is_none());
    assert!(lock.try_upgradable_read().is_none());
    let start = Instant::now();
    assert!(lock.try_upgradable_read_for(SHORT).is_none());
    assert!(start.elapsed() >= SHORT);
    let end = Instant::now() + SHORT;
    assert!(lock.try_upgradable_read_until(end).is_none());
    assert!(Instant::now() >= end);
    assert_eq!(format!("{reader} {reader:?}"), "1 1");
    drop(reader);
    drop(lock.try_upgradable_read().unwrap());
    drop(lock.try_upgradable_read_for(LONG).unwrap());
    drop(lock.try_upgradable_read_until(start).unwrap());
    assert!(!lock.is_locked());
}

#[test]
fn an_upgradable_reader_becomes_the_writer_and_back() {
    let lock = api::RwLock::new(1);
    let mut upgradable = lock.upgradable_read();
    assert!(std::ptr::eq(
        api::RwLockUpgradableReadGuard::rwlock(&upgradable),
        &lock
    ));
    assert!(api::RwLockUpgradableReadGuard::unlocked(
        &mut upgradable,
        || lock.try_write().is_some()
    ));
    assert!(api::RwLockUpgradableReadGuard::unlocked_fair(
        &mut upgradable,
        || lock.try_write().is_some()
    ));
    api::RwLockUpgradableReadGuard::bump(&mut upgradable);

    let mut writer = api::RwLockUpgradableReadGuard::upgrade(upgradable);
    *writer += 1;
    assert!(lock.try_read().is_none());
    let upgradable = api::RwLockWriteGuard::downgrade_to_upgradable(writer);
    assert!(lock.try_read().is_some() && lock.try_upgradable_read().is_none());

    let other = lock.read();
    let Err(upgradable) = api::RwLockUpgradableReadGuard::try_upgrade(upgradable) else {
        unreachable!()
    };
    let start = Instant::now();
    let Err(upgradable) = api::RwLockUpgradableReadGuard::try_upgrade_for(upgradable, SHORT) else {
        unreachable!()
    };
    assert!(start.elapsed() >= SHORT);
    let end = Instant::now() + SHORT;
    let Err(mut upgradable) = api::RwLockUpgradableReadGuard::try_upgrade_until(upgradable, end)
    else {
        unreachable!()
    };
    assert!(Instant::now() >= end);
    assert!(upgradable.try_with_upgraded(|_| ()).is_none());
    assert!(upgradable.try_with_upgraded_for(SHORT, |_| ()).is_none());
    assert!(
        upgradable
            .try_with_upgraded_until(Instant::now() + SHORT, |_| ())
            .is_none()
    );
    drop(other);

    let writer = api::RwLockUpgradableReadGuard::try_upgrade(upgradable).unwrap();
    let upgradable = api::RwLockWriteGuard::downgrade_to_upgradable(writer);
    let writer = api::RwLockUpgradableReadGuard::try_upgrade_for(upgradable, LONG).unwrap();
    let upgradable = api::RwLockWriteGuard::downgrade_to_upgradable(writer);
    let writer = api::RwLockUpgradableReadGuard::try_upgrade_until(upgradable, start).unwrap();
    let upgradable = api::RwLockWriteGuard::downgrade_to_upgradable(writer);

    let reader = api::RwLockUpgradableReadGuard::downgrade(upgradable);
    assert_eq!(*reader, 2);
    api::RwLockUpgradableReadGuard::unlock_fair(lock.try_upgradable_read().unwrap());
    assert!(lock.try_write().is_none() && lock.try_upgradable_read().is_some());
}

#[test]
fn an_upgradable_reader_is_the_writer_for_a_while() {
    let lock = api::RwLock::new(1);
    let mut upgradable = lock.upgradable_read();
    let add = |data: &mut u32| {
        assert!(lock.try_read().is_none());
        *data += 1;
        *data
    };
    assert_eq!(upgradable.with_upgraded(add), 2);
    assert_eq!(upgradable.try_with_upgraded(add), Some(3));
    assert_eq!(upgradable.try_with_upgraded_for(LONG, add), Some(4));
    assert_eq!(
        upgradable.try_with_upgraded_until(Instant::now(), add),
        Some(5)
    );
    let panics = std::panic::AssertUnwindSafe(|| {
        upgradable.with_upgraded(|_| panic!("as a test"));
    });
    assert!(std::panic::catch_unwind(panics).is_err());
    assert_eq!(*lock.try_read().unwrap(), 5);
    assert!(
        lock.try_upgradable_read().is_none(),
        "the guard outlives the panic"
    );
    drop(upgradable);
    assert!(!lock.is_locked());
}

#[test]
#[allow(clippy::let_unit_value)] // as with mutexes: one of the two crates may have a token to speak of
fn an_upgradable_reader_by_force() {
    let lock = Arc::new(api::RwLock::new(1));
    let token = upgradable(&lock);
    assert!(lock.is_locked());
    // SAFETY: nobody else uses the token, here and below.
    drop(unsafe { lock.make_upgradable_guard_unchecked(token) });
    let token = upgradable(&lock);
    // SAFETY: as above.
    drop(unsafe { lock.make_upgradable_arc_guard_unchecked(token) });
    assert!(!lock.is_locked());
}

#[test]
fn an_upgradable_reader_of_an_arc() {
    let lock = Arc::new(api::RwLock::new(1));
    let mut upgradable: api::ArcRwLockUpgradableReadGuard<api::RawRwLock, u32> =
        lock.upgradable_read_arc();
    assert!(lock.try_upgradable_read_arc().is_none());
    assert!(lock.try_upgradable_read_arc_for(SHORT).is_none());
    assert!(
        lock.try_upgradable_read_arc_until(Instant::now() + SHORT)
            .is_none()
    );
    assert!(Arc::ptr_eq(
        api::ArcRwLockUpgradableReadGuard::rwlock(&upgradable),
        &lock
    ));
    assert!(api::ArcRwLockUpgradableReadGuard::unlocked(
        &mut upgradable,
        || lock.try_write().is_some()
    ));
    assert!(api::ArcRwLockUpgradableReadGuard::unlocked_fair(
        &mut upgradable,
        || lock.try_write().is_some()
    ));
    api::ArcRwLockUpgradableReadGuard::bump(&mut upgradable);
    upgradable.with_upgraded(|data| *data += 1);
    assert!(upgradable.try_with_upgraded(|_| ()).is_some());
    assert!(upgradable.try_with_upgraded_for(LONG, |_| ()).is_some());
    assert!(
        upgradable
            .try_with_upgraded_until(Instant::now(), |_| ())
            .is_some()
    );
    let writer = api::ArcRwLockUpgradableReadGuard::upgrade(upgradable);
    let upgradable = api::ArcRwLockWriteGuard::downgrade_to_upgradable(writer);
    let other = lock.read();
    let Err(upgradable) = api::ArcRwLockUpgradableReadGuard::try_upgrade(upgradable) else {
        unreachable!()
    };
    let Err(upgradable) = api::ArcRwLockUpgradableReadGuard::try_upgrade_for(upgradable, SHORT)
    else {
        unreachable!()
    };
    let end = Instant::now() + SHORT;
    let Err(upgradable) = api::ArcRwLockUpgradableReadGuard::try_upgrade_until(upgradable, end)
    else {
        unreachable!()
    };
    drop(other);
    let reader = api::ArcRwLockUpgradableReadGuard::downgrade(upgradable);
    assert_eq!(*reader, 2);
    drop(reader);
    let lock = api::ArcRwLockUpgradableReadGuard::into_arc(lock.try_upgradable_read_arc().unwrap());
    let lock =
        api::ArcRwLockUpgradableReadGuard::into_arc_fair(lock.try_upgradable_read_arc().unwrap());
    api::ArcRwLockUpgradableReadGuard::unlock_fair(lock.try_upgradable_read_arc_for(LONG).unwrap());
    drop(lock.try_upgradable_read_arc_until(Instant::now()).unwrap());
    assert!(!lock.is_locked());
}
