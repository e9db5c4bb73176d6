use super::*;

static CLASS: Class = Class::new();

#[cfg(target_pointer_width = "64")]
#[test]
fn the_size_is_twenty_four_bytes_beside_the_data() {
    assert_eq!(size_of::<WwMutex<()>>(), 24);
    assert_eq!(size_of::<WwMutex<u64>>(), 32);
}

#[test]
fn shared_and_sent_exactly_where_that_is_sound() {
    trait Ambiguous<A> {
        fn check() {}
    }
    impl<T: ?Sized> Ambiguous<()> for T {}
    struct IsSend;
    impl<T: ?Sized + Send> Ambiguous<IsSend> for T {}
    // Would not compile ("type annotations needed") if one of them were Send.
    <WwMutexGuard<'static, u32> as Ambiguous<_>>::check();
    <Context<'static, 'static> as Ambiguous<_>>::check();
    <WwMutex<std::rc::Rc<u32>> as Ambiguous<_>>::check();
    fn both<T: Send + Sync>() {}
    both::<WwMutex<std::cell::Cell<u32>>>();
    fn sync<T: Sync>() {}
    sync::<WwMutexGuard<'static, u32>>();
}

#[test]
fn what_a_user_does_without_a_context() {
    static COUNT: WwMutex<u32> = WwMutex::new(&CLASS, 0);
    *COUNT.lock() += 1;
    assert_eq!(*COUNT.lock(), 1);
    let mut lock = WwMutex::new(&CLASS, String::from("a"));
    lock.lock().push('b');
    assert_eq!(format!("{lock:?}"), "WwMutex { data: \"ab\", .. }");
    let guard = lock.try_lock().unwrap();
    assert!(lock.is_locked() && !lock.is_contended());
    assert_eq!(format!("{guard} {guard:?}"), "ab \"ab\"");
    assert_eq!(format!("{lock:?}"), "WwMutex { data: <locked>, .. }");
    assert!(lock.try_lock().is_none());
    drop(guard);
    lock.get_mut().clear();
    assert_eq!(lock.into_inner(), "");
}

#[test]
fn what_a_user_does_within_one() {
    let locks = [1, 2, 3].map(|number| WwMutex::new(&CLASS, number));
    let dynamic: &WwMutex<dyn fmt::Debug> = &WwMutex::new(&CLASS, "any");
    let result = acquire(&CLASS, |ctx| {
        let mut held = Vec::new();
        for lock in &locks {
            held.push(ctx.lock(lock)?);
        }
        let any = ctx.lock_found(dynamic)?;
        assert_eq!((ctx.holds(), &*format!("{any:?}")), (4, "\"any\""));
        let twice = ctx.try_lock(&locks[0]);
        assert_eq!(twice.map(drop), Err(Error::AlreadyHeld));
        Ok(held.iter().map(|guard| **guard).sum::<u32>())
    });
    assert_eq!(result, Ok(6));
    static OTHER: Class = Class::with_rule(Rule::WaitDie);
    let result = acquire(&OTHER, |ctx| ctx.lock(&locks[0]).map(drop));
    assert_eq!(result, Err(Error::OtherClass));
    assert!(locks.iter().all(|lock| !lock.is_locked()));
}

#[test]
fn a_panic_releases_the_locks() {
    let lock = WwMutex::new(&CLASS, 0);
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        acquire(&CLASS, |ctx| {
            let _guard = ctx.lock(&lock)?;
            if ctx.holds() == 1 {
                panic!("as a test");
            }
            Ok(())
        })
    }));
    assert!(result.is_err());
    assert!(lock.try_lock().is_some());
}
