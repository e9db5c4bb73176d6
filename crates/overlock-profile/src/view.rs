//! The part of a profile that reports show: without wrappers and waits for events, unless those are
//! asked for.

use std::collections::HashMap;

use crate::{Frame, FrameKind, Lock, Profile, Stack, Sum, Thread, brief};

/// Whose stacks a report is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum By {
    /// Those of the threads that waited.
    #[default]
    Waiter,
    /// Those that held the locks meanwhile, which are to blame.
    Holder,
}

/// The choice of waits and frames that a report shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    pub by: By,
    /// Frames that only pass calls on to a lock.
    pub wrappers: bool,
    /// Waits for events, which are no contention.
    pub events: bool,
}

impl Shown {
    /// Whether waits for this lock are shown.
    pub fn shows(self, lock: &Lock) -> bool {
        self.events || !lock.is_event
    }

    /// The sums that are.
    pub fn sums(self, profile: &Profile) -> impl Iterator<Item = &Sum> {
        let is_shown = move |sum: &&Sum| self.shows(&profile.locks[sum.lock as usize]);
        profile.sums.iter().filter(is_shown)
    }

    /// The frames of a stack, the innermost first. If all are wrappers, all are shown.
    pub fn frames(self, profile: &Profile, stack: u32) -> Vec<&Frame> {
        let Stack(frames) = &profile.stacks[stack as usize];
        let all: Vec<&Frame> = frames
            .iter()
            .map(|&frame| &profile.frames[frame as usize])
            .collect();
        let callers: Vec<&Frame> = all
            .iter()
            .filter(|frame| self.wrappers || !frame.is_wrapper)
            .copied()
            .collect();
        if callers.is_empty() { all } else { callers }
    }

    /// The stack that a sum is counted to: null for a holder that is not known.
    pub fn stack(self, sum: &Sum) -> Option<u32> {
        match self.by {
            By::Waiter => Some(sum.stack),
            By::Holder => sum.holder_stack,
        }
    }

    /// The names of the frames from the program to the lock, and the time that was lost there.
    pub fn folded(self, profile: &Profile) -> Vec<(Vec<String>, u64)> {
        let mut known: HashMap<Option<u32>, Vec<String>> = HashMap::new();
        let mut times: HashMap<Vec<String>, u64> = HashMap::new();
        for sum in self.sums(profile) {
            let stack = self.stack(sum);
            let callers = known.entry(stack).or_insert_with(|| {
                stack.map_or_else(
                    || vec![HOLDER_UNKNOWN.to_owned()],
                    |stack| self.names(profile, stack),
                )
            });
            let lock = &profile.locks[sum.lock as usize];
            let mut names = Vec::new();
            if profile.processes.len() > 1 {
                let process = &profile.processes[lock.process as usize];
                names.push(plain(&process.program));
            }
            names.extend(callers.iter().cloned());
            names.push(lock_name(lock));
            *times.entry(names).or_default() += sum.wait_ns;
        }
        let mut folded: Vec<_> = times.into_iter().collect();
        folded.sort();
        folded
    }

    /// The names of a stack's frames, the outermost first.
    fn names(self, profile: &Profile, stack: u32) -> Vec<String> {
        let frames = self.frames(profile, stack);
        if frames.is_empty() {
            return vec![STACK_UNKNOWN.to_owned()];
        }
        frames.into_iter().rev().map(frame_name).collect()
    }

    /// The [short form](brief) of the function that a stack stands for: its innermost frame that is
    /// shown.
    pub fn function(self, profile: &Profile, stack: Option<u32>) -> String {
        match stack.map(|stack| self.frames(profile, stack)) {
            None => HOLDER_UNKNOWN.to_owned(),
            Some(frames) => frames.first().map_or_else(
                || STACK_UNKNOWN.to_owned(),
                |frame| brief(&frame_name(frame)),
            ),
        }
    }
}

const HOLDER_UNKNOWN: &str = "(holder unknown)";
const STACK_UNKNOWN: &str = "(stack unknown)";

/// A frame's name: the function, or the module and the address in it.
pub fn frame_name(frame: &Frame) -> String {
    let has_name = !frame.function.is_empty() && !frame.function.starts_with("0x");
    match &frame.module {
        Some(module) if !has_name && frame.kind != FrameKind::Jit => {
            let file = module.rsplit('/').next().unwrap_or(module);
            let offset = frame.offset.unwrap_or_default();
            plain(&format!("{file}+{offset:#x}"))
        }
        _ if frame.function.is_empty() => STACK_UNKNOWN.to_owned(),
        _ => plain(&frame.function),
    }
}

/// A lock's name with its kind, which never ends in a digit: formats end lines with numbers.
pub fn lock_name(lock: &Lock) -> String {
    plain(&format!("{} ({})", name_or_address(lock), lock.kind))
}

/// A lock's name, else its address.
pub fn name_or_address(lock: &Lock) -> String {
    if lock.name.is_empty() {
        format!("{:#x}", lock.address)
    } else {
        plain(&lock.name)
    }
}

/// A lock's name as a part of a sentence.
pub fn in_sentence(name: &str) -> String {
    match name.strip_prefix("of ") {
        Some(maker) => format!("the lock of {maker}"),
        None => name.to_owned(),
    }
}

/// A thread's name, else its number.
pub fn thread_name(thread: &Thread) -> String {
    if thread.name.is_empty() {
        format!("thread {}", thread.tid)
    } else {
        plain(&thread.name)
    }
}

/// The text on one line.
pub fn plain(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}
