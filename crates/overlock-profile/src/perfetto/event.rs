//! Trace events of a profile.

use overlock_report::trace_events;
pub use overlock_report::trace_events::Track;
use serde::Serialize;

use crate::Parts;

pub type Event = trace_events::Event<About>;

/// The flows lead from releases to the ends of waits.
pub const FLOW: &str = "release";

/// The arguments of an event.
#[derive(Serialize)]
#[serde(untagged)]
pub enum About {
    Name {
        name: String,
    },
    Wait {
        stack: String,
        holder: Option<String>,
        holder_stack: Option<String>,
        gave_up: bool,
        parts: Parts,
    },
}

pub fn microseconds(ns: u64) -> f64 {
    ns as f64 / 1e3
}

pub fn begin(ns: u64, track: Track, name: String, args: Option<About>) -> Event {
    Event::begin(microseconds(ns), track, name, "wait", args)
}

/// A process's name.
pub fn process(pid: u32, name: String) -> Event {
    let track = Track { pid, tid: 0 };
    Event::metadata(track, "process_name", About::Name { name })
}

/// A track's name.
pub fn track(track: Track, name: String) -> Option<Event> {
    (!name.is_empty()).then(|| Event::metadata(track, "thread_name", About::Name { name }))
}
