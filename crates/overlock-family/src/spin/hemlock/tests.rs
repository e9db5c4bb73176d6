use super::*;
use overlock_core::toy::stage::{Actor, actor};
use overlock_core::toy::watch::{self, Access, Watch, freed, touches, watch};
use overlock_core::toy::{Point, SLOTS, Toy, as_thread, at, left};
use std::boxed::Box;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::vec::Vec;

type Lock = &'static Hemlock<Toy>;

fn leak() -> Lock {
    Box::leak(Box::new(Hemlock::new()))
}

fn unlock(lock: Lock, token: HemlockToken<Toy>) {
    // SAFETY: each test passes what it got from `lock`, on the same thread.
    unsafe { lock.unlock(token) }
}

fn tail(lock: Lock) -> u32 {
    lock.tail.load(Relaxed)
}

/// The name of a thread that the test plays.
fn name(thread: usize) -> u32 {
    name_in(thread, 0)
}

fn name_in(thread: usize, context: usize) -> u32 {
    u32::from(NodeId::new(thread, context).bits())
}

/// The context of the next acquisition.
fn context(thread: usize) -> u32 {
    Toy::family_tables().threads[thread]
        .grants
        .context
        .load(Relaxed)
}

fn grant(thread: usize) -> usize {
    grant_in(thread, 0)
}

fn grant_in(thread: usize, context: usize) -> usize {
    Toy::family_tables().threads[thread].grants.grants[context].load(Relaxed)
}

/// A part that waits for the lock, says so, and unlocks. It stands where it waits.
fn waiter(thread: usize, lock: Lock, order: &Arc<Mutex<Vec<usize>>>) -> Actor {
    let order = order.clone();
    let waiter = actor(thread, move || {
        let token = lock.lock();
        order.lock().unwrap().push(thread);
        unlock(lock, token);
    });
    waiter.to(Point::Wait);
    waiter
}

#[test]
fn the_tail_tells_who_holds_and_who_waits() {
    let lock = leak();
    assert!(!lock.is_locked() && !lock.is_contended());
    for token in [Some(lock.lock()), lock.try_lock()] {
        let Some(token) = token else { continue };
        assert_eq!(tail(lock), name(0));
        assert!(lock.is_locked() && !lock.is_contended());
        assert!(lock.try_lock().is_none());
        unlock(lock, token);
        assert!(!lock.is_locked());
    }
    let token = lock.try_lock().unwrap();
    let waiter = waiter(1, lock, &Arc::default());
    assert_eq!(tail(lock), name(1));
    assert!(lock.is_contended());
    at(Point::Wait, move || waiter.end());
    unlock(lock, token);
    assert!(!lock.is_locked() && !lock.is_contended());
}

/// K2: the unlock waits until its one successor has taken the grant. Fails where it returns before.
#[test]
fn an_unlock_returns_when_its_successor_has_taken_the_grant() {
    let lock = leak();
    let order = Arc::default();
    let token = lock.lock();
    let waiter = waiter(1, lock, &order);
    at(Point::Wait, move || {
        assert_eq!(grant(0), lock.address());
        assert!(!Toy::tables().is_idle(0), "K4");
        waiter.end();
        assert_eq!(grant(0), 0);
    });
    unlock(lock, token);
    assert_eq!((left(), tail(lock)), (0, 0));
    assert_eq!(*order.lock().unwrap(), [1]);
    assert!((0..SLOTS).all(|slot| Toy::tables().is_idle(slot)));
}

/// Two locks of one owner, a waiter for each, both on the owner's grant: each goes on with its own
/// lock. Fails where a waiter takes any grant for its own.
#[test]
fn waiters_for_two_locks_of_one_owner_tell_their_grants_apart() {
    let [first, second] = [leak(), leak()];
    let order = Arc::default();
    let tokens = [first.lock(), second.lock()];
    let [one, two] = [waiter(1, first, &order), waiter(2, second, &order)];
    let [token, other] = tokens;
    at(Point::Wait, move || {
        one.to(Point::Wait); // not its lock
        two.end();
        at(Point::Wait, move || one.end());
    });
    unlock(second, other);
    unlock(first, token);
    assert_eq!((left(), grant(0)), (0, 0));
    assert_eq!(*order.lock().unwrap(), [2, 1]);
}

/// K3: a handler joins the queue of the lock that its thread is handing off. Fails where it does so
/// under the name of its thread: whoever comes behind it takes the grant that is for the first
/// waiter, and both own the lock.
#[test]
fn a_handler_locks_what_its_thread_is_handing_off() {
    let lock = leak();
    let order = Arc::default();
    let token = lock.lock();
    let waiter = Rc::new(waiter(1, lock, &order));
    let taker = waiter.clone();
    at(Point::Wait, move || {
        // In the handler.
        at(Point::Wait, move || {
            assert_eq!((tail(lock), grant(0)), (name_in(0, 1), lock.address()));
            taker.to(Point::Wait); // it hands off to the handler
            assert_eq!((grant(0), grant(1)), (0, lock.address()));
        });
        let token = lock.lock();
        unlock(lock, token);
    });
    unlock(lock, token);
    Rc::into_inner(waiter).unwrap().end();
    assert_eq!((left(), tail(lock), grant(0)), (0, 0, 0));
    assert_eq!(*order.lock().unwrap(), [1]);
}

/// K3: a handler interrupts the handoff of a lock whose next owner is in a handler too, and waits
/// for the first handler's lock. Fails where both handoffs use one grant: neither handler returns.
#[test]
fn a_handler_hands_off_while_the_interrupted_handoff_is_not_taken() {
    let [outer, inner] = [leak(), leak()];
    let order = Arc::default();
    let token = outer.lock();
    let waiter = waiter(1, outer, &order);
    at(Point::Wait, move || {
        // In the handler.
        let token = inner.lock();
        waiter.interrupt_to(Point::Wait, move || {
            let token = inner.lock();
            unlock(inner, token);
        });
        at(Point::Wait, move || {
            assert_eq!(
                (grant(0), grant_in(0, 1)),
                (outer.address(), inner.address())
            );
            waiter.end_handler();
            at(Point::Wait, move || waiter.end());
        });
        unlock(inner, token);
    });
    unlock(outer, token);
    assert_eq!((left(), tail(outer), tail(inner)), (0, 0, 0));
    assert_eq!(context(0), 0);
}

/// A handler that hands off what its thread has locked waits until the interrupted handoff is
/// through. Fails where `grant` does not look at the grant first: the address of the outer lock is
/// lost.
#[test]
fn a_handler_that_unlocks_for_its_thread_waits_for_the_interrupted_handoff() {
    let [outer, inner] = [leak(), leak()];
    let order = Arc::default();
    let token = outer.lock();
    let held = inner.lock();
    let [one, two] = [waiter(1, outer, &order), waiter(2, inner, &order)];
    let mut held = Some(held);
    at(Point::Wait, move || {
        // In the handler.
        at(Point::Wait, move || {
            assert_eq!(grant(0), outer.address());
            one.end();
        });
        at(Point::Wait, move || {
            assert_eq!(context(0), 1);
            two.end();
        });
        unlock(inner, held.take().unwrap());
        assert_eq!(context(0), 1);
    });
    unlock(outer, token);
    assert_eq!((left(), grant(0), context(0)), (0, 0, 0));
    assert_eq!(*order.lock().unwrap(), [1, 2]);
}

/// The same while two handoffs are interrupted. Fails where the third one moves the context back:
/// the next handler would use the grant of the second.
#[test]
fn a_handler_that_unlocks_for_its_thread_leaves_the_contexts_between() {
    let [first, second, third] = [leak(), leak(), leak()];
    let order = Arc::default();
    let token = first.lock();
    let held = third.lock();
    let [one, three] = [waiter(1, first, &order), waiter(3, third, &order)];
    at(Point::Wait, move || {
        // In the first handler.
        let token = second.lock();
        let two = waiter(2, second, &order);
        at(Point::Wait, move || {
            // In the second handler.
            at(Point::Wait, move || one.end());
            at(Point::Wait, move || {
                assert_eq!((grant(0), context(0)), (third.address(), 2));
                three.end();
            });
            unlock(third, held);
            at(Point::Wait, move || two.end());
        });
        unlock(second, token);
    });
    unlock(first, token);
    assert_eq!((left(), context(0)), (0, 0));
}

/// An heir, in a handler that waits for another lock of the thread that hands off.
fn heir_in_handler(outer: Lock, inner: Lock) -> Rc<Actor> {
    let heir = waiter(1, outer, &Arc::default());
    heir.interrupt_to(Point::Wait, move || unlock(inner, inner.lock()));
    Rc::new(heir)
}

/// "Signal handlers", the deadlock: an unlock waits for its heir. Fails, for the better, where it
/// does not: then the rules there are needless.
#[test]
fn an_unlock_and_the_heirs_handler_wait_for_each_other() {
    let [outer, inner] = [leak(), leak()];
    let (token, _held) = (outer.lock(), inner.lock());
    let heir = heir_in_handler(outer, inner);
    for _ in 0..3 {
        let heir = heir.clone();
        at(Point::Wait, move || {
            assert_eq!(grant(0), outer.address());
            heir.to(Point::Wait);
        });
    }
    at(Point::Wait, move || {
        // No thread could do this: its one grant has both locks.
        let grant = &Toy::family_tables().threads[0].grants.grants[0];
        grant.store(inner.address(), Relaxed);
        heir.end_handler();
        grant.store(outer.address(), Relaxed);
        Rc::into_inner(heir).unwrap().end();
    });
    unlock(outer, token);
    assert_eq!((left(), tail(outer), tail(inner)), (0, 0, 0));
}

/// "Signal handlers", the first rule.
#[test]
fn a_lock_that_the_heirs_handler_waits_for_may_be_unlocked_first() {
    let [outer, inner] = [leak(), leak()];
    let (token, held) = (outer.lock(), inner.lock());
    let heir = heir_in_handler(outer, inner);
    let again = heir.clone();
    at(Point::Wait, move || again.end_handler());
    unlock(inner, held);
    at(Point::Wait, move || Rc::into_inner(heir).unwrap().end());
    unlock(outer, token);
    assert_eq!((left(), tail(outer), tail(inner)), (0, 0, 0));
}

/// "Signal handlers": the handler of the heir waits for a lock of a third thread, and the unlock
/// goes on after that one's unlock.
#[test]
fn an_unlock_waits_no_longer_than_a_third_thread_owns_what_the_heirs_handler_waits_for() {
    let [outer, inner] = [leak(), leak()];
    let token = outer.lock();
    let third = actor(2, move || {
        let token = inner.lock();
        let _ = Toy::wait_until(&inner.tail, Relaxed, Spin::Forever, |tail| tail == name(1));
        unlock(inner, token);
    });
    third.to(Point::Wait);
    let heir = heir_in_handler(outer, inner);
    at(Point::Wait, move || {
        heir.to(Point::Wait);
        assert_eq!(grant(0), outer.address());
        third.to(Point::Wait); // it hands off to the handler
        heir.end_handler();
        third.end();
        Rc::into_inner(heir).unwrap().end();
    });
    unlock(outer, token);
    assert_eq!((left(), tail(outer), tail(inner)), (0, 0, 0));
}

/// Four handlers, each interrupting the handoff of the one before it: the last one has no context,
/// and no grant.
#[test]
fn a_fifth_context_goes_without_a_grant() {
    fn interrupted(depth: u32) {
        let lock = leak();
        let token = lock.lock();
        if depth == CONTEXTS as u32 {
            assert_eq!(tail(lock), SPARE);
            return unlock(lock, token);
        }
        assert_eq!(tail(lock), name_in(0, depth as usize));
        let waiter = waiter(1 + depth as usize, lock, &Arc::default());
        at(Point::Wait, move || {
            interrupted(depth + 1);
            at(Point::Wait, move || waiter.end());
        });
        unlock(lock, token);
    }
    interrupted(0);
    assert_eq!((left(), context(0)), (0, 0));
}

fn watched() -> &'static Hemlock<Watch> {
    let lock = Box::leak(Box::new(Hemlock::new()));
    watch(lock);
    lock
}

/// From here on the next owner may free the lock. Fails where `unlock` looks at the lock once more.
#[test]
fn the_tails_exchange_is_the_last_that_an_unlock_touches_where_nobody_waits() {
    for spare in [false, true] {
        let lock = watched();
        let token = if spare {
            lock.tail.store(SPARE, Relaxed);
            HemlockToken(None)
        } else {
            lock.lock()
        };
        watch::after(Access::Exchange, || {
            touches();
            freed();
        });
        // SAFETY: just locked.
        unsafe { lock.unlock(token) };
        assert_eq!((watch::left(), touches()), (0, [].into()));
    }
}

/// The unlock waits in its own slot. Fails where `hand_off` looks at the lock.
#[test]
fn a_handoff_does_not_touch_the_lock() {
    let lock = watched();
    let token = lock.lock();
    lock.tail.store(name(1), Relaxed); // thread 1 arrives
    watch::after(Access::Exchange, freed);
    at(Point::Wait, || {
        Watch::family_tables().threads[0].grants.grants[0].store(0, Relaxed);
    });
    touches();
    // SAFETY: locked above.
    unsafe { lock.unlock(token) };
    assert_eq!((watch::left(), left(), touches()), (0, 0, [].into()));
}

/// A thread may hold as many as it likes.
#[test]
fn a_thread_holds_more_than_it_has_nodes() {
    let locks: Vec<_> = (0..20).map(|_| leak()).collect();
    let tokens: Vec<_> = locks.iter().map(|lock| lock.lock()).collect();
    assert!(locks.iter().all(|lock| tail(lock) == name(0)));
    assert!(!Toy::tables().is_idle(0));
    for (lock, token) in locks.into_iter().zip(tokens) {
        unlock(lock, token);
    }
    assert!(Toy::tables().is_idle(0));
}

#[test]
fn a_thread_without_a_slot_waits_for_an_empty_queue_and_hands_off_by_the_lock() {
    let lock = leak();
    let order = Arc::default();
    let token = lock.lock();
    let stranger = actor(SLOTS, move || {
        let token = lock.lock();
        assert_eq!((tail(lock), lock.owner.load(Relaxed)), (SPARE, SPARE));
        assert!(lock.try_lock().is_none() && !lock.is_contended());
        // Its handoff waits for nobody.
        let _ = Toy::wait_until(&lock.tail, Relaxed, Spin::Forever, |tail| tail == name(1));
        unlock(lock, token);
    });
    stranger.to(Point::Wait);
    // It does not stand in the queue, and is overtaken.
    assert!(!lock.is_contended());
    unlock(lock, token);
    let token = lock.lock();
    stranger.to(Point::Wait);
    unlock(lock, token);
    stranger.to(Point::Wait);
    let waiter = waiter(1, lock, &order);
    stranger.end();
    assert_eq!(lock.owner.load(Relaxed), GRANTED);
    waiter.end();
    assert_eq!((tail(lock), lock.owner.load(Relaxed)), (0, name(1)));
}

#[test]
fn a_forgotten_token_keeps_the_lock_and_the_slot() {
    let lock = leak();
    as_thread(1, || std::mem::forget(lock.lock()));
    assert!(lock.is_locked() && lock.try_lock().is_none());
    assert!(!Toy::tables().is_idle(1));
}

/// After fork() in the child, nobody takes the grant of a thread that exists only in the parent.
/// The next thread with its slot would wait for that before its first handoff.
#[test]
fn a_child_of_fork_empties_the_grants_of_lost_threads() {
    let lock = leak();
    let thread = &Toy::family_tables().threads[1];
    let grants = &thread.grants;
    grants.grants[0].store(lock.address(), Relaxed);
    grants.context.store(1, Relaxed);
    assert!(thread.forget());
    assert_eq!((grant(1), context(1)), (0, 0));
}
