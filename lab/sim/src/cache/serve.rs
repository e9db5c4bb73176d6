//! Service of the requests that wait for a line.

use std::ops::Range;

use rand::RngExt;

use super::cores::Cores;
use super::line::{Copies, Request};
use super::paths::way_back;
use super::{Access, Cache, Signal};
use crate::time::Time;

/// When a request is due.
#[derive(Clone, Copy, Debug)]
enum Due {
    /// Now: so many have arrived.
    Now(usize),
    /// At that time.
    At(Time),
}

/// The end of a run of loads.
enum Ran {
    /// The chosen request is served in another way.
    Until(usize),
    /// This load is one whose vCPU goes on.
    Loaded(Loaded),
    /// No request can be served now.
    Out,
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
    pub fn serve(&mut self, mut now: Time, line: usize) {
        let goes_on = |_, _| None;
        while let Some(Loaded { vcpu, at }) = self.serve_until(&mut now, line, Time::ZERO, goes_on)
        {
            self.signals.push(Signal::Done { vcpu, at });
        }
    }

    /// The same, and what is due after a load that a last-level cache has answered by itself, up to
    /// a time: with hundreds of spinners that is most of what happens.
    ///
    /// `watches` is called for such a load. It returns `None` if its vCPU goes on, and else until
    /// when at most the next ones may be served: the vCPU watches the line. Returns a load whose
    /// vCPU goes on.
    pub fn serve_until(
        &mut self,
        now: &mut Time,
        line: usize,
        mut until: Time,
        mut watches: impl FnMut(usize, Time) -> Option<Time>,
    ) -> Option<Loaded> {
        let mut is_read = false;
        loop {
            if self.lines[line].leaving.is_some() && !self.leaves(*now, line) {
                return None;
            }
            let arrived = match self.due(*now, line)? {
                Due::Now(arrived) => arrived,
                Due::At(at) if is_read && at < until => {
                    *now = at;
                    continue;
                }
                Due::At(at) => {
                    self.signals.push(Signal::Serve { line, at });
                    return None;
                }
            };
            let mut chosen = self.random.random_range(0..arrived);
            if self.queues[line].are_here(*now) && self.machine.inclusive {
                match self.serve_run(now, line, &mut until, chosen, &mut watches) {
                    Ran::Until(next) => chosen = next,
                    Ran::Out => return None,
                    Ran::Loaded(loaded) => return Some(loaded),
                }
            }
            let request = self.queues[line].take(*now, chosen);
            is_read = self.is_near(line, &request);
            if is_read {
                // The last-level cache goes on to the next request.
                let costs = &self.machine.costs;
                let at = *now + way_back(&mut self.random, costs, &request) + costs.hit;
                let vcpu = request.vcpu as usize;
                self.traffic.near += 1;
                self.lines[line].free = *now + costs.gap;
                self.add_sharer(*now, line, request.core as usize, request.place as usize);
                let Some(earlier) = watches(vcpu, at) else {
                    return Some(Loaded { vcpu, at });
                };
                self.lines[line].watchers.push(request.vcpu);
                until = until.min(earlier);
                continue;
            }
            let path = self.path(line, &request);
            let at = *now + path.snoop;
            self.lines[line].leaving = Some((request, at, path.data));
            self.signals.push(Signal::Serve { line, at });
        }
    }

    /// Serves loads that last-level caches answer by themselves, while all requests have arrived:
    /// the chosen one, then others. This is what happens after each change of a word that hundreds
    /// of vCPUs poll.
    fn serve_run(
        &mut self,
        now: &mut Time,
        line: usize,
        until: &mut Time,
        mut chosen: usize,
        watches: &mut impl FnMut(usize, Time) -> Option<Time>,
    ) -> Ran {
        let costs = &self.machine.costs;
        let (state, queue) = (&mut self.lines[line], &mut self.queues[line]);
        let Copies::Shared(cores) = &mut state.copies else {
            return Ran::Until(chosen);
        };
        let ran = loop {
            let request = queue.get(chosen);
            let is_near = self.legs.known(line, request).is_some_and(|leg| leg.near);
            // The first copy of a place that shares its cache with others would matter to them.
            let is_alone = self.sites.area(request.place as usize).is_alone;
            if !is_near || !is_alone || cores.contains(request.core as usize) {
                break Ran::Until(chosen);
            }
            let (vcpu, core) = (request.vcpu, request.core as usize);
            let at = *now + way_back(&mut self.random, costs, request) + costs.hit;
            queue.take_load(chosen);
            cores.insert(core);
            self.traffic.near += 1;
            state.free = *now + costs.gap;
            let Some(earlier) = watches(vcpu as usize, at) else {
                let vcpu = vcpu as usize;
                break Ran::Loaded(Loaded { vcpu, at });
            };
            state.watchers.push(vcpu);
            *until = earlier.min(*until);
            if queue.is_empty() {
                break Ran::Out;
            }
            if state.free > *now {
                state.planned = Some(state.free);
                if state.free >= *until {
                    let at = state.free;
                    self.signals.push(Signal::Serve { line, at });
                    break Ran::Out;
                }
                *now = state.free;
            }
            chosen = self.random.random_range(0..queue.len());
        };
        queue.have_arrived();
        ran
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
    fn due(&mut self, now: Time, line: usize) -> Option<Due> {
        // In the tests of this crate alone: with hundreds of spinners this takes most of the time.
        #[cfg(test)]
        {
            self.legs.forget(line);
            let queue = std::mem::take(&mut self.queues[line]);
            assert!(queue.arrive_as(now, |request| self.arrival(line, request)));
            self.queues[line] = queue;
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
            match cores {
                None => self.redirect_all(line),
                Some(cores) => self.redirect(line, |request| {
                    request.writes() || cores.contains(&(request.core as usize))
                }),
            }
        } else if has_writers {
            self.redirect(line, Request::writes);
        }
    }

    /// The line has moved: updates the arrival of some waiting requests.
    fn redirect(&mut self, line: usize, is_affected: impl Fn(&Request) -> bool) {
        let mut queue = std::mem::take(&mut self.queues[line]);
        queue.redirect(is_affected, |request| self.arrival(line, request));
        self.queues[line] = queue;
    }

    /// The same of all.
    fn redirect_all(&mut self, line: usize) {
        let mut queue = std::mem::take(&mut self.queues[line]);
        let owner = match self.lines[line].copies {
            Copies::Owned(owner) => Some(owner as u32),
            Copies::Shared(_) | Copies::None => None,
        };
        let since = self.lines[line].since;
        queue.redirect_all(|request| match self.legs.known(line, request) {
            Some(leg) if owner.is_some_and(|owner| owner != request.core) => {
                leg.arrival(request, since)
            }
            _ => self.arrival(line, request),
        });
        self.queues[line] = queue;
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
