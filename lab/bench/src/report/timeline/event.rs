//! Trace events of a simulation.

use overlock_report::trace_events;
pub use overlock_report::trace_events::Track;
use overlock_sim::Time;
use serde::Serialize;

/// The processes, by number.
pub const VCPUS: u32 = 1;
/// See [`VCPUS`].
pub const CPUS: u32 = 2;

/// The flows lead from kicks to who wakes by them.
pub const FLOW: &str = "kick";

pub type Event = trace_events::Event<Args>;

/// The arguments of metadata.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Args {
    Name(String),
    SortIndex(u32),
}

pub fn vcpu(vcpu: usize) -> Track {
    Track {
        pid: VCPUS,
        tid: vcpu as u32,
    }
}

pub fn cpu(cpu: usize) -> Track {
    Track {
        pid: CPUS,
        tid: cpu as u32,
    }
}

pub fn microseconds(at: Time) -> f64 {
    at.as_ps() as f64 / 1e6
}

/// A process's name; they are shown in the order of their numbers.
pub fn process(pid: u32, name: &str) -> Event {
    let name = Args::Name(name.to_owned());
    Event::metadata(Track { pid, tid: 0 }, "process_name", name)
}

/// A track's name and place.
pub fn track(track: Track, name: String) -> [Event; 2] {
    [
        Event::metadata(track, "thread_name", Args::Name(name)),
        Event::metadata(track, "thread_sort_index", Args::SortIndex(track.tid)),
    ]
}
