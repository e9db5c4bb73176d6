//! The threads that use locks: their ids, and how long they have lived, the time that waits are a
//! share of.
//!
//! The table has sums of the times at which they began and ended, so a thread writes twice. Its
//! beginning is the kernel's, to a hundredth of a second; the thread-specific key tells its end.

use core::cell::Cell;
use core::ffi::c_void;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use overlock_linux::__private::{ExitKey, system_call};
use overlock_shared::Table;

use crate::{clock, deferred, single, table};

/// The thread's state: 0 before it is counted, else the generation of the process in which it is,
/// and 1 more.
#[derive(Clone, Copy, PartialEq)]
enum State {
    New,
    CountedIn(u32),
    /// Its key was told its end. Destructors of other keys may use locks after that.
    Ended,
}

thread_local! {
    /// It has no destructor and no lazy initialisation, so it exists at any time.
    static STATE: Cell<State> = const { Cell::new(State::New) };
}

/// The number of forks between the program's start and this process.
static GENERATION: AtomicU32 = AtomicU32::new(0);

pub fn generation() -> u32 {
    // Relaxed: written before the child's first other thread is created.
    GENERATION.load(Relaxed)
}

thread_local! {
    /// The thread's id, and in the upper half the generation that it is of; 0 before it is asked
    /// for. One word, for signal handlers.
    static ID: Cell<u64> = const { Cell::new(0) };
}

/// The id of the calling thread; 0 where it is not known, and a filter may not allow to ask.
#[inline]
pub fn id() -> u32 {
    let known = ID.get();
    match known as u32 {
        id if id != 0 && (known >> 32) as u32 == generation() => id,
        _ => ask(),
    }
}

#[cold]
fn ask() -> u32 {
    if !table::may_open() {
        return 0;
    }
    // SAFETY: it has no preconditions.
    let id = unsafe { system_call!(libc::SYS_gettid) } as u32;
    set(id);
    id
}

fn set(id: u32) {
    ID.set(u64::from(generation()) << 32 | u64::from(id));
}

/// Begins the generation of a child, whose only thread has the id `pid`, if that is known.
pub fn after_fork(pid: Option<u32>) {
    GENERATION.store(generation().wrapping_add(1), Relaxed);
    if let Some(id) = pid {
        set(id);
    }
}

static KEY: ExitKey = ExitKey::new(ends);

/// The calling thread uses a lock, or waits.
#[inline]
pub fn works(table: &Table) {
    if STATE.get() != State::CountedIn(generation()) {
        begins(table);
    }
}

#[cold]
fn begins(table: &Table) {
    let before = STATE.replace(State::CountedIn(generation()));
    let now = clock::now();
    let began = match before {
        // A child of fork() has lived no longer than its table.
        State::New if generation() == 0 => now.saturating_sub(age_ns()),
        _ => now,
    };
    let header = &table.header;
    header.thread_begins.fetch_add(began, Relaxed);
    header.threads.fetch_add(1, Relaxed);
    header.alive.fetch_add(1, Relaxed);
    // Without a key it seems to live until the process ends.
    KEY.set(1, || {});
}

unsafe extern "C" fn ends(_: *mut c_void) {
    let counted = STATE.replace(State::Ended);
    if counted != State::CountedIn(generation()) {
        return;
    }
    if let Some(table) = table::get() {
        deferred::flush();
        table.header.thread_ends.fetch_add(clock::now(), Relaxed);
        table.header.alive.fetch_sub(1, Relaxed);
        single::ends();
    }
}

/// The process ends.
pub fn process_ends() {
    if let Some(table) = table::present() {
        deferred::flush();
        table.header.ended_ns.store(clock::now(), Relaxed);
        single::ends();
    }
}

/// How long the thread has been there; 0 if the kernel does not say.
fn age_ns() -> u64 {
    if !table::may_open() {
        return 0;
    }
    let path = c"/proc/thread-self/stat";
    let flags = libc::O_RDONLY | libc::O_CLOEXEC;
    // SAFETY: the path ends with a zero.
    let file = unsafe { system_call!(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags) };
    if file < 0 {
        return 0;
    }
    let mut line = [0_u8; 512];
    // SAFETY: valid for the write.
    let length = unsafe { system_call!(libc::SYS_read, file, line.as_mut_ptr(), line.len()) };
    // SAFETY: opened above, and not used elsewhere.
    unsafe { system_call!(libc::SYS_close, file) };
    let line = line.get(..length.max(0) as usize).unwrap_or_default();
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let clock = libc::CLOCK_BOOTTIME;
    // SAFETY: valid for the write.
    unsafe { system_call!(libc::SYS_clock_gettime, clock, &raw mut now) };
    let now = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
    begin_ns(line).map_or(0, |began| now.saturating_sub(began))
}

/// The 22nd field of the line: ticks of a hundredth of a second since the machine began. The second
/// is a name in parentheses, with anything in it.
fn begin_ns(line: &[u8]) -> Option<u64> {
    const TICK_NS: u64 = 10_000_000;
    let name = line.iter().rposition(|&byte| byte == b')')?;
    let field = line.get(name + 2..)?.split(|&byte| byte == b' ').nth(19)?;
    let digit = |sum: Option<u64>, &digit: &u8| {
        let digit = char::from(digit).to_digit(10)?;
        sum?.checked_mul(10)?.checked_add(digit.into())
    };
    field.iter().fold(Some(0), digit)?.checked_mul(TICK_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_is_found_behind_any_name() {
        let line = b"7 (a) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 1234 20 21";
        assert_eq!(begin_ns(line), Some(12_340_000_000));
        for other in [&b"7 (a) S 1"[..], b"", b"7 (a"] {
            assert_eq!(begin_ns(other), None);
        }
        let age = std::thread::spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(50));
            age_ns()
        });
        assert!((30_000_000..20_000_000_000).contains(&age.join().unwrap()));
    }
}
