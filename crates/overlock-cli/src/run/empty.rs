//! A shared library without contents, for 32-bit loaders of x86.

use super::library::NAME;

const EHDR: u32 = 52;
const PHDR: u32 = 32;
const SYM: u32 = 16;
const DYN: u32 = 8;

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
/// Without it the loader would make stacks executable.
const PT_GNU_STACK: u32 = 0x6474_e551;
const READ_WRITE: u32 = 6;

const DT_NULL: u32 = 0;
const DT_HASH: u32 = 4;
const DT_STRTAB: u32 = 5;
const DT_SYMTAB: u32 = 6;
const DT_STRSZ: u32 = 10;
const DT_SYMENT: u32 = 11;
const DT_SONAME: u32 = 14;

/// The file. Its only segment is not executable, so it can be on a file system that allows no
/// programs. It can be written to, since the loader relocates its dynamic section.
pub fn library() -> Vec<u8> {
    // One bucket, one symbol: the null symbol.
    let hash = [1, 1, 0, 0].map(u32::to_le_bytes).concat();
    let strings = format!("\0{NAME}\0");
    let symbols_at = EHDR + 3 * PHDR;
    let hash_at = symbols_at + SYM;
    let strings_at = hash_at + length(&hash);
    let dynamic_at = (strings_at + length(strings.as_bytes())).next_multiple_of(4);
    let dynamic = [
        [DT_SONAME, 1],
        [DT_HASH, hash_at],
        [DT_SYMTAB, symbols_at],
        [DT_SYMENT, SYM],
        [DT_STRTAB, strings_at],
        [DT_STRSZ, length(strings.as_bytes())],
        [DT_NULL, 0],
    ];
    let dynamic_size = DYN * dynamic.len() as u32;
    let size = dynamic_at + dynamic_size;

    // Class 32, little-endian, version 1.
    let mut file = b"\x7fELF\x01\x01\x01".to_vec();
    file.resize(16, 0);
    // ET_DYN, EM_386.
    file.extend([3_u16, 3].map(u16::to_le_bytes).concat());
    // Version, entry, program headers, section headers, flags.
    file.extend([1, 0, EHDR, 0, 0].map(u32::to_le_bytes).concat());
    let counts = [EHDR, PHDR, 3, 0, 0, 0].map(|value| (value as u16).to_le_bytes());
    file.extend(counts.concat());
    for [kind, at, size, align] in [
        [PT_LOAD, 0, size, 0x1000],
        [PT_DYNAMIC, dynamic_at, dynamic_size, 4],
        [PT_GNU_STACK, 0, 0, 16],
    ] {
        let header = [kind, at, at, at, size, size, READ_WRITE, align];
        file.extend(header.map(u32::to_le_bytes).concat());
    }
    file.extend([0; SYM as usize]);
    file.extend(hash);
    file.extend(strings.as_bytes());
    file.resize(dynamic_at as usize, 0);
    file.extend(dynamic.concat().into_iter().flat_map(u32::to_le_bytes));
    file
}

fn length(bytes: &[u8]) -> u32 {
    bytes.len() as u32
}

#[cfg(test)]
mod tests {
    use object::{Architecture, Object, ObjectKind};

    #[test]
    fn it_is_a_library_of_32_bits_that_defines_nothing() {
        let bytes = super::library();
        let library = object::File::parse(&*bytes).unwrap();
        assert_eq!(library.kind(), ObjectKind::Dynamic);
        assert_eq!(library.architecture(), Architecture::I386);
        assert!(!library.is_64());
        assert_eq!(library.exports().unwrap().count(), 0);
    }
}
