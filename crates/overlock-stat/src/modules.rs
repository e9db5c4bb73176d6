//! Modules: which file's code is mapped where, for the reader that looks up names after the process
//! has ended.
//!
//! The source is `/proc/self/maps` and not the loader: the loader's functions take its lock, and
//! constructors run under that and take the program's locks. The file is read again when a call
//! site is outside of all modules known so far.

use core::cell::UnsafeCell;
use core::ffi::CStr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicU64};

use overlock_linux::__private::system_call;
use overlock_shared::{Module, Table};

use crate::Site;
use crate::{clock, table};

/// The least time between a reading that was in vain and the next: code that belongs to no file
/// would cause one for each call site.
const REST_NS: u64 = 100_000_000;

/// The last reading that was in vain.
static LAST_NS: AtomicU64 = AtomicU64::new(0);

/// Longer than any relevant line.
const BUFFER: usize = 4096;

/// Has one user at a time. Static, since threads of the program may have small stacks.
struct Reader {
    busy: AtomicBool,
    buffer: UnsafeCell<[u8; BUFFER]>,
}

// SAFETY: the buffer belongs to the thread that has set `busy`.
unsafe impl Sync for Reader {}

static READER: Reader = Reader {
    busy: AtomicBool::new(false),
    buffer: UnsafeCell::new([0; BUFFER]),
};

/// Whether a call site belongs to a module that is known.
pub fn knows(table: &Table, site: Site) -> bool {
    let count = table.header.modules.load(Acquire) as usize;
    let mut modules = table.modules.iter().take(count);
    modules.any(|module| {
        (module.start.load(Relaxed)..module.end.load(Relaxed)).contains(&(site as u64))
    })
}

/// Reads the modules again if a call site that is new to the table belongs to none of them.
pub fn read_if_unknown(table: &Table, site: Site) {
    let known = || knows(table, site);
    let rested = || clock::now().saturating_sub(LAST_NS.load(Relaxed)) > REST_NS;
    if site != 0 && !known() && rested() {
        read(table);
        if !known() {
            LAST_NS.store(clock::now(), Relaxed);
        }
    }
}

/// Adds the present modules to the table. Does nothing if another thread is doing so.
pub fn read(table: &Table) {
    if !table::may_open() {
        return;
    }
    // Acquire: pairs with the store below; the buffer is the caller's until then.
    if READER.busy.swap(true, Acquire) {
        return;
    }
    // SAFETY: `busy` makes this the only reference, see above.
    let buffer = unsafe { &mut *READER.buffer.get() };
    lines(c"/proc/self/maps", buffer, |line| add(table, line));
    // Release: pairs with the swap above.
    READER.busy.store(false, Release);
}

/// Frees the buffer after fork() in the child: its user does not exist there.
pub fn after_fork() {
    READER.busy.store(false, Relaxed);
    LAST_NS.store(0, Relaxed);
}

/// Calls `each` with the lines of a file, except for lines longer than the buffer.
fn lines(path: &CStr, buffer: &mut [u8; BUFFER], mut each: impl FnMut(&[u8])) {
    // By direct system calls: the C library's functions are cancellation points. SAFETY: the path
    // ends with a zero.
    let file = unsafe {
        system_call!(
            libc::SYS_openat,
            libc::AT_FDCWD,
            path.as_ptr(),
            libc::O_RDONLY | libc::O_CLOEXEC,
        )
    };
    if file < 0 {
        return;
    }
    let mut filled = 0;
    loop {
        let rest = &mut buffer[filled..];
        // SAFETY: `rest` is valid for writes of its length.
        let read = unsafe { system_call!(libc::SYS_read, file, rest.as_mut_ptr(), rest.len()) };
        if read <= 0 {
            break;
        }
        filled += read as usize;
        let mut done = 0;
        while let Some(length) = buffer[done..filled].iter().position(|&byte| byte == b'\n') {
            each(&buffer[done..done + length]);
            done += length + 1;
        }
        if done == 0 && filled == BUFFER {
            break;
        }
        buffer.copy_within(done..filled, 0);
        filled -= done;
    }
    // SAFETY: opened above, and not used elsewhere.
    unsafe { system_call!(libc::SYS_close, file) };
}

/// Adds the module of a line of the maps: `start-end rwxp offset device inode path`.
fn add(table: &Table, line: &[u8]) {
    let Some((start, end, offset, path)) = code(line) else {
        return;
    };
    let header = &table.header;
    let count = header.modules.load(Relaxed) as usize;
    let is_it = |module: &Module| {
        module.start.load(Relaxed) == start
            && module.end.load(Relaxed) == end
            && module.offset.load(Relaxed) == offset
            && module.path.is(path)
    };
    if table.modules.iter().take(count).any(is_it) {
        return;
    }
    let Some(module) = table.modules.get(count) else {
        header.lost_modules.fetch_add(1, Relaxed);
        return;
    };
    module.start.store(start, Relaxed);
    module.end.store(end, Relaxed);
    module.offset.store(offset, Relaxed);
    module.path.set(path);
    // Release: a thread that sees the number (acquire, in `read_if_unknown` and in the reader's
    // process) sees the module.
    header.modules.store(count as u32 + 1, Release);
}

/// Returns start, end, offset and path of a mapping, if it is code of a file.
fn code(line: &[u8]) -> Option<(u64, u64, u64, &[u8])> {
    let mut words = line.splitn(6, |&byte| byte == b' ');
    let mut range = words.next()?.split(|&byte| byte == b'-');
    let (start, end) = (hex(range.next()?)?, hex(range.next()?)?);
    let is_code = words.next()?.get(2) == Some(&b'x');
    let offset = hex(words.next()?)?;
    let (_device, _inode) = (words.next()?, words.next()?);
    let path = words.next()?.trim_ascii_start();
    (is_code && path.starts_with(b"/")).then_some((start, end, offset, path))
}

fn hex(digits: &[u8]) -> Option<u64> {
    let value = |sum: Option<u64>, &digit: &u8| {
        let digit = char::from(digit).to_digit(16)?;
        sum?.checked_mul(16).map(|sum| sum + u64::from(digit))
    };
    digits.iter().fold(Some(0), value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_of_files_is_found_in_maps() {
        let line = b"7f12a000-7f12b000 r-xp 00002000 08:01 1234    /usr/lib/my lib.so";
        let expected = (0x7f12_a000, 0x7f12_b000, 0x2000, &b"/usr/lib/my lib.so"[..]);
        assert_eq!(code(line), Some(expected));
        for other in [
            &b"7f12a000-7f12b000 rw-p 00002000 08:01 1234    /usr/lib/libc.so"[..],
            b"7ffd0000-7ffd1000 r-xp 00000000 00:00 0    [vdso]",
            b"7f12a000-7f12b000 r-xp 00000000 00:00 0 ",
            b"nonsense",
            b"",
        ] {
            assert_eq!(code(other), None);
        }
    }

    #[test]
    fn lines_are_read_whole_through_a_small_buffer() {
        let mut buffer = [0; BUFFER];
        let mut found = false;
        lines(c"/proc/self/maps", &mut buffer, |line| {
            found |= code(line)
                .is_some_and(|(start, end, ..)| (start..end).contains(&(hex as *const () as u64)));
        });
        assert!(found);
    }
}
