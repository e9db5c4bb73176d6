//! System calls of the locks beside `futex`, as functions: files, memory, the thread's id.
//!
//! All are [raw](super::syscall) calls: they run no function of the C library, keep `errno`, pass
//! no cancellation point, and may be made in signal handlers.

use core::ffi::{CStr, c_int};

/// A file that this code has opened, closed when it is dropped. Not an `OwnedFd`: the C library
/// closes that, which may end the thread.
#[derive(Debug)]
pub struct File(c_int);

impl File {
    /// Opens a file that is there. `O_CLOEXEC` is added to the flags.
    pub fn open(path: &CStr, flags: c_int) -> Option<File> {
        let (here, flags) = (libc::AT_FDCWD, flags | libc::O_CLOEXEC);
        // Miri does not know the call by its number.
        if cfg!(miri) {
            return None;
        }
        // SAFETY: a string, which outlives the call.
        let file = unsafe { crate::system_call!(libc::SYS_openat, here, path.as_ptr(), flags, 0) };
        (file >= 0).then_some(File(file as c_int))
    }

    /// Reads on, and returns the number of bytes: 0 at the end, and on failure.
    pub fn read(&self, bytes: &mut [u8]) -> usize {
        loop {
            let (to, room) = (bytes.as_mut_ptr(), bytes.len());
            // SAFETY: the bytes are valid for the write.
            let length = unsafe { crate::system_call!(libc::SYS_read, self.0, to, room) };
            if length != -(libc::EINTR as isize) {
                return usize::try_from(length).unwrap_or(0);
            }
        }
    }

    /// Reads from this place on, and returns the number of bytes.
    pub fn read_at(&self, bytes: &mut [u8], offset: u64) -> Option<usize> {
        let offset = usize::try_from(offset).ok()?;
        // Registers of 32 bits take half an offset each, and where is not the same everywhere.
        if cfg!(not(target_pointer_width = "64")) {
            return None;
        }
        let (to, room) = (bytes.as_mut_ptr(), bytes.len());
        // SAFETY: the bytes are valid for the write.
        let length = unsafe { crate::system_call!(libc::SYS_pread64, self.0, to, room, offset) };
        usize::try_from(length).ok()
    }

    /// The descriptor, for [`close`] later.
    pub fn into_descriptor(self) -> c_int {
        core::mem::ManuallyDrop::new(self).0
    }
}

impl Drop for File {
    fn drop(&mut self) {
        close(self.0);
    }
}

/// Closes a descriptor, which must be the caller's.
pub fn close(file: c_int) {
    // SAFETY: memory does not depend on it.
    unsafe { crate::system_call!(libc::SYS_close, file) };
}

/// Writes, and returns the number of bytes, or a negated errno.
pub fn write(file: c_int, bytes: &[u8]) -> isize {
    #[cfg(miri)]
    // SAFETY: the bytes are valid for the read.
    return unsafe { libc::write(file, bytes.as_ptr().cast(), bytes.len()) };
    #[cfg(not(miri))]
    // SAFETY: as above.
    unsafe {
        crate::system_call!(libc::SYS_write, file, bytes.as_ptr(), bytes.len())
    }
}

/// Whether there is something of this name.
pub fn exists(path: &CStr) -> bool {
    let (here, path) = (libc::AT_FDCWD, path.as_ptr());
    // SAFETY: a string, which outlives the call.
    unsafe { crate::system_call!(libc::SYS_faccessat, here, path, libc::F_OK) == 0 }
}

/// Maps zero bytes, at an address of the kernel's choice, which count for the process's memory from
/// their first use on. `None` if there is no memory.
pub fn map(length: usize) -> Option<*mut u8> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let address = map_anew(length, access, kind);
    // The last page has the kernel's errors.
    (address != 0 && (address as usize) < usize::MAX - 4095)
        .then(|| core::ptr::with_exposed_provenance_mut(address as usize))
}

#[cfg(miri)]
fn map_anew(length: usize, access: c_int, kind: c_int) -> isize {
    // SAFETY: a new mapping overlaps no other.
    let new = unsafe { libc::mmap(core::ptr::null_mut(), length, access, kind, -1, 0) };
    new.expose_provenance() as isize
}

/// The arguments in memory: there the kernel takes no more than five in registers.
#[cfg(all(target_arch = "s390x", not(miri)))]
fn map_anew(length: usize, access: c_int, kind: c_int) -> isize {
    let arguments = [0, length, access as usize, kind as usize, usize::MAX, 0];
    // SAFETY: a new mapping overlaps no other; the arguments outlive the call.
    unsafe { crate::system_call!(libc::SYS_mmap, arguments.as_ptr()) }
}

#[cfg(not(any(target_arch = "s390x", miri)))]
fn map_anew(length: usize, access: c_int, kind: c_int) -> isize {
    // The older call of these has its arguments in memory, or is not there.
    #[cfg(not(any(target_arch = "x86", target_arch = "arm", target_arch = "m68k")))]
    use libc::SYS_mmap as MMAP;
    #[cfg(any(target_arch = "x86", target_arch = "arm", target_arch = "m68k"))]
    use libc::SYS_mmap2 as MMAP;
    // SAFETY: a new mapping overlaps no other.
    unsafe { crate::system_call!(MMAP, 0usize, length, access, kind, -1, 0) }
}

/// Unmaps what [`map`] has mapped.
///
/// # Safety
///
/// All of it, and nobody uses it any more.
pub unsafe fn unmap<T>(address: *mut T, length: usize) {
    // A mapping that stays is lost memory, no more.
    #[cfg(miri)]
    // SAFETY: the caller's promise.
    unsafe {
        libc::munmap(address.cast(), length)
    };
    #[cfg(not(miri))]
    // SAFETY: the caller's promise.
    unsafe {
        crate::system_call!(libc::SYS_munmap, address, length)
    };
}

/// The kernel's number of the calling thread.
pub fn thread_id() -> u32 {
    #[cfg(miri)]
    // SAFETY: it has no preconditions.
    return unsafe { libc::gettid() } as u32;
    #[cfg(not(miri))]
    // SAFETY: it has no preconditions.
    unsafe {
        crate::system_call!(libc::SYS_gettid) as u32
    }
}

/// The number of CPUs that the calling thread may run on. `None` if there are more than 1024.
pub fn cpus() -> Option<u32> {
    if cfg!(miri) {
        return None;
    }
    let mut mask = [0u64; 16];
    let size = size_of_val(&mask);
    // SAFETY: the mask is valid for the write.
    let written =
        unsafe { crate::system_call!(libc::SYS_sched_getaffinity, 0, size, mask.as_mut_ptr()) };
    // The kernel writes as much as its own mask has, and the rest is zero.
    let cpus = mask.iter().map(|word| word.count_ones()).sum();
    (written > 0 && cpus > 0).then_some(cpus)
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_from_the_beginning_and_from_a_place() {
        assert!(exists(c"/proc/self/comm"));
        assert!(!exists(c"/proc/self/no-such-file"));
        assert!(File::open(c"/proc/self/no-such-file", libc::O_RDONLY).is_none());
        let file = File::open(c"/proc/version", libc::O_RDONLY).unwrap();
        let mut bytes = [0; 13];
        assert_eq!(file.read(&mut bytes[..5]), 5);
        assert_eq!(file.read(&mut bytes[5..]), 8);
        assert_eq!(&bytes, b"Linux version");
        if cfg!(target_pointer_width = "64") {
            assert_eq!(file.read_at(&mut bytes[..7], 6), Some(7));
            assert_eq!(&bytes[..7], b"version");
        }
    }

    #[test]
    fn a_file_is_closed_once_or_is_somebody_elses() {
        let file = File::open(c"/proc/self/comm", libc::O_RDONLY).unwrap();
        let descriptor = file.into_descriptor();
        // SAFETY: it asks for flags.
        let is_open = || unsafe { libc::fcntl(descriptor, libc::F_GETFD) } == libc::FD_CLOEXEC;
        assert!(is_open());
        drop(File(descriptor));
        assert_eq!(write(-1, b"x"), -(libc::EBADF as isize));
    }

    #[test]
    fn memory_is_zero_and_goes_back() {
        let length = 1 << 16;
        let place = map(length).unwrap();
        // SAFETY: mapped above.
        let bytes = unsafe { core::slice::from_raw_parts_mut(place, length) };
        assert!(bytes.iter().all(|&byte| byte == 0));
        bytes.fill(1);
        // SAFETY: mapped above, and used no more.
        unsafe { unmap(place, length) };
        assert_eq!(map(usize::MAX - (1 << 16)), None);
        assert_eq!(map(0), None);
    }

    #[test]
    fn the_threads_id_and_its_cpus_are_those_of_the_c_library() {
        // SAFETY: it has no preconditions.
        assert_eq!(thread_id(), unsafe { libc::syscall(libc::SYS_gettid) }
            as u32);
        // SAFETY: zero bytes are an empty set.
        let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: the set is valid for the write.
        let known = unsafe { libc::sched_getaffinity(0, size_of_val(&set), &mut set) } == 0;
        // SAFETY: a set.
        let count = unsafe { libc::CPU_COUNT(&set) } as u32;
        assert_eq!(cpus(), known.then_some(count));
    }
}
