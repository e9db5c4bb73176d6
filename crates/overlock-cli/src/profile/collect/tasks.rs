//! Looks at threads: whether they run, or what blocks them, as `/proc` tells from outside.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;

/// The reason why a thread is blocked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// A system call, by its number.
    Call(i64),
    Fault,
    /// A signal or a tracer has stopped it.
    Stopped,
    /// It waits itself for the lock at this address.
    Lock(u64),
    /// The kernel does not say.
    Unknown,
}

/// The state of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It runs, or it could.
    Runnable,
    Blocked(By),
}

/// A thread at a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    pub state: State,
    /// Its CPU time, to a tick of the scheduler.
    pub cpu_ns: Option<u64>,
}

/// The open files of threads that are looked at.
#[derive(Debug, Default)]
pub struct Tasks {
    open: HashMap<(u32, u32), Files>,
    /// Whether the kernel has refused to say what blocks a thread.
    pub is_refused: bool,
}

#[derive(Debug)]
struct Files {
    syscall: Option<File>,
    schedstat: Option<File>,
    stat: File,
    is_used: bool,
}

impl Tasks {
    /// Looks at a thread. `None` if there is no such thread any more.
    pub fn look(&mut self, pid: u32, tid: u32) -> Option<Look> {
        let look = self.look_at(pid, tid);
        if look.is_none() {
            // Another thread may get its id.
            self.open.remove(&(pid, tid));
        }
        look
    }

    fn look_at(&mut self, pid: u32, tid: u32) -> Option<Look> {
        let files = match self.open.entry((pid, tid)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(free) => free.insert(Files::open(pid, tid)?),
        };
        files.is_used = true;
        let mut buffer = [0; 256];
        let call = files.syscall.as_ref().map(|file| read(file, &mut buffer));
        let call = match call {
            Some(Ok(text)) if !text.is_empty() => Some(call_of(text)),
            _ => None,
        };
        let state = match call {
            Some(None) => State::Runnable,
            Some(Some(call)) => match files.letter()? {
                b'T' | b't' => State::Blocked(By::Stopped),
                // It went on meanwhile.
                b'R' => State::Runnable,
                b'Z' | b'X' => return None,
                _ => State::Blocked(call),
            },
            None => match files.letter()? {
                // Of a thread that has ended there is nothing to say.
                b'Z' | b'X' => return None,
                letter => {
                    self.is_refused = true;
                    match letter {
                        b'R' => State::Runnable,
                        b'T' | b't' => State::Blocked(By::Stopped),
                        _ => State::Blocked(By::Unknown),
                    }
                }
            },
        };
        let cpu_ns = files.schedstat.as_ref().and_then(|file| {
            let mut buffer = [0; 64];
            number(
                read(file, &mut buffer)
                    .ok()?
                    .split(|&byte| byte == b' ')
                    .next()?,
            )
        });
        Some(Look { state, cpu_ns })
    }

    /// Closes the files of threads that were not looked at since the last call.
    pub fn close_unused(&mut self) {
        self.open
            .retain(|_, files| std::mem::take(&mut files.is_used));
    }
}

impl Files {
    fn open(pid: u32, tid: u32) -> Option<Self> {
        let open = |name| File::open(format!("/proc/{pid}/task/{tid}/{name}"));
        Some(Self {
            stat: open("stat").ok()?,
            syscall: open("syscall").ok(),
            schedstat: open("schedstat").ok(),
            is_used: true,
        })
    }

    /// The letter of its state.
    fn letter(&self) -> Option<u8> {
        let mut buffer = [0; 128];
        let text = read(&self.stat, &mut buffer).ok()?;
        // Behind the name, which may have anything in it.
        let name = text.iter().rposition(|&byte| byte == b')')?;
        text.get(name + 2).copied()
    }
}

/// The beginning of a file.
fn read<'a>(file: &File, buffer: &'a mut [u8]) -> io::Result<&'a [u8]> {
    let length = file.read_at(buffer, 0)?;
    Ok(&buffer[..length])
}

fn number<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    str::from_utf8(text).ok()?.trim().parse().ok()
}

/// The contents of the file `syscall`: `None` of a thread that is not blocked.
fn call_of(text: &[u8]) -> Option<By> {
    let first = text.split(|&byte| byte == b' ').next()?;
    match number::<i64>(first) {
        None => None,
        Some(-1) => Some(By::Fault),
        Some(call) => Some(By::Call(call)),
    }
}

/// How many threads of the machine want a CPU now.
pub fn runnable() -> Option<u32> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    text.split(' ').nth(3)?.split('/').next()?.parse().ok()
}

impl By {
    /// Its name; a lock's is its address, until names are known.
    pub fn name(self) -> String {
        match self {
            By::Call(call) => {
                let known = usize::try_from(call).ok().and_then(syscalls::Sysno::new);
                known.map_or_else(
                    || format!("system call {call}"),
                    |known| known.name().to_owned(),
                )
            }
            By::Fault => "page fault".to_owned(),
            By::Stopped => "stopped".to_owned(),
            By::Lock(object) => format!("lock {object:#x}"),
            By::Unknown => "unknown".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    #[test]
    fn a_thread_that_sleeps_is_told_from_one_that_runs() {
        let (send, receive) = channel();
        let (end, ends) = channel::<()>();
        let tid = || {
            rustix::thread::gettid()
                .as_raw_nonzero()
                .get()
                .cast_unsigned()
        };
        let sleeper = {
            let send = send.clone();
            thread::spawn(move || {
                send.send(tid()).unwrap();
                ends.recv()
            })
        };
        let sleeps = receive.recv().unwrap();
        let mut tasks = Tasks::default();
        let pid = std::process::id();
        let begin = Instant::now();
        let mut look = || tasks.look(pid, sleeps).unwrap().state;
        while look() == State::Runnable && begin.elapsed() < PATIENCE {
            thread::sleep(Duration::from_millis(1));
        }
        let call = By::Call(libc::SYS_futex);
        assert!([By::Unknown, call].map(State::Blocked).contains(&look()));
        let is_refused = tasks.is_refused;
        drop(end);
        _ = sleeper.join();
        // It is joined before the kernel has taken it down.
        while tasks.look(pid, sleeps).is_some() {
            assert!(begin.elapsed() < PATIENCE);
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(tasks.is_refused, is_refused, "an end is no refusal");
        assert_eq!(tasks.look(pid, tid()).unwrap().state, State::Runnable);
    }

    #[test]
    fn system_calls_have_names() {
        assert_eq!(call_of(b"running\n"), None);
        assert_eq!(call_of(b"-1 0x7ffc 0x55\n"), Some(By::Fault));
        assert_eq!(call_of(b"202 0x1 0x2\n"), Some(By::Call(202)));
        assert_eq!(By::Call(libc::SYS_write).name(), "write");
        assert_eq!(By::Call(99_999).name(), "system call 99999");
    }
}
