//! The thread that takes what a program and its children show while they run.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use overlock_profile::Parts;
use overlock_shared::WAITS_PREFIX;

use super::kept::Kept;
use super::ring::Ring;

/// The time between two looks.
const INTERVAL: Duration = Duration::from_millis(1);

/// The time between two looks for new processes, and at the names of threads.
const SELDOM: Duration = Duration::from_millis(100);

/// A process that shows its waits.
#[derive(Debug)]
pub struct Shown {
    pub ring: Ring,
    pub pid: u32,
    /// By their ids.
    pub threads: HashMap<u32, Seen>,
}

/// A thread as it was seen.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub name: String,
    pub cpu_ns: Option<u64>,
}

/// All that was collected.
#[derive(Debug, Default)]
pub struct Collected {
    pub processes: Vec<Shown>,
    pub kept: Kept,
}

/// The thread, which runs until it is told to finish.
#[derive(Debug)]
pub struct Collector {
    end: Sender<()>,
    thread: JoinHandle<Collected>,
}

impl Collector {
    /// Begins to look into a directory.
    pub fn start(dir: &Path) -> Self {
        let (end, ends) = channel();
        let dir = dir.to_owned();
        let thread = thread::spawn(move || State::new(dir).run(&ends));
        Self { end, thread }
    }

    /// Ends it.
    pub fn finish(self) -> Collected {
        // The thread ends by itself only by a panic, which the join then tells.
        let _ = self.end.send(());
        match self.thread.join() {
            Ok(collected) => collected,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

#[derive(Debug)]
struct State {
    dir: PathBuf,
    /// Files that are mapped, or cannot be.
    known: HashSet<PathBuf>,
    collected: Collected,
}

impl State {
    fn new(dir: PathBuf) -> Self {
        Self {
            dir,
            known: HashSet::new(),
            collected: Collected::default(),
        }
    }

    fn run(mut self, ends: &Receiver<()>) -> Collected {
        let mut last: Option<Instant> = None;
        while ends.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
            if last.is_none_or(|last| last.elapsed() >= SELDOM) {
                last = Some(Instant::now());
                self.meet();
                for process in &mut self.collected.processes {
                    process.look_at_threads();
                }
            }
            self.drain();
        }
        self.meet();
        self.drain();
        self.collected.kept.thin();
        self.collected
    }

    /// Maps the files that are new.
    fn meet(&mut self) {
        let Ok(entries) = fs::read_dir(&self.dir) else {
            return;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let path = entry.path();
            let is_its = name.as_bytes().starts_with(WAITS_PREFIX.as_bytes());
            if !is_its || self.known.contains(&path) {
                continue;
            }
            // One that is not ready yet is met later.
            if let Ok(ring) = Ring::open(&path) {
                self.known.insert(path);
                self.collected.processes.push(Shown {
                    pid: ring.header.pid.load(Relaxed),
                    ring,
                    threads: HashMap::new(),
                });
            }
        }
    }

    fn drain(&mut self) {
        let Collected { processes, kept } = &mut self.collected;
        for (index, process) in processes.iter_mut().enumerate() {
            process.ring.drain(|ended| {
                let parts = Parts {
                    unknown_ns: ended.ns(),
                    ..Parts::default()
                };
                kept.add(index, ended, parts);
            });
        }
    }
}

impl Shown {
    /// Reads names and CPU times, which are gone when the threads are.
    fn look_at_threads(&mut self) {
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
