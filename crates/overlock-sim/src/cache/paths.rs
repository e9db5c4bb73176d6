//! Travel times of requests and lines.

use rand::RngExt;

use super::cores::Cores;
use super::line::{Copies, Request};
use super::{Access, Cache};
use crate::machine::Place;
use crate::time::Time;

/// The parts of a transfer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Path {
    /// From the requester to the line's home.
    pub request: Time,
    /// From there to the owner or sharers, which may use the line until then.
    pub snoop: Time,
    /// From there to the requester.
    pub data: Time,
    /// Whether the next request need not wait for this one.
    pub pipelined: bool,
}

impl Cache {
    /// Returns when a request arrives at the line's home. One from beyond the home's last-level
    /// cache follows the line when it moves.
    pub(super) fn arrival(&self, line: usize, request: &Request) -> Time {
        let state = &self.lines[line];
        if self.has(line, request.core, request.access) {
            return request.requested_at.max(state.arrival);
        }
        let near = match &state.copies {
            Copies::None => true,
            Copies::Owned(_) => self.machine.share_cache(state.home, request.place),
            Copies::Shared(cores) => cores.meets(self.machine.sharing(request.place)),
        };
        let begins = if near {
            request.requested_at
        } else {
            request.requested_at.max(state.since)
        };
        begins + self.ways(line, request).request
    }

    /// Returns the travel times of a request and its answer.
    pub(super) fn path(&mut self, line: usize, request: &Request) -> Path {
        let path = self.ways(line, request);
        Path {
            snoop: self.vary(path.snoop),
            data: self.vary(path.data),
            ..path
        }
    }

    /// The same without random variation.
    fn ways(&self, line: usize, request: &Request) -> Path {
        let place = request.place;
        let state = &self.lines[line];
        let costs = &self.machine.costs;
        if self.has(line, request.core, request.access) {
            // The line was on its way to this core already.
            return Path::default();
        }
        let way = request.way;
        let whole = |time: Time| Path {
            request: time.scale(costs.request).scale(way),
            snoop: time.scale(costs.snoop),
            data: time.scale(1.0 - costs.request - costs.snoop).scale(way),
            pipelined: false,
        };
        match &state.copies {
            Copies::None => whole(costs.memory),
            Copies::Owned(_) => whole(self.machine.transfer(state.home, place)),
            Copies::Shared(cores) if request.access == Access::Read => {
                if self.machine.inclusive && cores.meets(self.machine.sharing(place)) {
                    Path {
                        request: costs.shared.half().scale(way),
                        snoop: Time::ZERO,
                        data: costs.shared.half().scale(way),
                        pipelined: true,
                    }
                } else {
                    whole(self.machine.transfer(state.home, place))
                }
            }
            // All copies have to be invalidated, the most distant one, too.
            Copies::Shared(cores) => whole(self.invalidation(cores, request.core, place)),
        }
    }

    /// Returns the time to invalidate all copies of other cores than `core`, which is at `place`.
    fn invalidation(&self, cores: &Cores, core: usize, place: Place) -> Time {
        self.machine
            .places()
            .filter(|&other| cores.meets_without(core, self.machine.cores_of(other)))
            .map(|other| self.machine.transfer(other, place))
            .max()
            .unwrap_or(self.machine.costs.shared)
    }

    fn vary(&mut self, time: Time) -> Time {
        let jitter = self.machine.costs.jitter;
        if jitter == 0.0 {
            return time;
        }
        time.scale(self.random.random_range(1.0 - jitter..=1.0 + jitter))
    }
}
