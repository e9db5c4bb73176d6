//! The image: an ELF file whose note says where vCPUs begin.

use std::fmt;

/// The note's owner and type.
const OWNER: &[u8] = b"overlock\0";
const TYPE: u32 = 1;

const PT_LOAD: u32 = 1;
const PT_NOTE: u32 = 4;
const SHT_SYMTAB: u32 = 2;
const STT_FUNC: u8 = 2;

/// The image as it is to be loaded.
#[derive(Debug)]
pub struct Image<'a> {
    pub segments: Vec<Segment<'a>>,
    /// The address at which a vCPU begins, with its number in RDI.
    pub entry: u64,
    /// The address of the boot block: `Boot` of the guest's `ring3` module.
    pub boot: u64,
    /// The address of the boot line.
    pub line: u64,
    /// The address that GS of the first vCPU points to.
    pub states: u64,
    /// From there on, the distance to the next vCPU's.
    pub state_size: u64,
    /// Functions by address.
    symbols: Vec<Symbol<'a>>,
}

#[derive(Debug)]
pub struct Segment<'a> {
    /// Its physical address.
    pub address: u64,
    /// Its bytes. Zeros follow them, as all memory is zero at first.
    pub bytes: &'a [u8],
}

#[derive(Debug)]
struct Symbol<'a> {
    address: u64,
    size: u64,
    name: &'a str,
}

/// The file is not an image of the guest.
#[derive(Debug, PartialEq, Eq)]
pub struct NotAnImage(&'static str);

impl fmt::Display for NotAnImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not an image of overlock-guest: {}", self.0)
    }
}

impl std::error::Error for NotAnImage {}

/// A little-endian file.
#[derive(Clone, Copy)]
struct File<'a>(&'a [u8]);

impl<'a> File<'a> {
    fn bytes(self, at: u64, length: u64) -> Result<&'a [u8], NotAnImage> {
        let range = at..at.saturating_add(length);
        let range = usize::try_from(range.start)
            .ok()
            .zip(usize::try_from(range.end).ok());
        range
            .and_then(|(start, end)| self.0.get(start..end))
            .ok_or(NotAnImage("it is cut off"))
    }

    /// A number of at most eight bytes.
    fn number(self, at: u64, length: u64) -> Result<u64, NotAnImage> {
        let mut bytes = [0; 8];
        bytes[..length as usize].copy_from_slice(self.bytes(at, length)?);
        Ok(u64::from_le_bytes(bytes))
    }
}

impl<'a> Image<'a> {
    /// The image in a file.
    ///
    /// # Errors
    ///
    /// If it is none.
    pub fn parse(file: &'a [u8]) -> Result<Self, NotAnImage> {
        let file = File(file);
        // ELF, 64 bits, little-endian.
        if file.bytes(0, 6)? != b"\x7fELF\x02\x01" {
            return Err(NotAnImage("no ELF file of 64 bits"));
        }
        let mut segments = Vec::new();
        let mut note = None;
        for header in headers(file, 32, 54)? {
            let (offset, size) = (file.number(header + 8, 8)?, file.number(header + 32, 8)?);
            let bytes = file.bytes(offset, size)?;
            match file.number(header, 4)? as u32 {
                PT_LOAD => segments.push(Segment {
                    address: file.number(header + 24, 8)?,
                    bytes,
                }),
                PT_NOTE => note = note.or(find_note(File(bytes))?),
                _ => {}
            }
        }
        let note = note.ok_or(NotAnImage("it has no note for this monitor"))?;
        let word = |index: u64| note.number(8 * index, 8);
        Ok(Image {
            segments,
            entry: word(0)?,
            boot: word(1)?,
            line: word(2)?,
            states: word(3)?,
            state_size: word(4)?,
            symbols: symbols(file)?,
        })
    }

    /// The function at this address, and the distance from its beginning.
    pub fn symbol(&self, address: u64) -> Option<(&'a str, u64)> {
        let found = self
            .symbols
            .iter()
            .find(|symbol| address.wrapping_sub(symbol.address) < symbol.size)?;
        Some((found.name, address - found.address))
    }

    /// The same for people.
    pub fn describe(&self, address: u64) -> Option<String> {
        let (name, offset) = self.symbol(address)?;
        Some(format!("{:#}+{offset:#x}", rustc_demangle::demangle(name)))
    }
}

/// The offsets of a table's headers. The table's own offset stands at `table` in the file, the size
/// and the number of its headers at `sizes`.
fn headers(
    file: File<'_>,
    table: u64,
    sizes: u64,
) -> Result<impl Iterator<Item = u64>, NotAnImage> {
    let begin = file.number(table, 8)?;
    // Headers lie in the file, so sums of their offsets do not overflow.
    file.bytes(begin, 0)?;
    let (size, number) = (file.number(sizes, 2)?, file.number(sizes + 2, 2)?);
    Ok((0..number).map(move |index| begin + index * size))
}

/// The contents of our note among the notes of a segment.
fn find_note(notes: File<'_>) -> Result<Option<File<'_>>, NotAnImage> {
    let mut at = 0;
    while at + 12 <= notes.0.len() as u64 {
        let owner_length = notes.number(at, 4)?;
        let length = notes.number(at + 4, 4)?;
        let kind = notes.number(at + 8, 4)? as u32;
        let owner = notes.bytes(at + 12, owner_length)?;
        let contents = at + 12 + owner_length.next_multiple_of(4);
        if owner == OWNER && kind == TYPE {
            return Ok(Some(File(notes.bytes(contents, length)?)));
        }
        at = contents + length.next_multiple_of(4);
    }
    Ok(None)
}

fn symbols(file: File<'_>) -> Result<Vec<Symbol<'_>>, NotAnImage> {
    let sections: Vec<u64> = headers(file, 40, 58)?.collect();
    let contents =
        |header: u64| file.bytes(file.number(header + 24, 8)?, file.number(header + 32, 8)?);
    let mut symbols = Vec::new();
    for header in &sections {
        if file.number(header + 4, 4)? as u32 != SHT_SYMTAB {
            continue;
        }
        let names = file.number(header + 40, 4)? as usize;
        let names = contents(
            *sections
                .get(names)
                .ok_or(NotAnImage("its symbols have no names"))?,
        )?;
        for entry in contents(*header)?.chunks_exact(24) {
            let entry = File(entry);
            if entry.number(4, 1)? as u8 & 0xf == STT_FUNC {
                let name = names
                    .get(entry.number(0, 4)? as usize..)
                    .unwrap_or_default();
                let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
                symbols.push(Symbol {
                    address: entry.number(8, 8)?,
                    size: entry.number(16, 8)?,
                    name: str::from_utf8(name).unwrap_or_default(),
                });
            }
        }
    }
    Ok(symbols)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with a segment of four bytes and a segment of notes.
    fn file(owner: &[u8; 9]) -> Vec<u8> {
        let mut file = vec![0; 64 + 2 * 56];
        let put = |file: &mut Vec<u8>, at: usize, bytes: &[u8]| {
            file[at..at + bytes.len()].copy_from_slice(bytes);
        };
        put(&mut file, 0, b"\x7fELF\x02\x01");
        put(&mut file, 32, &64u64.to_le_bytes());
        put(&mut file, 54, &[56, 0, 2, 0]);
        let contents = file.len() as u64;
        let segments = [(PT_LOAD, contents, 4), (PT_NOTE, contents + 4, 20 + 64)];
        for (header, (kind, offset, size)) in [64, 120].into_iter().zip(segments) {
            put(&mut file, header, &kind.to_le_bytes());
            put(&mut file, header + 8, &offset.to_le_bytes());
            put(&mut file, header + 24, &0x10_0000u64.to_le_bytes());
            put(&mut file, header + 32, &u64::to_le_bytes(size));
        }
        file.extend(*b"code");
        // Another's note first, of one byte.
        for word in [4u32, 1, TYPE] {
            file.extend(word.to_le_bytes());
        }
        file.extend(*b"Xen\0\x01\0\0\0");
        for word in [9u32, 40, TYPE] {
            file.extend(word.to_le_bytes());
        }
        file.extend(owner);
        file.extend([0; 3]);
        for word in 1..=5u64 {
            file.extend((word * 0x1000).to_le_bytes());
        }
        file
    }

    #[test]
    fn an_image_has_segments_and_the_note() {
        let file = file(b"overlock\0");
        let image = Image::parse(&file).unwrap();
        assert_eq!(image.segments.len(), 1);
        assert_eq!(image.segments[0].bytes, b"code");
        assert_eq!((image.entry, image.state_size), (0x1000, 0x5000));
        assert_eq!(image.symbol(0x1000), None);
    }

    /// Fails where a number of the file is trusted: the sum of two overflows.
    #[test]
    fn a_damaged_file_is_refused_or_read() {
        let whole = file(b"overlock\0");
        for (place, byte) in (0..whole.len()).flat_map(|place| [(place, 0xff), (place, 0x80)]) {
            let mut damaged = whole.clone();
            damaged[place] = byte;
            if let Ok(image) = Image::parse(&damaged) {
                image.symbol(u64::MAX);
            }
        }
    }

    #[test]
    fn what_is_no_image_is_refused() {
        assert!(Image::parse(b"#!/bin/sh").is_err());
        assert!(Image::parse(&file(b"overlook\0")).is_err());
        let whole = file(b"overlock\0");
        for length in 0..whole.len() {
            assert!(Image::parse(&whole[..length]).is_err(), "{length}");
        }
    }
}
