//! The measured time of a simulation: what comes after a warm-up, in windows.
//!
//! At the start as many vCPUs run as there are CPUs, for a whole time slice. So a lock whose
//! waiters lose their CPUs shows nothing of that. The measured time begins once each vCPU has had a
//! CPU twice, sleeps, or runs on a CPU that no other wants. It ends when the rates of its windows
//! agree, or after [`MOST`] times its length. Meanwhile windows grow: a lock that has collapsed
//! makes few operations in each.

use super::events::Event;
use super::state::Engine;
use super::vcpu::Doing;
use crate::account::Counts;
use crate::time::Time;

/// The measured time is at most so many times as long as it was to be; so many times as long again
/// while there were fewer than these operations, which take little time to simulate.
const MOST: u64 = 8;
const FEW: u64 = 10_000;
/// Windows agree if the standard error of their mean is at most this share of it.
const AGREE: f64 = 0.1;
/// How long a simulation waits for the end of the warm-up, in warm-ups.
const PATIENCE: u64 = 4;
/// The interval at which it looks whether the warm-up is over.
const LOOK: Time = Time::ms(1);

/// How the measured time begins and is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// The shortest warm-up. It takes at most four times as long.
    pub warm_up: Time,
    /// The number of windows, each an equal part of the measured time; up to twice as many if that
    /// has to be longer.
    pub count: usize,
}

/// The figures of a simulation's windows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// When the measured time began.
    pub warm_up: Time,
    /// Whether each vCPU had had its turns by then.
    pub is_warm: bool,
    /// The length of a window.
    pub window: Time,
    /// Operations in each window.
    pub operations: Vec<u64>,
}

impl Measured {
    /// Whether the figures would be about the same in a longer simulation.
    pub fn is_settled(&self) -> bool {
        self.is_warm && agree(&self.operations)
    }

    /// Makes one window of each two.
    fn merge(&mut self) {
        self.window = self.window.times(2);
        let two = self.operations.chunks(2);
        self.operations = two.map(|two| two.iter().sum()).collect();
    }

    /// The rate in each window, in operations a second.
    pub fn rates(&self) -> Vec<f64> {
        let seconds = self.window.as_ns_f64() / 1e9;
        let operations = self.operations.iter();
        operations.map(|&count| count as f64 / seconds).collect()
    }
}

/// Whether the mean of these counts is known well enough.
fn agree(counts: &[u64]) -> bool {
    let number = counts.len() as f64;
    let mean = counts.iter().sum::<u64>() as f64 / number;
    let squares = counts.iter().map(|&count| (count as f64 - mean).powi(2));
    let error = (squares.sum::<f64>() / (number - 1.0) / number).sqrt();
    mean > 0.0 && (counts.len() == 1 || error <= AGREE * mean)
}

impl Engine {
    /// Plans the measured time, which takes so long.
    pub fn plan_measurement(&mut self, windows: Option<Windows>) {
        let length = self.stop_after;
        let Some(windows) = windows else {
            self.counts_anew();
            return self.plan(length, Event::Stop);
        };
        let measured = self.measured.insert(Measured::default());
        measured.window = Time::ps(length.as_ps() / windows.count as u64);
        self.longest = length.times(MOST);
        self.stop_after = windows.warm_up.times(PATIENCE) + length.times(2 * MOST * MOST) + LOOK;
        self.plan(windows.warm_up, Event::Begin(windows));
    }

    /// The warm-up may be over.
    pub fn begins(&mut self, windows: Windows) {
        let is_warm = (0..self.fibres).all(|vcpu| self.is_warm(vcpu));
        if !is_warm && self.now < windows.warm_up.times(PATIENCE) {
            return self.plan(self.now + LOOK, Event::Begin(windows));
        }
        self.counts_anew();
        self.performed = self.operations();
        let measured = self.measured.get_or_insert_default();
        (measured.warm_up, measured.is_warm) = (self.now, is_warm);
        let end = self.now + measured.window;
        self.plan(end, Event::Window(windows));
    }

    /// The measured time begins.
    fn counts_anew(&mut self) {
        self.before = Some((self.now, self.accounts()));
        (self.counts, self.lock_events) = (Counts::default(), [0; _]);
        self.cache.forget_traffic();
    }

    /// A window is over.
    pub fn window_ends(&mut self, windows: Windows) {
        let operations = self.operations();
        let before = std::mem::replace(&mut self.performed, operations);
        let measured = self.measured.get_or_insert_default();
        measured.operations.push(operations - before);
        let number = measured.operations.len();
        let longer = if operations < FEW { MOST } else { 1 };
        let is_left = self.now < measured.warm_up + self.longest.times(longer);
        if number < windows.count || is_left && !agree(&measured.operations) {
            if number == 2 * windows.count {
                measured.merge();
            }
            let end = self.now + measured.window;
            return self.plan(end, Event::Window(windows));
        }
        self.stop_after = self.now;
        self.at_stop = Some(self.figures());
    }

    /// The operations of all vCPUs so far, as they have said.
    fn operations(&self) -> u64 {
        self.vcpus.iter().map(|vcpu| vcpu.performed).sum()
    }

    /// Whether a vCPU has had a CPU twice, or would not get one more often if there were more.
    fn is_warm(&self, vcpu: usize) -> bool {
        let state = &self.vcpus[vcpu];
        match state.doing {
            _ if state.dispatches > 1 => true,
            Doing::Asleep | Doing::Ended => true,
            Doing::Off { .. } => false,
            _ => self.schedule.waiting(self.schedule.cpu(vcpu)) == 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails where a rate that falls, or comes in bursts, counts as settled.
    #[test]
    fn windows_agree_if_their_mean_is_known() {
        assert!(agree(&[100, 104, 97, 99, 101]));
        assert!(!agree(&[1600, 5, 6, 5, 6]), "a start that was too fast");
        assert!(!agree(&[0, 0, 0, 90, 0]), "a burst");
        assert!(!agree(&[0, 0, 0, 0, 0]), "nothing is known of its rate");
        assert!(agree(&[6, 7, 6, 5, 8, 6, 6]), "few operations, evenly");
    }
}
