//! The requests that wait for a line, in the order in which they were made.

use super::cores::Cores;
use super::line::Request;
use crate::time::Time;

/// The requests, and when each arrives at the line's home, unless that changes.
#[derive(Debug, Default)]
pub(super) struct Queue {
    requests: Vec<Request>,
    arrivals: Vec<Time>,
    /// No request arrives later. Mostly all of them have arrived, and none has to be looked at.
    latest: Time,
    /// The cores of the requests, and whether one may have made two, since the queue was empty.
    cores: Cores,
    twice: bool,
}

impl Queue {
    pub fn push(&mut self, request: Request, arrives: Time) {
        if self.is_empty() {
            (self.cores, self.twice) = (Cores::default(), false);
            self.latest = Time::ZERO;
        }
        self.twice |= self.cores.contains(request.core);
        self.cores.insert(request.core);
        self.latest = self.latest.max(arrives);
        self.requests.push(request);
        self.arrivals.push(arrives);
    }

    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Whether all arrive at these times.
    pub fn arrive_as(&self, arrival: impl Fn(&Request) -> Time) -> bool {
        self.requests
            .iter()
            .map(arrival)
            .eq(self.arrivals.iter().copied())
    }

    /// Returns when the first arrives; `now` if it has arrived.
    pub fn earliest(&self, now: Time) -> Option<Time> {
        if self.latest <= now && !self.arrivals.is_empty() {
            return Some(now);
        }
        self.arrivals.iter().copied().min()
    }

    /// Returns the number of those that have arrived.
    pub fn arrived(&self, now: Time) -> usize {
        if self.latest <= now {
            return self.arrivals.len();
        }
        self.arrivals.iter().filter(|&&at| at <= now).count()
    }

    /// Takes one of those that have arrived.
    pub fn take(&mut self, now: Time, chosen: usize) -> Request {
        let index = if self.latest <= now {
            chosen
        } else {
            let mut arrived = (0..self.arrivals.len()).filter(|&index| self.arrivals[index] <= now);
            arrived.nth(chosen).expect("so many have arrived")
        };
        self.arrivals.remove(index);
        self.requests.remove(index)
    }

    /// Whether a core may have made two of the requests.
    pub fn has_doubles(&self) -> bool {
        self.twice
    }

    /// Updates the arrivals of all, or only of those of one core.
    pub fn redirect(&mut self, only: Option<usize>, mut arrival: impl FnMut(&Request) -> Time) {
        self.latest = Time::ZERO;
        for (request, arrives) in self.requests.iter().zip(&mut self.arrivals) {
            if only.is_none_or(|core| core == request.core) {
                *arrives = arrival(request);
            }
            self.latest = self.latest.max(*arrives);
        }
    }
}
