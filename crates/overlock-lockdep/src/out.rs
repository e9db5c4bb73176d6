//! Output of reports: to a reader of the FIFO, or to file descriptors; through a buffer that holds
//! a whole report, so that the reports of several processes are not mixed.

use std::ffi::CStr;
use std::fmt::{self, Write};
use std::mem;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicI32, AtomicU8};

use overlock_core::platform::backoff_sleep;

use super::symbol;
use crate::mapped::Temporary;
use overlock_linux::__private::calls::{self, File};
use overlock_linux::__private::{extras, system_call};
use overlock_linux::Linux;

pub(super) static TEXT: AtomicI32 = AtomicI32::new(2);
/// Reports as lines of JSON.
pub(super) static JSON: AtomicI32 = AtomicI32::new(-1);

/// The path of the FIFO for reports as text with [marks](symbol::Marks), and a zero; empty at
/// first.
static READER: [AtomicU8; MOST_PATH] = [const { AtomicU8::new(0) }; MOST_PATH];

const MOST_PATH: usize = 256;

/// Sets the FIFO, before there is a second thread.
pub(super) fn set_reader(path: &CStr) {
    let path = path.to_bytes_with_nul();
    if path.len() <= MOST_PATH {
        for (to, from) in READER.iter().zip(path) {
            to.store(*from, Relaxed);
        }
    }
}

/// Opens the FIFO, if it has a reader.
fn reader() -> Option<i32> {
    let path = READER.each_ref().map(|byte| byte.load(Relaxed));
    let path = CStr::from_bytes_until_nul(&path).ok()?;
    if path.is_empty() {
        return None;
    }
    let open = |flags| File::open(path, flags | libc::O_NONBLOCK);
    extras::ask(|| {
        // Refused if nobody reads.
        drop(open(libc::O_WRONLY)?);
        // A thread that could read it gets no SIGPIPE when the reader closes.
        open(libc::O_RDWR).map(File::into_descriptor)
    })?
}

/// The longest delay by a reader for a reporting thread, in milliseconds.
const TIMEOUT: u32 = 1_000;

/// Room for a report: the longest have two times sixteen dependencies with sixteen callers each.
const BUFFER: usize = 1 << 17;

/// Without memory for that.
const SMALL: usize = 128;

/// Writes all by one call, if it is not longer than the buffer.
pub(super) struct Out {
    fd: i32,
    is_readers: bool,
    is_locked: bool,
    timeout: u32,
    small: [u8; SMALL],
    large: Option<Temporary<[u8; BUFFER]>>,
    length: usize,
}

impl Out {
    /// `None` where there is no such output.
    pub(super) fn new(fd: &AtomicI32) -> Option<Out> {
        match fd.load(Relaxed) {
            ..0 => None,
            fd => Some(Out::to(fd, false)),
        }
    }

    /// Returns the output for reports as text.
    pub(super) fn text() -> Option<Out> {
        match reader() {
            Some(reader) => Some(Out::to(reader, true)),
            None => Out::new(&TEXT),
        }
    }

    fn to(fd: i32, is_readers: bool) -> Out {
        Out {
            fd,
            is_readers,
            is_locked: false,
            timeout: TIMEOUT,
            small: [0; SMALL],
            large: Temporary::new(),
            length: 0,
        }
    }

    /// Whether it is the FIFO.
    pub(super) fn has_reader(&self) -> bool {
        self.is_readers
    }

    /// Marks addresses, if the reader understands that, until the result is dropped.
    pub(super) fn marks(&self) -> symbol::Marks {
        symbol::Marks::set(self.is_readers)
    }

    fn buffer(&mut self) -> &mut [u8] {
        match &mut self.large {
            Some(large) => &mut large[..],
            None => &mut self.small,
        }
    }

    /// Locks the FIFO until it is closed: a process writes a long report in several pieces.
    fn lock(&mut self) {
        let is_first = !mem::replace(&mut self.is_locked, true);
        if !is_first || !self.is_readers || cfg!(miri) {
            return;
        }
        let try_lock = || {
            let flags = libc::LOCK_EX | libc::LOCK_NB;
            // SAFETY: a file of this thread's own.
            unsafe { system_call!(libc::SYS_flock, self.fd, flags) }
        };
        // A process that has stopped keeps it.
        while self.timeout > 0 && extras::ask(try_lock) == Some(-(libc::EWOULDBLOCK as isize)) {
            self.timeout -= 1;
            backoff_sleep::<Linux>(1_000_000);
        }
        self.timeout = TIMEOUT;
    }

    fn flush(&mut self) {
        self.lock();
        const INTERRUPTED: isize = -(libc::EINTR as isize);
        const AGAIN: isize = -(libc::EAGAIN as isize);
        let (fd, length) = (self.fd, self.length);
        let (is_readers, mut timeout) = (self.is_readers, self.timeout);
        let mut left = &self.buffer()[..length];
        while !left.is_empty() {
            match calls::write(fd, left) {
                written @ 0.. => left = left.get(written as usize..).unwrap_or_default(),
                INTERRUPTED => {}
                AGAIN if is_readers && timeout > 0 => {
                    timeout -= 1;
                    backoff_sleep::<Linux>(1_000_000);
                }
                _ => break, // nowhere to report it
            }
        }
        self.timeout = timeout;
        self.length = 0;
    }
}

impl Write for Out {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            if self.length == self.buffer().len() {
                self.flush();
            }
            let length = self.length;
            self.buffer()[length] = byte;
            self.length += 1;
        }
        Ok(())
    }
}

impl Drop for Out {
    fn drop(&mut self) {
        self.flush();
        if self.is_readers {
            calls::close(self.fd);
        }
    }
}

/// Escapes text for a JSON string.
pub(super) struct Escaped<T>(pub(super) T);

impl<T: fmt::Display> fmt::Display for Escaped<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        struct Escape<'a, 'b>(&'a mut fmt::Formatter<'b>);

        impl Write for Escape<'_, '_> {
            fn write_str(&mut self, text: &str) -> fmt::Result {
                for each in text.chars() {
                    match each {
                        '"' | '\\' => write!(self.0, "\\{each}")?,
                        ..' ' => write!(self.0, "\\u{:04x}", each as u32)?,
                        _ => self.0.write_char(each)?,
                    }
                }
                Ok(())
            }
        }

        write!(Escape(f), "{}", self.0)
    }
}

/// Returns the width of a value as text.
pub(super) fn width(value: impl fmt::Display) -> usize {
    struct Count(usize);

    impl Write for Count {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0 += text.chars().count();
            Ok(())
        }
    }

    let _marks = symbol::Marks::set(false);
    let mut count = Count(0);
    // Counting does not fail.
    let _ = write!(count, "{value}");
    count.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_json_forbids_in_strings_is_escaped() {
        assert_eq!(Escaped("a\"b\\c\n").to_string(), "a\\\"b\\\\c\\u000a");
    }
}
