//! System calls by the machine's own instruction. The drop-in exports the C library's function
//! `syscall`, and so may a program. No replacement of a C function may run in a lock call, since it
//! may itself be the lock's caller.
//!
//! Under Miri, which knows the C library's function alone, and on machines that are not listed
//! here, it is that function.

/// A value that a register can hold.
pub trait Argument {
    /// Returns the register's contents.
    fn bits(self) -> usize;
}

macro_rules! arguments {
    ($($number:ty)*) => {$(
        impl Argument for $number {
            #[inline(always)]
            fn bits(self) -> usize {
                self as usize
            }
        }
    )*};
}

arguments! { i32 i64 isize u32 usize }

impl<T> Argument for *const T {
    #[inline(always)]
    fn bits(self) -> usize {
        self.expose_provenance()
    }
}

impl<T> Argument for *mut T {
    #[inline(always)]
    fn bits(self) -> usize {
        self.expose_provenance()
    }
}

/// Makes the system call of this number, with up to six arguments. Returns the kernel's answer: a
/// negated errno on failure. `errno` stays as it was.
///
/// For use in an unsafe block: the effect on the arguments is the caller's responsibility.
#[macro_export]
#[doc(hidden)]
macro_rules! system_call {
    ($number:expr $(, $argument:expr)* $(,)?) => {{
        #[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
        {
            let mut arguments = [0usize; 6];
            let given = [$($crate::__private::syscall::Argument::bits($argument)),*];
            arguments[..given.len()].copy_from_slice(&given);
            $crate::__private::syscall::call($number as usize, arguments)
        }
        #[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))))]
        $crate::__private::syscall::by_function(|| {
            $crate::__private::syscall::function($number, $($argument),*)
        })
    }};
}

/// # Safety
///
/// That of the system call.
#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
#[inline(always)]
pub unsafe fn call(number: usize, [a, b, c, d, e, f]: [usize; 6]) -> isize {
    let answer: isize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the caller's promise; the kernel changes rax, rcx and r11, and no other register.
    unsafe {
        core::arch::asm!(
            "syscall",
            inlateout("rax") number => answer,
            in("rdi") a,
            in("rsi") b,
            in("rdx") c,
            in("r10") d,
            in("r8") e,
            in("r9") f,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack, preserves_flags)
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the caller's promise; the kernel changes x0, and no other register.
    unsafe {
        core::arch::asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") a => answer,
            in("x1") b,
            in("x2") c,
            in("x3") d,
            in("x4") e,
            in("x5") f,
            options(nostack, preserves_flags)
        );
    }
    answer
}

#[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))))]
pub use libc::syscall as function;

/// Converts the C library's result to the kernel's, and puts `errno` back.
#[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))))]
pub fn by_function(call: impl FnOnce() -> libc::c_long) -> isize {
    let errno = super::clock::errno();
    // SAFETY: the thread's own.
    let before = unsafe { *errno };
    let returned = call();
    if returned != -1 {
        return returned as isize;
    }
    // SAFETY: as above.
    let error = unsafe { errno.replace(before) };
    -(error as isize)
}

#[cfg(all(test, not(miri)))]
mod tests {
    #[test]
    fn errno_stays_as_it_was() {
        let errno = crate::linux::clock::errno();
        // SAFETY: the thread's own.
        unsafe { *errno = 7 };
        // SAFETY: a descriptor that is none.
        let refused = unsafe { system_call!(libc::SYS_close, -1) };
        assert_eq!(refused, -(libc::EBADF as isize));
        // SAFETY: as above.
        assert_eq!(unsafe { *errno }, 7);
    }

    #[test]
    fn answers_are_the_systems_own() {
        // SAFETY: it has no preconditions.
        let process = unsafe { system_call!(libc::SYS_getpid) };
        assert_eq!(process, std::process::id() as isize);
        // SAFETY: a descriptor that is none.
        let refused = unsafe { system_call!(libc::SYS_close, -1) };
        assert_eq!(refused, -libc::EBADF as isize);
        let mut ends = [0; 2];
        // SAFETY: valid for the write of two descriptors.
        let made = unsafe { system_call!(libc::SYS_pipe2, ends.as_mut_ptr(), 0) };
        assert_eq!(made, 0);
        for end in ends {
            // SAFETY: this test's own.
            let closed = unsafe { system_call!(libc::SYS_close, end) };
            assert_eq!(closed, 0);
        }
    }
}
