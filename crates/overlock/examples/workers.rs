//! Two threads that contend for locks. In WebAssembly without WASI they are workers, which share
//! the memory and call [`work`]: see scripts/systems.mjs.

use std::alloc::Layout;
use std::time::Duration;

use overlock::{Barrier, Condvar, Mutex, RwLock};

const ROUNDS: u32 = 2_000;

static COUNT: Mutex<u32> = Mutex::new(0);
static TURN: Mutex<u32> = Mutex::new(0);
static CHANGED: Condvar = Condvar::new();
static PAIR: RwLock<[u32; 2]> = RwLock::new([0; 2]);
static HELD: Mutex<()> = Mutex::new(());

/// Memory for a worker's stack and thread-local data, which nobody gives back.
///
/// # Panics
///
/// If `align` is no power of two.
#[unsafe(no_mangle)]
pub extern "C" fn allocate(size: usize, align: usize) -> *mut u8 {
    let layout = Layout::from_size_align(size.max(1), align.max(1)).expect("a power of two");
    // SAFETY: the size is not 0.
    unsafe { std::alloc::alloc(layout) }
}

/// The part of one of the two threads. A panic traps.
///
/// # Panics
///
/// If a lock does not keep its promise.
#[unsafe(no_mangle)]
pub extern "C" fn work(thread: u32) {
    static BOTH: Barrier = Barrier::new(2);
    for round in 0..ROUNDS {
        *COUNT.lock() += 1;
        let mut pair = PAIR.write();
        pair[0] += 1;
        pair[1] += 1;
        drop(pair);
        let pair = PAIR.read();
        assert_eq!(pair[0], pair[1]);
        drop(pair);
        let mut turn = TURN.lock();
        CHANGED.wait_while(&mut turn, |turn| *turn != 2 * round + thread);
        *turn += 1;
        drop(turn);
        CHANGED.notify_all();
    }
    BOTH.wait();
    assert_eq!(*COUNT.lock(), 2 * ROUNDS);
    assert_eq!(PAIR.read()[0], 2 * ROUNDS);
    let held = (thread == 0).then(|| HELD.lock());
    BOTH.wait();
    if held.is_none() {
        assert!(HELD.try_lock_for(Duration::from_millis(50)).is_none());
    }
    BOTH.wait();
}

fn main() {
    std::thread::scope(|scope| {
        scope.spawn(|| work(0));
        scope.spawn(|| work(1));
    });
    println!("{} increments", COUNT.lock());
}
