// Included by parking_lot_api.rs: `ReentrantMutex` and its guards.

use std::cell::{Cell, RefCell};

fn tries<T: ?Sized + Send>(lock: &api::ReentrantMutex<T>) -> bool {
    thread::scope(|scope| {
        let other = scope.spawn(|| lock.try_lock().is_some());
        other.join().unwrap()
    })
}

#[test]
fn a_reentrant_mutex_at_any_depth() {
    static LOCK: api::ReentrantMutex<Cell<u32>> = api::ReentrantMutex::new(Cell::new(0));
    let guards: Vec<_> = (0..1000)
        .map(|depth| {
            assert!(LOCK.is_owned_by_current_thread() == (depth > 0));
            let guard = LOCK.lock();
            guard.set(guard.get() + 1);
            guard
        })
        .collect();
    assert_eq!(guards[0].get(), 1000);
    for guard in guards {
        assert!(LOCK.is_locked() && !tries(&LOCK));
        drop(guard);
    }
    assert!(!LOCK.is_locked() && !LOCK.is_owned_by_current_thread());
    assert!(tries(&LOCK));
}

#[test]
fn a_reentrant_mutex_excludes_other_threads() {
    let lock = Arc::new(api::ReentrantMutex::new(Cell::new(0_u32)));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..1000 {
                    let outer = lock.lock();
                    let before = outer.get();
                    let inner = lock.try_lock().unwrap();
                    inner.set(before + 1);
                    drop(outer);
                    assert_eq!(inner.get(), before + 1);
                }
            });
        }
    });
    assert_eq!(Arc::into_inner(lock).unwrap().into_inner().get(), 4000);
}

#[test]
fn a_reentrant_mutex_and_its_owner() {
    let mut lock = api::ReentrantMutex::new(String::from("a"));
    lock.get_mut().push('b');
    // SAFETY: nobody else is there.
    unsafe { (*lock.data_ptr()).push('c') };
    assert_eq!(format!("{lock:?}"), "ReentrantMutex { data: \"abc\" }");
    let guard = lock.lock();
    assert_eq!(format!("{lock:?}"), "ReentrantMutex { data: \"abc\" }");
    let shown = thread::scope(|scope| scope.spawn(|| format!("{lock:?}")).join().unwrap());
    assert_eq!(shown, "ReentrantMutex { data: <locked> }");
    drop(guard);
    assert_eq!(lock.into_inner(), "abc");
    assert_eq!(*api::ReentrantMutex::<u32>::default().lock(), 0);
    assert_eq!(*api::ReentrantMutex::from(7).lock(), 7);
}

#[test]
fn a_reentrant_mutex_is_tried() {
    let lock = Arc::new(api::ReentrantMutex::new(1));
    let guard = lock.try_lock_for(SHORT).unwrap();
    let again = (lock.try_lock_until(Instant::now()).unwrap(), lock.try_lock_arc().unwrap());
    thread::scope(|scope| {
        scope.spawn(|| {
            let start = Instant::now();
            assert!(lock.try_lock_for(SHORT).is_none());
            assert!(lock.try_lock_arc_for(SHORT).is_none());
            assert!(start.elapsed() >= 2 * SHORT);
            let end = Instant::now() + SHORT;
            assert!(lock.try_lock_until(end).is_none());
            assert!(lock.try_lock_arc_until(end).is_none());
            assert!(Instant::now() >= end);
        });
    });
    drop((guard, again));
    assert!(tries(&lock));
    drop(lock.try_lock_arc_for(LONG).unwrap());
    drop(lock.try_lock_arc_until(Instant::now()).unwrap());
    assert!(!lock.is_locked());
}

#[test]
fn a_reentrant_mutex_by_force() {
    let lock = Arc::new(api::ReentrantMutex::new(1));
    for _ in 0..4 {
        std::mem::forget(lock.lock());
    }
    // SAFETY: the four guards were forgotten; each is stood in for once.
    unsafe { lock.force_unlock() };
    // SAFETY: as above.
    unsafe { lock.force_unlock_fair() };
    // SAFETY: as above.
    drop(unsafe { lock.make_arc_guard_unchecked() });
    assert!(lock.is_owned_by_current_thread());
    // SAFETY: as above.
    drop(unsafe { lock.make_guard_unchecked() });
    assert!(!lock.is_locked());
    // SAFETY: the raw lock is only looked at.
    let _raw: &api::RawMutex = unsafe { lock.raw() };
}

#[test]
fn a_guard_of_a_reentrant_mutex() {
    use api::ReentrantMutexGuard as Guard;
    let lock = api::ReentrantMutex::new((1, RefCell::new(2)));
    let mut outer: Guard<'_, (u32, RefCell<u32>)> = lock.lock();
    assert!(std::ptr::eq(Guard::remutex(&outer), &lock));
    assert!(Guard::unlocked(&mut outer, || tries(&lock)));
    assert!(Guard::unlocked_fair(&mut outer, || tries(&lock)));
    Guard::bump(&mut outer);
    let mut inner = lock.lock();
    assert!(!Guard::unlocked(&mut inner, || tries(&lock)), "one of two");
    Guard::bump(&mut inner);
    assert!(!tries(&lock));
    Guard::unlock_fair(inner);
    assert_eq!(format!("{outer:?}"), "(1, RefCell { value: 2 })");

    let mapped: api::MappedReentrantMutexGuard<'_, _> = Guard::map(outer, |data| &data.1);
    *mapped.borrow_mut() += 1;
    let Err(mapped) = api::MappedReentrantMutexGuard::try_map(mapped, |_| None::<&u32>) else {
        unreachable!()
    };
    let Err((mapped, 5)) =
        api::MappedReentrantMutexGuard::try_map_or_err(mapped, |_| Err::<&u32, _>(5))
    else {
        unreachable!()
    };
    assert!(!tries(&lock));
    drop(api::MappedReentrantMutexGuard::map(mapped, |data| data));
    assert!(tries(&lock));
    let Err(guard) = Guard::try_map(lock.lock(), |_| None::<&u32>) else {
        unreachable!()
    };
    let mapped = Guard::try_map_or_err(guard, |data| Ok::<_, ()>(&data.0)).ok().unwrap();
    assert_eq!(format!("{mapped} {mapped:?}"), "1 1");
    api::MappedReentrantMutexGuard::unlock_fair(mapped);
    assert!(!lock.is_locked());
}

#[test]
fn a_guard_of_an_arc_of_a_reentrant_mutex() {
    use api::ArcReentrantMutexGuard as Guard;
    let lock = Arc::new(api::ReentrantMutex::new(1));
    let mut guard: Guard<api::RawMutex, api::RawThreadId, u32> = lock.lock_arc();
    assert!(Arc::ptr_eq(Guard::remutex(&guard), &lock));
    assert!(Guard::unlocked(&mut guard, || tries(&lock)));
    assert!(Guard::unlocked_fair(&mut guard, || tries(&lock)));
    Guard::bump(&mut guard);
    assert_eq!(*guard, 1);
    let lock = Guard::into_arc(guard);
    assert!(!lock.is_locked());
    let lock = Guard::into_arc_fair(lock.lock_arc());
    Guard::unlock_fair(lock.lock_arc());
    assert!(!lock.is_locked());
}

#[test]
fn what_a_reentrant_mutex_shares() {
    fn both<T: Send + Sync>() {}
    fn sync<T: Sync>() {}
    both::<api::ReentrantMutex<Cell<u32>>>();
    both::<api::RawThreadId>();
    sync::<api::ReentrantMutexGuard<'_, u32>>();
    sync::<api::MappedReentrantMutexGuard<'_, u32>>();
    sync::<api::ArcReentrantMutexGuard<api::RawMutex, api::RawThreadId, u32>>();
}

#[cfg(feature = "serde")]
#[test]
fn a_reentrant_mutex_is_written_as_its_data() {
    let lock = api::ReentrantMutex::new(vec![1, 2]);
    assert_eq!(serde_json::to_string(&lock).unwrap(), "[1,2]");
    let lock: api::ReentrantMutex<Vec<u32>> = serde_json::from_str("[3]").unwrap();
    assert_eq!(lock.into_inner(), [3]);
}
