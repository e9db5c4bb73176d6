//! One library behind one name: `dlopen`, `dlmopen`, `dlclose`, `dlsym` and `dlvsym`.
//!
//! An object of ours must not be used by the C library's code, nor the other way round. The loader
//! binds a name to the first definition in the program's order, which is ours. A plugin gets the C
//! library's past us in three ways:
//!
//! - By `RTLD_DEEPBIND`, its own definitions and those of its libraries, of which one is the C
//!   library, come before the program's. So our functions take the place of the C library's in its
//!   table of symbols before the plugin is loaded: see `elf::replaced`.
//! - By `dlmopen`, it has a C library of its own. That is loaded before it, and its table gets our
//!   lock functions: see `namespaces`.
//! - By a handle, or by `RTLD_NEXT` in a library that is loaded later. The answer is our function,
//!   except for a library behind us in the program's order that wraps the function.
//!
//! `dlopen` and `dlsym` depend on their caller, by its return address. So our functions jump to the
//! C library's.

mod namespaces;

use core::arch::naked_asm;
use core::ffi::{CStr, c_char, c_int, c_long, c_void};
use core::mem::transmute;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use overlock_linux::__private::system_call;

use crate::elf::replaced::{self, Replace};
use crate::elf::{self, Object, Place};
use crate::real::Early;
use crate::{config, summary};

static DLOPEN: Early = Early::new(c"dlopen");
static DLMOPEN: Early = Early::new(c"dlmopen");
static DLCLOSE: Early = Early::new(c"dlclose");
static DLSYM: Early = Early::new(c"dlsym");
static DLVSYM: Early = Early::new(c"dlvsym");

/// `LM_ID_BASE`, the program's own namespace.
const PROGRAMS: usize = 0;

/// The type of `dlmopen`.
type Open = unsafe extern "C" fn(c_long, *const c_char, c_int) -> *mut c_void;

/// The type of `dlclose`.
type Close = unsafe extern "C" fn(*mut c_void) -> c_int;

/// The arguments of one of the functions here, with which the next function is called.
#[derive(Debug)]
#[repr(C)]
struct Arguments {
    /// The first argument; or the result, if there is no next function.
    first: usize,
    second: usize,
    third: usize,
}

/// The function to jump to; 0 to return.
type Next = usize;

impl Arguments {
    /// Jumps there. A null function is one that the C library lacks: then the result is null.
    fn jump(&mut self, function: &Early) -> Next {
        match function.get().addr() {
            0 => self.result(0),
            function => function,
        }
    }

    fn result(&mut self, result: usize) -> Next {
        self.first = result;
        0
    }
}

/// Looks these functions up when the library is loaded.
pub(crate) fn start() {
    for function in [&DLOPEN, &DLMOPEN, &DLCLOSE, &DLSYM, &DLVSYM] {
        function.find();
    }
}

/// Defines functions that ask `hook(&mut Arguments, return address)` what to do. The function that
/// they jump to sees their own caller.
macro_rules! hooked {
    ($($name:ident => $hook:path;)*) => {$(
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            #[cfg(target_arch = "x86_64")]
            naked_asm!(
                ".cfi_startproc",
                "push rdx",
                ".cfi_adjust_cfa_offset 8",
                "push rsi",
                ".cfi_adjust_cfa_offset 8",
                "push rdi",
                ".cfi_adjust_cfa_offset 8",
                "mov rdi, rsp",
                "mov rsi, [rsp + 24]",
                "call {hook}",
                "pop rdi",
                ".cfi_adjust_cfa_offset -8",
                "pop rsi",
                ".cfi_adjust_cfa_offset -8",
                "pop rdx",
                ".cfi_adjust_cfa_offset -8",
                "test rax, rax",
                "jz 2f",
                "jmp rax",
                "2:",
                "mov rax, rdi",
                "ret",
                ".cfi_endproc",
                hook = sym $hook,
            );
            #[cfg(target_arch = "aarch64")]
            naked_asm!(
                ".cfi_startproc",
                "stp x29, x30, [sp, #-48]!",
                ".cfi_adjust_cfa_offset 48",
                ".cfi_rel_offset x30, 8",
                "stp x0, x1, [sp, #16]",
                "str x2, [sp, #32]",
                "add x0, sp, #16",
                "mov x1, x30",
                "bl {hook}",
                "mov x16, x0",
                "ldp x0, x1, [sp, #16]",
                "ldr x2, [sp, #32]",
                "ldp x29, x30, [sp], #48",
                ".cfi_adjust_cfa_offset -48",
                ".cfi_restore x30",
                "cbz x16, 2f",
                "br x16",
                "2:",
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

/// Whether all flags of `dlopen` are in these.
fn has(flags: usize, all: c_int) -> bool {
    flags & all as usize == all as usize
}

/// `dlopen(file, flags)`.
unsafe extern "C" fn opens(arguments: &mut Arguments, _: usize) -> Next {
    if has(arguments.second, libc::RTLD_DEEPBIND) && !config::leaves_others() {
        arguments.second = binds_deeply(arguments.second);
    }
    arguments.jump(&DLOPEN)
}

/// `dlmopen(namespace, file, flags)`.
unsafe extern "C" fn opens_apart(arguments: &mut Arguments, _: usize) -> Next {
    if config::leaves_others() {
        return arguments.jump(&DLMOPEN);
    }
    if arguments.first == PROGRAMS {
        if has(arguments.third, libc::RTLD_DEEPBIND) {
            arguments.third = binds_deeply(arguments.third);
        }
        return arguments.jump(&DLMOPEN);
    }
    // Another namespace of the program's has been made here, too.
    if arguments.first as c_long == namespaces::NEW {
        // SAFETY: null, or the function of this name.
        let open: Option<Open> = unsafe { transmute(DLMOPEN.get()) };
        match open.and_then(namespaces::make) {
            Some(namespace) => {
                arguments.first = namespace as usize;
                tell(
                    b"overlock: a plugin has a C library of its own, by dlmopen; \
                      its lock functions are ours\n",
                );
            }
            None => tell(
                b"overlock: a plugin has a C library of its own, by dlmopen, and locks of that; \
                  if it shares locks with the program, run that with --mutex glibc --rwlock glibc\n",
            ),
        }
    }
    arguments.jump(&DLMOPEN)
}

/// `dlclose`.
///
/// # Safety
///
/// As the C library's.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn dlclose(handle: *mut c_void) -> c_int {
    // SAFETY: null, or the function of this name.
    let close: Option<Close> = unsafe { transmute(DLCLOSE.get()) };
    let Some(close) = close else {
        return -1;
    };
    namespaces::uses(handle);
    // SAFETY: the caller's promise.
    let status = unsafe { close(handle) };
    // After an error the text for `dlerror` stays.
    if status == 0 {
        namespaces::close_left();
    }
    status
}

/// Gives a plugin that is about to be loaded with `RTLD_DEEPBIND` our functions. Returns the flags
/// to load it with.
fn binds_deeply(flags: usize) -> usize {
    let mut objects = [None; 3];
    for (place, object) in objects.iter_mut().zip(elf::libcs()) {
        *place = Some(object);
    }
    let done = objects.iter().flatten().all(|object| {
        let replace = Replace {
            objects: core::slice::from_ref(object),
            are_programs: true,
            is_wanted: |_| true,
        };
        replace.run()
    });
    if done {
        tell(b"overlock: a plugin is loaded with RTLD_DEEPBIND; its lock functions are ours\n");
        return flags;
    }
    tell(
        b"overlock: RTLD_DEEPBIND is left out: a plugin's lock functions would be the C library's, \
          and the program's are ours\n",
    );
    flags & !(libc::RTLD_DEEPBIND as usize)
}

/// `dlsym(handle, name)`.
unsafe extern "C" fn finds(arguments: &mut Arguments, caller: usize) -> Next {
    type Function = unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void;
    let name = arguments.second;
    let ask = |function: *mut c_void, handle| {
        // SAFETY: the C library's function of this name has this type.
        let function: Function = unsafe { transmute(function) };
        // SAFETY: the caller's promise.
        unsafe { function(handle, name) }
    };
    // SAFETY: the caller's promise: a handle, and a string.
    unsafe { answer(arguments, caller, &DLSYM, ask) }
}

/// `dlvsym(handle, name, version)`.
unsafe extern "C" fn finds_version(arguments: &mut Arguments, caller: usize) -> Next {
    type Function = unsafe extern "C" fn(*mut c_void, usize, usize) -> *mut c_void;
    let (name, version) = (arguments.second, arguments.third);
    let ask = |function: *mut c_void, handle| {
        // SAFETY: the C library's function of this name has this type.
        let function: Function = unsafe { transmute(function) };
        // SAFETY: the caller's promise.
        unsafe { function(handle, name, version) }
    };
    // SAFETY: the caller's promise: a handle, and strings.
    unsafe { answer(arguments, caller, &DLVSYM, ask) }
}

/// The answer to a look-up; `ask` makes it, by the C library's function for a handle.
///
/// # Safety
///
/// The arguments are a handle that `ask` may be called with, and a string.
unsafe fn answer(
    arguments: &mut Arguments,
    caller: usize,
    function: &Early,
    ask: impl Fn(*mut c_void, *mut c_void) -> *mut c_void,
) -> Next {
    let handle: *mut c_void = core::ptr::with_exposed_provenance_mut(arguments.first);
    let is_object = ![libc::RTLD_DEFAULT, libc::RTLD_NEXT].contains(&handle);
    if is_object {
        namespaces::uses(handle);
    }
    let known = function.get();
    if known.is_null() || handle == libc::RTLD_DEFAULT {
        return arguments.jump(function);
    }
    let name: *const c_char = core::ptr::with_exposed_provenance(arguments.second);
    // SAFETY: the caller's promise.
    let name = unsafe { CStr::from_ptr(name) };
    let Some(ours) = elf::ours(name) else {
        return arguments.jump(function);
    };
    let place = elf::at(caller).map(|object| (elf::place(object.map), object));
    match place {
        // The program's order has us behind it.
        Some((Place::Before, _)) if !is_object => return arguments.jump(function),
        // It wraps the function, and ours may call the wrapper.
        Some((Place::Behind, object)) if object.defined(name).is_some() => {
            return match replaced::is_any() {
                true => {
                    let found = wrapped(&object, name, (handle, is_object), ours, |handle| {
                        ask(known, handle)
                    });
                    arguments.result(found.addr())
                }
                false => arguments.jump(function),
            };
        }
        _ => {}
    }
    if is_object {
        let found = ask(known, handle);
        let is_theirs = elf::at(found.addr()).is_some_and(|object| object.is_libcs());
        return arguments.result(if is_theirs { ours } else { found }.addr());
    }
    // There may be no such version.
    match ask(known, libc::RTLD_DEFAULT).is_null() {
        true => arguments.jump(function),
        false => arguments.result(ours.addr()),
    }
}

/// The answer for a library that wraps the function, where the C library's table leads to ours.
fn wrapped(
    wrapper: &Object,
    name: &CStr,
    (handle, is_object): (*mut c_void, bool),
    ours: *mut c_void,
    ask: impl Fn(*mut c_void) -> *mut c_void,
) -> *mut c_void {
    let found = ask(if is_object {
        handle
    } else {
        libc::RTLD_DEFAULT
    });
    let next = || elf::next_of(wrapper, name).unwrap_or(found);
    let is_libcs = || elf::libcs().any(|object| core::ptr::eq(object.map, handle.cast()));
    match found {
        // There may be no such version.
        found if found.is_null() => found,
        _ if !is_object => next(),
        found if found == ours && is_libcs() => elf::find(name),
        found => found,
    }
}

/// Says once what has happened.
fn tell(line: &[u8]) {
    static TOLD: AtomicBool = AtomicBool::new(false);
    // Relaxed: no other data depends on it.
    if !TOLD.swap(true, Relaxed) && summary::is_stderr_of_the_start() {
        // SAFETY: valid for reads of its length.
        unsafe { system_call!(libc::SYS_write, 2, line.as_ptr(), line.len()) };
    }
}
