// Included by parking_lot_api.rs: the traits.

#[test]
fn what_debug_shows() {
    let lock = api::Mutex::new(vec![1]);
    assert_eq!(format!("{lock:?}"), "Mutex { data: [1] }");
    let guard = lock.lock();
    assert_eq!(format!("{lock:?}"), "Mutex { data: <locked> }");
    drop(guard);
    let lock = api::RwLock::new("a");
    let reader = lock.read();
    assert_eq!(format!("{lock:?}"), "RwLock { data: \"a\" }");
    drop(reader);
    let writer = lock.write();
    assert_eq!(format!("{lock:?}"), "RwLock { data: <locked> }");
    drop(writer);
}

/// Traits that a lock derives from its data; api.rs checks that others are absent.
#[test]
fn what_can_be_shared_and_sent() {
    fn both<T: Send + Sync>() {}
    fn sync<T: Sync>() {}
    fn shown<T: Debug + Display>() {}
    both::<api::Mutex<Cell<u32>>>();
    both::<api::RwLock<u32>>();
    both::<api::Condvar>();
    both::<api::Once>();
    both::<api::OnceState>();
    sync::<api::MutexGuard<'_, u32>>();
    sync::<api::MappedMutexGuard<'_, u32>>();
    sync::<api::RwLockReadGuard<'_, u32>>();
    sync::<api::RwLockWriteGuard<'_, u32>>();
    sync::<api::RwLockUpgradableReadGuard<'_, u32>>();
    sync::<api::MappedRwLockReadGuard<'_, u32>>();
    sync::<api::MappedRwLockWriteGuard<'_, u32>>();
    sync::<api::ArcMutexGuard<api::RawMutex, u32>>();
    sync::<api::ArcRwLockReadGuard<api::RawRwLock, u32>>();
    sync::<api::ArcRwLockWriteGuard<api::RawRwLock, u32>>();
    sync::<api::ArcRwLockUpgradableReadGuard<api::RawRwLock, u32>>();
    shown::<api::MutexGuard<'_, u32>>();
    shown::<api::RwLockUpgradableReadGuard<'_, u32>>();
}

/// Types that may be used after a panic.
#[test]
fn what_is_unwind_safe() {
    use std::panic::{RefUnwindSafe, UnwindSafe};
    fn safe<T: UnwindSafe + RefUnwindSafe>() {}
    safe::<api::Condvar>();
    safe::<api::Once>();
}

/// A guard of a longer borrow, or of a longer-lived part, is accepted for a shorter one.
#[test]
fn what_shrinks() {
    fn shorter<'a>(guard: api::MutexGuard<'static, u32>, _: &'a u32) -> api::MutexGuard<'a, u32> {
        guard
    }
    fn shorter_part<'a, 'b>(
        guard: api::MappedRwLockReadGuard<'a, &'static str>,
        _: &'b str,
    ) -> api::MappedRwLockReadGuard<'a, &'b str> {
        guard
    }
    let _ = (shorter, shorter_part);
}

#[cfg(feature = "serde")]
#[test]
fn what_is_written_is_read_again() {
    let lock = api::Mutex::new(vec![1, 2]);
    assert_eq!(serde_json::to_string(&lock).unwrap(), "[1,2]");
    let lock: api::Mutex<Vec<u32>> = serde_json::from_str("[3]").unwrap();
    assert_eq!(lock.into_inner(), [3]);
    let lock = api::RwLock::new("a");
    assert_eq!(serde_json::to_string(&lock).unwrap(), "\"a\"");
    let lock: api::RwLock<String> = serde_json::from_str("\"b\"").unwrap();
    assert_eq!(lock.into_inner(), "b");
    let unsized_lock: Box<api::Mutex<[u32]>> = Box::new(api::Mutex::new([4, 5]));
    assert_eq!(serde_json::to_string(&*unsized_lock).unwrap(), "[4,5]");
    assert!(serde_json::from_str::<api::Mutex<u32>>("no").is_err());
}
