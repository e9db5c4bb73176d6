//! Where reports go: file descriptors, through a buffer on the stack.

use std::fmt::{self, Write};
use std::os::fd::BorrowedFd;
use std::sync::atomic::AtomicI32;
use std::sync::atomic::Ordering::Relaxed;

/// Reports as text.
pub(super) static TEXT: AtomicI32 = AtomicI32::new(2);
/// Reports as lines of JSON.
pub(super) static JSON: AtomicI32 = AtomicI32::new(-1);

const BUFFER: usize = 512;

/// Writes each line by one call, if it is not longer than the buffer.
pub(super) struct Out {
    fd: i32,
    buffer: [u8; BUFFER],
    length: usize,
}

impl Out {
    /// `None` where there is no such output.
    pub(super) fn new(fd: &AtomicI32) -> Option<Out> {
        match fd.load(Relaxed) {
            ..0 => None,
            fd => Some(Out {
                fd,
                buffer: [0; BUFFER],
                length: 0,
            }),
        }
    }

    fn flush(&mut self) {
        // SAFETY: not -1. If it is closed the call fails; that it is not somebody else's is the
        // business of who chose it.
        let fd = unsafe { BorrowedFd::borrow_raw(self.fd) };
        let mut left = &self.buffer[..self.length];
        while !left.is_empty() {
            match rustix::io::write(fd, left) {
                Ok(written) => left = left.get(written..).unwrap_or_default(),
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => break, // nobody to tell
            }
        }
        self.length = 0;
    }
}

impl Write for Out {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            if self.length == BUFFER {
                self.flush();
            }
            self.buffer[self.length] = byte;
            self.length += 1;
            if byte == b'\n' {
                self.flush();
            }
        }
        Ok(())
    }
}

impl Drop for Out {
    fn drop(&mut self) {
        self.flush();
    }
}

/// Text within a JSON string.
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

/// Text cut or filled to a width.
pub(super) fn width(value: impl fmt::Display) -> usize {
    struct Count(usize);

    impl Write for Count {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0 += text.chars().count();
            Ok(())
        }
    }

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
