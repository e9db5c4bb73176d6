use super::*;

fn held(lock: usize) -> Held {
    Held {
        lock,

        class: ClassId::NONE,
        how: How::EXCLUSIVE,
        site: Site::NONE,
    }
}

fn locks(thread: &Thread) -> Vec<usize> {
    thread.held().map(|held| held.lock).collect()
}

#[test]
fn locks_are_released_in_any_order_and_holes_go_with_the_top() {
    let thread = Thread::INIT;
    for lock in 1..=4 {
        assert!(thread.push(&held(lock)));
    }
    assert_eq!(thread.pop(2).map(|held| held.lock), Some(2));
    assert_eq!(thread.pop(3).map(|held| held.lock), Some(3));
    assert_eq!(locks(&thread), [1, 4]);
    assert_eq!(thread.depth(), 4);
    thread.pop(4);
    assert_eq!((locks(&thread), thread.depth()), (vec![1], 1));
    assert!(thread.pop(4).is_none());
    assert!(thread.push(&held(5)));
    assert_eq!(locks(&thread), [1, 5]);
}

#[test]
fn a_lock_that_counts_is_held_until_its_last_release() {
    let thread = Thread::INIT;
    thread.push(&held(1));
    thread.push(&held(1));
    assert!(thread.pop(1).is_none());
    assert_eq!(locks(&thread), [1]);
    assert!(thread.pop(1).is_some());
    assert_eq!(thread.depth(), 0);
}

#[test]
fn a_full_stack_takes_no_more_and_goes_on() {
    let thread = Thread::INIT;
    for lock in 1..=DEPTH {
        assert!(thread.push(&held(lock)));
    }
    assert!(!thread.push(&held(DEPTH + 1)));
    assert!(thread.pop(DEPTH + 1).is_none());
    assert!(thread.pop(DEPTH).is_some());
    assert!(thread.push(&held(DEPTH + 1)));
}

/// Fails where another lock is taken for the last one, and where what is held or a handler is
/// overlooked.
#[test]
fn the_class_of_the_last_lock_is_known_while_there_is_nothing_to_check() {
    let thread = Thread::INIT;
    let class = ClassId::new(7, 99);
    let of_class = |lock| Held {
        class,
        ..held(lock)
    };
    assert!(thread.last_class(1, 99).is_none());
    thread.push(&of_class(1));
    assert!(thread.last_class(1, 99).is_none());
    assert!(thread.release(1) && !thread.release(1));
    assert_eq!(thread.last_class(1, 99), Some(class));
    for (lock, mark) in [(2, 99), (1, 98), (1, 0)] {
        assert!(thread.last_class(lock, mark).is_none(), "{lock} {mark}");
    }
    thread.signals.store(1, Relaxed);
    assert!(thread.last_class(1, 99).is_none());
    thread.signals.store(0, Relaxed);
    // One above it is not the last.
    thread.push(&of_class(1));
    thread.push(&held(2));
    assert!(thread.release(2) && thread.release(1));
    assert_eq!(thread.last_class(1, 99), Some(class));
    thread.push(&held(2));
    assert!(thread.release(2));
    assert!(thread.last_class(1, 99).is_none());
}
