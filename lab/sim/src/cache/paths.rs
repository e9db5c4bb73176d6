//! Travel times of requests and lines.

use rand::RngExt;

use super::cores::Cores;
use super::line::{Copies, Request};
use super::{Access, Cache};
use crate::time::Time;

/// A transfer to a core that lacks the right for its access.
enum Transfer {
    /// It takes this long.
    Whole(Time),
    /// The last-level cache of a reader answers, and goes on to the next one.
    Pipelined,
}

/// The parts of a transfer, once the request is at the line's home.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Path {
    /// From there to the owner or sharers, which may use the line until then.
    pub snoop: Time,
    /// From there to the requester.
    pub data: Time,
    /// Whether the next request need not wait for this one.
    pub pipelined: bool,
}

/// The way of a read to the line's home, for all requests from a place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leg {
    /// Whether the home's last-level cache is that of the place.
    near: bool,
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

    /// They are to be those of this line.
    pub fn follow(&mut self, line: usize) {
        if self.line != line {
            self.line = line;
            self.of.fill(None);
        }
    }

    /// Returns the way of a read, if it is known.
    #[inline]
    pub fn known(&self, request: &Request) -> Option<Leg> {
        self.of[request.place as usize].filter(|_| !request.writes())
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
    /// cache follows the line when it moves.
    pub(super) fn arrival(&self, line: usize, request: &Request) -> Time {
        let state = &self.lines[line];
        if self.has(line, request.core as usize, request.access) {
            return request.requested_at.max(state.arrival);
        }
        self.leg(line, request).arrival(request, state.since)
    }

    /// The same. Remembers the ways of reads of the line.
    pub(super) fn arrival_along(&self, line: usize, request: &Request, legs: &mut Legs) -> Time {
        let has = self.has(line, request.core as usize, request.access);
        if has || request.writes() {
            // All copies but that of the own core have to be invalidated: its number matters.
            return self.arrival(line, request);
        }
        legs.follow(line);
        let leg = legs.known(request).unwrap_or_else(|| {
            let leg = self.leg(line, request);
            legs.of[request.place as usize] = Some(leg);
            leg
        });
        leg.arrival(request, self.lines[line].since)
    }

    fn leg(&self, line: usize, request: &Request) -> Leg {
        let state = &self.lines[line];
        let place = request.place as usize;
        let near = match &state.copies {
            Copies::None => true,
            Copies::Owned(_) => self.sites.share_cache(state.home, place),
            Copies::Shared(cores) => cores.meets(self.sites.area(place).sharing.clone()),
        };
        let length = match self.transfer(line, request) {
            Transfer::Whole(time) => time.scale(self.machine.costs.request),
            Transfer::Pipelined => self.machine.costs.shared.half(),
        };
        Leg { near, length }
    }

    /// Returns the travel times of a request and its answer.
    pub(super) fn path(&mut self, line: usize, request: &Request) -> Path {
        let path = if self.has(line, request.core as usize, request.access) {
            // The line was on its way to this core already.
            Path::default()
        } else {
            let way = request.way;
            let costs = &self.machine.costs;
            match self.transfer(line, request) {
                Transfer::Whole(time) => Path {
                    snoop: time.scale(costs.snoop),
                    data: time.scale(1.0 - costs.request - costs.snoop).scale(way),
                    pipelined: false,
                },
                Transfer::Pipelined => Path {
                    snoop: Time::ZERO,
                    data: self.machine.costs.shared.half().scale(way),
                    pipelined: true,
                },
            }
        };
        Path {
            snoop: self.vary_tenure(path.snoop),
            data: self.vary(path.data),
            ..path
        }
    }

    fn transfer(&self, line: usize, request: &Request) -> Transfer {
        let state = &self.lines[line];
        let place = request.place as usize;
        let machine = &self.machine;
        let meets = |cores: &Cores| cores.meets(self.sites.area(place).sharing.clone());
        Transfer::Whole(match &state.copies {
            Copies::None => machine.costs.memory,
            Copies::Shared(cores) if request.access != Access::Read => {
                self.invalidation(cores, request.core as usize, place)
            }
            Copies::Shared(cores) if machine.inclusive && meets(cores) => {
                return Transfer::Pipelined;
            }
            Copies::Shared(_) | Copies::Owned(_) => self.sites.transfer(state.home, place),
        })
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

    /// How long an owner keeps a wanted line: from nothing to twice the mean. With less variation
    /// an owner would keep it always, or never, for its next operation: a change of a cost by a
    /// tenth would then change rates by a factor of four.
    fn vary_tenure(&mut self, mean: Time) -> Time {
        match self.machine.costs.jitter {
            0.0 => mean,
            _ => mean.scale(self.random.random_range(0.0..=2.0)),
        }
    }

    fn vary(&mut self, time: Time) -> Time {
        let jitter = self.machine.costs.jitter;
        if jitter == 0.0 {
            return time;
        }
        time.scale(self.random.random_range(1.0 - jitter..=1.0 + jitter))
    }
}
