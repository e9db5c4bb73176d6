//! Private computation of a known length.

use std::hint::black_box;
use std::time::Instant;

use super::Work;

/// Computes for `iterations` iterations, each of which needs the result of the one before.
///
/// No PAUSE and no clock: the CPU must look as busy as in a program. Never inlined, so that what
/// was calibrated is the machine code that runs in every loop.
#[inline(never)]
pub fn compute(iterations: u64) {
    let mut x = black_box(0x9e37_79b9_7f4a_7c15_u64);
    for _ in 0..iterations {
        // Neither step folds with its neighbour of the next iteration, so an unrolled loop takes as
        // long.
        x = (x ^ (x >> 7)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    }
    black_box(x);
}

/// The line `nanoseconds = base + slope * iterations`.
#[derive(Clone, Copy, Debug)]
pub struct Calibration {
    base: f64,
    slope: f64,
}

impl Calibration {
    /// Measures this machine. Takes some 20 ms.
    pub fn measure() -> Self {
        const SHORT: u64 = 50;
        const LONG: u64 = 1050;
        // The minimum: an interrupt or a hypervisor can only make it longer.
        let best = |iterations| batches(iterations, 20).fold(f64::INFINITY, f64::min);
        let (short, long) = (best(SHORT), best(LONG));
        let slope = ((long - short) / (LONG - SHORT) as f64).max(1e-3);
        Self {
            base: (short - slope * SHORT as f64).max(0.0),
            slope,
        }
    }

    /// The work that takes the time nearest to `nanoseconds`; none for 0, at least one iteration
    /// else.
    pub fn work(&self, nanoseconds: f64) -> Work {
        if nanoseconds <= 0.0 {
            return Work::NONE;
        }
        Work((((nanoseconds - self.base) / self.slope).round() as u64).max(1))
    }
}

/// The median time of `work` now, in nanoseconds. Takes about a millisecond, or nine times as long
/// as the work if that is more.
pub fn time(work: Work) -> f64 {
    if work == Work::NONE {
        return 0.0;
    }
    let mut times: Vec<f64> = batches(work.0, 9).collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Nanoseconds a call, from `count` batches of about 100 us each.
fn batches(iterations: u64, count: usize) -> impl Iterator<Item = f64> {
    let calls = (100_000 / iterations.max(1)).clamp(1, 5_000);
    (0..count).map(move |_| {
        let start = Instant::now();
        for _ in 0..calls {
            compute(black_box(iterations));
        }
        start.elapsed().as_nanos() as f64 / calls as f64
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_nothing() {
        let line = Calibration {
            base: 1.0,
            slope: 1.25,
        };
        assert_eq!(line.work(0.0), Work::NONE);
        assert_eq!(time(Work::NONE), 0.0);
    }

    #[test]
    fn work_follows_the_line() {
        let line = Calibration {
            base: 1.0,
            slope: 2.0,
        };
        assert_eq!(line.work(101.0), Work(50));
        assert_eq!(line.work(0.5), Work(1));
    }

    #[test]
    fn measured_work_is_near_what_was_asked() {
        // Generous, and more than once: the test shares its machine with others.
        for wanted in [100.0, 1000.0] {
            let got: Vec<f64> = (0..10)
                .map(|_| time(Calibration::measure().work(wanted)))
                .collect();
            let near = |got: &f64| *got > wanted * 0.6 && *got < wanted * 3.0;
            assert!(got.iter().any(near), "asked for {wanted} ns, got {got:?}");
        }
    }
}
