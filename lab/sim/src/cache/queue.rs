//! The requests that wait for a line.

use std::ops::Range;

use super::Access;
use super::cores::Cores;
use super::line::Request;
use crate::machine::MOST_CORES;
use crate::time::Time;

/// No request.
const NONE: u32 = u32::MAX;

/// The requests, and when each arrives at the line's home, unless that changes.
///
/// One is taken from anywhere, and the last one moves to its place. Each core has a list of its
/// requests: mostly a line moves for few cores.
#[derive(Debug, Default)]
pub(super) struct Queue {
    arrivals: Vec<Time>,
    /// The numbers of the requests, which are indices into `entries`.
    numbers: Vec<u32>,
    entries: Vec<Entry>,
    /// The numbers that no waiting request has.
    free: Vec<u32>,
    /// No request arrives later. Mostly all of them have arrived, and none has to be looked at.
    latest: Time,
    /// The cores of the requests, and the first request of each.
    cores: Cores,
    firsts: Vec<u32>,
    /// How many do not only read.
    writers: usize,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    request: Request,
    /// Its place among the arrivals.
    index: u32,
    /// The next request of the same core.
    next: u32,
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
}

impl Queue {
    pub fn push(&mut self, request: Request, arrives: Time) {
        if self.is_empty() {
            self.latest = Time::ZERO;
        }
        self.latest = self.latest.max(arrives);
        let core = request.core;
        if self.firsts.len() <= core {
            self.firsts.resize(core + 1, NONE);
        }
        self.cores.insert(core);
        self.writers += usize::from(writes(&request));
        let number = self.free.pop().unwrap_or(self.entries.len() as u32);
        let entry = Entry {
            request,
            index: self.numbers.len() as u32,
            next: std::mem::replace(&mut self.firsts[core], number),
        };
        match self.entries.get_mut(number as usize) {
            Some(place) => *place = entry,
            None => self.entries.push(entry),
        }
        self.arrivals.push(arrives);
        self.numbers.push(number);
    }

    pub fn is_empty(&self) -> bool {
        self.arrivals.is_empty()
    }

    /// Whether all arrive at these times.
    #[cfg(test)]
    pub fn arrive_as(&self, arrival: impl Fn(&Request) -> Time) -> bool {
        let requests = self.numbers.iter().map(|&number| self.request(number));
        requests.map(arrival).eq(self.arrivals.iter().copied())
    }

    fn request(&self, number: u32) -> &Request {
        &self.entries[number as usize].request
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
        self.remove(index)
    }

    /// Takes the request of `vcpu` for an access of its own.
    pub fn withdraw(&mut self, vcpu: usize) {
        let is_its = |&number: &u32| {
            let request = self.request(number);
            request.vcpu == vcpu && !request.buffered
        };
        if let Some(index) = self.numbers.iter().position(is_its) {
            self.remove(index);
        }
    }

    fn remove(&mut self, index: usize) -> Request {
        // One of them is chosen at random: their order does not matter.
        self.arrivals.swap_remove(index);
        let number = self.numbers.swap_remove(index);
        if let Some(&moved) = self.numbers.get(index) {
            self.entries[moved as usize].index = index as u32;
        }
        self.free.push(number);
        let Entry { request, next, .. } = self.entries[number as usize];
        self.writers -= usize::from(writes(&request));
        let first = &mut self.firsts[request.core];
        if *first == number {
            *first = next;
            if next == NONE {
                self.cores.remove(request.core);
            }
        } else {
            let mut before = *first as usize;
            while self.entries[before].next != number {
                before = self.entries[before].next as usize;
            }
            self.entries[before].next = next;
        }
        request
    }

    /// Whether there may be such a request.
    pub fn has(&self, affected: &Affected) -> bool {
        affected.writers && self.writers > 0 || self.cores.meets(affected.cores.clone())
    }

    /// Updates the arrivals of these requests.
    pub fn redirect(&mut self, affected: &Affected, mut arrival: impl FnMut(&Request) -> Time) {
        let all = affected.cores == Affected::ALL.cores;
        if all {
            self.latest = Time::ZERO;
        }
        if all || affected.writers && self.writers > 0 {
            for (arrives, &number) in self.arrivals.iter_mut().zip(&self.numbers) {
                let request = &self.entries[number as usize].request;
                if affected.cores.contains(&request.core) || writes(request) {
                    *arrives = arrival(request);
                    self.latest = self.latest.max(*arrives);
                }
            }
            return;
        }
        let end = affected.cores.end.min(self.firsts.len());
        for core in affected.cores.start..end {
            let mut number = self.firsts[core];
            while number != NONE {
                let entry = &self.entries[number as usize];
                let arrives = arrival(&entry.request);
                self.arrivals[entry.index as usize] = arrives;
                self.latest = self.latest.max(arrives);
                number = entry.next;
            }
        }
    }
}

/// Whether a request does not only read.
fn writes(request: &Request) -> bool {
    request.access != Access::Read
}
