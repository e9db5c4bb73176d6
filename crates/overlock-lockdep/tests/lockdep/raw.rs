//! The functions for other locks. The locks are numbers here.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use overlock_lockdep::{self as lockdep, ClassId, How, Site};

use crate::alone;
use crate::alone::{AGAIN, DEADLOCK, EXIT, ORDER, SLEEP};

pub fn take(lock: usize, class: ClassId, how: How) {
    lockdep::acquire(lock, class, how, Site::here());
    lockdep::acquired(lock, class, how, Site::here());
}

/// Takes the locks, of classes of their own, and releases them.
pub fn chain(locks: &[(usize, How)]) {
    for (lock, how) in locks {
        take(*lock, lockdep::class_of_lock(*lock), *how);
    }
    for (lock, _) in locks {
        lockdep::release(*lock);
    }
}

pub const X: How = How::EXCLUSIVE;
pub const S: How = How::SHARED;
pub const R: How = How::SHARED_RECURSIVE;

/// Whether the two chains are reported together.
fn contradict(one: &[(usize, How)], other: &[(usize, How)]) -> bool {
    static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0x10000);
    let base = NEXT.fetch_add(0x100, Relaxed);
    let before = lockdep::reports();
    for locks in [one, other] {
        let locks: Vec<_> = locks
            .iter()
            .map(|(lock, how)| (base + lock * 16, *how))
            .collect();
        chain(&locks);
    }
    lockdep::reports() != before
}

#[test]
fn readers_that_only_wait_for_holders_are_told_from_those_that_wait_behind_writers() {
    let said = alone!(|| {
        lockdep::set_output(-1);
        assert!(contradict(&[(1, X), (2, X)], &[(2, X), (1, X)]));
        assert!(contradict(&[(1, X), (2, R)], &[(2, X), (1, R)]));
        assert!(contradict(&[(1, S), (2, S)], &[(2, S), (1, S)]));
        // Each waits only for a writer, and there is none.
        assert!(!contradict(&[(1, R), (2, R)], &[(2, R), (1, R)]));
        assert!(!contradict(&[(1, X), (2, R)], &[(2, R), (1, X)]));
        assert!(!contradict(&[(1, X), (2, R)], &[(2, S), (1, X)]));
        assert!(contradict(&[(1, X), (2, S)], &[(2, R), (1, X)]));
    });
    said.is(&[]);
}

#[test]
fn a_tally_has_locks_classes_and_reports() {
    let said = alone!(|| {
        static TALLY: lockdep::Tally = lockdep::Tally {
            locks: AtomicU32::new(0),
            classes: AtomicU32::new(0),
            reports: AtomicU32::new(0),
            warnings: AtomicU32::new(0),
            gated: AtomicU32::new(0),
            alone: AtomicU32::new(0),
        };
        lockdep::set_output(-1);
        lockdep::set_tally(&TALLY);
        let class = lockdep::class_named("of three");
        for lock in [0x100, 0x200, 0x300] {
            lockdep::lock_init(lock, Site::here());
        }
        take(0x900, class, X);
        lockdep::sleeps(0, Site::here());
        lockdep::release(0x900);
        assert!(contradict(&[(1, X), (2, X)], &[(2, X), (1, X)]));
        let counts = [
            &TALLY.locks,
            &TALLY.classes,
            &TALLY.reports,
            &TALLY.warnings,
        ];
        // The classes: the name, the line, and one for each of the two locks without either.
        assert_eq!(counts.map(|count| count.load(Relaxed)), [5, 4, 1, 1]);
    });
    said.is(&[]);
}

#[test]
fn a_stronger_dependency_of_known_classes_is_looked_at_too() {
    let said = alone!(|| {
        chain(&[(0x100, X), (0x200, R)]);
        chain(&[(0x200, R), (0x100, X)]);
        assert_eq!(lockdep::reports(), 0);
        chain(&[(0x200, X), (0x100, X)]);
    });
    said.is(&[ORDER]);
}

#[test]
fn locks_that_count_and_recursive_readers_may_be_taken_again() {
    let said = alone!(|| {
        let (lock, counts) = (0x100, X.reentrant());
        let class = lockdep::class_of_lock(lock);
        take(lock, class, counts);
        take(lock, class, counts);
        lockdep::release(lock);
        lockdep::sleeps(0, Site::here()); // still held
        lockdep::release(lock);
        lockdep::sleeps(0, Site::here());
        chain(&[(0x200, R), (0x200, R)]);
    });
    said.is(&[SLEEP]);
}

#[test]
fn a_writer_within_a_reader_waits_for_itself() {
    let said = alone!(|| {
        chain(&[(0x100, R), (0x100, X)]);
        chain(&[(0x200, X), (0x200, R)]);
        assert_eq!(lockdep::reports(), 2);
    });
    said.is(&[AGAIN, AGAIN]);
}

#[test]
fn locks_initialised_in_one_place_are_a_class_until_they_are_destroyed() {
    let said = alone!(|| {
        let place = Site::code(0x1234);
        for lock in [0x100, 0x200] {
            lockdep::lock_init(lock, place);
            assert_eq!(lockdep::class_of_lock(lock), lockdep::class_of_site(place));
        }
        chain(&[(0x100, X), (0x200, X)]);
        // The same address, another lock: it has no order with the earlier one.
        lockdep::lock_destroy(0x100);
        lockdep::lock_init(0x100, place);
        chain(&[(0x200, X), (0x100, X)]);
        assert_eq!(lockdep::reports(), 0);
        chain(&[(0x100, X), (0x200, X)]);
        lockdep::lock_destroy(0x300);
    });
    said.is(&[ORDER]);
}

/// Runs `scene` on a thread that then stays as it is, while this one continues.
fn stays(scene: fn()) {
    let (done, is_done) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        scene();
        done.send(()).unwrap();
        loop {
            std::thread::park();
        }
    });
    is_done.recv().unwrap();
}

fn waits(lock: usize, how: How) {
    lockdep::begin_wait(lock, ClassId::NONE, how, Site::here());
}

#[test]
fn readers_wait_for_a_writer_that_waits_unless_they_only_wait_for_holders() {
    let said = alone!(|| {
        let (lock, other, recursive) = (0x100, 0x200, 0x300);
        take(lock, ClassId::NONE, S);
        take(recursive, ClassId::NONE, R);
        stays(|| waits(0x100, X));
        stays(|| waits(0x300, X));
        stays(|| {
            take(0x400, ClassId::NONE, X);
            waits(0x300, R);
        });
        stays(|| {
            take(0x200, ClassId::NONE, X);
            waits(0x100, S);
        });
        // A reader from before the writer.
        take(0x500, ClassId::NONE, S);
        stays(|| {
            take(0x600, ClassId::NONE, X);
            waits(0x500, S);
        });
        stays(|| waits(0x500, X));
        // This thread waits for two that can continue.
        for can_go_on in [0x400, 0x600] {
            waits(can_go_on, X);
            lockdep::end_wait(can_go_on);
        }
        assert_eq!((lockdep::reports(), lockdep::check_deadlock()), (0, false));
        waits(other, X);
        assert!(lockdep::check_deadlock());
        lockdep::end_wait(other);
        assert!(!lockdep::check_deadlock());
        lockdep::release(lock);
        lockdep::release(recursive);
    });
    said.is(&[DEADLOCK]);
    assert_eq!(said.0.matches("has waited for").count(), 3, "{}", said.0);
}

#[test]
fn what_ends_by_itself_is_no_part_of_a_deadlock() {
    let said = alone!(|| {
        take(0x100, ClassId::NONE, X);
        stays(|| {
            take(0x200, ClassId::NONE, X);
            waits(0x100, X.trying());
        });
        waits(0x200, X);
        lockdep::end_wait(0x200);
        lockdep::release(0x100);
    });
    said.is(&[]);
}

#[test]
fn threads_end_and_begin_by_themselves() {
    let said = alone!(|| {
        take(0x100, lockdep::class_named("left"), X);
        lockdep::thread_exits();
        // A new record: it holds nothing.
        take(0x200, ClassId::NONE, X);
        lockdep::release(0x200);
        lockdep::sleeps(0, Site::here());
        lockdep::thread_exits();
    });
    said.is(&[EXIT]);
}

#[test]
fn too_many_locks_held_are_said_once_and_do_no_harm() {
    let said = alone!(|| {
        let class = ClassId::NONE;
        for lock in 1..=100 {
            take(lock * 16, class, X);
        }
        for lock in 1..=100 {
            lockdep::release(lock * 16);
        }
        lockdep::sleeps(0, Site::here());
    });
    said.is(&["too many locks held; the newest ones of this thread are not seen"]);
}

#[test]
fn too_many_classes_are_said_once_and_do_no_harm() {
    let said = alone!(|| {
        let classes: Vec<_> = (1..=10_000)
            .map(|site| lockdep::class_of_site(Site::code(site)))
            .collect();
        assert_eq!(lockdep::classes(), 8191);
        assert_eq!(classes[9_999], ClassId::NONE);
        take(0x100, classes[0], X);
        take(0x200, classes[9_999], X);
        assert_eq!(lockdep::dependencies(), 0);
        lockdep::release(0x100);
        lockdep::release(0x200);
    });
    said.is(&["too many classes; locks of new ones are not in the order"]);
}

#[test]
fn too_many_dependencies_are_said_once_and_do_no_harm() {
    let said = alone!(|| {
        let classes: Vec<_> = (1..=520)
            .map(|site| lockdep::class_of_site(Site::code(site)))
            .collect();
        for (index, first) in classes.iter().enumerate() {
            for second in &classes[index + 1..] {
                take(0x100, *first, X);
                take(0x200, *second, X);
                lockdep::release(0x200);
                lockdep::release(0x100);
            }
        }
        assert_eq!(lockdep::dependencies(), 131072);
        // Known classes are still tracked.
        take(0x100, classes[1], X);
        take(0x200, classes[0], X);
    });
    said.is(&["too many dependencies; new ones are not checked"]);
}

#[test]
fn reports_can_be_read_by_programs() {
    let said = alone!(|| {
        lockdep::set_output(-1);
        lockdep::set_json(2);
        let [a, b] = ["a\"", "b"].map(lockdep::class_named);
        for [first, second] in [[(0x10, a), (0x20, b)], [(0x20, b), (0x10, a)]] {
            take(first.0, first.1, X);
            take(second.0, second.1, X);
            lockdep::release(second.0);
            lockdep::release(first.0);
        }
    });
    let line = said.0.lines().next().unwrap();
    let value: serde_json::Value = serde_json::from_str(line).unwrap();
    assert_eq!(value["lockdep"], "order");
    assert_eq!(value["wants"]["class"], "a\"");
    assert_eq!(value["while"]["lock"], "0x20");
    assert_eq!(value["chain"][0]["from"], "a\"");
    assert_eq!(value["chain"][0]["to_mode"], "exclusive");
    assert_eq!(value["held"][0]["class"], "b");
}
