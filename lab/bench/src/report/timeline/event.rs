//! Trace events as the format has them.

use overlock_sim::Time;
use serde::Serialize;

/// The processes, by number.
pub const VCPUS: u32 = 1;
/// See [`VCPUS`].
pub const CPUS: u32 = 2;

/// A track: a process and a thread of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Track {
    pid: u32,
    tid: usize,
}

impl Track {
    pub fn vcpu(vcpu: usize) -> Self {
        Self {
            pid: VCPUS,
            tid: vcpu,
        }
    }

    pub fn cpu(cpu: usize) -> Self {
        Self {
            pid: CPUS,
            tid: cpu,
        }
    }
}

/// One event. Fields that a kind does not have are left out.
#[derive(Debug, Serialize)]
pub struct Event {
    /// The kind: (B)egin, (E)nd, (i)nstant, (s)tart and end (f) of a flow, (M)etadata.
    ph: char,
    /// Microseconds.
    ts: f64,
    #[serde(flatten)]
    track: Track,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cat: Option<&'static str>,
    /// Of a flow.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<usize>,
    /// An instant's (t)rack is all that it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    s: Option<char>,
    /// A flow ends in the slice that (e)ncloses its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    bp: Option<char>,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<Args>,
}

/// The arguments of metadata.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Args {
    Name(String),
    SortIndex(usize),
}

impl Event {
    fn new(ph: char, at: Time, track: Track) -> Self {
        Self {
            ph,
            ts: at.as_ps() as f64 / 1e6,
            track,
            name: None,
            cat: None,
            id: None,
            s: None,
            bp: None,
            args: None,
        }
    }

    pub fn begin(at: Time, track: Track, name: String, category: &'static str) -> Self {
        Self {
            name: Some(name),
            cat: Some(category),
            ..Self::new('B', at, track)
        }
    }

    pub fn end(at: Time, track: Track) -> Self {
        Self::new('E', at, track)
    }

    pub fn instant(at: Time, track: Track, name: String) -> Self {
        Self {
            name: Some(name),
            cat: Some("kick"),
            s: Some('t'),
            ..Self::new('i', at, track)
        }
    }

    pub fn flow_start(at: Time, track: Track, id: usize) -> Self {
        Self {
            name: Some("kick".to_owned()),
            cat: Some("kick"),
            id: Some(id),
            ..Self::new('s', at, track)
        }
    }

    pub fn flow_end(at: Time, track: Track, id: usize) -> Self {
        Self {
            bp: Some('e'),
            ph: 'f',
            ..Self::flow_start(at, track, id)
        }
    }

    fn metadata(track: Track, name: &str, args: Args) -> Self {
        Self {
            name: Some(name.to_owned()),
            args: Some(args),
            ..Self::new('M', Time::ZERO, track)
        }
    }

    /// A process's name; they are shown in the order of their numbers.
    pub fn process(pid: u32, name: &str) -> Self {
        let name = Args::Name(name.to_owned());
        Self::metadata(Track { pid, tid: 0 }, "process_name", name)
    }

    /// A track's name and place.
    pub fn track(track: Track, name: String) -> [Self; 2] {
        [
            Self::metadata(track, "thread_name", Args::Name(name)),
            Self::metadata(track, "thread_sort_index", Args::SortIndex(track.tid)),
        ]
    }
}
