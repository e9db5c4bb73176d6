//! What the kernel says of a thread.

use std::fs;

/// How much of a CPU a thread has had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ran {
    /// Nanoseconds.
    pub time: u64,
    /// How often it was given one.
    pub turns: u64,
}

/// What the thread `id` of this process has had; none where the kernel does not tell.
pub fn ran(id: u32) -> Option<Ran> {
    let text = fs::read_to_string(format!("/proc/self/task/{id}/schedstat")).ok()?;
    let mut numbers = text.split_whitespace().map(str::parse);
    let (time, _waited, turns) = (numbers.next()?, numbers.next()?, numbers.next()?);
    Some(Ran {
        time: time.ok()?,
        turns: turns.ok()?,
    })
}

/// Whether the thread `id` of this process has a CPU, waits for one, or sleeps, in words.
pub fn state(id: u32) -> &'static str {
    let text = fs::read_to_string(format!("/proc/self/task/{id}/stat")).unwrap_or_default();
    // The name before it may hold anything, parentheses and blanks too.
    let after = text.rsplit_once(") ").map_or("", |(_, after)| after);
    match after.chars().next() {
        Some('R') => "runnable",
        Some('S') => "asleep",
        Some('D') => "asleep, uninterruptible",
        Some('T' | 't') => "stopped",
        Some('Z' | 'X') => "dead",
        _ => "in an unknown state",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_knows_this_thread() {
        let id = rustix::thread::gettid().as_raw_pid() as u32;
        assert_eq!(state(id), "runnable");
        assert_eq!(state(0), "in an unknown state");
        // Kernels without scheduler statistics do not tell.
        if let Some(before) = ran(id) {
            std::thread::sleep(std::time::Duration::from_millis(1));
            let after = ran(id).unwrap();
            assert!(after.turns > before.turns && after.time > before.time);
        }
    }
}
