//! The profile as the page's script reads it: relative times, which its numbers hold exactly, and
//! short rows.

use serde::Serialize;

use crate::advice::{self, Advice, Cause};
use crate::view::{frame_name, name_or_address, plain};
use crate::{
    By, Frame, FrameKind, Lock, Lost, Process, Profile, Run, Shown, Stack, Sum, Thread, Wait, brief,
};

/// More waits make a page slow to open; the longest are in it.
const MOST_WAITS: usize = 50_000;

/// So many locks have advice: those with the longest waits.
const MOST_ADVISED: usize = 1000;

#[derive(Serialize)]
pub struct Page<'a> {
    run: &'a Run,
    causes: &'a [Cause],
    processes: &'a [Process],
    threads: &'a [Thread],
    frames: Vec<Name>,
    stacks: &'a [Stack],
    locks: Vec<Row<'a>>,
    sums: Vec<Total<'a>>,
    waits: Vec<Single>,
    lost: &'a Lost,
    shown: Choice,
    no_gain: Option<String>,
    /// Single waits of the profile that are not in the page.
    left_out: usize,
}

/// The switches when the page opens.
#[derive(Serialize)]
struct Choice {
    by: &'static str,
    wrappers: bool,
    events: bool,
}

#[derive(Serialize)]
struct Name {
    name: String,
    /// The short form, unless it is the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    brief: Option<String>,
    place: String,
    module: String,
    kind: FrameKind,
    is_wrapper: bool,
}

#[derive(Serialize)]
struct Row<'a> {
    process: u32,
    name: String,
    kind: &'a str,
    is_event: bool,
    address: String,
    objects: u64,
    init: Option<u32>,
    acquisitions: Option<u64>,
    is_estimated: bool,
    lengths: Vec<(u64, u64)>,
    hold_avg_ns: Option<f64>,
    hold_max_ns: Option<u64>,
    /// Empty where nothing is to be said.
    advice: String,
}

#[derive(Serialize)]
struct Total<'a> {
    lock: u32,
    stack: u32,
    holder_stack: Option<u32>,
    waits: u64,
    wait_ns: u64,
    max_ns: u64,
    gave_up: u64,
    /// In the order of the script's causes.
    parts: [u64; 7],
    blocked: Vec<(&'a str, u64)>,
}

#[derive(Serialize)]
struct Single {
    thread: u32,
    lock: u32,
    stack: u32,
    began: u64,
    ns: u64,
    holder: Option<u32>,
    holder_stack: Option<u32>,
    released: Option<u64>,
    gave_up: bool,
    parts: [u64; 7],
    blocked: Vec<(String, u64)>,
    behind: Option<u32>,
}

impl<'a> Page<'a> {
    pub fn of(profile: &'a Profile, shown: Shown) -> Self {
        let kept = longest(&profile.waits);
        let advised = advice::of_locks(profile, MOST_ADVISED);
        let mut places = vec![None; profile.waits.len()];
        for (place, &wait) in kept.iter().enumerate() {
            places[wait] = Some(place as u32);
        }
        let waits = kept.iter().map(|&index| {
            let wait = &profile.waits[index];
            let behind = wait.behind.and_then(|behind| places[behind as usize]);
            single(wait, profile.run.began_ns, behind)
        });
        Self {
            run: &profile.run,
            causes: &advice::CAUSES,
            processes: &profile.processes,
            threads: &profile.threads,
            frames: profile.frames.iter().map(name).collect(),
            stacks: &profile.stacks,
            locks: profile.locks.iter().zip(advised).map(row).collect(),
            sums: profile.sums.iter().map(total).collect(),
            waits: waits.collect(),
            lost: &profile.lost,
            no_gain: advice::no_gain(profile),
            shown: Choice {
                by: match shown.by {
                    By::Waiter => "waiter",
                    By::Holder => "holder",
                },
                wrappers: shown.wrappers,
                events: shown.events,
            },
            left_out: profile.waits.len() - kept.len(),
        }
    }
}

/// The indices of the longest waits, in the document's order.
fn longest(waits: &[Wait]) -> Vec<usize> {
    let mut indices: Vec<usize> = (0..waits.len()).collect();
    if waits.len() > MOST_WAITS {
        indices.sort_by_key(|&index| std::cmp::Reverse(waits[index].wait_ns));
        indices.truncate(MOST_WAITS);
        indices.sort_unstable();
    }
    indices
}

fn name(frame: &Frame) -> Name {
    let place = match (&frame.file, frame.line) {
        (Some(file), Some(line)) => format!("{file}:{line}"),
        (Some(file), None) => file.clone(),
        (None, _) => String::new(),
    };
    let name = frame_name(frame);
    Name {
        brief: Some(brief(&name)).filter(|brief| *brief != name),
        name,
        place: plain(&place),
        module: plain(frame.module.as_deref().unwrap_or_default()),
        kind: frame.kind,
        is_wrapper: frame.is_wrapper,
    }
}

fn row((lock, advice): (&Lock, Option<Advice>)) -> Row<'_> {
    Row {
        process: lock.process,
        name: name_or_address(lock),
        kind: &lock.kind,
        is_event: lock.is_event,
        address: format!("{:#x}", lock.address),
        objects: lock.objects,
        init: lock.init,
        acquisitions: lock.acquisitions,
        is_estimated: lock.is_estimated,
        lengths: lock.distribution.buckets().collect(),
        hold_avg_ns: lock.hold_avg_ns,
        hold_max_ns: lock.hold_max_ns,
        advice: advice.map_or_else(String::new, |advice| plain(&advice.text())),
    }
}

fn total(sum: &Sum) -> Total<'_> {
    let blocked = sum.parts.blocked.iter();
    Total {
        lock: sum.lock,
        stack: sum.stack,
        holder_stack: sum.holder_stack,
        waits: sum.waits,
        wait_ns: sum.wait_ns,
        max_ns: sum.max_ns,
        gave_up: sum.gave_up,
        parts: sum.parts.in_order(),
        blocked: blocked.map(|each| (&*each.by, each.ns)).collect(),
    }
}

fn single(wait: &Wait, origin_ns: u64, behind: Option<u32>) -> Single {
    let blocked = wait.parts.blocked.iter();
    Single {
        thread: wait.thread,
        lock: wait.lock,
        stack: wait.stack,
        began: wait.began_ns.saturating_sub(origin_ns),
        ns: wait.wait_ns,
        holder: wait.holder,
        holder_stack: wait.holder_stack,
        released: wait.released_ns.map(|ns| ns.saturating_sub(origin_ns)),
        gave_up: wait.gave_up,
        parts: wait.parts.in_order(),
        blocked: blocked.map(|each| (each.by.clone(), each.ns)).collect(),
        behind,
    }
}
