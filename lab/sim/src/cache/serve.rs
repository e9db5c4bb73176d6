//! Service of the requests that wait for a line.

use rand::RngExt;

use super::cores::Cores;
use super::line::{Copies, Request};
use super::paths::Path;
use super::queue::Affected;
use super::{Access, Cache, Signal};
use crate::time::Time;

impl Cache {
    /// Serves the next request, if it is due.
    pub fn serve(&mut self, now: Time, line: usize) {
        loop {
            if let Some((request, at, data)) = self.lines[line].leaving {
                if at > now {
                    return;
                }
                self.lines[line].leaving = None;
                // Instructions that are under way end first.
                let arrives = now.max(self.lines[line].used) + data;
                let done = arrives + self.takes(request.access);
                self.grant(line, &request, arrives);
                self.lines[line].free = done;
                self.done(line, &request, done);
            }
            let Some((request, path)) = self.next(now, line) else {
                return;
            };
            if path.pipelined {
                // The last-level cache answers by itself, and goes on to the next request.
                let arrives = now + path.data;
                self.grant(line, &request, arrives);
                self.lines[line].free = now + self.machine.costs.gap;
                self.done(line, &request, arrives + self.takes(request.access));
            } else {
                let at = now + path.snoop;
                self.lines[line].leaving = Some((request, at, path.data));
                self.signals.push(Signal::Serve { line, at });
            }
        }
    }

    fn done(&mut self, line: usize, request: &Request, at: Time) {
        let Request { vcpu, core, .. } = *request;
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

    /// Takes the next request out of the queue, at random among those that have arrived. If none
    /// has, schedules another call.
    fn next(&mut self, now: Time, line: usize) -> Option<(Request, Path)> {
        // In the tests of this crate alone: with hundreds of spinners this takes most of the time.
        #[cfg(test)]
        {
            let queue = &self.lines[line].queue;
            assert!(queue.arrive_as(|request| self.arrival(line, request)));
        }
        let state = &mut self.lines[line];
        let at = state.queue.earliest(now)?.max(state.free);
        if at > now {
            if state.plans(now, at) {
                self.signals.push(Signal::Serve { line, at });
            }
            return None;
        }
        let chosen = self.random.random_range(0..state.queue.arrived(now));
        let request = state.queue.take(now, chosen);
        let path = self.path(line, &request);
        Some((request, path))
    }

    /// Grants the line, or a copy, to the core, where it arrives at `arrives`. Cores that must lose
    /// it lose it now.
    fn grant(&mut self, line: usize, request: &Request, arrives: Time) {
        let place = request.place;
        let had = self.has(line, request.core, request.access);
        let near = match &self.lines[line].copies {
            Copies::None => None,
            Copies::Owned(_) => Some(self.lines[line].home.socket == place.socket),
            Copies::Shared(cores) => Some(cores.meets(self.machine.cores_of_socket(place.socket))),
        };
        match near {
            _ if had => self.traffic.hits += 1,
            None => self.traffic.memory += 1,
            Some(true) => self.traffic.near += 1,
            Some(false) => self.traffic.far += 1,
        }
        let state = &mut self.lines[line];
        if request.access == Access::Read
            && let Copies::Shared(cores) = &mut state.copies
        {
            // The first reader of a cluster affects waiting requests near it, and all that
            // invalidate copies. Another one affects only those of its own core: it is as near as
            // a copy that they wait for already, and no copy is nearer (`Machine::check`).
            let affected = match cores.meets(self.machine.cores_of(place)) {
                true => Affected::of(request.core),
                false => {
                    self.legs.forget(line);
                    Affected {
                        cores: self.machine.sharing(place),
                        writers: true,
                    }
                }
            };
            cores.insert(request.core);
            return self.redirect(line, &affected);
        }
        self.legs.forget(line);
        let owner = match state.copies {
            Copies::Owned(owner) => Some(owner),
            Copies::Shared(_) | Copies::None => None,
        };
        state.copies = match owner {
            // A read takes over a changed line, since the reader is likely to change it next.
            Some(owner)
                if request.access == Access::Read
                    && owner != request.core
                    && !(self.machine.migratory && state.dirty) =>
            {
                Copies::Shared(Cores::of([owner, request.core]))
            }
            _ => Copies::Owned(request.core),
        };
        state.dirty = false;
        let stays = owner.is_some() && state.home == place;
        if matches!(state.copies, Copies::Owned(_)) {
            state.arrival = arrives;
            if !self.machine.share_cache(state.home, place) {
                state.since = arrives;
            }
            state.home = place;
            let taken = owner.is_some_and(|owner| owner != request.core);
            if taken || request.access != Access::Read {
                self.lose(line, request.vcpu);
            }
        }
        match (owner, &self.lines[line].copies) {
            // The way to the line is the same for all but those that have it, or had it.
            (Some(owner), &Copies::Owned(next)) if stays => {
                self.redirect(line, &Affected::of(owner));
                self.redirect(line, &Affected::of(next));
            }
            _ => self.redirect(line, &Affected::ALL),
        }
    }

    /// The line has moved: updates the arrival of these waiting requests.
    fn redirect(&mut self, line: usize, affected: &Affected) {
        if !self.lines[line].queue.has(affected) {
            return;
        }
        let mut queue = std::mem::take(&mut self.lines[line].queue);
        let mut legs = std::mem::take(&mut self.legs);
        queue.redirect(affected, |request| {
            self.arrival_along(line, request, &mut legs)
        });
        self.legs = legs;
        self.lines[line].queue = queue;
    }

    /// Notifies all watchers but one.
    pub(super) fn lose(&mut self, line: usize, but: usize) {
        let signals = &mut self.signals;
        self.lines[line].watchers.retain(|watcher| {
            let stays = watcher.vcpu == but;
            if !stays {
                signals.push(Signal::Lost { vcpu: watcher.vcpu });
            }
            stays
        });
    }
}
