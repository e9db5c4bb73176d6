use super::*;
use overlock_core::toy::{Point, Toy, as_thread, at, halts, kicks, left};
use std::boxed::Box;

fn leak<F: Flaw>() -> &'static Faulty<Toy, F> {
    Box::leak(Box::new(Faulty::new()))
}

fn unlock<F: Flaw>(lock: &Faulty<Toy, F>) {
    // SAFETY: each test has locked it.
    unsafe { lock.unlock(()) };
}

/// Wakes a sleeper while another one may sleep. Returns the word after it has taken the lock.
fn taken_by_a_woken_sleeper<F: Flaw>() -> u32 {
    let lock = leak::<F>();
    lock.lock();
    at(Point::Halt, || as_thread(0, || unlock(lock)));
    as_thread(1, || lock.lock());
    assert_eq!((halts(), kicks(), left()), (0, 1, 0));
    lock.word.load(Unordered)
}

#[test]
fn alone_each_of_them_works() {
    fn works<F: Flaw>() {
        let lock = leak::<F>();
        for _ in 0..2 {
            lock.lock();
            assert!(lock.is_locked() && !lock.is_contended());
            assert!(lock.try_lock().is_none());
            unlock(lock);
            assert!(!lock.is_locked() && lock.try_lock().is_some());
            unlock(lock);
        }
        assert_eq!(kicks(), 0);
    }
    works::<NoExclusion>();
    works::<LostKick>();
    works::<Relaxed>();
    works::<Lingering>();
    works::<Starving>();
}

#[test]
fn two_enter_between_the_load_and_the_store() {
    let lock = leak::<NoExclusion>();
    at(Point::Seen, || as_thread(1, || lock.lock()));
    lock.lock();
    assert_eq!(left(), 0);
}

#[test]
fn a_woken_sleeper_forgets_the_others() {
    assert_eq!(taken_by_a_woken_sleeper::<LostKick>(), HELD);
}

/// Without its flaw the lock is correct: the flaws are the only faults.
#[test]
fn a_woken_sleeper_that_remembers_the_others_kicks_them() {
    assert_eq!(taken_by_a_woken_sleeper::<Relaxed>(), SLEEPERS);
}

#[test]
fn the_last_to_come_is_served_first() {
    let lock = leak::<Starving>();
    lock.lock();
    at(Point::Wait, || {
        assert!(lock.is_contended());
        // Thread 2 comes once the lock is offered to thread 1, and bypasses it.
        as_thread(0, || unlock(lock));
        as_thread(2, || lock.lock());
        assert_eq!(lock.word.load(Unordered), WAITER | HELD);
        as_thread(2, || unlock(lock));
    });
    as_thread(1, || lock.lock());
    assert!(lock.is_locked() && !lock.is_contended());
    assert_eq!(left(), 0);
}

#[test]
fn a_writer_enters_among_readers_but_not_with_a_writer() {
    let lock = Box::leak(Box::new(FaultyRw::<Toy>::new()));
    lock.read();
    assert!(lock.is_locked() && !lock.is_write_locked());
    assert!(lock.try_write().is_some() && lock.is_write_locked());
    assert!(lock.try_write().is_none() && lock.try_read().is_none());
    let writer = &*lock;
    // SAFETY: write-locked above.
    at(Point::Wait, || unsafe { writer.unlock_write(()) });
    as_thread(1, || writer.read());
    for _ in 0..2 {
        // SAFETY: two readers hold it.
        unsafe { writer.unlock_read(()) };
    }
    assert!(!writer.is_locked());
    assert_eq!(left(), 0);
}

#[test]
fn lingering_loads_the_word_after_its_release() {
    use overlock_core::toy::watch::{Access, Watch, after, freed, left, touches, watch};

    let lock: &'static Faulty<Watch, Lingering> = Box::leak(Box::new(Faulty::new()));
    lock.lock();
    lock.word.store(SLEEPERS, Unordered);
    watch(lock);
    after(Access::Swap, freed);
    // SAFETY: locked above.
    unsafe { lock.unlock(()) };
    assert_eq!((touches(), left()), (std::vec![Access::Load], 0));
}
