//! One-time messages: each kind of report once for its subject, and notices of what is not looked
//! at.

use std::fmt::Write;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};

use super::out::Out;

/// Capacity for past reports; a power of two.
const TOLD: usize = 1 << 12;

/// Past reports, as hashes that are not 0.
static TABLE: [AtomicU64; TOLD] = [const { AtomicU64::new(0) }; TOLD];

fn hash(kind: u8, a: usize, b: usize) -> u64 {
    let mix = |sum: u64, value: u64| {
        let sum = (sum ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        sum ^ sum >> 29
    };
    [a as u64, b as u64]
        .into_iter()
        .fold(mix(1, kind.into()), mix)
        .max(1)
}

fn places(hash: u64) -> impl Iterator<Item = &'static AtomicU64> {
    (0..TOLD).map(move |step| &TABLE[(hash as usize).wrapping_add(step) % TOLD])
}

/// Whether there is nothing to report: it was reported, or the table is full.
pub(super) fn is_reported(kind: u8, a: usize, b: usize) -> bool {
    let hash = hash(kind, a, b);
    let end = places(hash)
        .map(|place| place.load(Relaxed))
        .find(|seen| *seen == 0 || *seen == hash);
    end != Some(0)
}

/// Whether this is the first time. False if the table is full.
pub(super) fn first(kind: u8, a: usize, b: usize) -> bool {
    let hash = hash(kind, a, b);
    for place in places(hash) {
        match place.compare_exchange(0, hash, Relaxed, Relaxed) {
            Ok(_) => return true,
            Err(seen) if seen == hash => return false,
            Err(_) => {}
        }
    }
    once(REPORTS);
    false
}

pub(super) const CLASSES: u32 = 0;
pub(super) const MEMBERS: u32 = 1;
pub(super) const LOCKS: u32 = 2;
pub(super) const EDGES: u32 = 3;
pub(super) const DEPTH: u32 = 4;
pub(super) const THREADS: u32 = 5;
const REPORTS: u32 = 6;
pub(super) const BLIND: u32 = 7;
pub(super) const WAITED: u32 = 8;
pub(super) const HANDLERS: u32 = 9;

const TEXTS: [&str; 10] = [
    "too many classes; locks of new ones are not in the order",
    "too many locks; new ones are not in the order",
    "too many locks; the classes of new ones are not known",
    "too many dependencies; new ones are not checked",
    "too many locks held; the newest ones of this thread are not seen",
    "too many threads; new ones are not seen",
    "too many reports; there are no more",
    "this process was forked while another thread was at the validator's tables; its locks are not checked",
    "too many classes in signal handlers; what is held with new ones is not checked",
    "too many signal handlers; new ones are not seen",
];

static SAID: AtomicU32 = AtomicU32::new(0);

/// Says once what is not looked at.
#[cold]
pub(super) fn once(what: u32) {
    if SAID.fetch_or(1 << what, Relaxed) & 1 << what != 0 {
        return;
    }
    if let (Some(mut out), Some(text)) = (Out::text(), TEXTS.get(what as usize)) {
        // An `Out` does not fail.
        let _ = writeln!(out, "lockdep: {text}");
    }
}
