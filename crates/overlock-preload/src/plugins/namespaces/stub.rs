//! The first object of a namespace: a shared library that has no names, needs no other, and does
//! nothing. It is a file without a name, in memory if that is possible.

use core::ffi::{CStr, c_int, c_void};
use core::mem::offset_of;
use core::ptr::null_mut;

use overlock_linux::__private::{extras, system_call};

use super::NEW;
use crate::plugins::Open;

#[derive(Debug)]
#[repr(C)]
struct Stub {
    header: Header,
    segments: [Segment; 3],
    dynamic: [[usize; 2]; 6],
    /// The symbol 0, which is none.
    symbols: [usize; 3],
    strings: [u8; 24],
}

#[derive(Debug)]
#[repr(C)]
struct Header {
    magic: [u8; 16],
    kind: u16,
    machine: u16,
    version: u32,
    entry: usize,
    segments: usize,
    sections: usize,
    flags: u32,
    sizes: [u16; 6],
}

#[derive(Debug)]
#[repr(C)]
struct Segment {
    kind: u32,
    flags: u32,
    /// Its place in the file and, twice, in memory.
    places: [usize; 3],
    /// Its size in the file, and in memory.
    sizes: [usize; 2],
    align: usize,
}

const fn segment(kind: u32, place: usize, size: usize, align: usize) -> Segment {
    Segment {
        kind,
        flags: 4 | 2, // readable and writable: the loader completes the addresses
        places: [place; 3],
        sizes: [size; 2],
        align,
    }
}

const _: () = assert!(size_of::<Header>() == 64 && size_of::<Segment>() == 56);

static STUB: Stub = Stub {
    header: Header {
        magic: *b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0",
        kind: 3, // a shared library
        machine: if cfg!(target_arch = "aarch64") {
            183
        } else {
            62
        },
        version: 1,
        entry: 0,
        segments: size_of::<Header>(),
        sections: 0,
        flags: 0,
        sizes: [64, 56, 3, 64, 0, 0],
    },
    segments: [
        // As large as any page.
        segment(libc::PT_LOAD, 0, size_of::<Stub>(), 1 << 16),
        segment(
            libc::PT_DYNAMIC,
            offset_of!(Stub, dynamic),
            size_of::<[[usize; 2]; 6]>(),
            8,
        ),
        // Without one the loader makes stacks executable.
        segment(libc::PT_GNU_STACK, 0, 0, 16),
    ],
    dynamic: [
        [5, offset_of!(Stub, strings)], // DT_STRTAB
        [10, 24],                       // DT_STRSZ
        [6, offset_of!(Stub, symbols)], // DT_SYMTAB
        [11, 24],                       // DT_SYMENT
        [14, 1],                        // DT_SONAME
        [0, 0],
    ],
    symbols: [0; 3],
    strings: *b"\0overlock-namespace\0\0\0\0\0",
};

/// A new file without a name; `None` if that is not possible.
fn file() -> Option<isize> {
    /// Linux 6.3 wants to be told that nobody runs it, and older ones refuse to be.
    const NOT_TO_BE_RUN: c_int = 8;
    let in_memory = |flags: c_int| {
        let name = c"overlock".as_ptr();
        // SAFETY: a name, and flags.
        unsafe { system_call!(libc::SYS_memfd_create, name, flags) }
    };
    let in_folder = |folder: &CStr| {
        let (here, folder) = (libc::AT_FDCWD, folder.as_ptr());
        let flags = libc::O_TMPFILE | libc::O_RDWR | libc::O_CLOEXEC;
        // SAFETY: a path, flags, and a mode.
        unsafe { system_call!(libc::SYS_openat, here, folder, flags, 0o600) }
    };
    let close_on_exec = libc::MFD_CLOEXEC as c_int;
    let is_file = |file: &isize| *file >= 0;
    // A filter that allows a program to load plugins knows `openat`.
    extras::ask(|| in_memory(close_on_exec | NOT_TO_BE_RUN))
        .filter(is_file)
        .or_else(|| extras::ask(|| in_memory(close_on_exec)).filter(is_file))
        .or_else(|| Some(in_folder(c"/dev/shm")).filter(is_file))
        .or_else(|| Some(in_folder(c"/tmp")).filter(is_file))
}

/// Opens the stub in a new namespace; null if that is not possible.
pub(super) fn open(load: Open) -> *mut c_void {
    let Some(file) = file() else {
        return null_mut();
    };
    let (stub, size) = (&raw const STUB, size_of::<Stub>());
    // SAFETY: valid for reads of this size.
    let written = unsafe { system_call!(libc::SYS_write, file, stub, size) };
    let mut path = *b"/proc/self/fd/\0\0\0\0\0\0\0\0\0\0\0";
    digits(file as u32, &mut path[14..]);
    let handle = match written as usize == size {
        // SAFETY: a path, and flags.
        true => unsafe { load(NEW, path.as_ptr().cast(), libc::RTLD_NOW) },
        false => null_mut(),
    };
    // SAFETY: a file of ours.
    unsafe { system_call!(libc::SYS_close, file) };
    handle
}

/// Writes a number of at most ten digits.
fn digits(number: u32, to: &mut [u8]) {
    let count = number.checked_ilog10().unwrap_or(0) as usize + 1;
    let mut rest = number;
    for place in to.iter_mut().take(count).rev() {
        *place = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
}
