//! Travel times of requests and lines.

use rand::{Rng, RngExt};

use super::cores::Cores;
use super::line::{Copies, Request};
use super::{Cache, Random};
use crate::machine::Costs;
use crate::time::Time;

/// The parts of a transfer, once the request is at the line's home.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Path {
    /// From there to the owner or sharers, which may use the line until then.
    pub snoop: Time,
    /// From there to the requester.
    pub data: Time,
}

/// The way of a read to the line's home, for all requests from a place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leg {
    /// Whether the home's last-level cache, or one that has a copy, is that of the place.
    pub near: bool,
    /// The mean length.
    length: Time,
}

impl Leg {
    /// When a request arrives at the home, which that is since then.
    #[inline]
    pub fn arrival(self, request: &Request, since: Time) -> Time {
        let begins = if self.near {
            request.requested_at
        } else {
            request.requested_at.max(since)
        };
        begins + self.length.scale(request.way)
    }
}

/// The ways of reads of one line, as far as they are known, by the numbers of places.
#[derive(Debug, Default)]
pub(super) struct Legs {
    line: usize,
    of: Vec<Option<Leg>>,
}

impl Legs {
    /// Those of no line, from so many places.
    pub fn new(places: usize) -> Self {
        Self {
            line: usize::MAX,
            of: vec![None; places],
        }
    }

    /// Returns the way of a read of this line, if it is known.
    #[inline]
    pub fn known(&self, line: usize, request: &Request) -> Option<Leg> {
        let leg = self.of[request.place as usize];
        leg.filter(|_| self.line == line && !request.writes())
    }

    /// The way of a read of this line is this one.
    fn remember(&mut self, line: usize, request: &Request, leg: Leg) {
        if self.line != line {
            self.line = line;
            self.of.fill(None);
        }
        self.of[request.place as usize] = Some(leg);
    }

    /// Forgets those of a line that has moved.
    pub fn forget(&mut self, line: usize) {
        if self.line == line {
            self.of.fill(None);
        }
    }
}

impl Cache {
    /// Returns when a request arrives at the line's home. One from beyond the home's last-level
    /// cache follows the line when it moves. Remembers the ways of reads.
    #[inline]
    pub(super) fn arrival(&mut self, line: usize, request: &Request) -> Time {
        let state = &self.lines[line];
        if self.has(line, request.core as usize, request.access) {
            return request.requested_at.max(state.arrival);
        }
        self.arrival_of_missing(line, request)
    }

    /// The same of a request whose core lacks the right for its access.
    #[inline(always)]
    pub(super) fn arrival_of_missing(&mut self, line: usize, request: &Request) -> Time {
        let since = self.lines[line].since;
        match self.legs.known(line, request) {
            Some(leg) => leg.arrival(request, since),
            None => self.learn_leg(line, request).arrival(request, since),
        }
    }

    /// Finds out the way of a request, and remembers it for other reads from the place. A write
    /// invalidates all copies but that of its core, so its way is its own.
    #[cold]
    fn learn_leg(&mut self, line: usize, request: &Request) -> Leg {
        let leg = self.leg(line, request);
        if !request.writes() {
            self.legs.remember(line, request, leg);
        }
        leg
    }

    fn leg(&self, line: usize, request: &Request) -> Leg {
        let state = &self.lines[line];
        let place = request.place as usize;
        let near = match &state.copies {
            Copies::None => true,
            Copies::Owned(_) => self.sites.share_cache(state.home, place),
            Copies::Shared(cores) => self.is_copied_near(cores, request.place),
        };
        let is_shared = matches!(state.copies, Copies::Shared(_));
        let length = match near && is_shared && self.machine.inclusive && !request.writes() {
            true => self.machine.costs.shared.half(),
            false => self
                .transfer(line, request)
                .scale(self.machine.costs.request),
        };
        Leg { near, length }
    }

    /// Whether the last-level cache of a reader has a copy, and the reader's core has none: it
    /// answers by itself.
    pub(super) fn is_near(&mut self, line: usize, request: &Request) -> bool {
        match &self.lines[line].copies {
            Copies::Shared(cores) if self.machine.inclusive && !request.writes() => {
                let has = cores.contains(request.core as usize);
                let known = self.legs.known(line, request);
                !has && known.unwrap_or_else(|| self.learn_leg(line, request)).near
            }
            _ => false,
        }
    }

    /// Whether one of these cores has its last-level cache in common with the place.
    fn is_copied_near(&self, cores: &Cores, place: u32) -> bool {
        cores.meets(self.sites.area(place as usize).sharing.clone())
    }

    /// Returns the travel times of a request and its answer.
    pub(super) fn path(&mut self, line: usize, request: &Request) -> Path {
        let has = self.has(line, request.core as usize, request.access);
        let time = match has {
            // The line was on its way to this core already.
            true => Time::ZERO,
            false => self.transfer(line, request),
        };
        let costs = &self.machine.costs;
        let (snoop, data) = (costs.snoop, 1.0 - costs.request - costs.snoop);
        Path {
            snoop: vary_tenure(&mut self.random, costs, time.scale(snoop)),
            data: vary(&mut self.random, costs, time.scale(data).scale(request.way)),
        }
    }

    /// Returns what a transfer takes to a core that lacks the right for its access.
    fn transfer(&self, line: usize, request: &Request) -> Time {
        let state = &self.lines[line];
        let place = request.place as usize;
        match &state.copies {
            Copies::None => self.machine.costs.memory,
            Copies::Shared(cores) if request.writes() => {
                self.invalidation(cores, request.core as usize, place)
            }
            Copies::Shared(_) | Copies::Owned(_) => self.sites.transfer(state.home, place),
        }
    }

    /// Returns the time to invalidate all copies of other cores than `core`, which is at `place`.
    fn invalidation(&self, cores: &Cores, core: usize, place: usize) -> Time {
        self.sites
            .transfers_to(place)
            .filter(|(other, _)| cores.meets_without(core, other.cores.clone()))
            .map(|(_, time)| time)
            .max()
            .unwrap_or(self.machine.costs.shared)
    }
}

/// Returns how long the answer of a last-level cache travels to a reader.
pub(super) fn way_back(random: &mut Random, costs: &Costs, request: &Request) -> Time {
    if costs.jitter != 0.0 {
        // Its snoop takes no time, but is drawn as all are: the figures of the score depend on it.
        random.next_u64();
    }
    vary(random, costs, costs.shared.half().scale(request.way))
}

/// How long an owner keeps a wanted line: from nothing to twice the mean. With less variation an
/// owner would keep it always, or never, for its next operation: a change of a cost by a tenth
/// would then change rates by a factor of four.
fn vary_tenure(random: &mut Random, costs: &Costs, mean: Time) -> Time {
    match costs.jitter {
        0.0 => mean,
        _ => mean.scale(random.random_range(0.0..=2.0)),
    }
}

fn vary(random: &mut Random, costs: &Costs, time: Time) -> Time {
    match costs.jitter {
        0.0 => time,
        jitter => time.scale(random.random_range(1.0 - jitter..=1.0 + jitter)),
    }
}
