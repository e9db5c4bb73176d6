//! pprof's files, with the sample types of Go's: contentions/count and delay/nanoseconds.
//!
//! By waiters they are what Go calls a block profile, by holders a mutex profile. The lock and the
//! other side are labels of the samples.

mod proto;

use std::collections::HashMap;
use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;

use crate::view::{frame_name, name_or_address, plain};
use crate::{By, Frame, FrameKind, Profile, Shown, Sum};

/// Writes the file, packed as all readers expect it.
///
/// # Errors
///
/// Those of `out`.
pub fn write(out: &mut dyn Write, profile: &Profile, shown: Shown) -> io::Result<()> {
    let mut packed = GzEncoder::new(out, Compression::default());
    packed.write_all(&Builder::new(profile, shown).build().encode_to_vec())?;
    packed.finish()?;
    Ok(())
}

struct Builder<'a> {
    profile: &'a Profile,
    shown: Shown,
    made: proto::Profile,
    strings: HashMap<String, i64>,
    functions: HashMap<(i64, i64), u64>,
    mappings: HashMap<(i64, i64), u64>,
    locations: HashMap<Place, u64>,
    /// The locations of each stack.
    stacks: HashMap<Option<u32>, Vec<u64>>,
}

/// A location: its mapping, address, and functions with lines.
type Place = (u64, u64, Vec<(u64, i64)>);

/// Each module has so many of the addresses, so that no two overlap.
const MODULE: u64 = 1 << 40;

impl<'a> Builder<'a> {
    fn new(profile: &'a Profile, shown: Shown) -> Self {
        let mut builder = Self {
            profile,
            shown,
            made: proto::Profile::default(),
            strings: HashMap::new(),
            functions: HashMap::new(),
            mappings: HashMap::new(),
            locations: HashMap::new(),
            stacks: HashMap::new(),
        };
        // The format's rule: string 0 is empty.
        builder.string("");
        builder
    }

    fn build(mut self) -> proto::Profile {
        let contentions = self.value_type("contentions", "count");
        let delay = self.value_type("delay", "nanoseconds");
        let run = &self.profile.run;
        self.made.sample_type = vec![contentions, delay];
        self.made.default_sample_type = delay.kind;
        self.made.period_type = Some(contentions);
        self.made.period = 1;
        self.made.time_nanos = signed(run.date_s.saturating_mul(1_000_000_000));
        self.made.duration_nanos = (run.seconds * 1e9) as i64;
        if !run.command.is_empty() {
            let command = self.string(&plain(&run.command.join(" ")));
            self.made.comment.push(command);
        }
        let mut samples: HashMap<(Vec<u64>, [i64; 3]), [i64; 2]> = HashMap::new();
        for sum in self.shown.sums(self.profile) {
            let locations = self.stack(self.shown.stack(sum));
            let labels = self.labels(sum);
            let [contentions, delay] = samples.entry((locations, labels)).or_default();
            *contentions = contentions.saturating_add(signed(sum.waits));
            *delay = delay.saturating_add(signed(sum.wait_ns));
        }
        let keys = ["lock", "kind", self.other_side()].map(|key| self.string(key));
        let mut samples: Vec<_> = samples.into_iter().collect();
        samples.sort();
        let samples = samples
            .into_iter()
            .map(|((location_id, labels), value)| proto::Sample {
                location_id,
                value: value.to_vec(),
                label: keys
                    .into_iter()
                    .zip(labels)
                    .map(|(key, str)| proto::Label { key, str })
                    .collect(),
            });
        self.made.sample = samples.collect();
        self.made
    }

    /// The label of the stack that a sample has not.
    fn other_side(&self) -> &'static str {
        match self.shown.by {
            By::Waiter => "holder",
            By::Holder => "waiter",
        }
    }

    fn labels(&mut self, sum: &Sum) -> [i64; 3] {
        let lock = &self.profile.locks[sum.lock as usize];
        let other = match self.shown.by {
            By::Waiter => sum.holder_stack,
            By::Holder => Some(sum.stack),
        };
        let other = self.shown.function(self.profile, other);
        [name_or_address(lock), plain(&lock.kind), other].map(|text| self.string(&text))
    }

    fn value_type(&mut self, kind: &str, unit: &str) -> proto::ValueType {
        proto::ValueType {
            kind: self.string(kind),
            unit: self.string(unit),
        }
    }

    fn string(&mut self, text: &str) -> i64 {
        if let Some(&at) = self.strings.get(text) {
            return at;
        }
        let at = self.made.string_table.len() as i64;
        self.made.string_table.push(text.to_owned());
        self.strings.insert(text.to_owned(), at);
        at
    }

    /// The locations of a stack; of one that is not known, a function that says so.
    fn stack(&mut self, stack: Option<u32>) -> Vec<u64> {
        if let Some(known) = self.stacks.get(&stack) {
            return known.clone();
        }
        let (profile, shown) = (self.profile, self.shown);
        let frames = stack.map_or_else(Vec::new, |stack| shown.frames(profile, stack));
        let mut locations = Vec::new();
        // Functions that were inlined belong to the location of the code that has them.
        let mut inlined: Vec<&Frame> = Vec::new();
        for (at, frame) in frames.iter().enumerate() {
            inlined.push(frame);
            if frame.kind != FrameKind::Inlined || at + 1 == frames.len() {
                locations.push(self.location(&inlined));
                inlined.clear();
            }
        }
        if locations.is_empty() {
            let unknown = Frame {
                function: shown.function(profile, stack),
                ..Frame::default()
            };
            locations.push(self.location(&[&unknown]));
        }
        self.stacks.insert(stack, locations.clone());
        locations
    }

    fn location(&mut self, frames: &[&Frame]) -> u64 {
        let last = frames.last().expect("it has a frame");
        let mapping = self.mapping(last, frames.len() > 1);
        let offset = last.offset.unwrap_or_default() % MODULE;
        let address = match mapping {
            0 => offset,
            id => id * MODULE + offset,
        };
        let lines: Vec<(u64, i64)> = frames
            .iter()
            .map(|frame| {
                let line = frame.line.map_or(0, i64::from);
                (self.function(frame), line)
            })
            .collect();
        let next = self.made.location.len() as u64 + 1;
        let key = (mapping, address, lines);
        if let Some(&id) = self.locations.get(&key) {
            return id;
        }
        let line = key.2.iter();
        self.made.location.push(proto::Location {
            id: next,
            mapping_id: mapping,
            address,
            line: line
                .map(|&(function_id, line)| proto::Line { function_id, line })
                .collect(),
        });
        self.locations.insert(key, next);
        next
    }

    fn function(&mut self, frame: &Frame) -> u64 {
        let name = self.string(&frame_name(frame));
        let filename = self.string(&plain(frame.file.as_deref().unwrap_or_default()));
        let next = self.made.function.len() as u64 + 1;
        let id = *self.functions.entry((name, filename)).or_insert(next);
        if id == next {
            self.made
                .function
                .push(proto::Function { id, name, filename });
        }
        id
    }

    /// The module's, or 0 where there is none.
    fn mapping(&mut self, frame: &Frame, has_inlined: bool) -> u64 {
        let Some(module) = &frame.module else {
            return 0;
        };
        let filename = self.string(&plain(module));
        let build_id = self.string(&plain(frame.build_id.as_deref().unwrap_or_default()));
        let next = self.made.mapping.len() as u64 + 1;
        let id = *self.mappings.entry((filename, build_id)).or_insert(next);
        if id == next {
            self.made.mapping.push(proto::Mapping {
                id,
                memory_start: id * MODULE,
                memory_limit: (id + 1) * MODULE,
                filename,
                build_id,
                // So that no reader looks for names again, on a machine without these files.
                has_functions: true,
                ..proto::Mapping::default()
            });
        }
        let made = &mut self.made.mapping[id as usize - 1];
        made.has_filenames |= frame.file.is_some();
        made.has_line_numbers |= frame.line.is_some();
        made.has_inline_frames |= has_inlined;
        id
    }
}

/// The format's numbers are signed.
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
