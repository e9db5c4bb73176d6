//! A thread of low priority holds a lock that a real-time thread needs: the holder is lent the
//! waiter's priority, so threads in between cannot keep it from running. Linux and Android.
//!
//! ```text
//! cargo run --release --example priority -- --bench
//! ```

#[cfg(any(target_os = "linux", target_os = "android"))]
mod common;

#[cfg(any(target_os = "linux", target_os = "android"))]
fn main() {
    use std::thread;

    use overlock::RtMutex;

    static SETPOINT: RtMutex<f64> = RtMutex::new(0.0);

    // A control loop, which a system runs with SCHED_FIFO, and the thread that sets its goal.
    thread::scope(|scope| {
        scope.spawn(|| (0..1000).for_each(|step| *SETPOINT.lock() = f64::from(step)));
        scope.spawn(|| {
            let mut value = 0.0;
            for _ in 0..1000 {
                value += (*SETPOINT.lock() - value) / 2.0;
            }
            assert!((0.0..1000.0).contains(&value));
        });
    });
    assert_eq!(*SETPOINT.lock(), 999.0);
    println!("the goal is {}", *SETPOINT.lock());

    if common::wants_bench() {
        let theirs = std::sync::Mutex::new(0.0);
        common::compare(
            ["RtMutex without waiters", "std's Mutex"],
            || (0..200_000).for_each(|_| *SETPOINT.lock() += 1.0),
            || (0..200_000).for_each(|_| *theirs.lock().unwrap() += 1.0),
        );
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn main() {
    println!("this system does not lend priorities to holders of locks, so RtMutex is not there");
}
