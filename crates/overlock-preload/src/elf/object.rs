//! The tables of one object: its symbols by hash, and their versions.

use core::ffi::{CStr, c_char, c_void};
use core::sync::atomic::AtomicUsize;

use super::{Dynamic, LIBCS, LinkMap, replaced};

const DT_HASH: i64 = 4;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_SONAME: i64 = 14;
const DT_GNU_HASH: i64 = 0x6fff_fef5;
const DT_VERSYM: i64 = 0x6fff_fff0;

pub(super) const STT_FUNC: u8 = 2;
const STT_GNU_IFUNC: u8 = 10;

/// Of a symbol's version: not the one that new programs are linked to.
const HIDDEN: u16 = 1 << 15;

/// A symbol.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Symbol {
    name: u32,
    pub(super) info: u8,
    other: u8,
    section: u16,
    /// Relative to the object. Atomic: see [`replaced`].
    pub(super) value: AtomicUsize,
    size: u64,
}

unsafe extern "C" {
    /// The dynamic section of the object that this code is linked into.
    static _DYNAMIC: Dynamic;
}

/// The tables of a loaded object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Object {
    pub(crate) map: &'static LinkMap,
    strings: *const c_char,
    symbols: *const Symbol,
    /// The table of names by hash; null if there is only the older one.
    hash: *const u32,
    /// The number of symbols, of an object that has only that.
    count: u32,
    versions: *const u16,
    pub(super) name: usize,
}

impl Object {
    /// Returns `None` for an object without a table of names.
    ///
    /// # Safety
    ///
    /// The object is loaded, and stays so.
    pub(crate) unsafe fn of(map: *const LinkMap) -> Option<Object> {
        // SAFETY: the caller's promise: null, or the description of an object.
        let map = unsafe { map.as_ref() }?;
        let value = |tag| map.entry(tag);
        let table = |tag| map.address(value(tag)?);
        let hash: *const u32 = core::ptr::with_exposed_provenance(table(DT_GNU_HASH).unwrap_or(0));
        let count = match hash.is_null() {
            true => {
                let older: *const [u32; 2] = core::ptr::with_exposed_provenance(table(DT_HASH)?);
                // SAFETY: the table begins with the numbers of buckets and of symbols.
                let [_, symbols] = unsafe { older.read() };
                symbols
            }
            false => 0,
        };
        Some(Object {
            map,
            strings: core::ptr::with_exposed_provenance(table(DT_STRTAB)?),
            symbols: core::ptr::with_exposed_provenance(table(DT_SYMTAB)?),
            hash,
            count,
            versions: core::ptr::with_exposed_provenance(table(DT_VERSYM).unwrap_or(0)),
            name: value(DT_SONAME).unwrap_or(0),
        })
    }

    pub(super) fn string(&self, at: usize) -> &'static CStr {
        // SAFETY: an offset from the object's own tables, where a string ends with a zero.
        unsafe { CStr::from_ptr(self.strings.wrapping_add(at)) }
    }

    /// Whether it is a part of a C library.
    pub(crate) fn is_libcs(&self) -> bool {
        self.name != 0 && LIBCS.contains(&self.string(self.name))
    }

    /// Whether this code is a part of it.
    pub(super) fn is_ours(&self) -> bool {
        core::ptr::eq(self.map.dynamic, &raw const _DYNAMIC)
    }

    /// The symbol of this number in the object's table, and its name.
    ///
    /// # Safety
    ///
    /// The number is from the object's own tables.
    unsafe fn symbol(&self, number: usize) -> (&'static Symbol, &'static CStr) {
        // SAFETY: the caller's promise.
        let symbol = unsafe { &*self.symbols.wrapping_add(number) };
        (symbol, self.string(symbol.name as usize))
    }

    /// Whether new programs are linked to this definition.
    fn is_default(&self, number: usize) -> bool {
        if self.versions.is_null() {
            return true;
        }
        // SAFETY: there is a version for each symbol.
        let version = unsafe { self.versions.wrapping_add(number).read() };
        version & HIDDEN == 0 && version != 0
    }

    /// The function of this name in its default version, or unversioned.
    pub(crate) fn find(&self, name: &CStr) -> Option<*mut c_void> {
        self.function(self.defined(name)?)
    }

    /// The definition of this name in its default version, or unversioned.
    pub(crate) fn defined(&self, name: &CStr) -> Option<&'static Symbol> {
        self.definition(name, |number, symbol| {
            self.is_default(number).then_some(symbol)
        })
    }

    /// The numbers of buckets, and of the first symbol; and where the buckets begin. The table has
    /// these and a shift in front; then the filter, the buckets, and the chains of hashes, which
    /// end with an odd one.
    fn buckets(&self) -> (u32, u32, usize) {
        // SAFETY: a table of that format, as the object says.
        let [buckets, first, words, _] = unsafe { self.hash.cast::<[u32; 4]>().read() };
        (buckets, first, 4 + 2 * words as usize)
    }

    /// Asks about each definition of this name, by its number, until there is an answer.
    pub(super) fn definition<T>(
        &self,
        name: &CStr,
        mut ask: impl FnMut(usize, &'static Symbol) -> Option<T>,
    ) -> Option<T> {
        let mut ask = |number| {
            // SAFETY: a number from the table.
            let (symbol, its) = unsafe { self.symbol(number) };
            match its == name && symbol.section != 0 {
                true => ask(number, symbol),
                false => None,
            }
        };
        if self.hash.is_null() {
            return (1..self.count as usize).find_map(ask);
        }
        let (buckets, ..) = self.buckets();
        let wanted = hash(name);
        self.chain(wanted.checked_rem(buckets)?, |number, link| {
            match link | 1 == wanted | 1 {
                true => ask(number),
                false => None,
            }
        })
    }

    /// Asks about each name that it defines, once for each version, until there is an answer.
    pub(super) fn each_name<T>(&self, mut ask: impl FnMut(&CStr) -> Option<T>) -> Option<T> {
        let mut ask = |number| {
            // SAFETY: a number from the table.
            let (symbol, name) = unsafe { self.symbol(number) };
            if symbol.section == 0 { None } else { ask(name) }
        };
        if self.hash.is_null() {
            return (1..self.count as usize).find_map(ask);
        }
        let (buckets, ..) = self.buckets();
        (0..buckets).find_map(|bucket| self.chain(bucket, |number, _| ask(number)))
    }

    /// Asks about each symbol of a bucket, by its number and its link in the chain, until there is
    /// an answer.
    fn chain<T>(&self, bucket: u32, mut ask: impl FnMut(usize, u32) -> Option<T>) -> Option<T> {
        let (buckets, first, start) = self.buckets();
        let place = start + bucket as usize;
        // SAFETY: a bucket of the table.
        let mut number = unsafe { self.hash.wrapping_add(place).read() };
        while number >= first && number != 0 {
            let chain = start + (buckets + number - first) as usize;
            // SAFETY: a link of the chain, whose end has not been passed.
            let link = unsafe { self.hash.wrapping_add(chain).read() };
            let answer = ask(number as usize, link);
            if answer.is_some() {
                return answer;
            }
            if link & 1 != 0 {
                break;
            }
            number += 1;
        }
        None
    }

    /// The object's own function.
    fn function(&self, symbol: &Symbol) -> Option<*mut c_void> {
        let at = self.map.base.wrapping_add(replaced::original(symbol));
        match symbol.info & 0xf {
            STT_FUNC => Some(core::ptr::with_exposed_provenance_mut(at)),
            STT_GNU_IFUNC if cfg!(target_arch = "x86_64") => {
                let choose: *const c_void = core::ptr::with_exposed_provenance(at);
                // SAFETY: such a symbol is a function of this type on x86-64, which looks at the
                // processor and returns the function to be called.
                let choose: extern "C" fn() -> *mut c_void =
                    unsafe { core::mem::transmute(choose) };
                Some(choose())
            }
            _ => None,
        }
    }
}

/// The hash of a name in such tables.
fn hash(name: &CStr) -> u32 {
    let bytes = name.to_bytes().iter();
    bytes.fold(5381, |hash: u32, &byte| {
        hash.wrapping_mul(33).wrapping_add(byte.into())
    })
}
