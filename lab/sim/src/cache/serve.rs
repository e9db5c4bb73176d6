//! Service of the requests that wait for a line.

use std::ops::Range;

use rand::RngExt;

use super::cores::Cores;
use super::line::{Copies, Request};
use super::{Access, Cache, Signal};
use crate::time::Time;

/// When a request is due.
#[derive(Clone, Copy, Debug)]
pub enum Due {
    /// Now: so many have arrived.
    Now(usize),
    /// At that time.
    At(Time),
}

/// A load that the last-level cache of its core has answered.
#[derive(Clone, Copy, Debug)]
pub struct Loaded {
    /// The vCPU.
    pub vcpu: usize,
    /// When it is done.
    pub at: Time,
}

impl Cache {
    /// Serves the requests that are due.
    pub fn serve(&mut self, now: Time, line: usize) {
        while let Some(Loaded { vcpu, at }) = self.serve_next(now, line) {
            self.signals.push(Signal::Done { vcpu, at });
        }
    }

    /// The same, up to the next load that a last-level cache answers by itself. It returns that,
    /// so with hundreds of spinners most loads need no signal.
    pub fn serve_next(&mut self, now: Time, line: usize) -> Option<Loaded> {
        loop {
            if self.lines[line].leaving.is_some() && !self.leaves(now, line) {
                return None;
            }
            let arrived = match self.due(now, line)? {
                Due::Now(arrived) => arrived,
                Due::At(at) => {
                    self.signals.push(Signal::Serve { line, at });
                    return None;
                }
            };
            let chosen = self.random.random_range(0..arrived);
            let request = self.queues[line].take(now, chosen);
            let path = self.path(line, &request);
            if path.pipelined {
                // The last-level cache goes on to the next request.
                let arrives = now + path.data;
                self.share(now, line, &request);
                self.lines[line].free = now + self.machine.costs.gap;
                return Some(Loaded {
                    vcpu: request.vcpu as usize,
                    at: arrives + self.takes(Access::Read),
                });
            }
            let at = now + path.snoop;
            self.lines[line].leaving = Some((request, at, path.data));
            self.signals.push(Signal::Serve { line, at });
        }
    }

    /// The line that is about to leave its home does so, if it is time. Returns whether it was.
    fn leaves(&mut self, now: Time, line: usize) -> bool {
        let Some((request, at, data)) = self.lines[line].leaving else {
            return true;
        };
        if at > now {
            return false;
        }
        self.lines[line].leaving = None;
        // Instructions that are under way end first.
        let arrives = now.max(self.lines[line].used) + data;
        let done = arrives + self.takes(request.access);
        self.grant(now, line, &request, arrives);
        self.lines[line].free = done;
        self.done(line, &request, done);
        true
    }

    fn done(&mut self, line: usize, request: &Request, at: Time) {
        let (vcpu, core) = (request.vcpu as usize, request.core as usize);
        self.signals.push(match request.buffered {
            true => Signal::Owned {
                vcpu,
                core,
                line,
                at,
            },
            false => Signal::Done { vcpu, at },
        });
    }

    /// Returns when the next request is due, unless that is planned already. One of those that have
    /// arrived is chosen at random.
    pub fn due(&mut self, now: Time, line: usize) -> Option<Due> {
        // In the tests of this crate alone: with hundreds of spinners this takes most of the time.
        #[cfg(test)]
        {
            let queue = &self.queues[line];
            assert!(queue.arrive_as(now, |request| self.arrival(line, request)));
        }
        let (arrived, first) = self.queues[line].arrived(now)?;
        let state = &mut self.lines[line];
        let at = first.max(state.free);
        if at <= now {
            return Some(Due::Now(arrived));
        }
        state.plans(now, at).then_some(Due::At(at))
    }

    /// Grants the line, or a copy, to the core, where it arrives at `arrives`. Cores that must lose
    /// it lose it now.
    fn grant(&mut self, now: Time, line: usize, request: &Request, arrives: Time) {
        let (core, place) = (request.core as usize, request.place as usize);
        let had = self.has(line, core, request.access);
        let near = match &self.lines[line].copies {
            Copies::None => None,
            Copies::Owned(_) => Some(self.sites.share_socket(self.lines[line].home, place)),
            Copies::Shared(cores) => Some(cores.meets(self.sites.area(place).socket.clone())),
        };
        match near {
            _ if had => self.traffic.hits += 1,
            None => self.traffic.memory += 1,
            Some(true) => self.traffic.near += 1,
            Some(false) => self.traffic.far += 1,
        }
        if request.access == Access::Read && matches!(self.lines[line].copies, Copies::Shared(_)) {
            return self.add_sharer(now, line, core, place);
        }
        let state = &mut self.lines[line];
        self.legs.forget(line);
        let owner = match state.copies {
            Copies::Owned(owner) => Some(owner),
            Copies::Shared(_) | Copies::None => None,
        };
        state.copies = match owner {
            // A read takes over a changed line, since the reader is likely to change it next.
            Some(owner)
                if request.access == Access::Read
                    && owner != core
                    && !(self.machine.migratory && state.dirty) =>
            {
                Copies::Shared(Cores::of([owner, core]))
            }
            _ => Copies::Owned(core),
        };
        state.dirty = false;
        let stays = owner.is_some() && state.home == place;
        if matches!(state.copies, Copies::Owned(_)) {
            state.arrival = arrives;
            if !self.sites.share_cache(state.home, place) {
                state.since = arrives;
            }
            state.home = place;
            let taken = owner.is_some_and(|owner| owner != core);
            if taken || request.access != Access::Read {
                self.lose(line, request.vcpu as usize);
            }
        }
        match (owner, &self.lines[line].copies) {
            // The way to the line is the same for all but those that have it, or had it.
            (Some(owner), &Copies::Owned(next)) if stays => {
                let [owner, next] = [owner, next].map(|core| core as u32);
                self.redirect(line, |request| [owner, next].contains(&request.core));
            }
            (_, Copies::Shared(_)) => self.come_nearer(now, line, None),
            _ => self.redirect_all(line),
        }
    }

    /// Grants a copy of a line that cores share, some of them near the core.
    fn share(&mut self, now: Time, line: usize, request: &Request) {
        let (core, place) = (request.core as usize, request.place as usize);
        match &self.lines[line].copies {
            Copies::Shared(cores) if cores.meets(self.sites.area(place).socket.clone()) => {
                self.traffic.near += 1;
            }
            _ => self.traffic.far += 1,
        }
        self.add_sharer(now, line, core, place);
    }

    fn add_sharer(&mut self, now: Time, line: usize, core: usize, place: usize) {
        let Copies::Shared(cores) = &mut self.lines[line].copies else {
            return;
        };
        // The first reader of a cluster affects waiting requests near it, and all that invalidate
        // copies. Another one affects only those of its own core: it is as near as a copy that
        // they wait for already.
        let area = self.sites.area(place);
        let is_first = !cores.meets(area.cores.clone());
        cores.insert(core);
        if is_first {
            self.legs.forget(line);
            let near = area.sharing.clone();
            self.come_nearer(now, line, Some(near));
        } else if !self.queues[line].are_here(now) {
            self.redirect(line, |request| request.core as usize == core);
        }
    }

    /// There is another copy of a line that cores share. Loads from these cores, or from all, have
    /// a new way to it, mostly a shorter one: then it does not matter to those that have arrived.
    /// All that invalidate copies may arrive later.
    fn come_nearer(&mut self, now: Time, line: usize, cores: Option<Range<usize>>) {
        let queue = &self.queues[line];
        let (are_here, has_writers) = (queue.are_here(now), queue.has_writers());
        if !(are_here && self.copies_are_near) {
            self.redirect(line, |request| {
                let core = request.core as usize;
                request.writes() || cores.as_ref().is_none_or(|cores| cores.contains(&core))
            });
        } else if has_writers {
            self.redirect(line, Request::writes);
        }
    }

    /// The line has moved: updates the arrival of some waiting requests.
    fn redirect(&mut self, line: usize, is_affected: impl Fn(&Request) -> bool) {
        let mut queues = std::mem::take(&mut self.queues);
        let mut legs = std::mem::take(&mut self.legs);
        legs.follow(line);
        queues[line].redirect(is_affected, |request| {
            self.arrival_along(line, request, &mut legs)
        });
        self.legs = legs;
        self.queues = queues;
    }

    /// The same for all of a line that a core owns.
    fn redirect_all(&mut self, line: usize) {
        let mut queues = std::mem::take(&mut self.queues);
        let mut legs = std::mem::take(&mut self.legs);
        legs.follow(line);
        let state = &self.lines[line];
        let owner = match state.copies {
            Copies::Owned(owner) => owner as u32,
            Copies::Shared(_) | Copies::None => u32::MAX,
        };
        queues[line].redirect_all(|request| match legs.known(request) {
            Some(leg) if request.core != owner => leg.arrival(request, state.since),
            _ => self.arrival_along(line, request, &mut legs),
        });
        self.legs = legs;
        self.queues = queues;
    }

    /// Notifies all watchers but one.
    pub(super) fn lose(&mut self, line: usize, but: usize) {
        let signals = &mut self.signals;
        self.lines[line].watchers.retain(|&watcher| {
            let vcpu = watcher as usize;
            let stays = vcpu == but;
            if !stays {
                signals.push(Signal::Lost { vcpu });
            }
            stays
        });
    }
}
