//! The cheapest clock that the machine has.

use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

/// Reads ticks: the time-stamp counter where it runs at a constant rate on all CPUs, else the
/// monotonic clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    tsc: bool,
    ns_per_tick: f64,
}

/// The time by both clocks: of some looks at them, the one with the least between.
fn both() -> (Instant, u64) {
    let look = |_| {
        let before = Instant::now();
        let ticks = counter::read();
        (before.elapsed(), before, ticks)
    };
    let (_, at, ticks) = (0..16).map(look).min().expect("some looks");
    (at, ticks)
}

impl Clock {
    /// Picks the clock and, for the counter, measures its rate. Takes some 20 ms.
    pub fn calibrate() -> Self {
        if !counter::is_constant() {
            return Self {
                tsc: false,
                ns_per_tick: 1.0,
            };
        }
        let start = both();
        // The thread must not sleep here: what else wakes up meanwhile would delay the second
        // reading.
        while start.0.elapsed().as_millis() < 20 {
            std::hint::spin_loop();
        }
        let end = both();
        let ticks = end.1.saturating_sub(start.1).max(1);
        let elapsed = end.0 - start.0;
        Self {
            tsc: true,
            ns_per_tick: elapsed.as_nanos() as f64 / ticks as f64,
        }
    }

    /// Now, on a scale of its own.
    #[inline]
    pub fn ticks(&self) -> u64 {
        if self.tsc {
            counter::read()
        } else {
            monotonic()
        }
    }

    /// A difference of ticks in nanoseconds.
    pub fn nanoseconds(&self, ticks: u64) -> f64 {
        ticks as f64 * self.ns_per_tick
    }

    /// Its name, for the report.
    pub fn name(&self) -> &'static str {
        if self.tsc { "tsc" } else { "clock_monotonic" }
    }
}

#[inline]
fn monotonic() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(target_arch = "x86_64")]
mod counter {
    use std::arch::x86_64::{__cpuid, _mm_lfence, _rdtsc};

    /// CPUID leaf 0x8000_0007, EDX bit 8: the counter's rate does not follow the CPU's frequency,
    /// and it does not stop when the CPU sleeps.
    pub fn is_constant() -> bool {
        __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & (1 << 8) != 0
    }

    #[inline]
    pub fn read() -> u64 {
        // The fence keeps the reading behind the instructions before it: the end of a wait must not
        // be read before the lock is there.
        // SAFETY: SSE2 is part of x86_64.
        unsafe { _mm_lfence() };
        // SAFETY: Linux lets user space read the counter.
        unsafe { _rdtsc() }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod counter {
    pub fn is_constant() -> bool {
        false
    }

    pub fn read() -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_agree_with_the_clock() {
        let clock = Clock::calibrate();
        let differences: Vec<f64> = (0..20).map(|_| difference(&clock)).collect();
        // The machine may stop between two looks.
        let is_small = |difference: &f64| *difference < 0.05;
        assert!(differences.iter().any(is_small), "{differences:?}");
    }

    /// How much longer or shorter a time is by ticks.
    fn difference(clock: &Clock) -> f64 {
        let (start, ticks) = (Instant::now(), clock.ticks());
        while start.elapsed().as_millis() < 10 {}
        let measured = clock.nanoseconds(clock.ticks() - ticks);
        let elapsed = start.elapsed().as_nanos() as f64;
        (measured / elapsed - 1.0).abs()
    }
}
