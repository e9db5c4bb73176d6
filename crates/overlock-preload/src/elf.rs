//! Symbols of the loaded objects, read from their dynamic sections in memory.
//!
//! The loader's own look-up takes locks, allocates where it fails, and depends on its caller. This
//! one does nothing but read, so it works before the C library is initialised, and in signal
//! handlers.
//!
//! The objects that a program starts with are never unloaded, and the loader appends later ones. So
//! [`Loaded::get`] notes once which those are, and no walk goes beyond them.

mod object;
pub(crate) mod replaced;

use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::MaybeUninit;
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

pub(crate) use object::Object;

/// The loader's description of an object, as far as it is public.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct LinkMap {
    pub(crate) base: usize,
    pub(crate) name: *const c_char,
    dynamic: *const Dynamic,
    pub(crate) next: *const LinkMap,
    pub(crate) previous: *const LinkMap,
}

/// An entry of a dynamic section.
#[derive(Debug)]
#[repr(C)]
struct Dynamic {
    tag: i64,
    value: usize,
}

#[derive(Debug)]
#[repr(C)]
struct Debug {
    version: c_int,
    first: *const LinkMap,
}

unsafe extern "C" {
    static _r_debug: Debug;
}

/// dlfcn.h.
const RTLD_DL_LINKMAP: c_int = 2;

/// The names of the objects that glibc consists of. Those behind the first hold some of its
/// functions before 2.34, and hide the first one's of the same names: so they come first.
const LIBCS: [&CStr; 3] = [c"libpthread.so.0", c"libdl.so.2", c"libc.so.6"];

impl LinkMap {
    /// The value of the dynamic section's entry with this tag.
    fn entry(&self, tag: i64) -> Option<usize> {
        let mut entry = self.dynamic;
        if entry.is_null() {
            return None;
        }
        loop {
            // SAFETY: the section ends with a tag of 0, and we have not passed it.
            let Dynamic { tag: its, value } = unsafe { entry.read() };
            match its {
                0 => return None,
                its if its == tag => return Some(value),
                // SAFETY: as above.
                _ => entry = unsafe { entry.add(1) },
            }
        }
    }

    /// The address that an entry means. The loader has added the base, unless the section is
    /// read-only.
    fn address(&self, value: usize) -> Option<usize> {
        Some(match value < self.base {
            true => value.wrapping_add(self.base),
            false => value,
        })
    }
}

/// The objects that the program has started with.
#[derive(Debug)]
struct Loaded {
    /// The last one.
    last: *const LinkMap,
    /// That of this code.
    ours: *const LinkMap,
    libcs: [*const LinkMap; LIBCS.len()],
}

static LAST: AtomicPtr<LinkMap> = AtomicPtr::new(core::ptr::null_mut());
static OURS: AtomicPtr<LinkMap> = AtomicPtr::new(core::ptr::null_mut());
static FOUND: [AtomicPtr<LinkMap>; LIBCS.len()] =
    [const { AtomicPtr::new(core::ptr::null_mut()) }; LIBCS.len()];

impl Loaded {
    fn get() -> Loaded {
        // Acquire: pairs with the store of `note`, and so the others are there, too.
        if LAST.load(Acquire).is_null() {
            Self::note();
        }
        Loaded {
            last: LAST.load(Acquire),
            ours: OURS.load(Relaxed),
            libcs: core::array::from_fn(|index| FOUND[index].load(Relaxed).cast_const()),
        }
    }

    /// Notes them. Two threads that do so at a time find the same, but for `last`, which is some
    /// object behind those of the start.
    #[cold]
    fn note() {
        // SAFETY: the loader's own variable, written before any object's code runs.
        let mut map = unsafe { _r_debug.first };
        let mut last = map;
        // SAFETY: the loader's list ends with null.
        while let Some(link) = unsafe { map.as_ref() } {
            // SAFETY: loaded, and kept: the first call is made when the program starts.
            if let Some(object) = unsafe { Object::of(map) } {
                if object.is_ours() {
                    OURS.store(map.cast_mut(), Relaxed);
                }
                let place = LIBCS
                    .iter()
                    .position(|name| object.name != 0 && object.string(object.name) == *name);
                if let Some(place) = place {
                    FOUND[place].store(map.cast_mut(), Relaxed);
                }
            }
            last = map;
            map = link.next;
        }
        // Release: pairs with the loads in `get`.
        LAST.store(last.cast_mut(), Release);
    }
}

/// The C library's function of this name, in the version that new programs get; or null.
pub(crate) fn find(name: &CStr) -> *mut c_void {
    let found = Loaded::get().libcs.into_iter().find_map(|map| {
        // SAFETY: the C library is not unloaded.
        unsafe { Object::of(map) }?.find(name)
    });
    found.unwrap_or(core::ptr::null_mut())
}

/// The next function of this name behind this library in the order of the program's objects: of
/// another preloaded library, or the C library's. Null if there is none.
pub(crate) fn next(name: &CStr) -> *mut c_void {
    behind(|object| object.find(name)).unwrap_or_else(|| find(name))
}

/// The function of this name in the library of that name, which comes behind this one.
pub(crate) fn of_library(library: &CStr, name: &CStr) -> Option<*mut c_void> {
    let is_it = |object: &Object| object.name != 0 && object.string(object.name) == library;
    behind(|object| is_it(object).then(|| object.find(name)).flatten())
}

/// An object's place in the order of all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Place {
    /// In the program's order before this library, or this one.
    Before,
    /// In the program's order behind it.
    Behind,
    /// It was loaded later, or into another namespace.
    Later,
}

/// The object's place.
pub(crate) fn place(map: *const LinkMap) -> Place {
    let is_it = |object: &Object| core::ptr::eq(object.map, map).then_some(());
    match (behind(is_it), starts(is_it)) {
        (Some(()), _) => Place::Behind,
        (_, Some(())) => Place::Before,
        _ => Place::Later,
    }
}

/// Whether the program itself defines the name.
pub(crate) fn program_defines(name: &CStr) -> bool {
    // SAFETY: the loader's own variable, written before any object's code runs, and an object that
    // is not unloaded.
    let program = unsafe { Object::of(_r_debug.first) };
    program.is_some_and(|program| program.defined(name).is_some())
}

/// The objects of the program's C library.
pub(crate) fn libcs() -> impl Iterator<Item = Object> {
    // SAFETY: null, or an object that is not unloaded.
    (Loaded::get().libcs.into_iter()).filter_map(|map| unsafe { Object::of(map) })
}

/// The next function of this name behind an object that the program has started with.
pub(crate) fn next_of(object: &Object, name: &CStr) -> Option<*mut c_void> {
    match core::ptr::eq(object.map, Loaded::get().last) {
        true => None,
        false => walk(object.map.next, |behind| behind.find(name)),
    }
}

/// The object that this address is in, of any namespace. The C library's own function tells: see
/// [`iterate`].
pub(crate) fn at(address: usize) -> Option<Object> {
    let mut found = MaybeUninit::<libc::Dl_info>::uninit();
    let mut map: *const LinkMap = core::ptr::null();
    let address: *const c_void = core::ptr::without_provenance(address);
    let (to, extra) = (found.as_mut_ptr(), (&raw mut map).cast());
    type Function =
        unsafe extern "C" fn(*const c_void, *mut libc::Dl_info, *mut *mut c_void, c_int) -> c_int;
    // SAFETY: null, or the function of this name.
    let function: Option<Function> = unsafe { core::mem::transmute(find(c"dladdr1")) };
    // SAFETY: both are valid for the writes, the second for the address of a `link_map`.
    let is_known = unsafe { function?(address, to, extra, RTLD_DL_LINKMAP) } != 0;
    if !is_known {
        return None;
    }
    // SAFETY: the caller executes code of the object, or has just found a function there.
    unsafe { Object::of(map) }
}

/// Calls the C library's `dl_iterate_phdr`. A sanitizer's stands before it, which may have begun to
/// look for the C library's when it calls us.
///
/// # Safety
///
/// As for `dl_iterate_phdr`.
pub(crate) unsafe fn iterate(look: Look, data: *mut c_void) {
    type Function = unsafe extern "C" fn(Look, *mut c_void) -> c_int;
    // SAFETY: null, or the function of this name.
    let function: Option<Function> = unsafe { core::mem::transmute(find(c"dl_iterate_phdr")) };
    if let Some(function) = function {
        // SAFETY: the caller's promise.
        unsafe { function(look, data) };
    }
}

/// A function that looks at an object.
pub(crate) type Look = unsafe extern "C" fn(*mut libc::dl_phdr_info, usize, *mut c_void) -> c_int;

/// Asks the objects that the program has started with, in order, until one has an answer.
fn starts<T>(ask: impl FnMut(&Object) -> Option<T>) -> Option<T> {
    // SAFETY: the loader's own variable, written before any object's code runs.
    walk(unsafe { _r_debug.first }, ask)
}

/// Asks the objects behind this library, in order, until one has an answer.
fn behind<T>(ask: impl FnMut(&Object) -> Option<T>) -> Option<T> {
    let Loaded { ours, last, .. } = Loaded::get();
    if core::ptr::eq(ours, last) {
        return None;
    }
    // SAFETY: null, or this library's description.
    walk(unsafe { ours.as_ref() }?.next, ask)
}

/// Asks the objects from this one to the last that the program has started with.
fn walk<T>(from: *const LinkMap, mut ask: impl FnMut(&Object) -> Option<T>) -> Option<T> {
    let last = Loaded::get().last;
    // SAFETY: it has no preconditions.
    let kernels = unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) } as usize;
    let mut map = from;
    // SAFETY: an object that the program has started with: it is not unloaded.
    while let Some(link) = unsafe { map.as_ref() } {
        // SAFETY: as above.
        let object = unsafe { Object::of(map) };
        // The kernel's own is in the list, but no program's symbols are bound to it.
        let answer = object
            .filter(|object| object.map.base != kernels)
            .and_then(|object| ask(&object));
        if answer.is_some() || core::ptr::eq(map, last) {
            return answer;
        }
        map = link.next;
    }
    None
}

/// This library's own function of this name, if it exports one.
pub(crate) fn ours(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: this library is not unloaded while its code runs.
    unsafe { Object::of(Loaded::get().ours) }?.find(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looked_up(name: &CStr) -> *mut c_void {
        // SAFETY: the name ends with a zero.
        unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
    }

    /// Fails where an old version, or a reference, is taken for the definition.
    #[test]
    fn functions_of_the_c_library_are_those_of_the_loader() {
        for name in [
            c"pthread_cond_wait",
            c"pthread_mutex_lock",
            c"sem_wait",
            c"clock_gettime",
            c"gettimeofday",
            c"dlsym",
            c"poll",
        ] {
            assert_eq!(find(name), looked_up(name), "{name:?}");
            assert!(!find(name).is_null(), "{name:?}");
        }
        assert!(find(c"no_such_function").is_null());
        assert!(find(c"").is_null());
    }

    /// The test's own program comes first, and the C library behind it.
    #[test]
    fn the_next_function_is_not_ours() {
        assert_eq!(next(c"pthread_mutex_lock"), find(c"pthread_mutex_lock"));
        assert!(next(c"no_such_function").is_null());
        assert_eq!(ours(c"pthread_mutex_lock"), None);
    }
}
