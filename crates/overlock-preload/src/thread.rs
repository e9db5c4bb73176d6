//! Per-thread data, in thread-local variables:
//!
//! - the number of locks that the thread reads, as far as it has released them itself;
//! - the number of its calls, for locks that keep no count of their own;
//! - its name, by which locks identify their owner;
//! - the state of a wait that it begins, for its signal handlers.
//!
//! These are thread-local variables of the initial-exec model, two instructions away.
//! `thread_local!` in a shared library calls `__tls_get_addr` at each access: that took 4 of the 10
//! ns of a read acquisition and release. The model requires that the library is there when the
//! program starts, as a preloaded one is. (A library that is loaded later works, too, as long as
//! glibc has spare room for 32 bytes.) Nor may a signal handler, or a lock of an allocator, call
//! the loader's `__tls_get_addr`: after a library with thread-local variables has been loaded, it
//! may allocate. So the others, of `thread_local!`, get their places from a function of this
//! library.

use core::arch::{asm, global_asm};
use core::cell::Cell;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use crate::stat;

global_asm!(
    ".pushsection .tbss,\"awT\",@nobits",
    ".globl overlock_preload_counts",
    ".hidden overlock_preload_counts",
    ".type overlock_preload_counts, @tls_object",
    ".size overlock_preload_counts, 32",
    ".balign 8",
    "overlock_preload_counts:",
    ".zero 32",
    ".popsection",
);

// The place of a thread-local variable of this library, for code that the compiler makes on x86-64.
// Its argument is the number of the module, which is ours, and the variable's offset there. The
// module's place in a thread is fixed, as for `overlock_preload_counts`. (On AArch64 the loader
// chooses such a function itself.)
#[cfg(all(target_arch = "x86_64", not(test)))]
global_asm!(
    ".pushsection .text.overlock_tls,\"ax\",@progbits",
    ".globl __tls_get_addr",
    ".hidden __tls_get_addr",
    ".type __tls_get_addr, @function",
    "__tls_get_addr:",
    ".cfi_startproc",
    "mov rax, qword ptr fs:[0]",
    "add rax, qword ptr [rip + overlock_preload_counts@GOTTPOFF]",
    "sub rax, offset overlock_preload_counts@DTPOFF",
    "add rax, qword ptr [rdi + 8]",
    "ret",
    ".cfi_endproc",
    ".size __tls_get_addr, . - __tls_get_addr",
    ".popsection",
);

#[derive(Debug)]
#[repr(C)]
struct Counts {
    reads: Cell<u32>,
    /// Of another size than `reads`: the compiler would load and store two equal ones as a vector,
    /// and a vector load stalls on the stores of its parts.
    calls: Cell<u64>,
    /// 0 until it is needed. Atomic for signal handlers: all accesses are the thread's own.
    name: AtomicUsize,
    /// See [`Wait`]. Atomic for the same reason.
    wait: AtomicUsize,
}

/// The state of a wait: some of the bits below.
#[derive(Debug)]
pub struct Wait;

impl Wait {
    /// The thread is about to wait: it notes its signals.
    pub const BEGUN: usize = 1;
    /// It has handled a signal since then.
    pub const SIGNALLED: usize = 2;
    /// The first such signal ends the wait even if that is restarted after others.
    pub const ENDS: usize = 4;
    /// It makes system calls, and counts as inside.
    pub const INSIDE: usize = 8;

    /// The present state.
    #[inline]
    pub fn get() -> usize {
        counts(|counts| counts.wait.load(Relaxed))
    }

    /// Sets the state, and returns the former one.
    #[inline]
    pub fn swap(state: usize) -> usize {
        counts(|counts| counts.wait.swap(state, Relaxed))
    }

    /// Adds bits.
    #[inline]
    pub fn add(bits: usize) {
        counts(|counts| counts.wait.fetch_or(bits, Relaxed));
    }

    /// Takes bits away, and returns the former state.
    #[inline]
    pub fn remove(bits: usize) -> usize {
        counts(|counts| counts.wait.fetch_and(!bits, Relaxed))
    }
}

#[inline(always)]
fn mine() -> *const Counts {
    let place: *const Counts;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: reads the thread pointer, which the ABI keeps at its own beginning, and an entry of
    // the global offset table.
    unsafe {
        asm!(
            "mov {place}, qword ptr fs:[0]",
            "add {place}, qword ptr [rip + overlock_preload_counts@GOTTPOFF]",
            place = out(reg) place,
            options(pure, readonly, nostack)
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: reads the thread pointer and an entry of the global offset table.
    unsafe {
        asm!(
            "mrs {place}, tpidr_el0",
            "adrp {offset}, :gottprel:overlock_preload_counts",
            "ldr {offset}, [{offset}, :gottprel_lo12:overlock_preload_counts]",
            "add {place}, {place}, {offset}",
            place = out(reg) place,
            offset = out(reg) _,
            options(pure, readonly, nostack, preserves_flags)
        );
    }
    place
}

#[inline(always)]
fn counts<T>(of: impl FnOnce(&Counts) -> T) -> T {
    // SAFETY: the calling thread's own variable, which lives for as long as it.
    of(unsafe { &*mine() })
}

/// Returns the thread's name, which is not 0 and is never reused. (A thread's pointer and id are.)
/// A child of fork() has its parent's. With statistics the upper half is the thread's id.
#[inline(always)]
pub fn me() -> usize {
    counts(|counts| match counts.name.load(Relaxed) {
        0 => give_name(counts),
        name => name,
    })
}

/// The same, or 0 before the thread has a name: on a fast path that calls nothing.
#[inline(always)]
pub fn known() -> usize {
    counts(|counts| counts.name.load(Relaxed))
}

#[cold]
fn give_name(counts: &Counts) -> usize {
    static NAMES: AtomicUsize = AtomicUsize::new(0);
    let number = NAMES.fetch_add(1, Relaxed) + 1;
    let new = match stat::thread_id() {
        Some(tid) => (tid as usize) << 32 | number & u32::MAX as usize,
        None => number,
    };
    // A signal handler may have set it meanwhile.
    match counts.name.compare_exchange(0, new, Relaxed, Relaxed) {
        Ok(_) => new,
        Err(name) => name,
    }
}

/// The place of a thread's id in glibc: the same in all its versions so far. Chromium relies on it.
#[cfg(target_arch = "x86_64")]
const LIBCS_ID: usize = 0x2d0;

/// Whether it is there. Set before there is a second thread.
static HAS_LIBCS_ID: AtomicBool = AtomicBool::new(false);

/// The id that the C library believes the calling thread to have: in a child of a bare `clone`
/// another one than the kernel's. `None` where that is not known.
#[inline(always)]
pub fn libcs_id() -> Option<u32> {
    HAS_LIBCS_ID.load(Relaxed).then(read_libcs_id)
}

/// Looks whether the C library keeps it there; `id` is what one of its own mutexes has.
pub fn look_for_libcs_id(id: u32) {
    HAS_LIBCS_ID.store(id != 0 && read_libcs_id() == id, Relaxed);
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn read_libcs_id() -> u32 {
    let id: u32;
    // SAFETY: a load within the thread's control block, whose id lies behind the header and a list
    // link. (glibc 2.36 tells debuggers the offset 720 of 2,368 bytes: `_thread_db_pthread_tid`.)
    unsafe {
        asm!(
            "mov {id:e}, dword ptr fs:[{at}]",
            id = out(reg) id,
            at = const LIBCS_ID,
            options(readonly, nostack, preserves_flags)
        );
    }
    id
}

/// Elsewhere nobody is known to look.
#[cfg(not(target_arch = "x86_64"))]
fn read_libcs_id() -> u32 {
    0
}

/// The thread that forked this process, and its id here.
static FORKED: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

/// The id of the thread with this name, with statistics; 0 where that is not known.
pub fn id_of(name: usize) -> u32 {
    let [forked, id] = [&FORKED[0], &FORKED[1]].map(|word| word.load(Relaxed));
    match name == forked && name != 0 {
        true => id as u32,
        false => (name >> 32) as u32,
    }
}

/// Notes the only thread of a child of fork(), whose id this is now.
pub fn forked(id: u32) {
    FORKED[0].store(me(), Relaxed);
    FORKED[1].store(id as usize, Relaxed);
}

/// Returns the number of locks that the thread reads.
#[inline(always)]
pub fn reads() -> u32 {
    counts(|counts| counts.reads.get())
}

#[inline(always)]
pub fn change_reads(change: impl FnOnce(u32) -> u32) {
    counts(|counts| counts.reads.set(change(counts.reads.get())));
}

/// Returns the number of the thread's next call.
#[inline(always)]
pub fn call() -> u32 {
    counts(|counts| counts.calls.get() as u32)
}

/// Begins a call that acquires a share of a lock.
#[inline(always)]
pub fn begin_read() {
    counts(|counts| {
        counts.calls.set(counts.calls.get().wrapping_add(1));
        counts.reads.set(counts.reads.get().wrapping_add(1));
    });
}

/// Begins a call. Returns its number.
#[inline(always)]
pub fn begin_call() -> u32 {
    counts(|counts| {
        let calls = counts.calls.get();
        counts.calls.set(calls.wrapping_add(1));
        calls as u32
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_names_are_unique() {
        let mine = me();
        let mut names: Vec<_> = (0..8)
            .map(|_| std::thread::spawn(me).join().unwrap())
            .collect();
        names.push(mine);
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 9);
        assert!(names[0] > 0 && me() == mine);
    }

    #[test]
    fn each_thread_has_its_own_counts() {
        let before = (reads(), begin_call());
        change_reads(|reads| reads + 3);
        std::thread::spawn(|| {
            assert_eq!((reads(), begin_call(), call()), (0, 0, 1));
            begin_read();
            assert_eq!((reads(), call()), (1, 2));
        })
        .join()
        .unwrap();
        assert_eq!((reads(), call()), (before.0 + 3, before.1 + 1));
        change_reads(|reads| reads - 3);
    }
}
