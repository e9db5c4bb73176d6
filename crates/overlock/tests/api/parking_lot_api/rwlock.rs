// Included by parking_lot_api.rs: `RwLock` and the guards of readers and writers.

static NAMES: api::RwLock<Vec<u32>> = api::RwLock::new(Vec::new());

#[test]
fn an_rwlock_in_a_static() {
    thread::scope(|scope| {
        for i in 0..4 {
            scope.spawn(move || {
                for _ in 0..100 {
                    NAMES.write().push(i);
                    assert!(NAMES.read().contains(&i));
                }
            });
        }
    });
    assert_eq!(NAMES.read().len(), 400);
}

#[test]
fn an_rwlock_and_its_owner() {
    let mut lock = api::RwLock::new(String::from("a"));
    lock.get_mut().push('b');
    // SAFETY: nobody else is there.
    unsafe { (*lock.data_ptr()).push('c') };
    assert_eq!(lock.into_inner(), "abc");
    let (raw, data) = api::RwLock::from(7).into_inner_with_raw();
    let lock = api::RwLock::from_raw(raw, data + 1);
    assert_eq!(*lock.read(), 8);
    assert_eq!(*api::RwLock::<u32>::default().read(), 0);
}

#[test]
fn readers_share_and_writers_exclude() {
    let lock = api::RwLock::new(1);
    assert!(!lock.is_locked() && !lock.is_locked_exclusive());
    let reader: api::RwLockReadGuard<'_, u32> = lock.read();
    assert!(lock.is_locked() && !lock.is_locked_exclusive());
    assert_eq!(*reader + *lock.try_read().unwrap(), 2);
    assert_eq!(*lock.try_read_for(LONG).unwrap(), 1);
    assert_eq!(*lock.try_read_until(Instant::now()).unwrap(), 1);
    assert!(lock.try_write().is_none());
    let start = Instant::now();
    assert!(lock.try_write_for(SHORT).is_none());
    assert!(start.elapsed() >= SHORT);
    let end = Instant::now() + SHORT;
    assert!(lock.try_write_until(end).is_none());
    assert!(Instant::now() >= end);
    drop(reader);
    let mut writer: api::RwLockWriteGuard<'_, u32> = lock.write();
    *writer += 1;
    assert!(lock.is_locked() && lock.is_locked_exclusive());
    assert!(lock.try_read().is_none() && lock.try_write().is_none());
    let start = Instant::now();
    assert!(lock.try_read_for(SHORT).is_none());
    assert!(start.elapsed() >= SHORT);
    let end = Instant::now() + SHORT;
    assert!(lock.try_read_until(end).is_none());
    assert!(Instant::now() >= end);
    drop(writer);
    assert_eq!(*lock.try_write().unwrap(), 2);
    assert_eq!(*lock.try_write_for(Duration::MAX).unwrap(), 2);
    assert_eq!(*lock.try_write_until(start).unwrap(), 2, "tries once");
}

#[test]
#[allow(clippy::let_unit_value)] // as with mutexes: one of the two crates may have a token to speak of
fn an_rwlock_by_force() {
    let lock = api::RwLock::new(1);
    let token = read(&lock);
    assert!(lock.is_locked());
    // SAFETY: nobody else uses the token, here and below.
    unsafe { lock.force_unlock_read(token) };
    let token = written(&lock);
    assert!(lock.is_locked_exclusive());
    // SAFETY: as above.
    unsafe { lock.force_unlock_write(token) };
    assert!(!lock.is_locked());
    let token = read(&lock);
    // SAFETY: as above.
    unsafe { lock.force_unlock_read_fair(token) };
    let token = written(&lock);
    // SAFETY: as above.
    unsafe { lock.force_unlock_write_fair(token) };
    assert!(!lock.is_locked());
    let token = read(&lock);
    // SAFETY: as above.
    drop(unsafe { lock.make_read_guard_unchecked(token) });
    let token = written(&lock);
    // SAFETY: as above.
    drop(unsafe { lock.make_write_guard_unchecked(token) });
    let shared = Arc::new(lock);
    let token = read(&shared);
    // SAFETY: as above.
    drop(unsafe { shared.make_arc_read_guard_unchecked(token) });
    let token = written(&shared);
    // SAFETY: as above.
    drop(unsafe { shared.make_arc_write_guard_unchecked(token) });
    assert!(!shared.is_locked());
    // SAFETY: the raw lock is only looked at.
    let _raw: &api::RawRwLock = unsafe { shared.raw() };
}

#[test]
fn the_guards_of_an_rwlock() {
    let lock = api::RwLock::new(1);
    let mut reader = lock.read();
    assert!(std::ptr::eq(api::RwLockReadGuard::rwlock(&reader), &lock));
    assert!(api::RwLockReadGuard::unlocked(&mut reader, || lock
        .try_write()
        .is_some()));
    assert!(api::RwLockReadGuard::unlocked_fair(&mut reader, || lock
        .try_write()
        .is_some()));
    api::RwLockReadGuard::bump(&mut reader);
    assert!(lock.try_write().is_none());
    assert_eq!(format!("{reader} {reader:?}"), "1 1");
    api::RwLockReadGuard::unlock_fair(reader);
    assert!(!lock.is_locked());
    let mut writer = lock.write();
    assert!(std::ptr::eq(api::RwLockWriteGuard::rwlock(&writer), &lock));
    assert!(api::RwLockWriteGuard::unlocked(&mut writer, || lock
        .try_write()
        .is_some()));
    assert!(api::RwLockWriteGuard::unlocked_fair(&mut writer, || lock
        .try_write()
        .is_some()));
    api::RwLockWriteGuard::bump(&mut writer);
    assert!(lock.try_read().is_none());
    *writer += 1;
    assert_eq!(format!("{writer} {writer:?}"), "2 2");
    let reader = api::RwLockWriteGuard::downgrade(writer);
    assert_eq!(*reader + *lock.try_read().unwrap(), 4);
    assert!(lock.try_write().is_none());
    drop(reader);
    api::RwLockWriteGuard::unlock_fair(lock.write());
    assert!(!lock.is_locked());
}

#[test]
fn the_mapped_guards_of_an_rwlock() {
    let lock = api::RwLock::new((1, [2, 3]));

    let array = api::RwLockWriteGuard::map(lock.write(), |data| &mut data.1);
    let mut item: api::MappedRwLockWriteGuard<'_, u32> =
        api::MappedRwLockWriteGuard::map(array, |array| &mut array[1]);
    *item += 1;
    assert_eq!(format!("{item} {item:?}"), "4 4");
    drop(item);
    let Err(writer) = api::RwLockWriteGuard::try_map(lock.write(), |_| None::<&mut u32>) else {
        unreachable!()
    };
    let Err((writer, "no")) =
        api::RwLockWriteGuard::try_map_or_err(writer, |_| Err::<&mut u32, _>("no"))
    else {
        unreachable!()
    };
    let array = api::RwLockWriteGuard::try_map(writer, |data| Some(&mut data.1)).unwrap();
    let Err(array) = api::MappedRwLockWriteGuard::try_map(array, |array| array.get_mut(9)) else {
        unreachable!()
    };
    let Err((array, "out")) =
        api::MappedRwLockWriteGuard::try_map_or_err(array, |array| array.get_mut(9).ok_or("out"))
    else {
        unreachable!()
    };
    assert!(lock.is_locked_exclusive());
    api::MappedRwLockWriteGuard::unlock_fair(array);

    let array = api::RwLockReadGuard::map(lock.read(), |data| &data.1);
    let item: api::MappedRwLockReadGuard<'_, u32> =
        api::MappedRwLockReadGuard::map(array, |array| &array[1]);
    assert_eq!(format!("{item} {item:?}"), "4 4");
    drop(item);
    let Err(reader) = api::RwLockReadGuard::try_map(lock.read(), |_| None::<&u32>) else {
        unreachable!()
    };
    let Err((reader, "no")) =
        api::RwLockReadGuard::try_map_or_err(reader, |_| Err::<&u32, _>("no"))
    else {
        unreachable!()
    };
    let array = api::RwLockReadGuard::try_map(reader, |data| Some(&data.1)).unwrap();
    let Err(array) = api::MappedRwLockReadGuard::try_map(array, |array| array.get(9)) else {
        unreachable!()
    };
    let Err((array, "out")) =
        api::MappedRwLockReadGuard::try_map_or_err(array, |array| array.get(9).ok_or("out"))
    else {
        unreachable!()
    };
    let item = api::MappedRwLockReadGuard::try_map(array, |array| array.first()).unwrap();
    assert_eq!(*item, 2);
    assert!(lock.is_locked());
    api::MappedRwLockReadGuard::unlock_fair(item);
    assert!(!lock.is_locked());
}

#[test]
fn an_arc_of_an_rwlock() {
    let lock = Arc::new(api::RwLock::new(1));
    let mut reader: api::ArcRwLockReadGuard<api::RawRwLock, u32> = lock.read_arc();
    assert!(lock.try_read_arc().is_some());
    assert!(lock.try_read_arc_for(LONG).is_some());
    assert!(lock.try_read_arc_until(Instant::now()).is_some());
    assert!(lock.try_write_arc().is_none());
    assert!(lock.try_write_arc_for(SHORT).is_none());
    assert!(lock.try_write_arc_until(Instant::now() + SHORT).is_none());
    assert!(Arc::ptr_eq(api::ArcRwLockReadGuard::rwlock(&reader), &lock));
    assert!(api::ArcRwLockReadGuard::unlocked(&mut reader, || lock
        .try_write()
        .is_some()));
    assert!(api::ArcRwLockReadGuard::unlocked_fair(&mut reader, || lock
        .try_write()
        .is_some()));
    api::ArcRwLockReadGuard::bump(&mut reader);
    assert_eq!(format!("{reader} {reader:?}"), "1 1");
    let lock = api::ArcRwLockReadGuard::into_arc(reader);
    let lock = api::ArcRwLockReadGuard::into_arc_fair(lock.read_arc());
    api::ArcRwLockReadGuard::unlock_fair(lock.read_arc());
    assert!(!lock.is_locked());
    let mut writer: api::ArcRwLockWriteGuard<api::RawRwLock, u32> = lock.write_arc();
    *writer += 1;
    assert!(lock.try_read_arc().is_none());
    assert!(lock.try_read_arc_for(SHORT).is_none());
    assert!(lock.try_read_arc_until(Instant::now() + SHORT).is_none());
    assert!(Arc::ptr_eq(
        api::ArcRwLockWriteGuard::rwlock(&writer),
        &lock
    ));
    assert!(api::ArcRwLockWriteGuard::unlocked(&mut writer, || lock
        .try_write()
        .is_some()));
    assert!(api::ArcRwLockWriteGuard::unlocked_fair(&mut writer, || {
        lock.try_write().is_some()
    }));
    api::ArcRwLockWriteGuard::bump(&mut writer);
    let lock = api::ArcRwLockWriteGuard::into_arc(writer);
    let lock = api::ArcRwLockWriteGuard::into_arc_fair(lock.write_arc());
    api::ArcRwLockWriteGuard::unlock_fair(lock.write_arc());
    let reader = api::ArcRwLockWriteGuard::downgrade(lock.try_write_arc().unwrap());
    drop(reader);
    drop(lock.try_write_arc_for(LONG).unwrap());
    let writer = lock.try_write_arc_until(Instant::now()).unwrap();
    drop(lock);
    assert_eq!(*writer, 2, "the guard keeps the lock");
}

#[test]
fn an_rwlock_of_something_unsized() {
    let lock: &api::RwLock<[u32]> = &api::RwLock::new([1, 2, 3]);
    lock.write()[2] += 1;
    assert_eq!(lock.read().iter().sum::<u32>(), 7);
}
