// Included by parking_lot_api.rs: `Condvar`.

static READY: api::Mutex<u32> = api::Mutex::new(0);
static CHANGED: api::Condvar = api::Condvar::new();

#[test]
fn a_condvar_in_a_static() {
    thread::scope(|scope| {
        let waiters: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut ready = READY.lock();
                    *ready += 1;
                    while *ready < 10 {
                        CHANGED.wait(&mut ready);
                    }
                    *ready += 1;
                })
            })
            .collect();
        while *READY.lock() < 4 {
            thread::yield_now();
        }
        *READY.lock() = 10;
        assert_eq!(CHANGED.notify_all(), 4);
        assert_eq!(CHANGED.notify_all(), 0);
        assert!(!CHANGED.notify_one());
        for waiter in waiters {
            waiter.join().unwrap();
        }
    });
    assert_eq!(*READY.lock(), 14);
}

#[test]
fn a_condvar_wakes_one_for_each_notification() {
    let lock = api::Mutex::new((0, 0));
    let changed = api::Condvar::default();
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut state = lock.lock();
                state.0 += 1;
                changed.wait_while(&mut state, |state| state.1 == 0);
                state.1 -= 1;
                state.0 -= 1;
            });
        }
        while lock.lock().0 < 3 {
            thread::yield_now();
        }
        for left in (0..3).rev() {
            lock.lock().1 += 1;
            assert!(changed.notify_one());
            while lock.lock().0 > left {
                thread::yield_now();
            }
        }
        assert!(!changed.notify_one());
    });
}

#[test]
fn a_condvar_with_a_limit() {
    let lock = api::Mutex::new(1);
    let changed = api::Condvar::new();
    let mut guard = lock.lock();
    let result: api::WaitTimeoutResult = changed.wait_until(&mut guard, Instant::now());
    assert!(result.timed_out());
    let start = Instant::now();
    assert!(changed.wait_for(&mut guard, SHORT).timed_out());
    assert!(start.elapsed() >= SHORT);
    let end = Instant::now() + SHORT;
    assert!(changed.wait_until(&mut guard, end).timed_out());
    assert!(Instant::now() >= end);
    assert!(lock.is_locked());

    let end = Instant::now() + SHORT;
    assert!(
        changed
            .wait_while_until(&mut guard, |data| *data == 1, end)
            .timed_out()
    );
    assert!(Instant::now() >= end);
    assert!(
        changed
            .wait_while_for(&mut guard, |data| *data == 1, SHORT)
            .timed_out()
    );
    assert!(
        !changed
            .wait_while_for(&mut guard, |data| *data != 1, LONG)
            .timed_out()
    );
    assert!(
        !changed
            .wait_while_until(&mut guard, |data| *data != 1, end)
            .timed_out()
    );
    let mut looks = 0;
    let late = changed.wait_while_for(
        &mut guard,
        |_| {
            looks += 1;
            looks == 1
        },
        SHORT,
    );
    assert!(
        !late.timed_out() && looks == 2,
        "the condition counts, not the clock"
    );
    drop(guard);

    thread::scope(|scope| {
        let waiters = [
            scope.spawn(|| {
                let mut guard = lock.lock();
                *guard += 10;
                changed.wait_for(&mut guard, LONG)
            }),
            scope.spawn(|| {
                let mut guard = lock.lock();
                *guard += 10;
                changed.wait_until(&mut guard, Instant::now() + LONG)
            }),
            scope.spawn(|| {
                let mut guard = lock.lock();
                *guard += 10;
                changed.wait_while_for(&mut guard, |data| *data != 0, Duration::MAX)
            }),
            scope.spawn(|| {
                let mut guard = lock.lock();
                *guard += 10;
                changed.wait_while_until(&mut guard, |data| *data != 0, Instant::now() + LONG)
            }),
        ];
        while *lock.lock() < 40 {
            thread::yield_now();
        }
        *lock.lock() = 0;
        assert_eq!(changed.notify_all(), 4);
        for waiter in waiters {
            assert!(!waiter.join().unwrap().timed_out());
        }
    });
    assert_eq!(format!("{changed:?}"), "Condvar { .. }");
}
