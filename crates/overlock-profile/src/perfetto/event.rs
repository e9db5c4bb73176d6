//! Trace events as the format has them.

use serde::{Serialize, Serializer};

use crate::Parts;

/// A process and a thread of it.
#[derive(Clone, Copy, Serialize)]
pub struct Track {
    pub pid: u32,
    pub tid: u32,
}

/// One event. Fields that a kind does not have are left out.
#[derive(Serialize)]
pub struct Event {
    /// The kind: (B)egin, (E)nd, (s)tart and end (f) of a flow, (M)etadata.
    ph: char,
    #[serde(rename = "ts", serialize_with = "microseconds")]
    pub ns: u64,
    #[serde(flatten)]
    track: Track,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cat: Option<&'static str>,
    /// A flow's.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<usize>,
    /// A flow ends in the slice that (e)ncloses its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    bp: Option<char>,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<About>,
}

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

fn microseconds<S: Serializer>(ns: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(*ns as f64 / 1e3)
}

impl Event {
    fn new(ph: char, ns: u64, track: Track) -> Self {
        Self {
            ph,
            ns,
            track,
            name: None,
            cat: None,
            id: None,
            bp: None,
            args: None,
        }
    }

    pub fn begin(ns: u64, track: Track, name: String, args: Option<About>) -> Self {
        Self {
            name: Some(name),
            cat: Some("wait"),
            args,
            ..Self::new('B', ns, track)
        }
    }

    pub fn end(ns: u64, track: Track) -> Self {
        Self::new('E', ns, track)
    }

    pub fn flow_start(ns: u64, track: Track, id: usize) -> Self {
        Self {
            name: Some("release".to_owned()),
            cat: Some("release"),
            id: Some(id),
            ..Self::new('s', ns, track)
        }
    }

    pub fn flow_end(ns: u64, track: Track, id: usize) -> Self {
        Self {
            ph: 'f',
            bp: Some('e'),
            ..Self::flow_start(ns, track, id)
        }
    }

    /// If it is one of a flow: which, whether the end, and when.
    pub fn flow(&self) -> Option<(usize, bool, u64)> {
        self.id.map(|id| (id, self.ph == 'f', self.ns))
    }

    fn metadata(track: Track, name: &str, text: String) -> Self {
        Self {
            name: Some(name.to_owned()),
            args: Some(About::Name { name: text }),
            ..Self::new('M', 0, track)
        }
    }

    /// A process's name.
    pub fn process(pid: u32, name: String) -> Self {
        Self::metadata(Track { pid, tid: 0 }, "process_name", name)
    }

    /// A track's name.
    pub fn track(track: Track, name: String) -> Option<Self> {
        (!name.is_empty()).then(|| Self::metadata(track, "thread_name", name))
    }
}
