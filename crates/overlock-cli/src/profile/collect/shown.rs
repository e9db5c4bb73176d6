//! A process that shows its waits, and what is going on in it.

use std::collections::HashMap;
use std::fs;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use overlock_shared::{ObjectKind, Owned};

use super::owner;
use super::parts::Who;
use super::quota::Quota;
use super::ring::Ring;

/// The number of locks whose owners are looked up in one go.
const MOST_OBJECTS: usize = 64;

/// A process that shows its waits.
#[derive(Debug)]
pub struct Shown {
    pub ring: Ring,
    pub pid: u32,
    /// By their ids.
    pub threads: HashMap<u32, Seen>,
    pub quota: Quota,
    /// Whether its mutexes are the C library's.
    pub is_glibc: bool,
    /// When its files were taken in: 0 before.
    pub taken_ns: u64,
}

/// A thread as it was seen.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub name: String,
    pub cpu_ns: Option<u64>,
}

/// A wait that lasts, as it is shown.
#[derive(Clone, Copy, Debug)]
pub struct Lasting {
    pub process: usize,
    pub pid: u32,
    pub tid: u32,
    pub began_ns: u64,
    pub object: u64,
    pub who: Who,
}

impl Shown {
    /// Whether its files are there.
    pub fn is_there(&self) -> bool {
        self.taken_ns == 0
    }

    /// The waits that last, each with the thread that says why.
    pub fn lasting(&self, process: usize) -> Vec<Lasting> {
        let ring = &self.ring;
        let mut found = Vec::new();
        let mut known: HashMap<u64, Option<u32>> = HashMap::new();
        for (index, word) in ring.in_use.iter().enumerate() {
            let mut bits = word.load(Relaxed);
            while bits != 0 {
                let place = index * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                let live = &ring.live[place];
                // Acquire: pairs with the store after the wait was written.
                let tid = live.tid.load(Acquire);
                let object = live.object.load(Relaxed);
                let holder = live.holder.load(Relaxed);
                let began_ns = live.began_ns.load(Relaxed);
                let owned = Owned::of(ring.owner(object).word.load(Relaxed));
                let noted = match owned.is_of(object) {
                    true if owned.is_released || owned.tid == tid => Who::Waiter,
                    true if owned.tid != 0 => Who::Holder(owned.tid),
                    _ => Who::Holder(holder),
                };
                let is_mutex = ObjectKind::of(live.kind.load(Relaxed)) == Some(ObjectKind::Mutex);
                let named = match (is_mutex, known.len() < MOST_OBJECTS) {
                    (true, true) => *known
                        .entry(object)
                        .or_insert_with(|| owner::named_in(self.pid, object, self.is_glibc)),
                    (true, false) => known.get(&object).copied().flatten(),
                    (false, _) => None,
                };
                let who = match named {
                    Some(0) => Who::Waiter,
                    Some(own) if own == tid => Who::Waiter,
                    // It has passed by those who noted that they wait.
                    Some(other) => Who::Holder(other),
                    None => noted,
                };
                if tid != 0 && who != Who::Holder(0) {
                    found.push(Lasting {
                        process,
                        pid: self.pid,
                        tid,
                        began_ns,
                        object,
                        who,
                    });
                }
            }
        }
        found
    }

    /// Reads names and CPU times, which are gone when the threads are.
    pub fn look_at_threads(&mut self) {
        let Ok(tasks) = fs::read_dir(format!("/proc/{}/task", self.pid)) else {
            return;
        };
        for task in tasks.flatten() {
            let Some(tid) = task.file_name().to_str().and_then(|tid| tid.parse().ok()) else {
                continue;
            };
            let seen = self.threads.entry(tid).or_default();
            if let Ok(name) = fs::read_to_string(task.path().join("comm")) {
                seen.name = name.trim_end().to_owned();
            }
            let cpu = fs::read_to_string(task.path().join("schedstat"));
            let cpu = cpu
                .ok()
                .and_then(|text| text.split(' ').next()?.parse().ok());
            seen.cpu_ns = cpu.or(seen.cpu_ns);
        }
    }
}
