// Included by parking_lot_api.rs: `Mutex` and its guards.

static COUNT: api::Mutex<u32> = api::Mutex::new(0);

#[test]
fn a_mutex_in_a_static() {
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..1000 {
                    *COUNT.lock() += 1;
                }
            });
        }
    });
    assert_eq!(*COUNT.lock(), 4000);
}

#[test]
fn a_mutex_and_its_owner() {
    let mut lock = api::Mutex::new(String::from("a"));
    lock.get_mut().push('b');
    // SAFETY: nobody else is there.
    unsafe { (*lock.data_ptr()).push('c') };
    assert_eq!(lock.into_inner(), "abc");
    let (raw, data) = api::Mutex::from(7).into_inner_with_raw();
    let lock = api::Mutex::from_raw(raw, data + 1);
    assert_eq!(*lock.lock(), 8);
    assert_eq!(*api::Mutex::<u32>::default().lock(), 0);
}

#[test]
fn a_mutex_is_tried() {
    let lock = api::Mutex::new(1);
    assert!(!lock.is_locked());
    let guard = lock.try_lock().unwrap();
    assert!(lock.is_locked());
    assert!(lock.try_lock().is_none());
    let start = Instant::now();
    assert!(lock.try_lock_for(SHORT).is_none());
    assert!(start.elapsed() >= SHORT);
    let end = Instant::now() + SHORT;
    assert!(lock.try_lock_until(end).is_none());
    assert!(Instant::now() >= end);
    drop(guard);
    assert_eq!(*lock.try_lock_for(Duration::MAX).unwrap(), 1);
    assert_eq!(*lock.try_lock_for(Duration::ZERO).unwrap(), 1);
    assert_eq!(*lock.try_lock_until(start).unwrap(), 1, "tries once");
}

#[test]
#[allow(clippy::let_unit_value)] // one of the two crates has a token to speak of
fn a_mutex_by_force() {
    let lock = api::Mutex::new(1);
    let token = locked(&lock);
    assert!(lock.is_locked());
    // SAFETY: nobody else uses the token, here and below.
    unsafe { lock.force_unlock(token) };
    assert!(!lock.is_locked());
    let token = locked(&lock);
    // SAFETY: as above.
    unsafe { lock.force_unlock_fair(token) };
    assert!(!lock.is_locked());
    let token = locked(&lock);
    // SAFETY: as above.
    drop(unsafe { lock.make_guard_unchecked(token) });
    assert!(!lock.is_locked());
    // SAFETY: the raw lock is only looked at.
    let _raw: &api::RawMutex = unsafe { lock.raw() };
}

#[test]
fn a_guard_of_a_mutex() {
    let lock = api::Mutex::new(1);
    let mut guard: api::MutexGuard<'_, u32> = lock.lock();
    *guard += 1;
    assert!(std::ptr::eq(api::MutexGuard::mutex(&guard), &lock));
    assert!(api::MutexGuard::unlocked(&mut guard, || lock
        .try_lock()
        .is_some()));
    assert!(api::MutexGuard::unlocked_fair(&mut guard, || lock
        .try_lock()
        .is_some()));
    api::MutexGuard::bump(&mut guard);
    assert!(lock.is_locked());
    assert_eq!(format!("{guard} {guard:?}"), "2 2");
    api::MutexGuard::unlock_fair(guard);
    assert!(!lock.is_locked());
    *api::MutexGuard::leak(lock.lock()) += 1;
    assert!(lock.is_locked());
    assert_eq!(lock.into_inner(), 3);
}

#[test]
fn a_mutex_is_unlocked_by_panics() {
    let lock = api::Mutex::new(1);
    let panics = |f: &dyn Fn()| {
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).is_err());
        assert!(!lock.is_locked());
    };
    panics(&|| {
        let _guard = lock.lock();
        panic!("as a test");
    });
    panics(&|| {
        let mut guard = lock.lock();
        api::MutexGuard::unlocked(&mut guard, || panic!("as a test"));
    });
    panics(&|| {
        drop(api::MutexGuard::map(lock.lock(), |_| -> &mut u32 {
            panic!("as a test")
        }));
    });
    let mut guard = lock.lock();
    let unlocked = std::panic::AssertUnwindSafe(|| {
        api::MutexGuard::unlocked(&mut guard, || panic!("as a test"));
    });
    assert!(std::panic::catch_unwind(unlocked).is_err());
    assert!(lock.is_locked(), "the guard outlives the panic");
}

#[test]
fn a_mapped_guard_of_a_mutex() {
    let lock = api::Mutex::new((1, [2, 3]));
    let array = api::MutexGuard::map(lock.lock(), |data| &mut data.1);
    let mut item: api::MappedMutexGuard<'_, u32> =
        api::MappedMutexGuard::map(array, |array| &mut array[1]);
    *item += 1;
    assert_eq!(format!("{item} {item:?}"), "4 4");
    drop(item);
    assert!(!lock.is_locked());

    let Err(guard) = api::MutexGuard::try_map(lock.lock(), |_| None::<&mut u32>) else {
        unreachable!()
    };
    let Err((guard, reason)) = api::MutexGuard::try_map_or_err(guard, |_| Err::<&mut u32, _>("no"))
    else {
        unreachable!()
    };
    assert_eq!(reason, "no");
    let array = api::MutexGuard::try_map(guard, |data| Some(&mut data.1)).unwrap();
    let Err(array) = api::MappedMutexGuard::try_map(array, |array| array.get_mut(9)) else {
        unreachable!()
    };
    let Err((array, reason)) =
        api::MappedMutexGuard::try_map_or_err(array, |array| array.get_mut(9).ok_or("out"))
    else {
        unreachable!()
    };
    assert_eq!(reason, "out");
    let item = api::MappedMutexGuard::try_map(array, |array| array.get_mut(1)).unwrap();
    assert_eq!(*item, 4);
    assert!(lock.is_locked());
    api::MappedMutexGuard::unlock_fair(item);
    assert!(!lock.is_locked());

    let array =
        api::MutexGuard::try_map_or_err(lock.lock(), |data| Ok::<_, ()>(&mut data.1)).unwrap();
    let item =
        api::MappedMutexGuard::try_map_or_err(array, |array| array.get_mut(0).ok_or(())).unwrap();
    assert_eq!(*item, 2);
}

#[test]
fn an_arc_of_a_mutex() {
    let lock = Arc::new(api::Mutex::new(1));
    let mut guard: api::ArcMutexGuard<api::RawMutex, u32> = lock.lock_arc();
    *guard += 1;
    assert!(lock.try_lock_arc().is_none());
    assert!(lock.try_lock_arc_for(SHORT).is_none());
    assert!(lock.try_lock_arc_until(Instant::now() + SHORT).is_none());
    assert!(Arc::ptr_eq(api::ArcMutexGuard::mutex(&guard), &lock));
    assert!(api::ArcMutexGuard::unlocked(&mut guard, || lock
        .try_lock()
        .is_some()));
    assert!(api::ArcMutexGuard::unlocked_fair(&mut guard, || lock
        .try_lock()
        .is_some()));
    api::ArcMutexGuard::bump(&mut guard);
    assert_eq!(Arc::strong_count(&lock), 2);
    let lock = api::ArcMutexGuard::into_arc(guard);
    assert!(!lock.is_locked());
    let lock = api::ArcMutexGuard::into_arc_fair(lock.try_lock_arc().unwrap());
    api::ArcMutexGuard::unlock_fair(lock.try_lock_arc_for(LONG).unwrap());
    drop(lock.try_lock_arc_until(Instant::now()).unwrap());
    let guard = lock.lock_arc();
    drop(lock);
    assert_eq!(*guard, 2, "the guard keeps the lock");
}

#[test]
fn a_mutex_of_something_unsized() {
    let lock: &api::Mutex<[u32]> = &api::Mutex::new([1, 2, 3]);
    lock.lock()[2] += 1;
    assert_eq!(lock.lock().iter().sum::<u32>(), 7);
    let lock: Arc<api::Mutex<dyn Fn() -> u32 + Send>> = Arc::new(api::Mutex::new(|| 5));
    assert_eq!((lock.lock_arc())(), 5);
}
