//! The order of classes, by the crate's own types.

use overlock::lockdep::{self, Nesting};
use overlock::{Mutex, RwLock, RwLockUpgradableReadGuard};

use crate::alone;
use crate::alone::ORDER;

const CLASS: &str = "possible recursive locking within a class";

static A: Mutex<u32> = Mutex::named("A", 0);
static B: Mutex<u32> = Mutex::named("B", 0);
static C: Mutex<u32> = Mutex::named("C", 0);

#[inline(never)] // its name is in backtraces
fn both(first: &Mutex<u32>, second: &Mutex<u32>) {
    let _first = first.lock();
    let _second = second.lock();
}

#[test]
fn two_orders_of_two_locks_are_found_by_one_thread() {
    let said = alone!(|| {
        both(&A, &B);
        both(&A, &B);
        assert_eq!(lockdep::reports(), 0);
        both(&B, &A);
        assert_eq!((lockdep::reports(), lockdep::dependencies()), (1, 1));
    });
    said.is(&[ORDER]);
    said.has("lock(A);");
    // The first caller is the program's function, by its name in Rust.
    let traces = said.0.split("backtrace:\n").skip(1);
    for first in traces.map(|trace| trace.lines().next().unwrap()) {
        assert!(first.contains("(lockdep::order::"), "{first}:\n{}", said.0);
    }
    assert!(
        !said.0.contains("_ZN") && !said.0.contains("(_R"),
        "{}",
        said.0
    );
}

#[test]
fn and_by_two() {
    let said = alone!(|| {
        std::thread::spawn(|| both(&A, &B)).join().unwrap();
        std::thread::spawn(|| both(&B, &A)).join().unwrap();
    });
    said.is(&[ORDER]);
}

#[test]
fn three_orders_that_make_a_circle() {
    let said = alone!(|| {
        both(&A, &B);
        both(&B, &C);
        assert_eq!(lockdep::reports(), 0);
        both(&C, &A);
    });
    said.is(&[ORDER]);
    said.has("A --> B --> C");
}

#[test]
fn one_order_is_no_alarm() {
    let said = alone!(|| {
        both(&A, &B);
        both(&B, &C);
        both(&A, &C);
        // Released in the other order, which orders nothing.
        let a = A.lock();
        let c = C.lock();
        drop(a);
        drop(c);
        assert_eq!((lockdep::dependencies(), lockdep::classes()), (3, 3));
    });
    said.is(&[]);
}

#[test]
fn locks_that_were_only_tried_are_not_behind_others_but_others_are_behind_them() {
    let said = alone!(|| {
        both(&A, &B);
        let b = B.lock();
        drop(A.try_lock().unwrap());
        drop(A.try_lock_for(std::time::Duration::from_millis(1)).unwrap());
        drop(b);
        assert_eq!(lockdep::reports(), 0);
        let _b = B.try_lock().unwrap();
        let _a = A.lock();
    });
    said.is(&[ORDER]);
}

#[test]
fn each_pair_of_classes_is_reported_once() {
    let said = alone!(|| {
        let (a, b) = (RwLock::named("A", 0), RwLock::named("B", 0));
        for _ in 0..3 {
            let _a = a.write();
            let _b = b.write();
        }
        for _ in 0..3 {
            {
                let _b = b.write();
                let _a = a.write();
            }
            let _b = b.read();
            let _a = a.read();
        }
        assert_eq!(lockdep::reports(), 1);
    });
    said.is(&[ORDER]);
}

#[test]
fn a_mistake_is_not_reported_again_by_what_follows_from_it() {
    let said = alone!(|| {
        both(&A, &B);
        both(&B, &A);
        both(&A, &C);
        both(&C, &B);
        both(&A, &B);
    });
    said.is(&[ORDER]);
}

/// Made on one line, so that they are of one class.
fn of_one_class() -> [Mutex<u32>; 3] {
    [1, 2, 3].map(Mutex::new)
}

#[test]
fn locks_of_one_class_are_followed_one_by_one() {
    let said = alone!(|| {
        let locks = of_one_class();
        both(&locks[0], &locks[2]);
        both(&locks[2], &locks[1]);
        assert_eq!((lockdep::reports(), lockdep::classes()), (0, 1));
        both(&locks[1], &locks[0]);
    });
    said.is(&[ORDER]);
}

#[test]
fn others_that_come_to_lie_where_they_lay_are_not_taken_for_them() {
    let said = alone!(|| {
        for turn in 0..8 {
            let locks = Box::new(of_one_class());
            both(&locks[turn % 2], &locks[1 - turn % 2]);
        }
    });
    said.is(&[]);
}

#[test]
fn locks_of_one_class_are_a_mistake_if_the_program_says_so_and_does_not_say_the_level() {
    let said = alone!(|| {
        lockdep::set_nesting(Nesting::Report);
        let locks = of_one_class();
        {
            let _first = locks[0].lock();
            let _second = locks[1].lock_nested(1);
            let _third = locks[2].lock_nested(2);
        }
        assert_eq!(lockdep::reports(), 0);
        both(&locks[0], &locks[1]);
    });
    said.is(&[CLASS]);
}

#[test]
fn levels_have_an_order_too() {
    let said = alone!(|| {
        let locks = of_one_class();
        {
            let _first = locks[0].lock();
            let _second = locks[1].lock_nested(1);
        }
        let _second = locks[1].lock_nested(1);
        let _first = locks[0].lock();
    });
    said.is(&[ORDER]);
}

#[test]
fn a_lock_that_is_given_up_for_a_while_comes_back_behind_what_is_held() {
    let said = alone!(|| {
        use overlock::MutexGuard;
        let mut a = A.lock();
        MutexGuard::unlocked(&mut a, || ());
        let _b = B.lock();
        assert_eq!(lockdep::reports(), 0);
        MutexGuard::unlocked(&mut a, || ());
    });
    said.is(&[ORDER]);
}

#[test]
fn an_upgrade_waits_for_readers_with_what_is_held() {
    let said = alone!(|| {
        let lock = RwLock::named("data", 0);
        let upgradable = lock.upgradable_read();
        drop(RwLockUpgradableReadGuard::upgrade(upgradable));
        let upgradable = lock.upgradable_read();
        let _a = A.lock();
        assert_eq!(lockdep::reports(), 0);
        drop(RwLockUpgradableReadGuard::upgrade(upgradable));
    });
    said.is(&[ORDER]);
}

#[test]
fn readers_order_as_mutexes_do_since_they_wait_behind_writers() {
    let said = alone!(|| {
        let (a, b) = (RwLock::named("a", 0), RwLock::named("b", 0));
        {
            let _a = a.read();
            let _b = b.read();
        }
        let _b = b.read();
        let _a = a.read();
    });
    said.is(&[ORDER]);
}

/// Fails where the order of single locks is kept when they end: by then there is no room for that
/// of others.
#[test]
fn locks_that_end_leave_no_trace() {
    let said = alone!(|| {
        for _ in 0..150_000 {
            let locks = of_one_class();
            both(&locks[0], &locks[1]);
        }
        assert!(lockdep::dependencies() < 20_000);
        let locks = of_one_class();
        both(&locks[0], &locks[1]);
        assert_eq!(lockdep::reports(), 0);
        both(&locks[1], &locks[0]);
    });
    said.is(&[ORDER]);
}

/// The classes alone would make a cycle.
#[test]
fn locks_of_a_class_that_are_held_together_have_an_order_with_others_one_by_one() {
    let said = alone!(|| {
        let locks = of_one_class();
        both(&locks[0], &A);
        let _first = locks[0].lock();
        let _a = A.lock();
        let _second = locks[1].lock();
    });
    said.is(&[]);
}

#[test]
fn a_cycle_under_a_common_lock_is_none() {
    let said = alone!(|| {
        {
            let _gate = C.lock();
            both(&A, &B);
            both(&B, &A);
        }
        assert_eq!(lockdep::reports(), 0);
        // The other order may still be taken under the gate.
        both(&B, &A);
        assert_eq!(lockdep::reports(), 1);
    });
    said.is(&[ORDER]);
}
