//! A timeline of a simulation, in the Chrome trace event format: <https://ui.perfetto.dev> and chrome://tracing show it.
//!
//! Two processes: `vCPUs`, with a track for each vCPU, and `CPUs`, with a track for each CPU that
//! says which vCPU it runs.
//!
//! Slices of a track have to nest. On a vCPU's track the locks are below: a slice from asking for a
//! lock to having it, one from there to its release. On top of them is why the vCPU does not run:
//! preempted, asleep, woken. Nothing of a lock changes while its vCPU does not run, so these nest
//! by themselves. Locks need not be released in the reverse order: whatever was acquired after the
//! released one ends with it and begins again in the same moment.

mod event;
#[cfg(test)]
mod tests;

use std::io::{self, Write};

use overlock_sim::Time;
use overlock_sim::trace::{Mark, What};
use serde::Serialize;

use crate::settings::Simulation;
use event::{CPUS, Event, FLOW, VCPUS, microseconds};

/// The settings of a timeline's round.
#[derive(Clone, Debug, Serialize)]
pub struct About {
    /// The workload.
    pub workload: &'static str,
    /// The lock.
    pub lock: &'static str,
    /// The simulated machine.
    pub simulation: Simulation,
    /// How many vCPUs, those of other guests left out.
    pub vcpus: usize,
    /// How many CPUs.
    pub cpus: usize,
}

/// The whole document.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    display_time_unit: &'static str,
    other_data: &'a About,
    trace_events: Vec<Event>,
}

/// Writes the document.
///
/// # Errors
///
/// Those of `out`.
pub fn write(mut out: impl Write, about: &About, marks: &[Mark]) -> io::Result<()> {
    let document = Document {
        display_time_unit: "ns",
        other_data: about,
        trace_events: events(about, marks),
    };
    serde_json::to_writer(&mut out, &document)?;
    writeln!(out)
}

fn events(about: &About, marks: &[Mark]) -> Vec<Event> {
    let mut timeline = Timeline::new(about);
    for mark in marks {
        timeline.mark(mark);
    }
    timeline.end(marks.last().map_or(Time::ZERO, |mark| mark.at));
    timeline.events
}

/// A slice that has begun on a vCPU's track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slice {
    Waits(usize),
    Holds(usize),
    /// Does not run, for this reason.
    Off(&'static str),
}

impl Slice {
    fn name(self) -> String {
        match self {
            Self::Waits(lock) => format!("waits for lock {lock}"),
            Self::Holds(lock) => format!("holds lock {lock}"),
            Self::Off(why) => why.to_owned(),
        }
    }

    fn category(self) -> &'static str {
        match self {
            Self::Waits(_) => "wait",
            Self::Holds(_) => "hold",
            Self::Off(_) => "off",
        }
    }
}

#[derive(Debug)]
struct Timeline {
    events: Vec<Event>,
    /// vCPUs from this number on are other guests'.
    own: usize,
    /// The open slices of each vCPU, the outermost first.
    open: Vec<Vec<Slice>>,
    /// Which vCPU each CPU runs.
    running: Vec<Option<usize>>,
    /// The kick that wakes each vCPU.
    kicks: Vec<Option<usize>>,
    next_kick: usize,
}

impl Timeline {
    fn new(about: &About) -> Self {
        let all = about.vcpus + about.simulation.others;
        let mut events = vec![event::process(VCPUS, "vCPUs"), event::process(CPUS, "CPUs")];
        for cpu in 0..about.cpus {
            events.extend(event::track(event::cpu(cpu), format!("CPU {cpu}")));
        }
        let mut timeline = Self {
            events,
            own: about.vcpus,
            open: vec![Vec::new(); all],
            running: vec![None; about.cpus],
            kicks: vec![None; all],
            next_kick: 0,
        };
        for vcpu in 0..all {
            let track = event::track(event::vcpu(vcpu), timeline.name(vcpu));
            timeline.events.extend(track);
            timeline.push(Time::ZERO, vcpu, Slice::Off("not started"));
        }
        timeline
    }

    /// For people.
    fn name(&self, vcpu: usize) -> String {
        match vcpu.checked_sub(self.own) {
            None => format!("vCPU {vcpu}"),
            Some(other) => format!("other guest, vCPU {other}"),
        }
    }

    fn mark(&mut self, &Mark { at, vcpu, what }: &Mark) {
        match what {
            What::On(cpu) => self.gets(at, vcpu, cpu),
            What::Preempted => {
                self.leaves_cpu(at, vcpu);
                self.push(at, vcpu, Slice::Off("preempted"));
            }
            What::Sleeps => {
                self.leaves_cpu(at, vcpu);
                self.push(at, vcpu, Slice::Off("asleep"));
            }
            What::Kicked(by) => self.kicked(at, vcpu, by),
            What::Waits(lock) => self.push(at, vcpu, Slice::Waits(lock)),
            What::Holds(lock) => {
                self.pull(at, vcpu, Slice::Waits(lock));
                self.push(at, vcpu, Slice::Holds(lock));
            }
            What::Releases(lock) => self.pull(at, vcpu, Slice::Holds(lock)),
            What::Ends => {
                self.leaves_cpu(at, vcpu);
                self.close(at, vcpu, 0);
            }
        }
    }

    /// `vcpu` runs on `cpu`.
    fn gets(&mut self, at: Time, vcpu: usize, cpu: usize) {
        if let Some(id) = self.kicks[vcpu].take() {
            self.events.push(Event::flow_end(
                microseconds(at),
                event::vcpu(vcpu),
                FLOW,
                id,
            ));
        }
        if let Some(&Slice::Off(why)) = self.open[vcpu].last() {
            self.pull(at, vcpu, Slice::Off(why));
        }
        if self.running[cpu] == Some(vcpu) {
            return;
        }
        self.leaves_cpu(at, vcpu);
        self.frees(at, cpu);
        self.running[cpu] = Some(vcpu);
        let begin = Event::begin(
            microseconds(at),
            event::cpu(cpu),
            self.name(vcpu),
            "run",
            None,
        );
        self.events.push(begin);
    }

    /// `vcpu` runs nowhere.
    fn leaves_cpu(&mut self, at: Time, vcpu: usize) {
        if let Some(cpu) = self.running.iter().position(|&runs| runs == Some(vcpu)) {
            self.frees(at, cpu);
        }
    }

    fn frees(&mut self, at: Time, cpu: usize) {
        if self.running[cpu].take().is_some() {
            self.events
                .push(Event::end(microseconds(at), event::cpu(cpu)));
        }
    }

    /// A sleeper is awake from here on, but may have to wait for a CPU.
    fn kicked(&mut self, at: Time, vcpu: usize, by: usize) {
        let id = self.next_kick;
        self.next_kick += 1;
        self.kicks[vcpu] = Some(id);
        self.events.push(Event::flow_start(
            microseconds(at),
            event::vcpu(by),
            FLOW,
            id,
        ));
        let name = format!("kicked by {}", self.name(by));
        self.events.push(Event::instant(
            microseconds(at),
            event::vcpu(vcpu),
            name,
            FLOW,
        ));
        self.pull(at, vcpu, Slice::Off("asleep"));
        self.push(at, vcpu, Slice::Off("woken"));
    }

    fn push(&mut self, at: Time, vcpu: usize, slice: Slice) {
        self.open[vcpu].push(slice);
        let begin = Event::begin(
            microseconds(at),
            event::vcpu(vcpu),
            slice.name(),
            slice.category(),
            None,
        );
        self.events.push(begin);
    }

    /// Ends a slice, wherever it lies among the open ones.
    fn pull(&mut self, at: Time, vcpu: usize, slice: Slice) {
        let Some(place) = self.open[vcpu].iter().rposition(|&open| open == slice) else {
            return;
        };
        let above = self.open[vcpu][place + 1..].to_vec();
        self.close(at, vcpu, place);
        for slice in above {
            self.push(at, vcpu, slice);
        }
    }

    /// Ends all slices of a vCPU but the first `left`.
    fn close(&mut self, at: Time, vcpu: usize, left: usize) {
        for _ in self.open[vcpu].drain(left..) {
            self.events
                .push(Event::end(microseconds(at), event::vcpu(vcpu)));
        }
    }

    /// Ends whatever is open.
    fn end(&mut self, at: Time) {
        for vcpu in 0..self.open.len() {
            self.close(at, vcpu, 0);
        }
        for cpu in 0..self.running.len() {
            self.frees(at, cpu);
        }
    }
}
