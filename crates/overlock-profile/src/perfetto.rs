//! Files for <https://ui.perfetto.dev>, in the Chrome trace event format: a slice for each wait on
//! its thread's track, and a flow from the release to it.

mod event;

use std::collections::{HashMap, HashSet};
use std::io::{self, BufWriter, Write};

use serde::Serialize;

use crate::view::{frame_name, lock_name, plain, thread_name};
use crate::{Profile, Shown, Wait};
use event::{About, Event, FLOW, Track, begin, microseconds};

/// The whole document.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    display_time_unit: &'static str,
    other_data: Settings<'a>,
    trace_events: Vec<Event>,
}

/// How the profile was made.
#[derive(Serialize)]
struct Settings<'a> {
    command: &'a [String],
    date_s: u64,
    seconds: f64,
    source: &'a str,
    locks: &'a str,
}

/// Writes the file.
///
/// # Errors
///
/// Those of `out`.
pub fn write(out: &mut dyn Write, profile: &Profile, shown: Shown) -> io::Result<()> {
    let run = &profile.run;
    let document = Document {
        display_time_unit: "ns",
        other_data: Settings {
            command: &run.command,
            date_s: run.date_s,
            seconds: run.seconds,
            source: &run.source,
            locks: &run.locks,
        },
        trace_events: events(profile, shown),
    };
    let mut out = BufWriter::new(out);
    serde_json::to_writer(&mut out, &document)?;
    writeln!(out)?;
    out.flush()
}

/// A slice of a track: a wait, or the release that ended another thread's.
struct Slice<'a> {
    began_ns: u64,
    ended_ns: u64,
    index: usize,
    wait: &'a Wait,
    is_release: bool,
}

impl Slice<'_> {
    fn name(&self, profile: &Profile) -> String {
        let lock = lock_name(&profile.locks[self.wait.lock as usize]);
        match self.is_release {
            true => format!("releases {lock}"),
            false => format!("waits for {lock}"),
        }
    }
}

fn events(profile: &Profile, shown: Shown) -> Vec<Event> {
    let tracks = tracks(profile);
    let mut events = Vec::new();
    for process in &profile.processes {
        events.push(event::process(process.pid, plain(&process.program)));
    }
    let mut slices: Vec<Vec<Slice>> = profile.threads.iter().map(|_| Vec::new()).collect();
    for (index, wait) in profile.waits.iter().enumerate() {
        if !shown.shows(&profile.locks[wait.lock as usize]) {
            continue;
        }
        let began_ns = wait.began_ns.saturating_sub(profile.run.began_ns);
        let slice = |began_ns, ended_ns, is_release| Slice {
            began_ns,
            ended_ns,
            index,
            wait,
            is_release,
        };
        let ended_ns = began_ns.saturating_add(wait.wait_ns);
        slices[wait.thread as usize].push(slice(began_ns, ended_ns, false));
        if let (Some(holder), Some(released_ns)) = (wait.holder, wait.released_ns) {
            let released_ns = released_ns.saturating_sub(profile.run.began_ns);
            let at = released_ns.clamp(began_ns, ended_ns);
            slices[holder as usize].push(slice(at, at, true));
        }
    }
    for (index, slices) in slices.into_iter().enumerate() {
        if slices.is_empty() {
            continue;
        }
        let thread = &profile.threads[index];
        events.extend(event::track(tracks[index], thread_name(thread)));
        nest(profile, shown, tracks[index], slices, &mut events);
    }
    drop_flows_backwards(&mut events);
    // Each track is in order, and stays so.
    events.sort_by(|a, b| a.us().total_cmp(&b.us()));
    events
}

/// A wait that was cut, since it crossed another, may end before its lock's release.
fn drop_flows_backwards(events: &mut Vec<Event>) {
    let times = |end: bool| -> HashMap<usize, f64> {
        let flows = events.iter().filter_map(Event::flow);
        let ends = flows.filter(|(_, is_end, _)| *is_end == end);
        ends.map(|(id, _, us)| (id, us)).collect()
    };
    let (begins, ends) = (times(false), times(true));
    events.retain(|event| {
        event
            .flow()
            .is_none_or(|(id, ..)| begins.get(&id) < ends.get(&id))
    });
}

/// Slices of a track have to nest: what begins within another ends with it.
fn nest(
    profile: &Profile,
    shown: Shown,
    track: Track,
    mut slices: Vec<Slice>,
    events: &mut Vec<Event>,
) {
    slices.sort_by_key(|slice| (slice.began_ns, std::cmp::Reverse(slice.ended_ns)));
    let mut open: Vec<(u64, Slice)> = Vec::new();
    for slice in slices {
        close(profile, &mut open, slice.began_ns, track, events);
        let ended_ns = match open.last() {
            Some((outer, _)) => slice.ended_ns.min(*outer),
            None => slice.ended_ns,
        };
        if slice.is_release {
            events.push(begin(slice.began_ns, track, slice.name(profile), None));
            let us = microseconds(slice.began_ns);
            events.push(Event::flow_start(us, track, FLOW, slice.index));
        } else {
            let about = about(profile, shown, slice.wait);
            let name = slice.name(profile);
            events.push(begin(slice.began_ns, track, name, Some(about)));
        }
        open.push((ended_ns, slice));
    }
    close(profile, &mut open, u64::MAX, track, events);
}

/// Ends the slices that end by then, the innermost first.
fn close(
    profile: &Profile,
    open: &mut Vec<(u64, Slice)>,
    ns: u64,
    track: Track,
    events: &mut Vec<Event>,
) {
    while let Some((ended_ns, slice)) = open.pop_if(|(ended_ns, _)| *ended_ns <= ns) {
        let has_flow = slice.wait.holder.is_some() && slice.wait.released_ns.is_some();
        let us = microseconds(ended_ns);
        if has_flow && !slice.is_release {
            events.push(Event::flow_end(us, track, FLOW, slice.index));
        }
        events.push(Event::end(us, track).of(slice.name(profile)));
    }
}

fn about(profile: &Profile, shown: Shown, wait: &Wait) -> About {
    let names = |stack: u32| {
        let frames = shown.frames(profile, stack).into_iter();
        frames.map(frame_name).collect::<Vec<String>>().join("\n")
    };
    let holder = wait.holder.map(|holder| {
        let holder = &profile.threads[holder as usize];
        format!("{} [{}]", thread_name(holder), holder.tid)
    });
    About::Wait {
        stack: names(wait.stack),
        holder,
        holder_stack: wait.holder_stack.map(names),
        gave_up: wait.gave_up,
        parts: wait.parts.clone(),
    }
}

/// A track for each thread: ids that the system has used twice get numbers of their own.
fn tracks(profile: &Profile) -> Vec<Track> {
    let mut used = HashSet::new();
    let mut next = 1 << 24;
    let mut track = |pid, tid| {
        if used.insert((pid, tid)) {
            return Track { pid, tid };
        }
        next += 1;
        Track { pid, tid: next }
    };
    let threads = profile.threads.iter();
    threads
        .map(|thread| {
            let pid = profile.processes[thread.process as usize].pid;
            track(pid, thread.tid)
        })
        .collect()
}
