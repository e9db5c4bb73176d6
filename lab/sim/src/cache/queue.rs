//! The requests that wait for a line.

use super::Access;
use super::line::Request;
use crate::time::Time;

const BITS: usize = u64::BITS as usize;

/// The requests, and when each arrives at the line's home, unless that changes.
///
/// One is taken from anywhere, and the last one moves to its place. Of one that has arrived it does
/// not matter when.
#[derive(Debug, Default)]
pub(super) struct Queue {
    arrivals: Vec<Time>,
    requests: Vec<Request>,
    /// Those that had arrived when somebody asked last, their number, and a time before which no
    /// other arrives.
    here: Vec<u64>,
    count: usize,
    next: Time,
    /// No request arrives later. Mostly all of them have arrived, and none has to be looked at.
    latest: Time,
    /// How many do not only read.
    writers: usize,
}

impl Queue {
    #[inline(always)]
    pub fn push(&mut self, request: Request, arrives: Time) {
        let index = self.arrivals.len();
        if index == 0 {
            (self.latest, self.next) = (Time::ZERO, Time::MAX);
        }
        if index.is_multiple_of(BITS) {
            self.here.push(0);
        }
        self.expect(arrives);
        self.writers += usize::from(request.writes());
        self.arrivals.push(arrives);
        self.requests.push(request);
    }

    /// A request arrives at this time.
    fn expect(&mut self, arrives: Time) {
        self.latest = self.latest.max(arrives);
        self.next = self.next.min(arrives);
    }

    pub fn is_empty(&self) -> bool {
        self.arrivals.is_empty()
    }

    pub fn len(&self) -> usize {
        self.arrivals.len()
    }

    /// Returns the request at this index.
    pub fn get(&self, index: usize) -> &Request {
        &self.requests[index]
    }

    /// Whether all have arrived.
    pub fn are_here(&self, now: Time) -> bool {
        self.latest <= now
    }

    /// Whether some do not only read.
    pub fn has_writers(&self) -> bool {
        self.writers > 0
    }

    /// Whether all that have not arrived arrive at these times.
    #[cfg(test)]
    pub fn arrive_as(&self, now: Time, arrival: impl FnMut(&Request) -> Time) -> bool {
        let expected = self.requests.iter().map(arrival);
        let mut both = self.arrivals.iter().zip(expected);
        both.all(|(&at, expected)| at.max(now) == expected.max(now))
    }

    /// Returns the number of those that have arrived, and when the first arrives, or `now` if it
    /// has.
    pub fn arrived(&mut self, now: Time) -> Option<(usize, Time)> {
        if self.is_empty() {
            return None;
        }
        if self.latest <= now {
            return Some((self.arrivals.len(), now));
        }
        if self.next <= now {
            self.look(now);
        }
        Some(match self.count {
            0 => (0, self.next),
            count => (count, now),
        })
    }

    /// Looks which have arrived.
    fn look(&mut self, now: Time) {
        let (mut count, mut next) = (0, Time::MAX);
        for (here, arrivals) in self.here.iter_mut().zip(self.arrivals.chunks(BITS)) {
            let mut bits = 0;
            for (bit, &at) in arrivals.iter().enumerate() {
                let is_here = at <= now;
                bits |= u64::from(is_here) << bit;
                next = next.min(if is_here { Time::MAX } else { at });
            }
            count += bits.count_ones() as usize;
            *here = bits;
        }
        (self.count, self.next) = (count, next);
    }

    /// The request at this index is not there any more, or arrives at another time.
    fn forget(&mut self, index: usize) {
        let bit = 1 << (index % BITS);
        let here = &mut self.here[index / BITS];
        if *here & bit != 0 {
            *here &= !bit;
            self.count -= 1;
        } else if self.arrivals[index] == self.next {
            // Another may be the next.
            self.next = Time::ZERO;
        }
    }

    /// Takes one of those that have arrived.
    pub fn take(&mut self, now: Time, mut chosen: usize) -> Request {
        if self.latest <= now {
            return self.remove(chosen);
        }
        let mut words = self.here.iter().copied().enumerate();
        let (word, mut here) = words
            .find(|(_, here)| {
                let count = here.count_ones() as usize;
                let is_in = chosen < count;
                chosen -= if is_in { 0 } else { count };
                is_in
            })
            .expect("so many have arrived");
        for _ in 0..chosen {
            here &= here - 1;
        }
        self.remove(word * BITS + here.trailing_zeros() as usize)
    }

    /// Takes a load, if all have arrived. Call [`Self::have_arrived`] after the last one.
    #[inline]
    pub fn take_load(&mut self, index: usize) {
        self.arrivals.swap_remove(index);
        self.requests.swap_remove(index);
    }

    /// Loads were taken.
    pub fn have_arrived(&mut self) {
        self.here.truncate(self.arrivals.len().div_ceil(BITS));
        self.forget_arrivals();
    }

    /// Takes the request of `vcpu` for an access of its own.
    pub fn withdraw(&mut self, vcpu: usize) {
        let is_its = |request: &Request| request.vcpu as usize == vcpu && !request.buffered;
        if let Some(index) = self.requests.iter().position(is_its) {
            self.remove(index);
        }
    }

    fn remove(&mut self, index: usize) -> Request {
        self.forget(index);
        let last = self.arrivals.len() - 1;
        let is_here = self.here[last / BITS] >> (last % BITS) & 1;
        self.here[last / BITS] &= !(1 << (last % BITS));
        if index < last {
            self.here[index / BITS] |= is_here << (index % BITS);
        }
        self.here.truncate(last.div_ceil(BITS));
        // One of them is chosen at random: their order does not matter.
        self.arrivals.swap_remove(index);
        let request = self.requests.swap_remove(index);
        self.writers -= usize::from(request.writes());
        request
    }

    /// Updates the arrivals of all requests.
    pub fn redirect_all(&mut self, mut arrival: impl FnMut(&Request) -> Time) {
        self.latest = Time::ZERO;
        for (at, request) in self.arrivals.iter_mut().zip(&self.requests) {
            *at = arrival(request);
            self.latest = self.latest.max(*at);
        }
        self.forget_arrivals();
    }

    /// Somebody has to look which have arrived.
    fn forget_arrivals(&mut self) {
        self.here.fill(0);
        (self.count, self.next) = (0, Time::ZERO);
    }

    /// Updates the arrivals of some.
    pub fn redirect(
        &mut self,
        is_affected: impl Fn(&Request) -> bool,
        mut arrival: impl FnMut(&Request) -> Time,
    ) {
        for index in 0..self.requests.len() {
            let request = &self.requests[index];
            if is_affected(request) {
                let arrives = arrival(request);
                self.forget(index);
                self.arrivals[index] = arrives;
                self.expect(arrives);
            }
        }
    }
}

impl Request {
    /// Whether it does not only read.
    pub fn writes(&self) -> bool {
        self.access != Access::Read
    }
}
