//! Owners of mutexes, as the objects themselves name them: who passes by waiting threads notes that
//! nowhere else.

use std::mem::size_of;

use overlock_shared::{OUR_OWNER, THEIR_OWNER};

/// The owner that a mutex of a process names now, or named last; `None` where it cannot be read.
pub fn named_in(pid: u32, object: u64, is_glibc: bool) -> Option<u32> {
    let at = if is_glibc { THEIR_OWNER } else { OUR_OWNER };
    let mut owner = 0_u32;
    let local = libc::iovec {
        iov_base: std::ptr::from_mut(&mut owner).cast(),
        iov_len: size_of::<u32>(),
    };
    let remote = libc::iovec {
        iov_base: std::ptr::without_provenance_mut(usize::try_from(object).ok()?.checked_add(at)?),
        iov_len: size_of::<u32>(),
    };
    // SAFETY: the one place is valid for the write; the kernel checks the other, which is not in
    // this process.
    let read = unsafe { libc::process_vm_readv(pid.cast_signed(), &local, 1, &remote, 1, 0) };
    (read == size_of::<u32>() as isize).then_some(owner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_of_the_c_librarys_mutex_is_read() {
        let mut mutex = libc::PTHREAD_MUTEX_INITIALIZER;
        let object = std::ptr::from_mut(&mut mutex);
        let own = || named_in(std::process::id(), object.addr() as u64, true);
        assert_eq!(own(), Some(0));
        // SAFETY: a mutex of this thread alone.
        unsafe { libc::pthread_mutex_lock(object) };
        let tid = rustix::thread::gettid().as_raw_nonzero().get();
        assert_eq!(own(), Some(tid.cast_unsigned()));
        // SAFETY: as above; this thread has it.
        unsafe { libc::pthread_mutex_unlock(object) };
        assert_eq!(own(), Some(0));
        assert_eq!(named_in(std::process::id(), 8, true), None);
    }
}
