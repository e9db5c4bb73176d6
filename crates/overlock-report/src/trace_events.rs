//! Events of the trace event format, which <https://ui.perfetto.dev> and chrome://tracing show.

use serde::Serialize;

/// A process and a thread of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Track {
    pub pid: u32,
    pub tid: u32,
}

/// One event, with arguments of the type `A`. Fields that a kind does not have are left out.
#[derive(Debug, Serialize)]
pub struct Event<A> {
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
    /// A flow's.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<usize>,
    /// An instant's (t)rack is all that it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    s: Option<char>,
    /// A flow ends in the slice that (e)ncloses its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    bp: Option<char>,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<A>,
}

impl<A> Event<A> {
    fn new(ph: char, us: f64, track: Track) -> Self {
        Self {
            ph,
            ts: us,
            track,
            name: None,
            cat: None,
            id: None,
            s: None,
            bp: None,
            args: None,
        }
    }

    /// The beginning of a slice.
    pub fn begin(
        us: f64,
        track: Track,
        name: String,
        category: &'static str,
        args: Option<A>,
    ) -> Self {
        Self {
            name: Some(name),
            cat: Some(category),
            args,
            ..Self::new('B', us, track)
        }
    }

    /// The end of the innermost slice of the track.
    pub fn end(us: f64, track: Track) -> Self {
        Self::new('E', us, track)
    }

    /// With the name of the slice that it ends: some readers end no other.
    pub fn of(self, name: String) -> Self {
        Self {
            name: Some(name),
            ..self
        }
    }

    pub fn instant(us: f64, track: Track, name: String, category: &'static str) -> Self {
        Self {
            name: Some(name),
            cat: Some(category),
            s: Some('t'),
            ..Self::new('i', us, track)
        }
    }

    /// The start of a flow. Its name is its category, too.
    pub fn flow_start(us: f64, track: Track, name: &'static str, id: usize) -> Self {
        Self {
            name: Some(name.to_owned()),
            cat: Some(name),
            id: Some(id),
            ..Self::new('s', us, track)
        }
    }

    pub fn flow_end(us: f64, track: Track, name: &'static str, id: usize) -> Self {
        Self {
            ph: 'f',
            bp: Some('e'),
            ..Self::flow_start(us, track, name, id)
        }
    }

    /// Tells the viewer something about the track or its process.
    pub fn metadata(track: Track, name: &str, args: A) -> Self {
        Self {
            name: Some(name.to_owned()),
            args: Some(args),
            ..Self::new('M', 0.0, track)
        }
    }

    /// Its time, in microseconds.
    pub fn us(&self) -> f64 {
        self.ts
    }

    /// If it is one of a flow: which, whether the end, and when.
    pub fn flow(&self) -> Option<(usize, bool, f64)> {
        self.id.map(|id| (id, self.ph == 'f', self.ts))
    }
}
