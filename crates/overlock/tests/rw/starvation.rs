//! No starvation while other threads keep the lock busy.

use super::*;

/// How long one thread holds the lock in these tests.
const HOLD: Duration = Duration::from_micros(500);
/// All locks promise some ms; the machine may be busy.
const STARVED: Duration = Duration::from_secs(2);

/// Returns the longest wait of thread 0 while other threads keep the lock busy.
fn longest_wait<L: RawRwLock>(
    wait: impl Fn(&Pair<L>) + Clone + Send + 'static,
    others: impl Fn(&Pair<L>, usize) + Clone + Send + 'static,
) {
    let _turn = turn();
    static LONGEST_US: AtomicU32 = AtomicU32::new(0);
    LONGEST_US.store(0, Relaxed);
    let trial = Trial::<L>::new(4);
    let begin = Instant::now();
    trial.run(move |number, place| {
        if number > 0 {
            while !trial.ends.load(Relaxed) && begin.elapsed() < 2 * STARVED {
                place.waits(false);
                others(&trial.pair, number);
                place.is_outside();
            }
            return;
        }
        thread::sleep(4 * HOLD);
        for _ in 0..if cfg!(miri) { 1 } else { 10 } {
            place.waits(false);
            let begin = Instant::now();
            wait(&trial.pair);
            LONGEST_US.fetch_max(begin.elapsed().as_micros() as u32, Relaxed);
            place.is_outside();
            thread::sleep(HOLD);
        }
        trial.ends.store(true, Relaxed);
    });
    let longest = Duration::from_micros(LONGEST_US.load(Relaxed).into());
    assert!(longest < STARVED, "{}: waited for {longest:?}", L::NAME);
}

/// Each reader releases when the next one has arrived, or after a while: as long as readers are
/// admitted, the lock is never free.
pub(super) fn writers_do_not_starve<L: RawRwLock>() {
    static ARRIVALS: AtomicUsize = AtomicUsize::new(0);
    let write = |pair: &Pair<L>| {
        let token = pair.lock.write();
        pair.change(|| {});
        pair.end_write(token);
    };
    longest_wait::<L>(write, |pair, _| {
        let token = pair.lock.read();
        let arrival = ARRIVALS.fetch_add(1, Relaxed);
        let begin = Instant::now();
        pair.look(|| {
            while ARRIVALS.load(Relaxed) == arrival + 1 && begin.elapsed() < HOLD {
                thread::yield_now();
            }
        });
        pair.end_read(token);
    });
}

/// Writers that reacquire at once, and yield in their critical sections.
pub(super) fn readers_do_not_starve<L: RawRwLock>() {
    let read = |pair: &Pair<L>| {
        let token = pair.lock.read();
        pair.look(|| {});
        pair.end_read(token);
    };
    longest_wait::<L>(read, |pair, number| {
        let token = pair.lock.write();
        pair.change(|| {
            if number == 1 {
                thread::sleep(HOLD / 10);
            }
        });
        pair.end_write(token);
    });
}
