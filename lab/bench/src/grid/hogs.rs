//! Foreign programs that want a CPU all the time: processes, so that they are other programs to the
//! scheduler and share nothing with the locks.

use std::io;
use std::mem::MaybeUninit;

/// Processes that compute until this is dropped. They do not outlive this one, however it ends.
#[derive(Debug)]
pub struct Hogs(Vec<libc::pid_t>);

impl Hogs {
    /// Starts so many.
    ///
    /// # Errors
    ///
    /// If the system has no room for another process. No hog is left then.
    pub fn start(count: usize) -> io::Result<Self> {
        let mut hogs = Self(Vec::with_capacity(count));
        for _ in 0..count {
            hogs.0.push(fork()?);
        }
        Ok(hogs)
    }
}

impl Drop for Hogs {
    fn drop(&mut self) {
        for &hog in &self.0 {
            // SAFETY: a child of ours that is not reaped yet, so its number is still its own.
            unsafe { libc::kill(hog, libc::SIGKILL) };
            // SAFETY: no status is written.
            unsafe { libc::waitpid(hog, std::ptr::null_mut(), 0) };
        }
    }
}

/// The number of a child that computes.
fn fork() -> io::Result<libc::pid_t> {
    let parent = std::process::id();
    // Ctrl-C goes to all processes of the terminal: the child must not run this one's handler,
    // whose pipe it shares.
    let before = block_signals()?;
    // SAFETY: the child of a process with threads makes system calls and computes, no more.
    let child = unsafe { libc::fork() };
    if child == 0 {
        spin(parent);
    }
    let error = io::Error::last_os_error();
    // SAFETY: the mask is the one that the thread had.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut()) };
    if child < 0 { Err(error) } else { Ok(child) }
}

/// Blocks all signals for this thread, and says what was blocked before.
fn block_signals() -> io::Result<libc::sigset_t> {
    let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: the call fills the set.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    // SAFETY: `all` is filled, and the call writes to `before`.
    match unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) } {
        // SAFETY: written by the call, which went well.
        0 => Ok(unsafe { before.assume_init() }),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// The child: spins until killed.
fn spin(parent: u32) -> ! {
    // SAFETY: a system call that concerns this process alone.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    // SAFETY: as above. A child that was orphaned before that call gets no signal any more.
    if unsafe { libc::getppid() }.unsigned_abs() != parent {
        // SAFETY: ends the process without running anything of the parent's.
        unsafe { libc::_exit(0) };
    }
    loop {
        crate::world::calibrate::compute(1 << 20);
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    /// Clock ticks of CPU time that a process has used.
    fn used(pid: libc::pid_t) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let fields = stat.rsplit(") ").next().unwrap();
        fields.split(' ').nth(11).unwrap().parse().unwrap()
    }

    #[test]
    fn hogs_use_cpus_and_end() {
        let hogs = Hogs::start(2).unwrap();
        let pids = hogs.0.clone();
        let start = Instant::now();
        while pids.iter().any(|&pid| used(pid) == 0) {
            assert!(
                start.elapsed() < Duration::from_secs(120),
                "they do nothing"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
        drop(hogs);
        for pid in pids {
            assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
        }
    }
}
