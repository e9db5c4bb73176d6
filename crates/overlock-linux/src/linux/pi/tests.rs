use std::thread;
use std::time::Duration;

use super::*;

fn kernels() -> u32 {
    calls::thread_id()
}

/// Runs `work` in a child of fork, and returns whether it returned true.
fn in_child(work: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child runs `work`, which the tests keep to system calls and plain memory, and
    // exits.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let failed = i32::from(!work());
        // SAFETY: ends the child at once, as a child of a multi-threaded process must.
        unsafe { libc::_exit(failed) };
    }
    assert!(child > 0);
    let mut status = -1;
    // SAFETY: `status` is valid for the write.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    status == 0
}

#[test]
fn each_thread_has_the_kernels_id_for_it() {
    let here = Linux::thread_id();
    assert_eq!(here, kernels());
    let there = thread::spawn(|| [Linux::thread_id(), Linux::thread_id(), kernels()]);
    let there = there.join().unwrap();
    assert!(there.iter().all(|&id| id == there[0]));
    assert_ne!(there[0], here);
    assert_eq!(Linux::thread_id(), here);
}

/// The page: with one that fork copies, the child would go on with its parent's id.
#[test]
#[cfg_attr(miri, ignore)]
fn a_forked_child_has_an_id_of_its_own_and_so_has_its_child() {
    let parents = Linux::thread_id();
    assert!(!Linux::was_before_fork(parents));
    assert!(in_child(|| {
        let mine = Linux::thread_id();
        let grandchild = || Linux::thread_id() == kernels() && kernels() != mine;
        mine == kernels()
            && mine != parents
            && Linux::was_before_fork(parents)
            && in_child(grandchild)
    }));
    assert_eq!(Linux::thread_id(), parents);
}

/// No thread takes a lock of another thread of the process for its own. And numbers differ from
/// process to process. With the same number in both, the new thread would make the copy of the
/// forker trust the id from its parent.
#[test]
#[cfg_attr(miri, ignore)]
fn a_new_thread_of_a_child_was_nobody_else() {
    let forker = Linux::thread_id();
    assert!(in_child(|| {
        let new = thread::spawn(move || Linux::was_before_fork(forker));
        matches!(new.join(), Ok(false)) && Linux::thread_id() == kernels()
    }));
}

/// `FIRST`: the first thread of a process that was not forked, as far as we know.
#[test]
#[cfg_attr(miri, ignore)]
fn the_first_thread_of_the_first_process_was_nobody_else() {
    let forker = Linux::thread_id();
    assert!(in_child(|| {
        FIRST.store(process(), Relaxed);
        !Linux::was_before_fork(forker)
    }));
}

/// The form for kernels before 5.14: neither too early nor lost.
#[test]
#[cfg_attr(miri, ignore)]
fn deadlines_on_the_clock_that_can_be_set() {
    let word = &AtomicU32::new(0);
    let end = Linux::now().plus(Duration::from_millis(20));
    assert_eq!(lock_until_realtime(word, end), Ok(()));
    assert_eq!(word.load(Relaxed), kernels());
    thread::scope(|scope| {
        let waiter = scope.spawn(move || lock_until_realtime(word, end));
        assert_eq!(waiter.join().unwrap(), Err(libc::ETIMEDOUT));
        assert!(Linux::now() >= end);
        let end = end.plus(Duration::from_secs(60));
        let waiter = scope.spawn(move || {
            let result = lock_until_realtime(word, end);
            Linux::unlock_pi(word);
            result
        });
        while word.load(Relaxed) == kernels() {
            thread::sleep(Duration::from_millis(1));
        }
        Linux::unlock_pi(word);
        assert_eq!(waiter.join().unwrap(), Ok(()));
    });
    assert_eq!(word.load(Relaxed), 0);
}
