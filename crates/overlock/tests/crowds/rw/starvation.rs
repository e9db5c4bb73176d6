//! Nobody waits for ever while others keep the lock busy.

use super::*;
use crate::serial;

/// How long one thread holds the lock while others must not starve.
const HOLD: Duration = Duration::from_micros(500);
/// A generous bound: no lock promises more than some ms, and the machine may be busy.
const STARVED: Duration = Duration::from_secs(60);

/// The longest wait of thread 0 while others keep the lock busy.
fn longest_wait<L: RawRwLock>(
    wait: impl Fn(&Pair<L>) + Clone + Send + 'static,
    others: impl Fn(&Pair<L>, usize) + Clone + Send + 'static,
) {
    let _serial = serial();
    static LONGEST_US: AtomicU32 = AtomicU32::new(0);
    LONGEST_US.store(0, Relaxed);
    let trial = Trial::<L>::new(4);
    let begin = Instant::now();
    trial.run(move |number, state| {
        if number > 0 {
            while !trial.ends.load(Relaxed) && begin.elapsed() < 2 * STARVED {
                state.waits(false);
                others(&trial.pair, number);
                state.is_outside();
            }
            return;
        }
        thread::sleep(4 * HOLD);
        for _ in 0..if cfg!(miri) { 1 } else { 10 } {
            state.waits(false);
            let begin = Instant::now();
            wait(&trial.pair);
            LONGEST_US.fetch_max(begin.elapsed().as_micros() as u32, Relaxed);
            state.is_outside();
            thread::sleep(HOLD);
        }
        trial.ends.store(true, Relaxed);
    });
    let longest = Duration::from_micros(LONGEST_US.load(Relaxed).into());
    assert!(longest < STARVED, "{}: waited for {longest:?}", L::NAME);
}

/// Each reader leaves when the next one has arrived, or after a while: as long as readers are let
/// in, there is always one.
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
        pair.inspect(|| {
            while ARRIVALS.load(Relaxed) == arrival + 1 && begin.elapsed() < HOLD {
                thread::yield_now();
            }
        });
        pair.end_read(token);
    });
}

/// Writers that come back at once, and yield their CPU inside.
pub(super) fn readers_do_not_starve<L: RawRwLock>() {
    let read = |pair: &Pair<L>| {
        let token = pair.lock.read();
        pair.inspect(|| {});
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
