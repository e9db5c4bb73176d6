//! The thread that takes what a program and its children show while they run.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use overlock_shared::WAITS_PREFIX;

use super::kept::Kept;
use super::parts::{Looks, Who, parts};
use super::quota::Quota;
use super::ring::{Ended, Ring};
use super::shown::{Lasting, Shown};
use super::tasks::{By, Look, State, Tasks, runnable};
use crate::run::without_signals;
use crate::stat::{self, now_ns};

/// The shortest time between two looks. Looks take up to a tenth of the time.
const INTERVAL: Duration = Duration::from_millis(1);

/// The same while no thread waits for a lock.
const IDLE: Duration = Duration::from_millis(4);

/// The number of threads that are looked at in one go.
const MOST_LOOKS: usize = 32;

/// The time between two readings of what the kernel says of quotas, which is in units of it.
const QUOTA_NS: u64 = 10_000_000;

/// Waits have their parts so much later: by then the kernel has said what it says of quotas.
const LATER_NS: u64 = 500_000_000;

/// The time between two looks for new processes.
const MEET: Duration = Duration::from_millis(10);

/// Processes whose files are taken in at one time: looks wait meanwhile.
const MOST_TAKEN: usize = 8;

/// The time between two looks at the names of threads, and at quotas.
const SELDOM: Duration = Duration::from_millis(100);

/// All that was collected.
#[derive(Debug, Default)]
pub struct Collected {
    pub processes: Vec<Shown>,
    pub kept: Kept,
    /// Whether the kernel has refused to say what blocks a thread.
    pub is_refused: bool,
    /// CPUs that the program's quota allows.
    pub quota: Option<f64>,
}

/// The program's mutexes, and what is kept of its waits.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Whether single waits for events are kept.
    pub events: bool,
    /// Whether the mutexes are the C library's.
    pub is_glibc: bool,
}

/// The thread, which runs until it is told to finish.
#[derive(Debug)]
pub struct Collector {
    end: Sender<()>,
    thread: JoinHandle<Collected>,
}

impl Collector {
    /// Begins to look into a directory.
    pub fn start(dir: &Path, tables: Arc<Mutex<stat::Ended>>, wanted: Wanted) -> io::Result<Self> {
        let (end, ends) = channel();
        let dir = dir.to_owned();
        let thread = without_signals(|| {
            thread::spawn(move || Watcher::new(dir, tables, wanted).run(&ends))
        })?;
        Ok(Self { end, thread })
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

/// Has the calling thread get a CPU in time, where that is allowed: a look that is late misses what
/// it should see, and most where CPUs are short.
fn come_first() {
    let first = libc::sched_param { sched_priority: 1 };
    let policy = libc::SCHED_RR | libc::SCHED_RESET_ON_FORK;
    // SAFETY: of the calling thread, and valid for the read. Without the right to it nothing
    // changes.
    unsafe { libc::sched_setscheduler(0, policy, &first) };
}

/// A wait that lasts: its process, its thread, and its beginning.
type Key = (usize, u32, u64);

#[derive(Debug)]
struct Watcher {
    dir: PathBuf,
    /// Takes in those of processes that have ended.
    tables: Arc<Mutex<stat::Ended>>,
    is_glibc: bool,
    cpus: u32,
    /// Files that are mapped.
    known: HashSet<PathBuf>,
    tasks: Tasks,
    looks: HashMap<Key, Looks>,
    /// Waits without parts yet.
    later: VecDeque<(usize, Ended)>,
    quota_read_ns: u64,
    collected: Collected,
}

impl Watcher {
    fn new(dir: PathBuf, tables: Arc<Mutex<stat::Ended>>, wanted: Wanted) -> Self {
        Self {
            dir,
            tables,
            is_glibc: wanted.is_glibc,
            cpus: thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32),
            known: HashSet::new(),
            tasks: Tasks::default(),
            looks: HashMap::new(),
            later: VecDeque::new(),
            quota_read_ns: 0,
            collected: Collected {
                kept: Kept::new(wanted.events),
                ..Collected::default()
            },
        }
    }

    fn run(mut self, ends: &Receiver<()>) -> Collected {
        come_first();
        let mut last: Option<Instant> = None;
        let mut met: Option<Instant> = None;
        let mut pause = INTERVAL;
        while ends.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
            if met.is_none_or(|met| met.elapsed() >= MEET) {
                met = Some(Instant::now());
                self.meet();
                // No look: a program that starts many processes does not wait for it.
                self.take_ended();
            }
            let began = Instant::now();
            if last.is_none_or(|last| last.elapsed() >= SELDOM) {
                last = Some(began);
                self.look_around();
            }
            let is_idle = !self.look();
            self.drain();
            self.settle(now_ns().saturating_sub(LATER_NS));
            pause = if is_idle { IDLE } else { INTERVAL };
            pause = pause.max(began.elapsed() * 9);
        }
        self.meet();
        self.drain();
        self.read_quotas();
        self.settle(u64::MAX);
        self.collected.kept.thin();
        self.collected.is_refused = self.tasks.is_refused;
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
                let pid = ring.header.pid.load(Relaxed);
                let mut quota = Quota::default();
                quota.find(pid);
                self.collected.processes.push(Shown {
                    pid,
                    ring,
                    threads: HashMap::new(),
                    quota,
                    is_glibc: self.is_glibc,
                    taken_ns: 0,
                });
            }
        }
    }

    /// Takes in the files of processes that have ended, where there are many.
    fn take_ended(&mut self) {
        let mut excess = stat::excess(self.known.len()).min(MOST_TAKEN);
        if excess == 0 {
            return;
        }
        // Looks do not wait for a report that is made meanwhile.
        let Ok(mut tables) = self.tables.try_lock() else {
            return;
        };
        let processes = self.collected.processes.iter_mut().enumerate();
        for (index, process) in processes.filter(|(_, process)| process.is_there()) {
            let ring = &mut process.ring;
            if excess == 0 || !stat::has_ended(ring.table_path()) {
                continue;
            }
            ring.drain(|ended| self.later.push_back((index, ended)));
            if let Some(path) = ring.leave_files(&mut tables) {
                process.taken_ns = now_ns();
                self.known.remove(&path);
                excess -= 1;
            }
        }
    }

    /// Looks at what changes seldom.
    fn look_around(&mut self) {
        let processes = self.collected.processes.iter_mut();
        // Another process may have the id by now.
        for process in processes.filter(|process| process.is_there()) {
            process.look_at_threads();
            process.quota.find(process.pid);
            self.collected.quota = process.quota.cpus().or(self.collected.quota);
        }
        self.tasks.close_unused();
    }

    fn read_quotas(&mut self) {
        let now = now_ns();
        if now.saturating_sub(self.quota_read_ns) >= QUOTA_NS {
            self.quota_read_ns = now;
            let processes = self.collected.processes.iter_mut();
            // Waits without parts yet are later than that.
            let since = now.saturating_sub(2 * LATER_NS);
            for process in
                processes.filter(|process| process.is_there() || process.taken_ns > since)
            {
                process.quota.read(now);
            }
        }
    }

    /// Looks at the threads that others wait for. Returns whether there are any.
    fn look(&mut self) -> bool {
        let lasting: Vec<Lasting> = (self.collected.processes.iter().enumerate())
            .filter(|(_, process)| process.is_there())
            .flat_map(|(index, process)| process.lasting(index))
            .collect();
        if !self.later.is_empty() || !lasting.is_empty() {
            self.read_quotas();
        }
        let waits: HashMap<(u32, u32), u64> = lasting
            .iter()
            .map(|wait| ((wait.pid, wait.tid), wait.object))
            .collect();
        let mut seen: HashMap<(u32, u32), Option<Look>> = HashMap::new();
        let mut is_crowded = None;
        for wait in &lasting {
            let tid = match wait.who {
                Who::Holder(tid) => tid,
                Who::Waiter => wait.tid,
            };
            let task = (wait.pid, tid);
            let look = match seen.get(&task) {
                Some(&look) => look,
                None if seen.len() >= MOST_LOOKS => continue,
                None => {
                    let look = self.tasks.look(wait.pid, tid);
                    seen.insert(task, look);
                    look
                }
            };
            let Some(mut look) = look else {
                continue;
            };
            // The lock that the holder itself waits for says more.
            let is_asleep = [By::Call(libc::SYS_futex), By::Unknown].map(State::Blocked);
            if is_asleep.contains(&look.state)
                && let Some(&object) = waits.get(&task).filter(|_| tid != wait.tid)
            {
                look.state = State::Blocked(By::Lock(object));
            }
            let is_crowded = look.state == State::Runnable
                && *is_crowded.get_or_insert_with(|| runnable().is_none_or(|all| all > self.cpus));
            let key = (wait.process, wait.tid, wait.began_ns);
            let looks = self.looks.entry(key).or_default();
            looks.add(now_ns(), wait.who, look, is_crowded);
        }
        !lasting.is_empty()
    }

    /// Takes the waits that have ended.
    fn drain(&mut self) {
        let processes = self.collected.processes.iter_mut().enumerate();
        for (index, process) in processes.filter(|(_, process)| process.is_there()) {
            let later = &mut self.later;
            process.ring.drain(|ended| later.push_back((index, ended)));
        }
    }

    /// Gives waits that have ended by then their parts.
    fn settle(&mut self, until_ns: u64) {
        let Collected {
            processes, kept, ..
        } = &mut self.collected;
        while let Some((_, ended)) = self.later.front()
            && ended.ended_ns <= until_ns
            && let Some((index, mut ended)) = self.later.pop_front()
        {
            let key = (index, ended.tid, ended.began_ns);
            let looks = self.looks.remove(&key).unwrap_or_default();
            if ended.holder == 0 {
                // The waiter came too early to see it.
                ended.holder = looks.holder().unwrap_or(0);
            }
            if ended.released_ns.is_some_and(|at| looks.is_held_after(at)) {
                // Others have passed by the waiter since then, which nobody noted.
                ended.released_ns = None;
            }
            let parts = parts(&ended, &looks, &processes[index].quota.throttled);
            kept.add(index, ended, parts);
        }
    }
}
