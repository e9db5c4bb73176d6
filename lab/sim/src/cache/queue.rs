//! The requests that wait for a line, in the order in which they were made.

use std::ops::Range;

use super::Access;
use super::cores::Cores;
use super::line::Request;
use crate::machine::MOST_CORES;
use crate::time::Time;

/// The requests, and when each arrives at the line's home, unless that changes.
///
/// One is taken from anywhere, and those behind it move up: what moves is small.
#[derive(Debug, Default)]
pub(super) struct Queue {
    arrivals: Vec<Time>,
    requesters: Vec<Requester>,
    /// Their numbers, which are indices into `requests`.
    numbers: Vec<u32>,
    requests: Vec<Request>,
    /// The numbers that no waiting request has.
    free: Vec<u32>,
    /// No request arrives later. Mostly all of them have arrived, and none has to be looked at.
    latest: Time,
    /// The cores of the requests, and those of them that may have made several of these.
    cores: Cores,
    several: Cores,
}

/// The core of a request, and whether that only reads.
#[derive(Clone, Copy, Debug)]
struct Requester(u16);

const _: () = assert!(2 * MOST_CORES <= 1 << u16::BITS);

impl Requester {
    fn new(request: &Request) -> Self {
        Self((request.core << 1) as u16 | u16::from(request.access == Access::Read))
    }

    fn core(self) -> usize {
        usize::from(self.0 >> 1)
    }

    fn reads(self) -> bool {
        self.0 & 1 != 0
    }
}

/// The requests whose arrivals may have changed.
#[derive(Debug)]
pub(super) struct Affected {
    /// Those of these cores.
    pub cores: Range<usize>,
    /// And those that do not only read.
    pub writers: bool,
}

impl Affected {
    /// All requests.
    pub const ALL: Self = Self {
        cores: 0..MOST_CORES,
        writers: true,
    };

    /// Those of one core.
    pub fn of(core: usize) -> Self {
        Self {
            cores: core..core + 1,
            writers: false,
        }
    }

    fn has(&self, requester: Requester) -> bool {
        self.cores.contains(&requester.core()) || self.writers && !requester.reads()
    }
}

impl Queue {
    pub fn push(&mut self, request: Request, arrives: Time) {
        if self.is_empty() {
            self.latest = Time::ZERO;
        }
        self.latest = self.latest.max(arrives);
        if self.cores.contains(request.core) {
            self.several.insert(request.core);
        }
        self.cores.insert(request.core);
        self.arrivals.push(arrives);
        self.requesters.push(Requester::new(&request));
        let number = self.free.pop().unwrap_or(self.requests.len() as u32);
        match self.requests.get_mut(number as usize) {
            Some(place) => *place = request,
            None => self.requests.push(request),
        }
        self.numbers.push(number);
    }

    pub fn is_empty(&self) -> bool {
        self.arrivals.is_empty()
    }

    /// Whether all arrive at these times.
    pub fn arrive_as(&self, arrival: impl Fn(&Request) -> Time) -> bool {
        let requests = self.numbers.iter().map(|&n| &self.requests[n as usize]);
        requests.map(arrival).eq(self.arrivals.iter().copied())
    }

    /// Returns when the first arrives; `now` if it has arrived.
    pub fn earliest(&self, now: Time) -> Option<Time> {
        if self.latest <= now && !self.is_empty() {
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
        let core = self.requesters.remove(index).core();
        let is_there = |requester: &Requester| requester.core() == core;
        if !self.several.contains(core) || !self.requesters.iter().any(is_there) {
            self.cores.remove(core);
            self.several.remove(core);
        }
        let number = self.numbers.remove(index);
        self.free.push(number);
        self.requests[number as usize]
    }

    /// Whether there may be such a request.
    pub fn has(&self, affected: &Affected) -> bool {
        match affected.writers {
            true => !self.is_empty(),
            false => self.cores.meets(affected.cores.clone()),
        }
    }

    /// Updates the arrivals of these requests.
    pub fn redirect(&mut self, affected: &Affected, mut arrival: impl FnMut(&Request) -> Time) {
        if affected.cores == Affected::ALL.cores {
            self.latest = Time::ZERO;
        }
        let requests = self.requesters.iter().zip(&self.numbers);
        for (arrives, (&requester, &number)) in self.arrivals.iter_mut().zip(requests) {
            if affected.has(requester) {
                *arrives = arrival(&self.requests[number as usize]);
                self.latest = self.latest.max(*arrives);
            }
        }
    }
}
