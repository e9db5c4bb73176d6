//! Owners of mutexes, as the objects themselves name them: who passes by waiting threads notes that
//! nowhere else.

use std::mem::size_of;

use overlock_shared::{OUR_OWNER, THEIR_OWNER};

/// The first word of a mutex of ours, where this says that it is held.
const LOCKED: u32 = 1;

/// The owner that a mutex of a process names now, 0 while nobody has it; `None` where that is not
/// known.
pub fn named_in(pid: u32, object: u64, is_glibc: bool) -> Option<u32> {
    let at = if is_glibc { THEIR_OWNER } else { OUR_OWNER };
    let (mut word, mut owner) = (0_u32, 0_u32);
    let local = [&mut word, &mut owner].map(|place| libc::iovec {
        iov_base: std::ptr::from_mut(place).cast(),
        iov_len: size_of::<u32>(),
    });
    let object = usize::try_from(object).ok()?;
    let remote = [object, object.checked_add(at)?].map(|at| libc::iovec {
        iov_base: std::ptr::without_provenance_mut(at),
        iov_len: size_of::<u32>(),
    });
    let both = local.len() as libc::c_ulong;
    // SAFETY: the two places are valid for the write; the kernel checks the others, which are not
    // in this process.
    let read = unsafe {
        libc::process_vm_readv(
            pid.cast_signed(),
            local.as_ptr(),
            both,
            remote.as_ptr(),
            both,
            0,
        )
    };
    match owner {
        _ if read != 2 * size_of::<u32>() as isize => None,
        owner if is_glibc => Some(owner),
        // Ours name who had them last.
        _ if word & LOCKED == 0 => Some(0),
        0 => None,
        owner => Some(owner),
    }
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

    /// Fails where the last owner of a mutex that is free stands for its present one.
    #[test]
    fn our_mutex_has_an_owner_while_it_is_held() {
        let mut words = [0_u32; 10];
        words[OUR_OWNER / 4] = 77;
        let mut own = |word| {
            words[0] = word;
            named_in(std::process::id(), words.as_ptr().addr() as u64, false)
        };
        assert_eq!(own(0), Some(0));
        assert_eq!(own(LOCKED), Some(77));
        // Others sleep.
        assert_eq!(own(3 << 10), Some(0));
        assert_eq!(own(3 << 10 | 3), Some(77));
        words[OUR_OWNER / 4] = 0;
        let object = words.as_ptr().addr() as u64;
        assert_eq!(named_in(std::process::id(), object, false), None);
    }
}
