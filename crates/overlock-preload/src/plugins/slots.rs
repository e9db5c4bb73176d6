//! Slots: the words of an object by which it calls functions of others.

use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use overlock_linux::__private::system_call;

use crate::elf::{self, LinkMap, Object};

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

/// Binds the slots of all objects from this one on that hold functions of a C library.
pub(super) fn bind(first: *const LinkMap) {
    let mut first = first;
    let data: *mut c_void = (&raw mut first).cast();
    // The loader's lock is held while the function is called: no object goes away meanwhile.
    // SAFETY: a function of that type, which gets this pointer.
    unsafe { libc::dl_iterate_phdr(Some(locked), data) };
}

unsafe extern "C" fn locked(_: *mut libc::dl_phdr_info, _: usize, first: *mut c_void) -> c_int {
    let first: *const *const LinkMap = first.cast_const().cast();
    // SAFETY: the pointer that `bind` has passed.
    let mut map = unsafe { first.read() };
    // SAFETY: the loader's list, whose lock is held, ends with null.
    while let Some(link) = unsafe { map.as_ref() } {
        // SAFETY: as above.
        let object = unsafe { Object::of(map) };
        if let Some(object) = object.filter(|object| !object.is_libcs()) {
            // SAFETY: as above.
            unsafe { bind_object(&object) };
        }
        map = link.next;
    }
    1 // Once is enough.
}

/// # Safety
///
/// The object is loaded, and stays so meanwhile.
unsafe fn bind_object(object: &Object) {
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
                unsafe { bind_slot(object, at, ours.addr()) };
            }
        }
    }
}

/// Stores our function in a slot that holds a C library's, or has not been bound yet.
///
/// # Safety
///
/// The address is that of a slot of the object.
unsafe fn bind_slot(object: &Object, at: usize, ours: usize) {
    let slot: *mut usize = core::ptr::with_exposed_provenance_mut(at);
    // SAFETY: the caller's promise. The loader may write to it at the same time, by stores of a
    // word.
    let slot = unsafe { AtomicUsize::from_ptr(slot) };
    let is_unbound = |of: &Object| core::ptr::eq(of.map, object.map) || of.is_libcs();
    // Relaxed, as the store below: no data depends on which of the functions is called.
    let is_theirs = elf::at(slot.load(Relaxed)).is_some_and(|(of, _)| is_unbound(&of));
    if !is_theirs {
        return;
    }
    let sealed = elf::at(object.map.dynamic.addr()).and_then(|(_, header)| {
        // SAFETY: the beginning of a loaded object, which is its header.
        unsafe { sealed(header, object.map.base) }
    });
    // SAFETY: it has no preconditions.
    let page = (unsafe { libc::sysconf(libc::_SC_PAGESIZE) }) as usize;
    let start = at & !(page - 1);
    let is_sealed = sealed.is_some_and(|(from, to)| {
        // As the loader rounds them.
        (from & !(page - 1)..to & !(page - 1)).contains(&at)
    });
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

/// The addresses between which the object is read-only once it is bound.
///
/// # Safety
///
/// `header` is the address of the object's header.
unsafe fn sealed(header: usize, base: usize) -> Option<(usize, usize)> {
    /// The places in a header of the place and the number of segments.
    const PLACES: (usize, usize) = (32, 56);
    let at: *const u8 = core::ptr::with_exposed_provenance(header);
    // SAFETY: the caller's promise.
    let first = unsafe { at.wrapping_add(PLACES.0).cast::<usize>().read() };
    // SAFETY: as above.
    let count = unsafe { at.wrapping_add(PLACES.1).cast::<u16>().read() };
    let segments: *const Segment = at.wrapping_add(first).cast();
    (0..count.into()).find_map(|number| {
        // SAFETY: within the object's table of segments, which is mapped with its header.
        let segment = unsafe { segments.wrapping_add(number).read() };
        let start = base.wrapping_add(segment.address);
        (segment.kind == PT_GNU_RELRO).then(|| (start, start + segment.memory))
    })
}
