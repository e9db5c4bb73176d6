//! Files for <https://profiler.firefox.com>: waits are markers, and samples that weigh their
//! microseconds.

mod marker;

use std::cmp::Reverse;
use std::collections::HashMap;
use std::io::{self, BufWriter, Write};
use std::time::Duration;

use fxprof_processed_profile as fx;
use fxprof_processed_profile::{
    CategoryColor, CpuDelta, MarkerTiming, SamplingInterval, Timestamp,
};

use crate::view::{frame_name, lock_name, plain, thread_name};
use crate::{Profile, Shown, Wait};
use marker::WaitMarker;

/// So many threads are in view at first: those that waited the longest.
const VISIBLE: usize = 10;

/// Writes the file.
///
/// # Errors
///
/// Those of `out`.
pub fn write(out: &mut dyn Write, profile: &Profile, shown: Shown) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    serde_json::to_writer(&mut out, &Builder::new(profile, shown).build())?;
    writeln!(out)?;
    out.flush()
}

struct Builder<'a> {
    profile: &'a Profile,
    shown: Shown,
    made: fx::Profile,
    category: fx::CategoryHandle,
    /// Names of threads, functions and locks, interned.
    names: HashMap<String, fx::StringHandle>,
}

impl<'a> Builder<'a> {
    fn new(profile: &'a Profile, shown: Shown) -> Self {
        let run = &profile.run;
        let began = Duration::from_secs(run.date_s);
        let mut made = fx::Profile::new(
            &plain(&run.command.join(" ")),
            fx::ReferenceTimestamp::from_duration_since_unix_epoch(began),
            SamplingInterval::from_nanos(1000),
        );
        // All names are known; no server has more of them.
        made.set_symbolicated(true);
        let category = made.add_category("Wait for a lock", CategoryColor::Red);
        Self {
            profile,
            shown,
            made,
            category,
            names: HashMap::new(),
        }
    }

    fn build(mut self) -> fx::Profile {
        let mut waits: HashMap<u32, Vec<&Wait>> = HashMap::new();
        for wait in &self.profile.waits {
            if self.shown.shows(&self.profile.locks[wait.lock as usize]) {
                waits.entry(wait.thread).or_default().push(wait);
            }
        }
        let length = |(_, waits): &(u32, Vec<&Wait>)| {
            Reverse(waits.iter().map(|wait| wait.wait_ns).sum::<u64>())
        };
        let mut waits: Vec<_> = waits.into_iter().collect();
        waits.sort_by_key(|each| (length(each), each.0));
        let begin = Timestamp::from_nanos_since_reference(0);
        let processes: Vec<fx::ProcessHandle> = self
            .profile
            .processes
            .iter()
            .map(|process| {
                let name = plain(&process.program);
                self.made.add_process(&name, process.pid, begin)
            })
            .collect();
        for (place, (index, mut waits)) in waits.into_iter().enumerate() {
            let thread = &self.profile.threads[index as usize];
            let process = processes[thread.process as usize];
            let is_main = thread.tid == self.profile.processes[thread.process as usize].pid;
            let handle = self.made.add_thread(process, thread.tid, begin, is_main);
            self.made.set_thread_name(handle, &thread_name(thread));
            self.made.set_thread_show_markers_in_timeline(handle, true);
            if place < VISIBLE {
                self.made.add_initial_visible_thread(handle);
            }
            if place == 0 {
                self.made.add_initial_selected_thread(handle);
            }
            waits.sort_by_key(|wait| wait.began_ns);
            for wait in waits {
                self.add(handle, wait);
            }
        }
        self.made
    }

    fn add(&mut self, thread: fx::ThreadHandle, wait: &Wait) {
        let profile = self.profile;
        let began_ns = wait.began_ns.saturating_sub(profile.run.began_ns);
        let time = Timestamp::from_nanos_since_reference;
        let (began, ended) = (time(began_ns), time(began_ns.saturating_add(wait.wait_ns)));
        let frames = self.shown.frames(profile, wait.stack);
        let frames: Vec<fx::FrameInfo> = frames
            .into_iter()
            .rev()
            .map(|frame| fx::FrameInfo {
                frame: fx::Frame::Label(self.name(&frame_name(frame))),
                category_pair: self.category.into(),
                flags: fx::FrameFlags::empty(),
            })
            .collect();
        let stack = self.made.intern_stack_frames(thread, frames.into_iter());
        let micros = i32::try_from(wait.wait_ns / 1000).unwrap_or(i32::MAX);
        self.made
            .add_sample(thread, began, stack, CpuDelta::ZERO, micros.max(1));
        let holder = wait.holder.map(|holder| {
            let holder = &profile.threads[holder as usize];
            format!("{} [{}]", thread_name(holder), holder.tid)
        });
        let marker = WaitMarker {
            category: self.category,
            name: self.name(&lock_name(&profile.locks[wait.lock as usize])),
            holder: self.name(&holder.unwrap_or_else(|| "not known".to_owned())),
            held_at: self.name(&self.shown.function(profile, wait.holder_stack)),
            times: marker::times(&wait.parts),
        };
        let timing = MarkerTiming::Interval(began, ended);
        let marker = self.made.add_marker(thread, timing, marker);
        self.made.set_marker_stack(thread, marker, stack);
    }

    fn name(&mut self, text: &str) -> fx::StringHandle {
        if let Some(&known) = self.names.get(text) {
            return known;
        }
        let handle = self.made.intern_string(text);
        self.names.insert(text.to_owned(), handle);
        handle
    }
}
