//! The races that both locks have, in every form.

use super::*;

/// The plain case. Fails where `hand_off` makes a sleeper the head without entering it (a
/// store of HEAD in place of the exchange): lost wake-up.
pub(super) fn the_word_tells_who_holds_who_waits_and_who_sleeps<F: Form>() {
    let lock = leak::<F>();
    assert!(!lock.is_locked());
    assert!(lock.try_lock().is_some() && lock.try_lock().is_none());
    assert_eq!(word(lock), LOCKED);
    let [one, two] = [1, 2].map(|thread| locker(thread, lock));
    one.to(Point::Wait);
    assert_eq!(word(lock), tail(1) | PENDING | LOCKED);
    two.to(Point::Wait);
    assert_eq!(word(lock), tail(2) | PENDING | LOCKED);
    assert_eq!((state(1), state(2)), (HEAD, RUNNING));
    assert!(lock.is_locked() && lock.is_contended());
    two.sleep();
    one.sleep();
    assert_eq!(word(lock), tail(2) | SLOW);
    assert_eq!((state(1), state(2)), (HASHED, HALTED));
    assert_eq!(entries(lock), 1);
    unlock(lock);
    assert_eq!(word(lock), tail(2));
    assert_eq!(entries(lock), 0);
    one.end();
    assert_eq!(word(lock), tail(2) | SLOW);
    assert_eq!(state(2), HASHED);
    assert_eq!(entries(lock), 1);
    unlock(lock);
    two.end();
    assert_eq!(word(lock), LOCKED);
    unlock(lock);
    assert_eq!(word(lock), 0);
    assert_eq!(entries(lock), 0);
}

/// I4. Five in the queue; the second and the fourth sleep.
pub(super) fn the_queue_is_served_in_order_asleep_or_awake<F: Form>() {
    let lock = leak::<F>();
    let order = Arc::new(Mutex::new(Vec::new()));
    lock.lock();
    let waiters = [1, 2, 3, 4, 5].map(|thread| {
        let order = order.clone();
        actor(thread, move || {
            lock.lock();
            order.lock().unwrap().push(thread);
            unlock(lock);
        })
    });
    for waiter in &waiters {
        waiter.to(Point::Wait);
    }
    waiters[3].sleep();
    waiters[1].sleep();
    unlock(lock);
    for waiter in waiters {
        waiter.end();
    }
    assert_eq!(*order.lock().unwrap(), [1, 2, 3, 4, 5]);
    assert_eq!(word(lock), 0);
}

/// The lock is released between the head's last check and its halt. Fails where `kick` does not add
/// to `kicks`: the head sleeps, and no thread is left to kick it.
pub(super) fn an_unlock_before_the_halt_is_not_lost<F: Form>() {
    let lock = leak::<F>();
    lock.lock();
    let [head, second] = [1, 2].map(|thread| locker(thread, lock));
    head.to(Point::Halt);
    unlock(lock);
    head.end();
    // The same for one that halts in the queue: it is made the head, and the lock is released.
    second.to(Point::Halt);
    unlock(lock);
    second.end();
    assert_eq!(word(lock), LOCKED);
    // And for one that is made the head and kicked between the two.
    let [third, fourth] = [3, 4].map(|thread| locker(thread, lock));
    third.to(Point::Wait);
    fourth.to(Point::Halt);
    unlock(lock);
    third.end();
    assert_eq!((state(4), word(lock)), (HASHED, tail(4) | SLOW));
    unlock(lock);
    fourth.end();
    assert_eq!(word(lock), LOCKED);
}

/// The lock is released, by the fast path, between the head's entry and its exchange for SLOW.
/// Fails where `wait_as_head` ignores that its exchange found 0: it sleeps, owning the lock.
pub(super) fn an_unlock_between_entry_and_slow_leaves_the_lock_to_the_head<F: Form>() {
    let lock = leak::<F>();
    lock.lock();
    let head = locker(1, lock);
    head.to(Point::Hash);
    unlock(lock);
    assert_eq!(word(lock), tail(1));
    head.end();
    assert_eq!(word(lock), LOCKED);
    assert_eq!(entries(lock), 0);
}

/// The published form's double entry. The owner makes a sleeper the head, slowly; the sleeper wakes
/// up spuriously before, between and after. Fails (two entries) where the head enters itself
/// though locked is SLOW (`wait_as_head`), or where `hand_off` stores HASHED before it makes the
/// entry (its store moved to the top).
pub(super) fn a_slow_handoff_does_not_enter_a_waiter_twice<F: Form>() {
    let lock = leak::<F>();
    lock.lock();
    let [owner, sleeper] = [1, 2].map(|thread| locker(thread, lock));
    owner.to(Point::Wait);
    sleeper.sleep();
    sleeper.startle();
    sleeper.sleep();
    unlock(lock);
    owner.to(Point::Hash); // It has the lock, and has seen that its successor sleeps.
    sleeper.startle();
    sleeper.sleep(); // Not the head yet, so it neither enters itself nor stays awake.
    sleeper.startle();
    sleeper.to(Point::Wait);
    owner.end();
    assert_eq!((state(2), entries(lock)), (HASHED, 1));
    sleeper.sleep();
    assert_eq!((state(2), entries(lock)), (HASHED, 1));
    sleeper.startle();
    sleeper.sleep();
    assert_eq!((word(lock), entries(lock)), (tail(2) | SLOW, 1));
    unlock(lock);
    sleeper.end();
    assert_eq!((word(lock), entries(lock)), (LOCKED, 0));
}

/// Fails where a waiter in the queue takes any wake-up for its turn, and where a head that wakes up
/// enters itself again though locked is SLOW.
pub(super) fn sleepers_that_wake_spuriously_sleep_again<F: Form>() {
    let lock = leak::<F>();
    lock.lock();
    let waiters = [1, 2, 3].map(|thread| locker(thread, lock));
    waiters[0].to(Point::Wait);
    waiters[1].to(Point::Wait);
    for waiter in waiters.iter().rev() {
        waiter.sleep();
    }
    for _ in 0..3 {
        for waiter in &waiters {
            waiter.startle();
            waiter.sleep();
        }
        assert_eq!([state(1), state(2), state(3)], [HASHED, HALTED, HALTED]);
        assert_eq!((word(lock), entries(lock)), (tail(3) | SLOW, 1));
    }
    for waiter in waiters {
        unlock(lock);
        waiter.end();
    }
    assert_eq!((word(lock), entries(lock)), (LOCKED, 0));
}

/// A kicker loses its CPU after the release; the kicked node goes on to wait for another lock.
/// Fails where a kick does more than end a halt (for example a store of HEAD into `state`).
pub(super) fn a_stale_kick_is_harmless<F: Form>() {
    let (first, second) = (leak::<F>(), leak::<F>());
    first.lock();
    second.lock();
    // A queue for the second lock, so that its kicked waiter is not the head.
    let head = locker(3, second);
    head.to(Point::Wait);
    let waiter = actor(1, move || {
        first.lock();
        unlock(first);
        second.lock();
    });
    waiter.sleep();
    let kicker = actor(2, move || unlock(first));
    kicker.to(Point::Kick);
    waiter.startle();
    waiter.sleep();
    assert_eq!((word(first), state(1)), (0, HALTED));
    kicker.end();
    waiter.to(Point::Halt); // Woken by the kick for the first lock.
    assert_eq!(
        (word(second) & !LOCKED_BYTE, state(1)),
        (tail(1) | PENDING, HALTED)
    );
    kick::<Toy>(id(1)); // Another one, before the halt.
    assert_eq!(state(1), HALTED);
    waiter.sleep();
    unlock(second);
    head.end();
    unlock(second);
    waiter.end();
    assert_eq!(word(second), LOCKED);
}

/// Wait early. Fails where `wait_in_queue` does not load its predecessor's state.
pub(super) fn a_successor_of_a_sleeper_does_not_spin<F: Form>() {
    let lock = leak::<F>();
    lock.lock();
    let [head, second, third] = [1, 2, 3].map(|thread| locker(thread, lock));
    head.to(Point::Wait);
    second.to(Point::Wait);
    third.to(Point::Wait); // It spins: its predecessor does.
    head.to(Point::Halt);
    second.sleep();
    third.sleep();
    third.startle();
    third.sleep_before(Point::Wait);
    for waiter in [head, second, third] {
        unlock(lock);
        waiter.end();
    }
}

/// I3. Fails where `is_free` ignores pending.
pub(super) fn a_spinning_head_is_not_bypassed<F: Form>() {
    let lock = leak::<F>();
    lock.lock();
    let [head, newcomer] = [1, 2].map(|thread| locker(thread, lock));
    head.to(Point::Wait);
    unlock(lock);
    assert_eq!(word(lock), tail(1) | PENDING);
    assert!(lock.try_lock().is_none());
    newcomer.to(Point::Wait);
    assert_eq!(word(lock), tail(2) | PENDING);
    // A thread without a slot waits too.
    at(Point::Wait, move || {
        head.end();
        assert_eq!(word(lock), tail(2) | LOCKED);
        unlock(lock);
    });
    as_thread(SLOTS, || lock.lock_without_node());
    assert_eq!(word(lock), tail(2) | LOCKED);
    unlock(lock);
    newcomer.end();
}

/// The other side of I3: the exchanges of thief and head are on the same byte. Fails where the
/// thief stores.
pub(super) fn the_head_survives_a_thief_that_loaded_before_pending_was_set<F: Form>() {
    let lock = leak::<F>();
    lock.lock();
    let head = locker(1, lock);
    head.to(Point::Wait);
    unlock(lock);
    assert!(take::<Toy>(&lock.word)); // It loaded the word before the head set pending.
    assert!(!take::<Toy>(&lock.word));
    assert_eq!(word(lock), tail(1) | PENDING | LOCKED);
    head.to(Point::Wait);
    unlock(lock);
    head.end();
    assert_eq!(word(lock), LOCKED);
    assert!(!take::<Toy>(&lock.word));
}

/// Four contexts of one thread sleep for four locks, a node and an entry each; a fifth gets its
/// lock without.
pub(super) fn handlers_nest_and_the_fifth_context_waits_without_a_node<F: Form>() {
    let locks: [Lock<F>; CONTEXTS + 1] = std::array::from_fn(|_| leak::<F>());
    for lock in locks {
        lock.lock();
    }
    let waiter = locker(1, locks[0]);
    waiter.sleep();
    for lock in &locks[1..CONTEXTS] {
        let lock: Lock<F> = lock;
        waiter.interrupt_to(Point::Halt, move || lock.lock());
    }
    let fifth = locks[CONTEXTS];
    waiter.interrupt_to(Point::Wait, move || fifth.lock());
    for (context, lock) in locks[..CONTEXTS].iter().enumerate() {
        assert_eq!(word(lock), queued::tail(NodeId::new(1, context)) | SLOW);
        assert_eq!(entries(lock), 1);
    }
    assert_eq!(word(fifth), LOCKED);
    for lock in locks.iter().skip(1).rev() {
        unlock(lock);
        waiter.end_handler();
        assert_eq!(word(lock), LOCKED);
    }
    unlock(locks[0]);
    waiter.end();
    assert_eq!(word(locks[0]), LOCKED);
}

/// I2. The lock is freed between release and kick. Fails where `unlock_slow` reads or writes the
/// lock after its releasing store (for example `lock_hash::remove` moved behind it).
pub(super) fn nothing_of_the_lock_is_touched_after_its_release<F: Form>() {
    const GONE: u32 = 0xdead_beef;
    let lock = leak::<F>();
    lock.lock();
    let head = locker(1, lock);
    head.sleep();
    let unlocker = actor(2, move || unlock(lock));
    unlocker.to(Point::Kick);
    assert_eq!(entries(lock), 0);
    head.startle();
    head.end();
    lock.word.store(GONE, Relaxed);
    let pointer = ptr::from_ref(lock).cast_mut();
    if cfg!(miri) {
        // SAFETY: leaked above, and no longer in use, which Miri checks.
        drop(unsafe { Box::from_raw(pointer) });
        unlocker.end();
    } else {
        unlocker.end();
        assert_eq!(word(lock), GONE);
    }
}
