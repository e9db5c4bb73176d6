//! One library behind one name: `dlopen`, `dlmopen`, `dlsym` and `dlvsym`.
//!
//! An object of ours must not be used by the C library's code, nor the other way round. The loader
//! binds a name to the first definition in the program's order, which is ours. A plugin gets the C
//! library's past us in three ways:
//!
//! - By `RTLD_DEEPBIND`, its own definitions and those of its libraries come before the program's.
//!   The flag is taken out, unless the plugin defines a name that the program has, too: without the
//!   flag the plugin would get the program's function in place of its own. Then the flag stays, and
//!   the plugin's slots are bound to our functions.
//! - By `dlmopen`, it has a C library of its own. Its slots are bound to our functions.
//! - By a handle, or by `RTLD_NEXT` in a library that is loaded later. The answer is our function,
//!   except for a library behind us in the program's order that wraps the function.
//!
//! Slots are bound when the plugin's constructors have run: what these do is the C library's.
//!
//! `dlopen` and `dlsym` depend on their caller, by its return address. So our functions jump to the
//! C library's.

mod own;
mod slots;

use core::arch::naked_asm;
use core::ffi::{CStr, c_char, c_int, c_long, c_void};
use core::mem::transmute;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use overlock_linux::__private::system_call;

use crate::config;
use crate::elf;
use crate::real::Early;
use slots::Objects;

static DLOPEN: Early = Early::new(c"dlopen");
static DLMOPEN: Early = Early::new(c"dlmopen");
static DLSYM: Early = Early::new(c"dlsym");
static DLVSYM: Early = Early::new(c"dlvsym");

/// `LM_ID_BASE`, the program's own namespace.
const PROGRAMS: c_long = 0;

/// The next step of one of the functions here.
#[derive(Debug)]
#[repr(C)]
struct Next {
    /// The function to jump to; 0 to return.
    function: usize,
    /// Its second argument; or the result.
    value: usize,
}

impl Next {
    fn jump(function: &Early, second: usize) -> Next {
        // A null function is one that the C library lacks: then the result is null.
        match function.get().addr() {
            0 => Next::result(0),
            function => Next {
                function,
                value: second,
            },
        }
    }

    fn result(value: usize) -> Next {
        Next { function: 0, value }
    }
}

/// Looks these functions up when the library is loaded.
pub(crate) fn start() {
    for function in [&DLOPEN, &DLMOPEN, &DLSYM, &DLVSYM] {
        function.find();
    }
}

/// Defines functions that ask `hook(three arguments, return address)` what to do. The function that
/// they jump to sees their own caller.
macro_rules! hooked {
    ($($name:ident => $hook:path;)*) => {$(
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            #[cfg(target_arch = "x86_64")]
            naked_asm!(
                ".cfi_startproc",
                "push rdi",
                ".cfi_adjust_cfa_offset 8",
                "push rdx",
                ".cfi_adjust_cfa_offset 8",
                "mov rcx, [rsp + 16]",
                "sub rsp, 8",
                ".cfi_adjust_cfa_offset 8",
                "call {hook}",
                "add rsp, 8",
                ".cfi_adjust_cfa_offset -8",
                "mov rsi, rdx",
                "pop rdx",
                ".cfi_adjust_cfa_offset -8",
                "pop rdi",
                ".cfi_adjust_cfa_offset -8",
                "test rax, rax",
                "jz 2f",
                "jmp rax",
                "2:",
                "mov rax, rsi",
                "ret",
                ".cfi_endproc",
                hook = sym $hook,
            );
            #[cfg(target_arch = "aarch64")]
            naked_asm!(
                ".cfi_startproc",
                "stp x29, x30, [sp, #-32]!",
                ".cfi_adjust_cfa_offset 32",
                ".cfi_rel_offset x30, 8",
                "stp x0, x2, [sp, #16]",
                "mov x3, x30",
                "bl {hook}",
                "mov x16, x0",
                "ldp x0, x2, [sp, #16]",
                "ldp x29, x30, [sp], #32",
                ".cfi_adjust_cfa_offset -32",
                ".cfi_restore x30",
                "cbz x16, 2f",
                "br x16",
                "2:",
                "mov x0, x1",
                "ret",
                ".cfi_endproc",
                hook = sym $hook,
            );
        }
    )*};
}

hooked! {
    dlopen => opens;
    dlmopen => opens_apart;
    dlsym => finds;
    dlvsym => finds_version;
}

/// The name of a file that is found without the caller's search paths.
///
/// # Safety
///
/// Null, or a string.
unsafe fn path_of<'a>(file: *const c_char) -> Option<&'a CStr> {
    if file.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    let path = unsafe { CStr::from_ptr(file) };
    let has = |byte| path.to_bytes().contains(&byte);
    (has(b'/') && !has(b'$')).then_some(path)
}

/// `dlopen(file, flags)`.
unsafe extern "C" fn opens(file: *const c_char, flags: usize, _: usize, _: usize) -> Next {
    let deep = libc::RTLD_DEEPBIND as usize;
    if flags & deep == 0 || config::leaves_others() {
        return Next::jump(&DLOPEN, flags);
    }
    // SAFETY: the caller's promise.
    if let Some(path) = unsafe { path_of(file) }
        && own::conflicts(path)
    {
        // SAFETY: as above.
        let handle = unsafe { open_apart(PROGRAMS, file, flags) };
        if !handle.is_null() {
            slots::bind(Objects::Later);
            tell(
                b"overlock: a plugin keeps RTLD_DEEPBIND, for it defines names that the program \
                  defines, too; its lock functions are ours once its constructors have run\n",
            );
        }
        return Next::result(handle.addr());
    }
    tell(
        b"overlock: RTLD_DEEPBIND is left out: a plugin's lock functions would be the C library's, \
          and the program's are ours\n",
    );
    Next::jump(&DLOPEN, flags & !deep)
}

/// Whether a namespace has been opened: it may have objects whose slots are not bound yet.
static OPENED: AtomicBool = AtomicBool::new(false);

const APART: &[u8] = b"overlock: a plugin has a C library of its own, by dlmopen; its lock \
    functions are ours once its constructors have run\n";

/// `dlmopen(namespace, file, flags)`.
unsafe extern "C" fn opens_apart(
    namespace: c_long,
    file: *const c_char,
    flags: usize,
    _: usize,
) -> Next {
    let deep = libc::RTLD_DEEPBIND as usize;
    let is_apart = namespace != PROGRAMS;
    if config::leaves_others() || !is_apart && flags & deep == 0 {
        return Next::jump(&DLMOPEN, file.addr());
    }
    if !is_apart {
        // SAFETY: the caller's promise.
        let handle = unsafe { open_apart(namespace, file, flags & !deep) };
        return Next::result(handle.addr());
    }
    // SAFETY: the caller's promise.
    if unsafe { path_of(file) }.is_none() {
        // The caller's search paths count: the slots are bound when a symbol is asked for.
        tell(APART);
        OPENED.store(true, Relaxed);
        return Next::jump(&DLMOPEN, file.addr());
    }
    // SAFETY: as above.
    let handle = unsafe { open_apart(namespace, file, flags) };
    if !handle.is_null() {
        tell(APART);
        OPENED.store(true, Relaxed);
        slots::bind(Objects::Beside(handle.cast()));
    }
    Next::result(handle.addr())
}

/// Calls the next `dlmopen`.
///
/// # Safety
///
/// As that function's.
unsafe fn open_apart(namespace: c_long, file: *const c_char, flags: usize) -> *mut c_void {
    type Function = unsafe extern "C" fn(c_long, *const c_char, c_int) -> *mut c_void;
    let function = DLMOPEN.get();
    if function.is_null() {
        return core::ptr::null_mut();
    }
    // SAFETY: the C library's function of this name has this type.
    let function: Function = unsafe { transmute(function) };
    // SAFETY: the caller's promise.
    unsafe { function(namespace, file, flags as c_int) }
}

/// `dlsym(handle, name)`.
unsafe extern "C" fn finds(
    handle: *mut c_void,
    name: *const c_char,
    _: usize,
    caller: usize,
) -> Next {
    type Function = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;
    let ask = |function: *mut c_void, handle| {
        // SAFETY: the C library's function of this name has this type.
        let function: Function = unsafe { transmute(function) };
        // SAFETY: the caller's promise.
        unsafe { function(handle, name) }
    };
    // SAFETY: the caller's promise: a string, and a handle.
    unsafe { answer(handle, name, caller, &DLSYM, ask) }
}

/// `dlvsym(handle, name, version)`.
unsafe extern "C" fn finds_version(
    handle: *mut c_void,
    name: *const c_char,
    version: *const c_char,
    caller: usize,
) -> Next {
    type Function = unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char) -> *mut c_void;
    let ask = |function: *mut c_void, handle| {
        // SAFETY: the C library's function of this name has this type.
        let function: Function = unsafe { transmute(function) };
        // SAFETY: the caller's promise.
        unsafe { function(handle, name, version) }
    };
    // SAFETY: the caller's promise: strings, and a handle.
    unsafe { answer(handle, name, caller, &DLVSYM, ask) }
}

/// The answer to a look-up; `ask` makes it, by the C library's function for a handle.
///
/// # Safety
///
/// `name` is a string, and the handle one that `ask` may be called with.
unsafe fn answer(
    handle: *mut c_void,
    name: *const c_char,
    caller: usize,
    function: &Early,
    ask: impl Fn(*mut c_void, *mut c_void) -> *mut c_void,
) -> Next {
    let jump = || Next::jump(function, name.addr());
    let is_object = ![libc::RTLD_DEFAULT, libc::RTLD_NEXT].contains(&handle);
    // Relaxed: the thread that has the handle has seen the store that came before.
    if is_object && OPENED.load(Relaxed) {
        slots::bind(Objects::Beside(handle.cast()));
    }
    let known = function.get();
    if known.is_null() || handle == libc::RTLD_DEFAULT {
        return jump();
    }
    // SAFETY: the caller's promise.
    let name = unsafe { CStr::from_ptr(name) };
    let Some(ours) = elf::ours(name) else {
        return jump();
    };
    let place = elf::at(caller).map(|object| (elf::place(object.map), object));
    match place {
        // The program's order has us behind it.
        Some((elf::Place::Before, _)) if !is_object => return jump(),
        // It wraps the function, and ours may call the wrapper.
        Some((elf::Place::Behind, object)) if object.defined(name).is_some() => return jump(),
        _ => {}
    }
    if is_object {
        let found = ask(known, handle);
        let is_theirs = elf::at(found.addr()).is_some_and(|object| object.is_libcs());
        return Next::result(if is_theirs { ours } else { found }.addr());
    }
    // There may be no such version.
    match ask(known, libc::RTLD_DEFAULT).is_null() {
        true => jump(),
        false => Next::result(ours.addr()),
    }
}

/// Says once what has happened.
fn tell(line: &[u8]) {
    static TOLD: AtomicBool = AtomicBool::new(false);
    // Relaxed: no other data depends on it.
    if !TOLD.swap(true, Relaxed) {
        // SAFETY: valid for reads of its length.
        unsafe { system_call!(libc::SYS_write, 2, line.as_ptr(), line.len()) };
    }
}
