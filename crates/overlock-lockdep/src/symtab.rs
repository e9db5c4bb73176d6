//! Names that an object has for debuggers only: those of static functions and variables. They are
//! not loaded with it, so they are read from its file, in pieces, when a report is made.
//!
//! Another file may have replaced the object's since it was loaded. So the file has to begin as the
//! object in memory does. That part includes the places of its segments and, as linkers place it,
//! its build id. Nothing else in the file is trusted: with any contents, reading it ends, and gives
//! a name or none.

use std::ffi::CStr;

use overlock_linux::__private::calls::File;
use overlock_linux::__private::extras;

use crate::mapped::{Temporary, Zeroed};

/// The longest name that is kept; C++ has longer ones.
const LONGEST: usize = 256;

/// Length of the compared part of an object and its file.
const BEGINNING: usize = 1024;

/// A symbol that contains an address.
pub(super) struct Symbol {
    name: [u8; LONGEST],
    length: usize,
    /// Its beginning.
    pub(super) address: usize,
}

impl Symbol {
    pub(super) fn name(&self) -> &[u8] {
        &self.name[..self.length]
    }
}

/// Pieces of the files, not on the stack: a thread's may be small.
struct Pieces {
    file: [u8; BEGINNING],
    memory: [u8; BEGINNING],
    symbols: [u8; SYMBOL * 128],
}

// SAFETY: zero bytes are a valid value of each field.
unsafe impl Zeroed for Pieces {}

/// Returns the symbol at `address`, in the object that was loaded from `path` to `base`.
pub(super) fn find(path: &CStr, base: usize, address: usize) -> Option<Symbol> {
    let file = Object::open(path)?;
    let memory = Object::open(c"/proc/self/mem")?;
    let mut pieces = Temporary::<Pieces>::new()?;
    let pieces = &mut *pieces;
    let (head, loaded) = (&mut pieces.file, &mut pieces.memory);
    let read = [
        file.read_some(head, 0)?,
        memory.read_some(loaded, base as u64)?,
    ];
    let is_ours = read == [BEGINNING; 2]
        && head.starts_with(b"\x7fELF")
        && head[4] == CLASS_64
        && head[5] == if cfg!(target_endian = "little") { 1 } else { 2 };
    if !is_ours || head != loaded {
        return None;
    }
    // The distance between the load address and the file's.
    let bias = base.wrapping_sub(file.lowest(head)?);
    let symbols = file.section(head, |_, kind| kind == SYMBOLS)?;
    let names = file.section(head, |number, _| number == u64::from(symbols.link))?;
    let within = address.wrapping_sub(bias) as u64;
    let (value, name) = file.symbol(&symbols, within, &mut pieces.symbols)?;
    let mut symbol = Symbol {
        name: [0; LONGEST],
        length: 0,
        address: bias.wrapping_add(value as usize),
    };
    let at = names.offset.wrapping_add(name.into());
    let read = file.read_some(&mut symbol.name, at)?;
    let end = symbol.name[..read].iter().position(|byte| *byte == 0);
    symbol.length = end.unwrap_or(read);
    (symbol.length != 0).then_some(symbol)
}

const CLASS_64: u8 = 2;
/// A segment's type: to be loaded.
const LOAD: u32 = 1;
/// A section's type: symbols.
const SYMBOLS: u32 = 2;
/// A symbol's types: a variable, a function, a function resolved at load time (ifunc).
const KINDS: [u8; 3] = [1, 2, 10];

const SEGMENT: usize = 56;
const SECTION: usize = 64;
const SYMBOL: usize = 24;

struct Section {
    offset: u64,
    size: u64,
    /// The number of the section with its names.
    link: u32,
}

/// A file; or memory as one, which fails if there is none.
struct Object(File);

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    let bytes = bytes
        .get(at..at + 2)
        .and_then(|bytes| bytes.try_into().ok());
    bytes.map_or(0, u16::from_ne_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let bytes = bytes
        .get(at..at + 4)
        .and_then(|bytes| bytes.try_into().ok());
    bytes.map_or(0, u32::from_ne_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let bytes = bytes
        .get(at..at + 8)
        .and_then(|bytes| bytes.try_into().ok());
    bytes.map_or(0, u64::from_ne_bytes)
}

impl Object {
    fn open(path: &CStr) -> Option<Object> {
        if !extras::are_granted() {
            return None;
        }
        // No blocking, in case it is a pipe by now.
        File::open(path, libc::O_RDONLY | libc::O_NONBLOCK).map(Object)
    }

    /// Reads as much as there is, up to the length of `bytes`.
    fn read_some(&self, bytes: &mut [u8], offset: u64) -> Option<usize> {
        self.0.read_at(bytes, offset)
    }

    fn read<const N: usize>(&self, offset: u64) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        (self.read_some(&mut bytes, offset)? == N).then_some(bytes)
    }

    /// The lowest address in the file, which is loaded to `base`.
    fn lowest(&self, head: &[u8]) -> Option<usize> {
        let (table, count) = (u64_at(head, 32), u16_at(head, 56));
        let segments = (0..u64::from(count))
            .map_while(|number| self.read::<SEGMENT>(table.wrapping_add(number * SEGMENT as u64)));
        let loaded = segments.filter(|segment| u32_at(segment, 0) == LOAD);
        // SAFETY: it has no preconditions.
        let page = unsafe { libc::getauxval(libc::AT_PAGESZ) }.max(1) as usize;
        let lowest = loaded.map(|segment| u64_at(&segment, 16)).min()?;
        Some(lowest as usize & !(page - 1))
    }

    /// Returns the first section that `is_it` accepts by its number and type.
    fn section(&self, head: &[u8], is_it: impl Fn(u64, u32) -> bool) -> Option<Section> {
        let (table, count) = (u64_at(head, 40), u16_at(head, 60));
        (0..u64::from(count)).find_map(|number| {
            let at = table.wrapping_add(number * SECTION as u64);
            let section: [u8; SECTION] = self.read(at)?;
            is_it(number, u32_at(&section, 4)).then(|| Section {
                offset: u64_at(&section, 24),
                size: u64_at(&section, 32),
                link: u32_at(&section, 40),
            })
        })
    }

    /// Returns the beginning of a symbol that contains `address`, and the place of its name.
    fn symbol(&self, symbols: &Section, address: u64, bytes: &mut [u8]) -> Option<(u64, u32)> {
        let mut done = 0;
        while done < symbols.size {
            let at = symbols.offset.wrapping_add(done);
            let read = self.read_some(bytes, at)?;
            let left = usize::try_from(symbols.size - done).unwrap_or(usize::MAX);
            let whole = read.min(left) / SYMBOL * SYMBOL;
            if whole == 0 {
                return None;
            }
            let found = bytes[..whole].chunks_exact(SYMBOL).find_map(|symbol| {
                let (value, size) = (u64_at(symbol, 8), u64_at(symbol, 16));
                let is_it = KINDS.contains(&(symbol[4] & 0xf))
                    && u16_at(symbol, 6) != 0 // defined here
                    && address.wrapping_sub(value) < size;
                is_it.then(|| (value, u32_at(symbol, 0)))
            });
            if found.is_some() {
                return found;
            }
            done += whole as u64;
        }
        None
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use std::ptr;

    use super::super::symbol::{base_of, is_main};
    use super::*;

    static VARIABLE: [u32; 4] = [1; 4];

    fn address() -> usize {
        ptr::from_ref(&VARIABLE[1]).addr()
    }

    #[test]
    fn what_nobody_exports_has_its_name_in_the_file() {
        let base = base_of(address()).unwrap();
        assert!(is_main(base));
        let symbol = find(c"/proc/self/exe", base, address()).unwrap();
        let name = String::from_utf8_lossy(symbol.name());
        assert!(
            name.contains("symtab") && name.contains("VARIABLE"),
            "{name}"
        );
        assert_eq!(symbol.address, address() - 4);
    }

    /// Fails where the file is not compared with the loaded object.
    #[test]
    fn a_file_that_is_another_one_or_none_has_no_names() {
        let base = base_of(address()).unwrap();
        for path in [
            c"/bin/sh",
            c"/proc/self/stat",
            c"/nowhere",
            c"/dev/null",
            c"/",
        ] {
            assert!(find(path, base, address()).is_none(), "{path:?}");
        }
        assert!(find(c"/proc/self/exe", 0, address()).is_none());
        assert!(find(c"/proc/self/exe", base, 0).is_none());
        // The same file but for a byte at its beginning, as after a rebuild.
        let mut bytes = std::fs::read("/proc/self/exe").unwrap();
        let path = std::env::temp_dir().join(format!("overlock-symtab-{}", std::process::id()));
        let name = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
        std::fs::write(&path, &bytes).unwrap();
        let same = find(&name, base, address()).is_some();
        bytes[BEGINNING - 1] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        let other = find(&name, base, address()).is_some();
        std::fs::remove_file(&path).unwrap();
        assert_eq!((same, other), (true, false));
    }

    /// With any tables in a file, reading them ends.
    #[test]
    fn tables_that_make_no_sense_are_read_to_some_end() {
        let mut file = vec![0xffu8; 4096];
        let path = std::env::temp_dir().join(format!("overlock-tables-{}", std::process::id()));
        let name = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
        for fill in [0xffu8, 0, 1, 2, 0x7f] {
            file[6..].fill(fill);
            std::fs::write(&path, &file).unwrap();
            let object = Object::open(&name).unwrap();
            let head: [u8; BEGINNING] = object.read(0).unwrap();
            let _ = object.lowest(&head);
            for kind in [SYMBOLS, u32::from_ne_bytes([fill; 4])] {
                if let Some(section) = object.section(&head, |_, other| kind == other) {
                    let _ = object.symbol(&section, 0, &mut [0; SYMBOL * 4]);
                }
            }
            let all = Section {
                offset: 0,
                size: u64::MAX,
                link: 0,
            };
            let _ = object.symbol(&all, u64::MAX, &mut [0; SYMBOL * 4]);
            let beyond = Section {
                offset: u64::MAX,
                ..all
            };
            assert!(object.symbol(&beyond, 0, &mut [0; SYMBOL * 4]).is_none());
        }
        std::fs::remove_file(&path).unwrap();
    }
}
