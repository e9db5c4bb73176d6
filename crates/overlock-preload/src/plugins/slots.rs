//! Slots: the words of an object by which it calls functions of others.

use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use overlock_linux::__private::system_call;

use crate::elf::{self, LinkMap, Object};
use crate::waits::is_readable;

const DT_PLTRELSZ: i64 = 2;
const DT_RELA: i64 = 7;
const DT_RELASZ: i64 = 8;
const DT_JMPREL: i64 = 23;

/// Relocations that store the address of a function: as data, for a load, and for a call.
#[cfg(target_arch = "x86_64")]
const STORES: [u32; 3] = [1, 6, 7];
#[cfg(target_arch = "aarch64")]
const STORES: [u32; 3] = [257, 1025, 1026];

/// A relocation.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Relocation {
    offset: usize,
    info: u64,
    addend: i64,
}

/// A program header.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Segment {
    kind: u32,
    flags: u32,
    offset: usize,
    address: usize,
    physical: usize,
    size: usize,
    memory: usize,
    align: usize,
}

const PT_LOAD: u32 = 1;

/// The part of an object that the loader makes read-only.
const PT_GNU_RELRO: u32 = 0x6474_e552;

/// The beginnings of the names of functions for lock objects.
const OBJECTS: [&[u8]; 10] = [
    b"pthread_mutex_",
    b"pthread_cond_",
    b"pthread_rwlock_",
    b"pthread_spin_",
    b"pthread_barrier_",
    b"sem_",
    b"mtx_",
    b"cnd_",
    b"__pthread_",
    b"pthread_cancel",
];

/// Our function of this name, if it works on locks.
fn ours(name: &CStr) -> Option<*mut c_void> {
    let bytes = name.to_bytes();
    let is_locks = OBJECTS.iter().any(|start| bytes.starts_with(start));
    is_locks.then(|| elf::ours(name)).flatten()
}

/// The objects whose slots are to be bound.
#[derive(Clone, Copy, Debug)]
pub(super) enum Objects {
    /// Those that were loaded later into the program's namespace.
    Later,
    /// Those in the namespace of the object with this handle, unless it is the program's.
    Beside(*const LinkMap),
}

/// Binds the slots of these objects that hold functions of a C library.
pub(super) fn bind(objects: Objects) {
    let mut objects = objects;
    let data: *mut c_void = (&raw mut objects).cast();
    // The loader's lock is held while the function is called: no object goes away meanwhile. The
    // function must not call the loader, which takes another lock before this one.
    // SAFETY: a function of that type, which gets this pointer.
    unsafe { elf::iterate(locked, data) };
}

unsafe extern "C" fn locked(_: *mut libc::dl_phdr_info, _: usize, objects: *mut c_void) -> c_int {
    let objects: *const Objects = objects.cast_const().cast();
    // SAFETY: the pointer that `bind` has passed.
    let first = match unsafe { objects.read() } {
        Objects::Later => elf::later(),
        // SAFETY: a handle is the description of an object.
        Objects::Beside(handle) => unsafe { first(handle) },
    };
    let mut libcs = [(0, 0); MOST_LIBCS];
    let mut known = 0;
    let mut note = |map: *const LinkMap| {
        // SAFETY: loaded, and the loader's lock is held.
        if let Some(range) = unsafe { range(map) }
            && known < MOST_LIBCS
        {
            libcs[known] = range;
            known += 1;
        }
    };
    elf::libcs().for_each(&mut note);
    // SAFETY: the loader's list, whose lock is held.
    unsafe {
        each(first, |object| {
            if object.is_libcs() {
                note(object.map);
            }
        });
    }
    let bind = |object: &Object| {
        if !object.is_libcs() {
            // SAFETY: as above.
            unsafe { bind_object(object, &libcs) };
        }
    };
    // SAFETY: as above.
    unsafe { each(first, bind) };
    1 // Once is enough.
}

/// The most objects of C libraries: three of the program's, and three of a namespace's.
const MOST_LIBCS: usize = 6;

/// The first object in the namespace of this one; null if that is the program's.
///
/// # Safety
///
/// The object is loaded, and the loader's lock is held.
unsafe fn first(of: *const LinkMap) -> *const LinkMap {
    let mut first = of;
    // SAFETY: the caller's promise.
    while let Some(map) = unsafe { first.as_ref() }
        && !map.previous.is_null()
    {
        first = map.previous;
    }
    match elf::is_first(first) {
        true => core::ptr::null(),
        false => first,
    }
}

/// Calls the function for all objects from this one on.
///
/// # Safety
///
/// Null, or a loaded object, and the loader's lock is held.
unsafe fn each(first: *const LinkMap, mut call: impl FnMut(&Object)) {
    let mut map = first;
    // SAFETY: the caller's promise; the list ends with null.
    while let Some(link) = unsafe { map.as_ref() } {
        // SAFETY: as above.
        if let Some(object) = unsafe { Object::of(map) } {
            call(&object);
        }
        map = link.next;
    }
}

/// # Safety
///
/// The object is loaded, and stays so meanwhile.
unsafe fn bind_object(object: &Object, libcs: &[(usize, usize)]) {
    let (mut own, mut sealed) = ((0, 0), (0, 0));
    // SAFETY: the caller's promise.
    if let Some(segments) = unsafe { segments(object.map) } {
        for segment in segments {
            let start = object.map.base.wrapping_add(segment.address);
            let end = start.wrapping_add(segment.memory);
            match segment.kind {
                PT_LOAD => own = (object.map.base, own.1.max(end)),
                PT_GNU_RELRO => sealed = (start, end),
                _ => {}
            }
        }
    }
    let is_theirs = |function: usize| {
        let is_in = |&(start, end): &(usize, usize)| (start..end).contains(&function);
        // A slot that has not been bound yet leads to the object's own code.
        is_in(&own) || libcs.iter().any(is_in)
    };
    for (table, size) in [(DT_RELA, DT_RELASZ), (DT_JMPREL, DT_PLTRELSZ)] {
        let map = object.map;
        let (Some(table), Some(size)) = (map.entry(table), map.entry(size)) else {
            continue;
        };
        let first: *const Relocation =
            core::ptr::with_exposed_provenance(map.address(table).unwrap_or(0));
        for number in 0..size / size_of::<Relocation>() {
            // SAFETY: within the object's table.
            let relocation = unsafe { first.wrapping_add(number).read() };
            let kind = relocation.info as u32;
            let symbol = (relocation.info >> 32) as usize;
            if symbol == 0 || !STORES.contains(&kind) || relocation.addend != 0 {
                continue;
            }
            // SAFETY: a number from the object's table.
            let (symbol, name) = unsafe { object.symbol(symbol) };
            if symbol.section == 0
                && let Some(ours) = ours(name)
            {
                let at = map.base.wrapping_add(relocation.offset);
                // SAFETY: a slot of the object.
                unsafe { bind_slot(at, ours.addr(), is_theirs, sealed) };
            }
        }
    }
}

/// Stores our function in a slot that holds a function of `is_theirs`.
///
/// # Safety
///
/// The address is that of a slot of an object that is read-only between those of `sealed`.
unsafe fn bind_slot(
    at: usize,
    ours: usize,
    is_theirs: impl Fn(usize) -> bool,
    sealed: (usize, usize),
) {
    let slot: *mut usize = core::ptr::with_exposed_provenance_mut(at);
    // SAFETY: the caller's promise. The loader may write to it at the same time, by stores of a
    // word.
    let slot = unsafe { AtomicUsize::from_ptr(slot) };
    // Relaxed, as the store below: no data depends on which of the functions is called.
    if !is_theirs(slot.load(Relaxed)) {
        return;
    }
    // SAFETY: it has no preconditions.
    let page = (unsafe { libc::sysconf(libc::_SC_PAGESIZE) }) as usize;
    let start = at & !(page - 1);
    // As the loader rounds them.
    let is_sealed = (sealed.0 & !(page - 1)..sealed.1 & !(page - 1)).contains(&at);
    let protect = |how: c_int| {
        // SAFETY: a page of the object's slots, which stays readable.
        unsafe { system_call!(libc::SYS_mprotect, start, page, how) == 0 }
    };
    if is_sealed && !protect(libc::PROT_READ | libc::PROT_WRITE) {
        return;
    }
    slot.store(ours, Relaxed);
    if is_sealed {
        protect(libc::PROT_READ);
    }
}

/// The addresses between which an object lies.
///
/// # Safety
///
/// The object is loaded, and stays so meanwhile.
unsafe fn range(map: *const LinkMap) -> Option<(usize, usize)> {
    // SAFETY: the caller's promise.
    let map = unsafe { map.as_ref() }?;
    // SAFETY: as above.
    let segments = unsafe { segments(map) }?;
    let loaded = segments.filter(|segment| segment.kind == PT_LOAD);
    let end = loaded
        .map(|segment| segment.address + segment.memory)
        .max()?;
    Some((map.base, map.base.wrapping_add(end)))
}

/// The segments of an object whose header is mapped to its base, as linkers have it.
///
/// # Safety
///
/// The object is loaded, and stays so while the result is used.
unsafe fn segments(map: &LinkMap) -> Option<impl Iterator<Item = Segment> + use<>> {
    /// The places in a header of the place and the number of segments.
    const PLACES: (usize, usize) = (32, 56);
    const HEADER: usize = 64;
    if map.base == 0 || !is_readable(map.base, HEADER) {
        return None;
    }
    let at: *const u8 = core::ptr::with_exposed_provenance(map.base);
    // SAFETY: the kernel has just read it.
    if unsafe { at.cast::<[u8; 4]>().read() } != *b"\x7fELF" {
        return None;
    }
    // SAFETY: as above.
    let first = unsafe { at.wrapping_add(PLACES.0).cast::<usize>().read() };
    // SAFETY: as above.
    let count = unsafe { at.wrapping_add(PLACES.1).cast::<u16>().read() };
    let segments: *const Segment = at.wrapping_add(first).cast();
    Some((0..usize::from(count)).map(move |number| {
        // SAFETY: within the table of segments, which is mapped with the header.
        unsafe { segments.wrapping_add(number).read() }
    }))
}
