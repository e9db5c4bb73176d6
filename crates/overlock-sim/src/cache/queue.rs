//! The requests that wait for a line, in the order in which they were made.

use super::line::Request;
use crate::time::Time;

/// The requests, and when each arrives at the line's home, unless that changes. A line that is
/// served looks at all of these times, so they lie next to each other.
#[derive(Debug, Default)]
pub(super) struct Queue {
    requests: Vec<Request>,
    arrivals: Vec<Time>,
}

impl Queue {
    pub fn push(&mut self, request: Request, arrives: Time) {
        self.requests.push(request);
        self.arrivals.push(arrives);
    }

    /// Returns when the first arrives.
    pub fn earliest(&self) -> Option<Time> {
        self.arrivals.iter().copied().min()
    }

    /// Returns the number of those that have arrived.
    pub fn arrived(&self, now: Time) -> usize {
        self.arrivals
            .iter()
            .filter(|&&arrives| arrives <= now)
            .count()
    }

    /// Takes one of those that have arrived.
    pub fn take(&mut self, now: Time, chosen: usize) -> Request {
        let arrived = (0..self.arrivals.len()).filter(|&index| self.arrivals[index] <= now);
        let index = { arrived }.nth(chosen).expect("so many have arrived");
        self.arrivals.remove(index);
        self.requests.remove(index)
    }

    /// Updates the arrivals of all, or only of those of one core.
    pub fn redirect(&mut self, only: Option<usize>, mut arrival: impl FnMut(&Request) -> Time) {
        for (request, arrives) in self.requests.iter().zip(&mut self.arrivals) {
            if only.is_none_or(|core| core == request.core) {
                *arrives = arrival(request);
            }
        }
    }
}
