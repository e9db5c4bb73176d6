//! The order of lock classes, by the crate's own types.

use overlock::lockdep::{self, Nesting};
use overlock::{Mutex, RwLock, RwLockUpgradableReadGuard};

use crate::alone;
use crate::alone::{CLASS, ORDER};

static A: Mutex<u32> = Mutex::named("A", 0);
static B: Mutex<u32> = Mutex::named("B", 0);
static C: Mutex<u32> = Mutex::named("C", 0);

fn both(first: &Mutex<u32>, second: &Mutex<u32>) {
    let _first = first.lock();
    let _second = second.lock();
}

#[test]
fn an_inversion_by_one_thread_is_reported() {
    let said = alone!(|| {
        both(&A, &B);
        both(&A, &B);
        assert_eq!(lockdep::reports(), 0);
        both(&B, &A);
        assert_eq!((lockdep::reports(), lockdep::dependencies()), (1, 1));
    });
    said.is(&[ORDER]);
    said.has("lock(A);");
}

#[test]
fn an_inversion_by_two_threads_is_reported() {
    let said = alone!(|| {
        std::thread::spawn(|| both(&A, &B)).join().unwrap();
        std::thread::spawn(|| both(&B, &A)).join().unwrap();
    });
    said.is(&[ORDER]);
}

#[test]
fn a_cycle_of_three_locks_is_reported() {
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
fn a_consistent_order_is_not_reported() {
    let said = alone!(|| {
        both(&A, &B);
        both(&B, &C);
        both(&A, &C);
        // Released in another order, which adds no dependency.
        let a = A.lock();
        let c = C.lock();
        drop(a);
        drop(c);
        assert_eq!((lockdep::dependencies(), lockdep::classes()), (3, 3));
    });
    said.is(&[]);
}

#[test]
fn trylocks_add_no_dependency_on_held_locks_but_are_held_themselves() {
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
fn a_reported_inversion_causes_no_further_reports() {
    let said = alone!(|| {
        both(&A, &B);
        both(&B, &A);
        both(&A, &C);
        both(&C, &B);
        both(&A, &B);
    });
    said.is(&[ORDER]);
}

/// Made on one line, so they are of one class.
fn of_one_class() -> [Mutex<u32>; 3] {
    [1, 2, 3].map(Mutex::new)
}

#[test]
fn locks_of_one_class_are_ordered_individually() {
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
fn new_locks_at_the_same_addresses_have_no_order() {
    let said = alone!(|| {
        for turn in 0..8 {
            let locks = Box::new(of_one_class());
            both(&locks[turn % 2], &locks[1 - turn % 2]);
        }
    });
    said.is(&[]);
}

#[test]
fn nesting_without_a_level_is_reported_if_configured() {
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
fn nesting_levels_are_ordered() {
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
fn reacquiring_a_lock_depends_on_the_locks_held_meanwhile() {
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
fn an_upgrade_depends_on_the_locks_held() {
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
fn readers_are_ordered_like_mutexes() {
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
