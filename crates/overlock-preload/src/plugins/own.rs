//! Whether a plugin's file defines names that the program defines, too.

use core::ffi::{CStr, c_void};

use overlock_linux::__private::system_call;

use crate::elf;

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;

const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_GNU_HASH: u64 = 0x6fff_fef5;

/// Of a symbol: another definition must not take its place.
const STB_GLOBAL: u8 = 1;
const STT_OBJECT: u8 = 1;
const STT_FUNC: u8 = 2;

/// The size of a symbol.
const SYMBOL: usize = 24;

/// Whether it does. A file that cannot be read defines nothing: the loader says why. Names that
/// the compiler makes in each file that needs them (weak ones) are as good from the program.
pub(super) fn conflicts(path: &CStr) -> bool {
    let flags = libc::O_RDONLY | libc::O_CLOEXEC;
    // SAFETY: the path ends with a zero.
    let file = unsafe { system_call!(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags) };
    if file < 0 {
        return false;
    }
    // SAFETY: a file of ours.
    let length = unsafe { system_call!(libc::SYS_lseek, file, 0_i64, libc::SEEK_END) };
    let none: *mut c_void = core::ptr::null_mut();
    let (protection, kind) = (libc::PROT_READ, libc::MAP_PRIVATE);
    // SAFETY: a new mapping wherever there is room.
    let mapped =
        unsafe { system_call!(libc::SYS_mmap, none, length, protection, kind, file, 0_i64) };
    // SAFETY: as above; not used after this.
    unsafe { system_call!(libc::SYS_close, file) };
    if length <= 0 || (-4095..0).contains(&mapped) {
        return false;
    }
    let start: *const u8 = core::ptr::with_exposed_provenance(mapped as usize);
    // SAFETY: just mapped, of that length. The loader, too, relies on nobody changing the file.
    let bytes = unsafe { core::slice::from_raw_parts(start, length as usize) };
    let conflicts = File(bytes).defines_ours().unwrap_or(false);
    // SAFETY: the mapping from above, which nothing refers to any more.
    unsafe { system_call!(libc::SYS_munmap, mapped, length) };
    conflicts
}

/// The contents of a file, which may be anything: sums wrap around.
struct File<'a>(&'a [u8]);

impl File<'_> {
    fn bytes<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.0.get(at..at.checked_add(N)?)?.try_into().ok()
    }

    fn half(&self, at: usize) -> Option<u16> {
        self.bytes(at).map(u16::from_ne_bytes)
    }

    fn word(&self, at: usize) -> Option<u32> {
        self.bytes(at).map(u32::from_ne_bytes)
    }

    fn long(&self, at: usize) -> Option<usize> {
        self.bytes(at).map(usize::from_ne_bytes)
    }

    /// The places of the program headers.
    fn headers(&self) -> Option<impl Iterator<Item = usize>> {
        let (first, size, count) = (self.long(32)?, self.half(54)?, self.half(56)?);
        (self.0.starts_with(b"\x7fELF\x02")).then(|| {
            let size = usize::from(size);
            (0..usize::from(count)).map(move |number| first.wrapping_add(number * size))
        })
    }

    /// The place in the file of what is loaded to this address.
    fn place(&self, address: usize) -> Option<usize> {
        self.headers()?.find_map(|header| {
            let (offset, start) = (
                self.long(header.wrapping_add(8))?,
                self.long(header.wrapping_add(16))?,
            );
            let inside = address.checked_sub(start)?;
            let is_here =
                self.word(header)? == PT_LOAD && inside < self.long(header.wrapping_add(32))?;
            is_here.then(|| offset.wrapping_add(inside))
        })
    }

    /// The place of a table that the dynamic section names.
    fn table(&self, tag: u64) -> Option<usize> {
        let mut headers = self.headers()?;
        let dynamic = headers.find(|&header| self.word(header) == Some(PT_DYNAMIC))?;
        let mut entry = self.long(dynamic.wrapping_add(8))?;
        loop {
            match self.long(entry)? as u64 {
                0 => return None,
                its if its == tag => return self.place(self.long(entry.wrapping_add(8))?),
                _ => entry = entry.wrapping_add(16),
            }
        }
    }

    /// Whether a symbol is one that the program's objects define, too.
    fn defines_ours(&self) -> Option<bool> {
        let symbols = self.table(DT_SYMTAB)?;
        let strings = self.table(DT_STRTAB)?;
        let hash = self.table(DT_GNU_HASH)?;
        // As in `elf`: the numbers, the filter, the buckets, the chains.
        let (buckets, first) = (self.word(hash)?, self.word(hash.wrapping_add(4))?);
        let filter = 8 * self.word(hash.wrapping_add(8))? as usize;
        let start = hash.wrapping_add(16 + filter);
        let chains = start.wrapping_add(4 * buckets as usize);
        for bucket in 0..buckets as usize {
            let mut number = self.word(start.wrapping_add(4 * bucket))?;
            while let Some(link) = number.checked_sub(first) {
                let symbol = symbols.checked_add(SYMBOL * number as usize)?;
                if self.is_strong(symbol)? && elf::is_defined(self.name(symbol, strings)?) {
                    return Some(true);
                }
                if self.word(chains.wrapping_add(4 * link as usize))? & 1 != 0 {
                    break;
                }
                number = number.wrapping_add(1);
            }
        }
        Some(false)
    }

    fn is_strong(&self, symbol: usize) -> Option<bool> {
        let [info, other]: [u8; 2] = self.bytes(symbol.wrapping_add(4))?;
        let is_defined = self.half(symbol.wrapping_add(6))? != 0;
        let is_kind = [STT_OBJECT, STT_FUNC].contains(&(info & 0xf));
        Some(is_defined && is_kind && info >> 4 == STB_GLOBAL && other & 3 == 0)
    }

    fn name(&self, symbol: usize, strings: usize) -> Option<&CStr> {
        let at = strings.checked_add(self.word(symbol)? as usize)?;
        CStr::from_bytes_until_nul(self.0.get(at..)?).ok()
    }
}
