//! Whether the machine has an idle CPU, which some tests need.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

/// Threads that want a CPU now, and the time that the hypervisor has taken.
fn look() -> Option<(u32, u64)> {
    let load = fs::read_to_string("/proc/loadavg").ok()?;
    let running = load.split(' ').nth(3)?.split('/').next()?.parse().ok()?;
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let stolen = stat
        .lines()
        .next()?
        .split_whitespace()
        .nth(8)?
        .parse()
        .ok()?;
    Some((running, stolen))
}

/// Runs something. Whether no more threads than these CPUs wanted one, and none was taken, in nine
/// of ten looks meanwhile; and the result.
pub fn during<T>(cpus: u32, run: impl FnOnce() -> T) -> (bool, T) {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let looks = scope.spawn(|| {
            let (mut all, mut idle, mut before) = (0, 0, None);
            while !over.load(Relaxed) {
                let now = look();
                all += 1;
                if let (Some((running, stolen)), Some(before)) = (now, before) {
                    // This thread runs, too.
                    idle += u32::from(running <= cpus + 1 && stolen == before);
                }
                before = now.map(|(_, stolen)| stolen);
                thread::sleep(Duration::from_millis(5));
            }
            all > 10 && idle * 10 >= all * 9
        });
        let result = run();
        over.store(true, Relaxed);
        (looks.join().unwrap(), result)
    })
}
