//! Tools that watch a program's locks and must therefore see the C library's: ThreadSanitizer,
//! helgrind and drd.
//!
//! ThreadSanitizer puts functions of its own in front of pthread's, and takes what it finds behind
//! them for the C library's: some by one look-up, some by another. Helgrind and drd know the C
//! library's functions by their addresses, and would see no lock in ours. `overlock run` refuses
//! such a program. One that a shell starts has this library already, which then leaves it all
//! objects of the C library, does not spin, and says so in a line.
//!
//! AddressSanitizer needs nothing but a word: see [`__asan_default_options`].

use core::ffi::{CStr, c_char};
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use overlock::Linux;
use overlock_linux::__private::variable;

use crate::{elf, real};

// The loader fills in the address, or zero, before any code of this library can run. A look-up
// would not do: one in vain allocates, and the first lock may be the allocator's.
core::arch::global_asm!(
    ".weak __tsan_init",
    ".pushsection .data.rel.ro.overlock_tsan_init, \"aw\"",
    ".balign 8",
    ".globl overlock_tsan_init",
    ".hidden overlock_tsan_init",
    "overlock_tsan_init:",
    ".quad __tsan_init",
    ".popsection",
);

unsafe extern "C" {
    #[link_name = "overlock_tsan_init"]
    static TSAN_INIT: AtomicPtr<()>;
}

/// Functions that ThreadSanitizer puts in front of the C library's, and no other tool all of. No
/// program can wrap `_setjmp`, except in assembly. Linked into the program, the tool exports no
/// name of its own.
const LINKED_IN: [&CStr; 3] = [c"_setjmp", c"pthread_mutex_lock", c"pthread_spin_lock"];

/// The tool that watches the locks of this process.
pub(crate) fn present() -> Option<&'static str> {
    // SAFETY: the word above, which nobody writes once the library is relocated, and which no Rust
    // code writes at all.
    let tsan = unsafe { &TSAN_INIT };
    // Relaxed: the loader has written it before the program's first thread was made.
    if !tsan.load(Relaxed).is_null() || LINKED_IN.into_iter().all(elf::program_defines) {
        return Some("ThreadSanitizer");
    }
    // Valgrind has its programs preload a library for the tool.
    let preloaded = variable(c"LD_PRELOAD")?.to_bytes();
    let has = |name: &[u8]| preloaded.windows(name.len()).any(|part| part == name);
    if has(b"/vgpreload_helgrind") {
        Some("helgrind")
    } else if has(b"/vgpreload_drd") {
        Some("drd")
    } else {
        None
    }
}

/// Makes room for such a tool when the library is loaded: no spins, no system calls of ours, and
/// nothing that several threads write. (The tools do not know an atomic store from another.)
pub(crate) fn start() {
    let Some(tool) = present() else {
        return;
    };
    Linux::use_futex_alone();
    real::find_all();
    for part in [
        "overlock: the C library's locks stay: ",
        tool,
        " has to see them\n",
    ] {
        // Without a standard error there is nobody to tell.
        overlock_linux::__private::calls::write(2, part.as_bytes());
    }
}

/// AddressSanitizer's options, which it asks for before it reads `ASAN_OPTIONS`. As a shared
/// library it refuses to start if any library was loaded before it. This one comes before it
/// without harm, since it replaces none of the functions that allocate. A program's own function of
/// this name precedes it.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn __asan_default_options() -> *const c_char {
    c"verify_asan_link_order=0".as_ptr()
}
