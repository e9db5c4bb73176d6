//! Service of the requests that wait for a line.

use rand::RngExt;

use super::line::{Copies, Request};
use super::{Access, Cache, Random, Signal};
use crate::machine::Costs;
use crate::time::Time;

/// An answered request: the line has been granted to its core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granted {
    /// The request.
    pub request: Request,
    /// When its access is done: for a store, the line is there.
    pub at: Time,
}

impl Cache {
    /// Serves the requests that are due.
    pub fn serve(&mut self, mut now: Time, line: usize) {
        while let Some(granted) = self.serve_until(&mut now, line, Time::ZERO, |_| None) {
            self.signals.push(Signal::Done(granted));
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
        mut watches: impl FnMut(&Granted) -> Option<Time>,
    ) -> Option<Granted> {
        let mut is_read = false;
        if self.lines[line].leaving.is_some() && !self.leaves(*now, line) {
            return None;
        }
        let mut state = &mut self.lines[line];
        loop {
            let chosen = match self.map.next(&mut self.random, *now, state) {
                Ok(chosen) => chosen,
                Err(at) if is_read && at < until => {
                    *now = at;
                    continue;
                }
                Err(at) => {
                    if at < Time::MAX && state.plans(*now, at) {
                        self.signals.push(Signal::Serve { line, at });
                    }
                    return None;
                }
            };
            let request = state.queue.swap_remove(chosen);
            is_read = self.map.is_near(state, &request);
            if !is_read {
                self.leave(*now, line, request);
                if !self.leaves(*now, line) {
                    return None;
                }
                state = &mut self.lines[line];
                continue;
            }
            // The last-level cache goes on to the next request.
            let costs = &self.map.machine.costs;
            state.free = *now + costs.gap;
            let travels = vary(&mut self.random, costs, self.map.answer(&request));
            let at = *now + travels + costs.hit;
            self.traffic.near += 1;
            state.add_sharer(&request);
            let granted = Granted { request, at };
            let Some(earlier) = watches(&granted) else {
                return Some(granted);
            };
            state.watchers.push(request.made_at(at));
            until = until.min(earlier);
        }
    }

    /// The line is about to leave its home for this request.
    fn leave(&mut self, now: Time, line: usize, request: Request) {
        let state = &mut self.lines[line];
        let costs = &self.map.machine.costs;
        let time = match state.has(request.core as usize, request.access) {
            // The line was on its way to this core already.
            true => Time::ZERO,
            false => self.map.transfer(state, &request),
        };
        let at = now + vary_tenure(&mut self.random, costs, time.scale(costs.snoop));
        let data = time
            .scale(1.0 - costs.request - costs.snoop)
            .scale(self.map.on_ring(&request));
        let data = vary(&mut self.random, costs, data);
        state.leaving = Some((request, at, data));
        self.signals.push(Signal::Serve { line, at });
    }

    /// The line that is about to leave its home does so, if it is time. Returns whether it was.
    fn leaves(&mut self, now: Time, line: usize) -> bool {
        let state = &mut self.lines[line];
        let Some((request, _, data)) = state.leaving.take_if(|&mut (_, at, _)| at <= now) else {
            return false;
        };
        // Instructions that are under way end first.
        let arrives = now.max(state.used) + data;
        let at = arrives + self.takes(request.access);
        self.grant(line, &request, arrives);
        self.lines[line].free = at;
        self.signals.push(Signal::Done(Granted { request, at }));
        true
    }

    /// Grants the line, or a copy, to the core, where it arrives at `arrives`. Cores that must lose
    /// it lose it now.
    fn grant(&mut self, line: usize, request: &Request, arrives: Time) {
        let (core, place) = (request.core as usize, request.place as usize);
        let is_read = request.access == Access::Read;
        let state = &mut self.lines[line];
        let was_at = state.home;
        let shares_socket = self.map.way(was_at, place).shares_socket;
        let (owner, near) = match &state.copies {
            Copies::None => (None, None),
            Copies::Owned(owner) => (Some(*owner), Some(shares_socket)),
            Copies::Shared(sharers) => (None, Some(self.map.is_on_socket(sharers, place))),
        };
        match near {
            _ if state.has(core, request.access) => self.traffic.hits += 1,
            None => self.traffic.memory += 1,
            Some(true) => self.traffic.near += 1,
            Some(false) => self.traffic.far += 1,
        }
        if is_read && matches!(state.copies, Copies::Shared(_)) {
            return state.add_sharer(request);
        }
        let takes_over = self.map.machine.migratory && state.dirty;
        state.dirty = false;
        let loser = owner.filter(|&owner| owner != core);
        if let Some(owner) = loser.filter(|_| is_read && !takes_over) {
            state.copies = Copies::Shared(self.map.sharers([owner, core]));
            return;
        }
        // A read takes over a changed line, since the reader is likely to change it next.
        state.copies = Copies::Owned(core);
        state.arrival = arrives;
        if was_at != place {
            state.since = arrives;
        }
        state.home = place;
        if loser.is_some() || !is_read {
            self.lose(line, request.vcpu as usize);
        }
    }

    /// Notifies all watchers but one.
    pub(super) fn lose(&mut self, line: usize, but: usize) {
        let (watchers, first) = (&mut self.lines[line].watchers, self.lost.len());
        let stays = watchers.iter().position(|watcher| watcher.is_of(but));
        let stays = stays.map(|index| watchers.remove(index));
        self.lost.append(watchers);
        watchers.extend(stays);
        if first < self.lost.len() {
            let lost = first as u32..self.lost.len() as u32;
            self.signals.push(Signal::Lost(lost));
        }
    }
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

#[inline(always)]
fn vary(random: &mut Random, costs: &Costs, time: Time) -> Time {
    match costs.jitter {
        0.0 => time,
        jitter => time.scale(random.random_range(1.0 - jitter..=1.0 + jitter)),
    }
}
