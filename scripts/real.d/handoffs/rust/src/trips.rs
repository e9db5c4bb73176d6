//! Round trips in a limited time.

use std::time::{Duration, Instant};

/// The numbers 0, 1, 2 and so on, until the time is over.
#[derive(Debug)]
pub struct Trips {
    start: Instant,
    limit: Duration,
    count: u64,
}

impl Trips {
    pub fn new(seconds: u64) -> Self {
        Self {
            start: Instant::now(),
            limit: Duration::from_secs(seconds),
            count: 0,
        }
    }

    /// Prints the rate. So many answers there have been.
    pub fn end(self, answers: u64) {
        let took = self.start.elapsed().as_secs_f64();
        if answers == self.count {
            println!("per second: {:.0}", self.count as f64 / took);
        } else {
            println!("wrong: {} questions, {answers} answers", self.count);
            std::process::exit(1);
        }
    }
}

impl Iterator for Trips {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        if self.start.elapsed() >= self.limit {
            return None;
        }
        self.count += 1;
        Some(self.count - 1)
    }
}
