//! Work on several threads.

use std::iter;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::thread;

/// Applies `work` to each of `items`, so many at a time, and passes the results to `gather` in the
/// order in which they end. An item is taken only once a thread is free for it, on the thread that
/// asks for the next result, so that `items` may end early.
pub fn each<I, R, T>(
    items: impl IntoIterator<Item = I>,
    jobs: usize,
    work: impl Fn(I) -> R + Sync,
    gather: impl FnOnce(&mut dyn Iterator<Item = (I, thread::Result<R>)>) -> T,
) -> T
where
    I: Copy + Send,
    R: Send,
{
    let work = &work;
    thread::scope(|scope| {
        let (send, receive) = mpsc::channel();
        let mut waiting = items.into_iter().fuse();
        let mut running = 0;
        gather(&mut iter::from_fn(|| {
            while running < jobs.max(1)
                && let Some(item) = waiting.next()
            {
                let send = send.clone();
                // A thread each: what a lock that panics has left on its thread is gone with it.
                scope.spawn(move || {
                    let result = catch_unwind(AssertUnwindSafe(|| work(item)));
                    // The receiver is gone if `gather` has given up.
                    let _ = send.send((item, result));
                });
                running += 1;
            }
            if running == 0 {
                return None;
            }
            running -= 1;
            Some(receive.recv().expect("the sender above is still there"))
        }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use std::time::{Duration, Instant};

    #[test]
    fn so_many_are_worked_on_at_a_time() {
        let taken = Cell::new(0);
        let items = (0..12).inspect(|_| taken.set(taken.get() + 1));
        let (here, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let start = Instant::now();
        let work = |item| {
            most.fetch_max(1 + here.fetch_add(1, Relaxed), Relaxed);
            // The first ones wait for each other.
            while most.load(Relaxed) < 3 && start.elapsed() < Duration::from_secs(60) {
                thread::yield_now();
            }
            here.fetch_sub(1, Relaxed);
            item * 2
        };
        let mut doubled: Vec<(usize, usize)> = each(items, 3, work, |results| {
            let ended = results.enumerate().map(|(ended, (item, result))| {
                assert!(taken.get() <= ended + 3, "more than three at a time");
                (item, result.unwrap())
            });
            ended.collect()
        });
        assert_eq!(most.load(Relaxed), 3);
        doubled.sort_unstable();
        let expected: Vec<_> = (0..12).map(|item| (item, 2 * item)).collect();
        assert_eq!(doubled, expected);
    }

    #[test]
    fn results_come_as_they_end() {
        let second = Barrier::new(2);
        let work = |item| {
            // The first waits until the second has been reported.
            if item == 0 {
                second.wait();
            }
        };
        let order = each([0, 1], 2, work, |results| {
            let ended = results.map(|(item, _)| {
                if item == 1 {
                    second.wait();
                }
                item
            });
            ended.collect::<Vec<_>>()
        });
        assert_eq!(order, [1, 0]);
    }

    #[test]
    fn a_panic_is_a_result() {
        let work = |item: usize| assert!(item != 1, "one");
        let all: Vec<_> = each(0..3, 0, work, |results| {
            results.map(|(_, result)| result.is_ok()).collect()
        });
        assert_eq!(all, [true, false, true]);
    }

    #[test]
    fn whoever_gathers_may_give_up() {
        let first = each(0..1000, 2, |item: usize| item, |results| results.next());
        assert!(first.is_some());
    }
}
