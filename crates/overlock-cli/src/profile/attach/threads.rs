//! The threads of the process, from `/proc`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::stat::plain;

/// A thread that was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    pub name: String,
    /// Its id as it sees it itself, in its own namespace.
    pub inner: u32,
    /// CPU time in all when it was first seen.
    pub first_ns: u64,
    /// And when it was last seen.
    pub last_ns: u64,
}

/// Threads that were seen, by their ids.
#[derive(Clone, Debug, Default)]
pub struct Threads(BTreeMap<u32, Known>);

impl Threads {
    /// Looks at those that there are now. `is_first` if those that are new may have run before.
    pub fn look(&mut self, pid: u32, is_first: bool) {
        let tasks = fs::read_dir(format!("/proc/{pid}/task"));
        for task in tasks.into_iter().flatten().flatten() {
            let Some(tid) = task.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            let path = task.path();
            let cpu_ns = cpu_ns(&path).unwrap_or_default();
            let known = self.0.entry(tid).or_insert_with(|| Known {
                inner: inner(&path).unwrap_or(tid),
                first_ns: if is_first { cpu_ns } else { 0 },
                ..Known::default()
            });
            known.last_ns = cpu_ns.max(known.last_ns);
            if let Ok(name) = fs::read_to_string(path.join("comm")) {
                known.name = plain(name.trim_end());
            }
        }
    }

    /// Adds one that was seen elsewhere.
    pub fn meet(&mut self, tid: u32) {
        self.0.entry(tid).or_insert_with(|| Known {
            inner: tid,
            ..Known::default()
        });
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Known)> {
        self.0.iter().map(|(&tid, known)| (tid, known))
    }

    /// Which one of a process calls itself so.
    pub fn with_inner(&self, inner: u32) -> Option<u32> {
        // Nearly always the same.
        if self.0.get(&inner).is_some_and(|known| known.inner == inner) {
            return Some(inner);
        }
        let mut all = self.iter();
        all.find_map(|(tid, known)| (known.inner == inner).then_some(tid))
    }

    /// The index of a thread among them.
    pub fn index(&self, tid: u32) -> Option<u32> {
        let known = self.0.contains_key(&tid);
        known.then(|| self.0.range(..tid).count() as u32)
    }
}

fn cpu_ns(task: &Path) -> Option<u64> {
    let text = fs::read_to_string(task.join("schedstat")).ok()?;
    text.split_whitespace().next()?.parse().ok()
}

fn inner(task: &Path) -> Option<u32> {
    let text = fs::read_to_string(task.join("status")).ok()?;
    let ids = text.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    ids.split_whitespace().last()?.parse().ok()
}
