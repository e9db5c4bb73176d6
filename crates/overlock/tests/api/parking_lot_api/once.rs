// Included by parking_lot_api.rs: `Once`.

static START: api::Once = api::Once::new();
static STARTED: api::Once = api::Once::new_completed();

fn fails<V>(f: impl FnOnce() -> V) {
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).is_err());
}

#[test]
fn a_once_in_a_static() {
    assert_eq!(START.state(), api::OnceState::New);
    assert!(!START.is_completed());
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| START.wait());
            scope.spawn(|| START.wait_force());
        }
        START.call_once(|| {
            assert_eq!(START.state(), api::OnceState::InProgress);
            assert!(!START.is_completed());
            thread::sleep(SHORT);
        });
    });
    START.call_once(|| unreachable!());
    START.call_once_force(|_| unreachable!());
    assert_eq!(START.state(), api::OnceState::Done);
    assert!(START.is_completed());
    assert_eq!(format!("{START:?}"), "Once { state: Done }");
    STARTED.call_once(|| unreachable!());
    assert!(STARTED.is_completed());
    let once = api::Once::default();
    once.call_once_force(|state| assert_eq!(state, api::OnceState::New));
}

#[test]
fn a_once_is_poisoned_by_a_panic() {
    let once = api::Once::new();
    fails(|| once.call_once(|| panic!("as a test")));
    assert_eq!(once.state(), api::OnceState::Poisoned);
    assert!(!once.is_completed());
    fails(|| once.call_once(|| ()));
    fails(|| once.wait());
    fails(|| once.call_once_force(|_| panic!("as a test")));
    let mut told = None;
    thread::scope(|scope| {
        scope.spawn(|| once.wait_force());
        thread::sleep(SHORT);
        once.call_once_force(|state| told = Some((state, once.state())));
    });
    let (before, inside) = told.unwrap();
    assert!(before.is_poisoned() && before.poisoned());
    assert!(!before.is_completed() && !before.done());
    assert_eq!(inside, api::OnceState::InProgress);
    assert!(once.state().is_completed() && once.state().done());
    once.call_once(|| unreachable!("it is done"));
    once.wait();
}

#[test]
fn a_panic_is_heard_by_those_that_wait() {
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
    let once = api::Once::new();
    let begun = AtomicU32::new(0);
    let begins = || {
        while once.state() == api::OnceState::New {
            thread::yield_now();
        }
        begun.fetch_add(1, Relaxed);
    };
    thread::scope(|scope| {
        let insists = scope.spawn(|| {
            begins();
            once.wait_force();
        });
        let others = [false, false, true, true].map(|waits| {
            let (once, begins) = (&once, &begins);
            scope.spawn(move || {
                begins();
                if waits {
                    once.wait();
                } else {
                    once.call_once(|| ());
                }
            })
        });
        fails(|| {
            once.call_once(|| {
                while begun.load(Relaxed) < 5 {
                    thread::yield_now();
                }
                thread::sleep(SHORT);
                panic!("as a test");
            });
        });
        let heard = others.map(|other| other.join().is_err());
        let waits = !insists.is_finished();
        once.call_once_force(|_| ());
        assert_eq!((heard, waits), ([true; 4], true));
    });
}
