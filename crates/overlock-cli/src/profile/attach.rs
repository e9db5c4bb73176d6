//! `overlock profile PID`: a process that runs already, by BPF.
//!
//! The process is not changed, and nothing is seen but its context switches: a call that gets its
//! lock at once costs what it always does. The programs in the kernel end with this one.

mod assemble;
mod before;
mod kernel;
mod kinds;
mod places;
mod records;
mod stacks;
mod threads;
mod timeline;

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use overlock_profile::{Lost, Process, Profile, Run};

use super::collect::Quota;
use crate::exit::Exit;
use crate::stat::{is_alive, now_ns, plain, say};
use assemble::Assembly;
use before::Before;
use kernel::Programs;
use records::{Off, Record, Wait};
use stacks::Stacks;
use threads::Threads;
use timeline::Timeline;

/// Records that are kept: of 56 and 136 bytes. A process that switches 10,000 times a second fills
/// this in three minutes.
const MOST: usize = 2_000_000;

/// How often the kernel's records are taken.
const INTERVAL: Duration = Duration::from_millis(5);

/// Looks at those lists take one part in so many of the time.
const SHARE: u32 = 20;

/// How often the lists of threads and of control groups are read.
const LOOK: Duration = Duration::from_millis(100);

static STOPPED: AtomicBool = AtomicBool::new(false);

/// Everything that was seen.
#[derive(Debug, Default)]
struct Seen {
    offs: Vec<Off>,
    waits: Vec<Wait>,
    before: Before,
    threads: Threads,
    lost: u64,
}

impl Seen {
    fn add(&mut self, record: Record, stacks: &mut Stacks) {
        let is_full = self.offs.len() + self.waits.len() >= MOST;
        match record {
            Record::Stack(stack) => stacks.add(&stack),
            _ if is_full => self.lost += 1,
            Record::Off(off) => self.offs.push(off),
            Record::Wait(mut wait) => {
                self.before.complete(&mut wait);
                self.waits.push(wait);
            }
        }
    }
}

/// Looks at a process for this long, or until it ends or Ctrl-C.
pub fn attach(pid: u32, limit: Option<Duration>, threshold_ns: u64) -> Result<Profile, Exit> {
    check(pid)?;
    let mut program = name(pid).unwrap_or_default();
    let mut stacks = Stacks::new(pid);
    let mut seen = Seen::default();
    seen.threads.look(pid, true);
    let mut quota = Quota::default();
    quota.find(pid);
    let mut cpus_of_quota = quota.cpus();
    stop_at_signals();
    let mut programs = Programs::start(pid)?;
    let go =
        format!("the goroutines of process {pid} wait unseen: only its threads' waits are shown");
    let unseen = unreadable(pid).or(Some(go).filter(|_| stacks.symbols().is_go()));
    if let Some(what) = unseen {
        say(&format!("overlock: {what}\n"));
    }
    let began_ns = programs.began_ns();
    quota.read(began_ns);
    seen.before = Before::read(pid, &programs, &mut stacks);
    let date = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let began = Instant::now();
    let end = limit.and_then(|limit| began.checked_add(limit));
    let mut looked = began;
    let mut pause = LOOK;
    while !STOPPED.load(Relaxed) && end.is_none_or(|end| Instant::now() < end) && is_alive(pid) {
        if programs.drain(|record| seen.add(record, &mut stacks)) {
            thread::sleep(INTERVAL);
        }
        quota.read(now_ns());
        if looked.elapsed() > pause {
            let look = Instant::now();
            seen.threads.look(pid, false);
            quota.find(pid);
            cpus_of_quota = quota.cpus().or(cpus_of_quota);
            // It may have become another.
            program = name(pid).unwrap_or(program);
            looked = Instant::now();
            // There may be thousands of threads.
            pause = LOOK.max(SHARE * (looked - look));
        }
    }
    programs.stop()?;
    let until_ns = now_ns();
    while !programs.drain(|record| seen.add(record, &mut stacks)) {}
    programs.unfinished(|record| seen.add(record, &mut stacks));
    quota.read(until_ns);
    let lost = programs.lost();
    drop(programs);
    seen.threads.look(pid, false);
    for wait in &seen.waits {
        seen.threads.meet(wait.off.tid);
    }
    let tids: Vec<u32> = seen.threads.iter().map(|(tid, _)| tid).collect();
    let mut timeline = Timeline::new(&tids, seen.offs, seen.waits, until_ns);
    timeline = timeline.throttled(quota.throttled);
    let process = Process { pid, program };
    let mut assembly = Assembly::new(process, &stacks, &seen.threads);
    assembly.lose(Lost {
        waits: lost.waits,
        stacks: lost.stacks,
        events: lost.offs + seen.lost,
        ..Lost::default()
    });
    let mut profile = assembly.fill(&mut timeline, threshold_ns);
    profile.run = Run {
        command: Vec::new(),
        date_s: date.unwrap_or_default().as_secs(),
        began_ns,
        seconds: (until_ns - began_ns) as f64 / 1e9,
        source: "bpf".to_owned(),
        locks: match stacks.is_ours() {
            true => "overlock".to_owned(),
            false => "glibc".to_owned(),
        },
        threshold_ns,
        cpus: thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32),
        quota: cpus_of_quota,
        known: profile.run.known,
    };
    Ok(profile)
}

/// Whether it can be looked at.
fn check(pid: u32) -> Result<(), Exit> {
    /// The inode of the first namespace of process ids, which the kernel has fixed.
    const FIRST: &str = "pid:[4026531836]";
    let no = |why: &str| Err(Exit::usage(format!("process {pid} {why}")));
    if !is_alive(pid) {
        return no("is not there");
    }
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let group = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
    if let Some(group) = group
        .map(str::trim)
        .filter(|group| *group != pid.to_string())
    {
        return no(&format!("is a thread of process {group}"));
    }
    if fs::read_link("/proc/self/ns/pid").is_ok_and(|own| own != Path::new(FIRST)) {
        return Err(Exit::Failed(
            "`profile PID` knows processes by their ids outside of containers: start it there"
                .to_owned(),
        ));
    }
    let mut header = [0; 5];
    let read = fs::File::open(format!("/proc/{pid}/exe"))
        .and_then(|mut exe| std::io::Read::read_exact(&mut exe, &mut header));
    if read.is_ok() && header[4] != 2 {
        return no("runs a program of 32 bits, whose system calls have other numbers");
    }
    Ok(())
}

/// The part of a process that may not be read, for want of the right to trace it.
fn unreadable(pid: u32) -> Option<String> {
    let is_open = |file: &str| fs::File::open(format!("/proc/{pid}/{file}")).is_ok();
    if !is_alive(pid) || is_open("mem") {
        return None;
    }
    Some(match is_open("maps") {
        false => format!(
            "the mappings of process {pid} cannot be read without CAP_SYS_PTRACE: \
             calls and locks have no names"
        ),
        true => format!(
            "the memory of process {pid} cannot be read without CAP_SYS_PTRACE: \
             waits from before the look have no calls"
        ),
    })
}

fn name(pid: u32) -> Option<String> {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(plain(name.trim_end()))
}

/// Has Ctrl-C end the look, and not the program: what was seen is worth reading. A second one ends
/// the program.
fn stop_at_signals() {
    extern "C" fn stop(signal: libc::c_int) {
        STOPPED.store(true, Relaxed);
        // SAFETY: the default action is no function of ours; async-signal-safe.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    let stop: extern "C" fn(libc::c_int) = stop;
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: the handler stores to an atomic, and makes an async-signal-safe call.
        unsafe { libc::signal(signal, stop as libc::sighandler_t) };
    }
}
