//! Whether the machine has a CPU for a spinner: looked up now and then, by a thread that is about
//! to spin.

use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

use super::super::quota::{self, Files, Kernel, first_line};
use super::super::{clock, extras};
use super::LOOK_NS;

/// Of sched.h, where some systems call it SCHED_NORMAL.
const SCHED_OTHER: libc::c_int = 0;
/// The interval after a look that was refused.
const REFUSED_NS: u64 = 10_000 * LOOK_NS;
/// So many looks at a crowd in a row are by chance. From then on each doubles the interval, so
/// often at most.
const CHANCE: u32 = 2;
const DOUBLINGS: u32 = 4;
/// A look takes at most one part in so many of the time.
const SHARE: u64 = 100;
/// In a control group with a quota, or on a part of the machine's CPUs: the largest part of its
/// time that a thread waits for a CPU while spins are allowed.
const DELAY_SHARE: u64 = 16;

/// The CPUs that are online; 0 before [`start`].
static ONLINE: AtomicU32 = AtomicU32::new(0);
/// The time of the next look, and the result of the last one.
static NEXT: AtomicU64 = AtomicU64::new(0);
static ROOM: AtomicBool = AtomicBool::new(false);
/// Looks at a crowd in a row.
static CROWDS: AtomicU32 = AtomicU32::new(0);
/// The last pause of all spins.
static PAUSE_NS: AtomicU64 = AtomicU64::new(0);
/// The spins since then that were worth it, and how many of them outweigh an interruption.
static WORTH: AtomicU32 = AtomicU32::new(0);
const ENOUGH: u32 = 16;
/// The longest one.
const LONGEST_PAUSE_NS: u64 = 64 * LOOK_NS;

/// The time of [`start`], by the clock in nanoseconds and in [`clock::ticks`].
static START: (AtomicU64, AtomicU64) = (AtomicU64::new(0), AtomicU64::new(0));
/// Ticks in [`NANOS`] nanoseconds, measured by each look; before the first one, a guess.
static TICKS: AtomicU64 = AtomicU64::new(NANOS);
const NANOS: u64 = 1024;

/// So many nanoseconds, in [`clock::ticks`].
#[inline]
pub(super) fn ticks_of(nanos: u64) -> u64 {
    nanos.saturating_mul(TICKS.load(Relaxed)) / NANOS
}

/// The other way round.
pub(super) fn nanos_of(ticks: u64) -> u64 {
    ticks.saturating_mul(NANOS) / TICKS.load(Relaxed)
}

fn measure_ticks() {
    let nanos = clock::now().as_nanos().checked_sub(START.0.load(Relaxed));
    let ticks = clock::ticks().checked_sub(START.1.load(Relaxed));
    let (Some(nanos @ LOOK_NS..), Some(ticks)) = (nanos, ticks) else {
        return;
    };
    let ticks = u128::from(ticks) * u128::from(NANOS) / u128::from(nanos);
    // Else the counter was set, as when the machine slept.
    if let Ok(ticks @ 256..=4096) = u64::try_from(ticks) {
        TICKS.store(ticks, Relaxed);
    }
}

/// Runs when the program is loaded.
pub(in super::super) fn start() {
    START.0.store(clock::now().as_nanos(), Relaxed);
    START.1.store(clock::ticks(), Relaxed);
    // SAFETY: has no preconditions.
    let online = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    ONLINE.store(u32::try_from(online).unwrap_or(0), Relaxed);
}

/// Whether a thread may spin at this time of [`clock::ticks`].
#[inline]
pub(super) fn has_room(now: u64) -> bool {
    let next = NEXT.load(Relaxed);
    // The counter may have been set back, as when the machine slept.
    if now < next && next - now <= REFUSED_NS {
        return had_room();
    }
    // Others go by the last look meanwhile.
    let due = NEXT.compare_exchange(next, now + LOOK_NS, Relaxed, Relaxed);
    if due.is_ok() { look(now) } else { had_room() }
}

/// Whether the process may use more than one CPU.
pub(super) fn has_others() -> bool {
    quota::known() >= 2
}

/// The result of the last look.
#[inline]
pub(super) fn had_room() -> bool {
    ROOM.load(Relaxed)
}

/// Says that a spin was worth it.
#[inline]
pub(super) fn is_worth_it() {
    WORTH.fetch_add(1, Relaxed);
}

/// Says that a spinner was interrupted: somebody else wants its CPU. Nobody spins for a while, and
/// for longer if that happens again before enough spins were worth it.
#[cold]
pub(super) fn is_crowded(now: u64) {
    let pause = match WORTH.swap(0, Relaxed) {
        ENOUGH.. => LOOK_NS,
        _ => (2 * PAUSE_NS.load(Relaxed)).clamp(LOOK_NS, LONGEST_PAUSE_NS),
    };
    PAUSE_NS.store(pause, Relaxed);
    ROOM.store(false, Relaxed);
    NEXT.store(now + pause, Relaxed);
}

#[cold]
#[inline(never)]
fn look(now: u64) -> bool {
    let room = extras::ask(|| room(&Kernel)).flatten();
    measure_ticks();
    ROOM.store(room == Some(true), Relaxed);
    let took = clock::ticks().saturating_sub(now);
    let crowds = match room {
        Some(false) => CROWDS.load(Relaxed).saturating_add(1),
        _ => 0,
    };
    CROWDS.store(crowds, Relaxed);
    let pause = match room {
        // A sandbox may log each refusal.
        None => REFUSED_NS,
        Some(_) => interval(crowds).max(SHARE * took),
    };
    NEXT.store(now + pause, Relaxed);
    room == Some(true)
}

/// The time to the next look after so many at a crowd in a row.
fn interval(crowds: u32) -> u64 {
    LOOK_NS << crowds.saturating_sub(CHANCE).min(DOUBLINGS)
}

/// Whether no more tasks are runnable than there are CPUs, the caller among them; the hypervisor
/// takes no CPU away; and none of the process's share is wanted by its other threads.
/// None if the system does not say.
fn room<F: Files>(files: &F) -> Option<bool> {
    if !has_others() {
        return Some(false);
    }
    let (online, granted) = (ONLINE.load(Relaxed), quota::known());
    let is_crowded = runnable(files)? > online;
    Some(!is_crowded && !STOLEN.is_much(files) && (granted >= online || !is_delayed(files)))
}

/// The calling thread's scheduling policy; None if the system does not say.
#[cold]
fn policy() -> Option<libc::c_int> {
    if cfg!(miri) {
        return None;
    }
    // SAFETY: it changes nothing.
    let policy = extras::ask(|| unsafe { crate::system_call!(libc::SYS_sched_getscheduler, 0) });
    let policy = policy.filter(|&policy| policy >= 0)?;
    Some(policy as libc::c_int & !libc::SCHED_RESET_ON_FORK)
}

/// Whether the calling thread has another policy than most, or one that is not known.
#[cold]
#[inline(never)]
pub(super) fn is_special() -> bool {
    policy().is_none_or(|policy| ![SCHED_OTHER, libc::SCHED_BATCH].contains(&policy))
}

/// Whether the calling thread is known to have a real-time priority.
#[cold]
#[inline(never)]
pub(super) fn is_realtime() -> bool {
    let realtime = [libc::SCHED_FIFO, libc::SCHED_RR, libc::SCHED_DEADLINE];
    policy().is_some_and(|policy| realtime.contains(&policy))
}

/// Of the time, the part that a hypervisor may take while spins are allowed.
const STOLEN_SHARE: u64 = 20;
/// Looks between two at the stolen time.
const STOLEN_LOOKS: u32 = 100;

/// The time that the hypervisor took: the times of all CPUs and the stolen part, in the kernel's
/// ticks, at the last look; the looks until the next one; and whether it was too much.
struct Stolen {
    all: AtomicU64,
    stolen: AtomicU64,
    looks: AtomicU32,
    is_much: AtomicBool,
}

static STOLEN: Stolen = Stolen {
    all: AtomicU64::new(0),
    stolen: AtomicU64::new(0),
    looks: AtomicU32::new(0),
    is_much: AtomicBool::new(false),
};

impl Stolen {
    fn is_much<F: Files>(&self, files: &F) -> bool {
        let looks = self.looks.load(Relaxed);
        self.looks.store((looks + 1) % STOLEN_LOOKS, Relaxed);
        if looks > 0 {
            return self.is_much.load(Relaxed);
        }
        if let Some((all, stolen)) = Self::times(files) {
            let all_before = self.all.swap(all, Relaxed);
            let stolen_before = self.stolen.swap(stolen, Relaxed);
            let (all, stolen) = (
                all.saturating_sub(all_before),
                stolen.saturating_sub(stolen_before),
            );
            self.is_much.store(stolen > all / STOLEN_SHARE, Relaxed);
        }
        self.is_much.load(Relaxed)
    }

    /// The first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal, and two
    /// more.
    fn times<F: Files>(files: &F) -> Option<(u64, u64)> {
        first_line(files, "/proc/stat", |line| {
            let times = line.strip_prefix("cpu ")?.split_ascii_whitespace().take(8);
            let (mut all, mut last) = (0, 0);
            for time in times {
                last = time.parse().ok()?;
                all += last;
            }
            Some((all, last))
        })
    }
}

/// The runnable tasks of the machine, from the fourth field of /proc/loadavg: `3/107`.
fn runnable<F: Files>(files: &F) -> Option<u32> {
    first_line(files, "/proc/loadavg", |line| {
        line.split(' ').nth(3)?.split('/').next()?.parse().ok()
    })
}

thread_local! {
    /// The time of the thread's last look, and how long it had waited for a CPU until then.
    static DELAY: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

/// Whether the thread has waited for a CPU, or for its group's next period, since its last look.
fn is_delayed<F: Files>(files: &F) -> bool {
    // The second field: nanoseconds on a run queue.
    let delay = first_line(files, "/proc/thread-self/schedstat", |line| {
        line.split(' ').nth(1)?.parse().ok()
    });
    let Some(delay) = delay else {
        return true;
    };
    let now = clock::now().as_nanos();
    let (since, before) = DELAY.replace((now, delay));
    delay.saturating_sub(before) > now.saturating_sub(since) / DELAY_SHARE
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One file at each path.
    struct These(&'static [(&'static str, &'static str)]);

    impl Files for These {
        type File = &'static str;

        fn exists(&self, path: &str) -> bool {
            self.open(path).is_some()
        }

        fn open(&self, path: &str) -> Option<&'static str> {
            self.0
                .iter()
                .find(|(name, _)| *name == path)
                .map(|(_, text)| *text)
        }

        fn read(&self, file: &mut &'static str, buffer: &mut [u8]) -> usize {
            let (now, rest) = file.split_at(file.len().min(buffer.len()));
            buffer[..now.len()].copy_from_slice(now.as_bytes());
            *file = rest;
            now.len()
        }
    }

    #[test]
    fn runnable_tasks_are_read_from_the_load() {
        let files = These(&[("/proc/loadavg", "4.15 5.87 4.27 4/107 31421\n")]);
        assert_eq!(runnable(&files), Some(4));
        assert_eq!(runnable(&These(&[])), None);
        assert_eq!(runnable(&These(&[("/proc/loadavg", "4.15 5.87")])), None);
    }

    #[test]
    fn a_crowd_that_stays_is_looked_at_seldom() {
        let intervals = [0, 1, 2, 3, 4, 5, 6, 7, u32::MAX].map(|crowds| interval(crowds) / LOOK_NS);
        assert_eq!(intervals, [1, 1, 1, 2, 4, 8, 16, 16, 16]);
    }

    #[test]
    fn stolen_time_is_seen() {
        let stolen = Stolen {
            all: AtomicU64::new(0),
            stolen: AtomicU64::new(0),
            looks: AtomicU32::new(0),
            is_much: AtomicBool::new(false),
        };
        let stat = |text| These(Box::leak(Box::new([("/proc/stat", text)])));
        assert!(!stolen.is_much(&stat("cpu  500 0 100 9000 0 0 0 0 0 0\ncpu0 1 1\n")));
        for _ in 1..STOLEN_LOOKS {
            assert!(!stolen.is_much(&stat("")), "it is not read each time");
        }
        assert!(stolen.is_much(&stat("cpu  510 0 110 9060 0 0 0 20 0 0\n")));
    }

    #[test]
    fn a_thread_that_waits_for_cpus_is_delayed() {
        let _ = is_delayed(&These(&[("/proc/thread-self/schedstat", "5 100 1\n")]));
        assert!(!is_delayed(&These(&[(
            "/proc/thread-self/schedstat",
            "5 100 1\n"
        )])));
        // A second in far less than that.
        assert!(is_delayed(&These(&[(
            "/proc/thread-self/schedstat",
            "5 1000000100 1\n"
        )])));
        assert!(is_delayed(&These(&[])));
    }
}
