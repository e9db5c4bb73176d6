//! The ways between cores and lines, computed once: places take divisions.

use rand::RngExt;
use rand::seq::IteratorRandom;

use super::line::{Copies, Line, Request, Sharers};
use super::{Access, Random};
use crate::machine::Machine;
use crate::time::Time;

/// So many waiting requests are all looked at, and of more than that so many first. With 3 and with
/// 24 `ticket` on 256 threads is as fast, within 5 %.
const FEW: usize = 8;

/// The way between two places.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    /// The cost of a transfer.
    transfer: Time,
    pub shares_socket: bool,
}

/// A machine, its ways, and the numbers of its places.
#[derive(Debug)]
pub(super) struct Map {
    pub machine: Machine,
    /// The place of each core, and the core's number on the ring of its last-level cache.
    cores: Vec<(u32, u32)>,
    places: usize,
    ways: Vec<Way>,
    /// The ways between a core and a slice, by the difference of their numbers on the ring.
    ring: Vec<f64>,
    /// How long a request travels on each of `ways`, then an answer of the last-level cache of its
    /// core: for each way on the ring.
    travels: Vec<Time>,
}

impl Map {
    pub fn new(machine: &Machine) -> Self {
        let site = |core| {
            let place = machine.place_of(core);
            let number = place.socket * machine.clusters + place.cluster;
            (number as u32, machine.stop_of(core) as u32)
        };
        let costs = &machine.costs;
        let way = |from, to| Way {
            transfer: machine.transfer(from, to),
            shares_socket: from.socket == to.socket,
        };
        let all = |from| machine.places().map(move |to| way(from, to));
        let ways: Vec<Way> = machine.places().flat_map(all).collect();
        let request = |way: &Way| way.transfer.scale(costs.request);
        let answer = costs.shared.half();
        let on_ring = |travels: Time| machine.ways().map(move |way| travels.scale(way));
        let travels = ways.iter().map(request).chain([answer]);
        Self {
            travels: travels.flat_map(on_ring).collect(),
            cores: (0..machine.all_cores()).map(site).collect(),
            places: machine.places().count(),
            ways,
            ring: machine.ways().collect(),
            machine: machine.clone(),
        }
    }

    /// Returns the request of `core` for a line of this slice.
    #[inline]
    pub fn request(
        &self,
        at: Time,
        vcpu: usize,
        core: usize,
        line: usize,
        slice: usize,
    ) -> Request {
        let (place, stop) = self.cores[core];
        Request {
            vcpu: vcpu as u32,
            core: core as u32,
            line: line as u32,
            place,
            access: Access::Read,
            requested_at: at,
            distance: stop.abs_diff(slice as u32),
        }
    }

    /// Returns the length of its way on the ring, relative to the mean.
    pub fn on_ring(&self, request: &Request) -> f64 {
        self.ring[request.distance as usize]
    }

    /// Returns how long the answer of the last-level cache of its core travels.
    #[inline]
    pub fn answer(&self, request: &Request) -> Time {
        self.travels(self.ways.len(), request)
    }

    #[inline]
    fn travels(&self, way: usize, request: &Request) -> Time {
        self.travels[way * self.ring.len() + request.distance as usize]
    }

    /// Returns the way between the places of these numbers.
    pub fn way(&self, from: usize, to: usize) -> &Way {
        &self.ways[from * self.places + to]
    }

    /// Returns the ways from all places to this one.
    fn ways_to(&self, place: usize) -> impl Iterator<Item = &Way> {
        self.ways[place..].iter().step_by(self.places)
    }

    /// These cores share a line.
    pub fn sharers(&self, cores: [usize; 2]) -> Sharers {
        let mut sharers = Sharers {
            cores: vec![false; self.cores.len()],
            counts: vec![0; self.places],
        };
        for core in cores {
            sharers.insert(core, self.cores[core].0 as usize);
        }
        sharers
    }

    /// Whether a core of this socket shares a line.
    pub fn is_on_socket(&self, sharers: &Sharers, place: usize) -> bool {
        let mut counts = sharers.counts.iter().zip(self.ways_to(place));
        counts.any(|(&count, way)| count > 0 && way.shares_socket)
    }

    /// Returns when a request arrives at the line's home, unless the line changes until then. One
    /// from beyond the home's last-level cache follows the line when it moves.
    #[inline]
    pub fn arrival(&self, line: &Line, request: &Request) -> Time {
        let place = request.place as usize;
        let way = line.home * self.places + place;
        let (follows, travels) = match &line.copies {
            _ if line.has(request.core as usize, request.access) => {
                return request.requested_at.max(line.arrival);
            }
            Copies::Owned(_) => (line.home != place, self.travels(way, request)),
            copies => self.to_others(copies, way, *request),
        };
        let since = if follows { line.since } else { Time::ZERO };
        request.requested_at.max(since) + travels
    }

    /// Returns the number of a waiting request that has arrived, a random one, or when to look
    /// again. Mostly nearly all have arrived, and few have to be looked at.
    #[inline]
    pub fn next(&self, random: &mut Random, now: Time, line: &Line) -> Result<usize, Time> {
        let numbers = 0..line.queue.len();
        let is_here = |&number: &usize| self.arrival(line, &line.queue[number]) <= now;
        if line.free > now {
            return Err(self.due(now, line));
        }
        if numbers.len() > FEW {
            let mut chosen = (0..FEW).map(|_| random.random_range(numbers.clone()));
            if let Some(chosen) = chosen.find(is_here) {
                return Ok(chosen);
            }
        }
        let chosen = numbers.filter(is_here).choose(random);
        chosen.ok_or_else(|| self.due(now, line))
    }

    /// Returns when the next request may be served, or a time before that, if none is now.
    pub fn due(&self, now: Time, line: &Line) -> Time {
        if line.free > now && line.queue.len() > FEW {
            return line.free;
        }
        let arrivals = line.queue.iter().map(|request| self.arrival(line, request));
        arrivals.min().unwrap_or(Time::MAX).max(line.free)
    }

    /// Returns whether a request for a line without an owner follows it, and how long it travels.
    fn to_others(&self, copies: &Copies, way: usize, request: Request) -> (bool, Time) {
        let Copies::Shared(sharers) = copies else {
            return (false, self.part(self.machine.costs.memory, &request));
        };
        let near = sharers.are_near(request.place as usize);
        let travels = match request.access.is_load() {
            true if near && self.machine.inclusive => self.answer(&request),
            true => self.travels(way, &request),
            false => self.part(self.invalidation(sharers, &request), &request),
        };
        (!near, travels)
    }

    /// Returns the part of a transfer until the request is at the home of the line.
    fn part(&self, transfer: Time, request: &Request) -> Time {
        let mean = transfer.scale(self.machine.costs.request);
        mean.scale(self.on_ring(request))
    }

    /// Whether the last-level cache of a reader has a copy, and the reader's core has none: it
    /// answers by itself.
    #[inline]
    pub fn is_near(&self, line: &Line, request: &Request) -> bool {
        let Copies::Shared(sharers) = &line.copies else {
            return false;
        };
        let is_near = self.machine.inclusive && sharers.are_near(request.place as usize);
        is_near && request.access.is_load() && !sharers.cores[request.core as usize]
    }

    /// Returns what a transfer takes to a core that lacks the right for its access.
    pub fn transfer(&self, line: &Line, request: &Request) -> Time {
        match &line.copies {
            Copies::None => self.machine.costs.memory,
            Copies::Shared(sharers) if !request.access.is_load() => {
                self.invalidation(sharers, request)
            }
            _ => self.way(line.home, request.place as usize).transfer,
        }
    }

    /// Returns the time to invalidate all copies of other cores than the requester's.
    fn invalidation(&self, sharers: &Sharers, request: &Request) -> Time {
        let place = request.place as usize;
        let own = u16::from(sharers.cores[request.core as usize]);
        let has_others = |(other, count)| count > if other == place { own } else { 0 };
        let copies = sharers.counts.iter().copied().enumerate();
        let costs = copies
            .zip(self.ways_to(place))
            .filter(|&(copies, _)| has_others(copies))
            .map(|(_, way)| way.transfer);
        costs.max().unwrap_or(self.machine.costs.shared)
    }
}
