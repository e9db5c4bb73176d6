//! Names of code that was made at run time, in the dumps that JVMs (libperf-jvmti), V8
//! (`--perf-prof`) and CPython (`-X perf_jit`) write for `perf inject`. A process has its dump
//! mapped as code, so that it is among its modules.

use std::path::Path;

use super::perf_map::{Made, PerfMap, made};

const MAGIC: u32 = 0x4a69_5444;
/// A record's kinds: a function was made; it was moved.
const LOAD: u32 = 0;
const MOVE: u32 = 1;
/// The length of a record's header.
const HEADER: usize = 16;

/// Whether a path is that of a dump.
pub fn is_dump(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("jit-") && name.ends_with(".dump")
}

/// Adds the functions of a dump, as far as it goes. Only those of this machine's byte order are
/// understood.
pub fn read(bytes: &[u8], map: &mut PerfMap) {
    let word = |at: usize| number::<4>(bytes, at).map(u32::from_ne_bytes);
    if word(0) != Some(MAGIC) {
        return;
    }
    let Some(mut at) = word(8).map(|length| length as usize) else {
        return;
    };
    while let (Some(kind), Some(length)) = (word(at), word(at.saturating_add(4))) {
        let length = length as usize;
        let Some(record) = at.checked_add(length).and_then(|end| bytes.get(at..end)) else {
            return;
        };
        if length < HEADER {
            return;
        }
        let long = |at: usize| number::<8>(record, HEADER + at).map(u64::from_ne_bytes);
        // Behind the process and the thread.
        match kind {
            LOAD => {
                let name = record.get(HEADER + 40..).and_then(|rest| {
                    let length = rest.iter().position(|&byte| byte == 0)?;
                    Some(String::from_utf8_lossy(&rest[..length]))
                });
                if let (Some(start), Some(size), Some(name)) = (long(16), long(24), name) {
                    map.add(start, size, made(&name));
                }
            }
            MOVE => {
                let moved = (long(16), long(24), long(32));
                if let (Some(from), Some(to), Some(size)) = moved {
                    let known: Option<Made> = map.at(from).cloned();
                    known.into_iter().for_each(|made| map.add(to, size, made));
                }
            }
            _ => {}
        }
        at += length;
    }
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, words: &[u64], rest: &[u8]) -> Vec<u8> {
        let mut content = vec![0; 8];
        for word in words {
            content.extend(word.to_ne_bytes());
        }
        content.extend(rest);
        let length = (HEADER + content.len()) as u32;
        let mut record = Vec::new();
        record.extend(kind.to_ne_bytes());
        record.extend(length.to_ne_bytes());
        record.extend([0; 8]);
        record.extend(content);
        record
    }

    #[test]
    fn functions_are_read_as_far_as_the_dump_goes() {
        let mut dump = Vec::new();
        for word in [MAGIC, 1, 40, 62, 0, 7, 0, 0, 0, 0] {
            dump.extend(word.to_ne_bytes());
        }
        // Virtual address, address, size, number; name and code.
        dump.extend(record(LOAD, &[0x1000, 0x1000, 0x20, 1], b"one\0code"));
        dump.extend(record(2, &[1, 2, 3], b""));
        dump.extend(record(LOAD, &[0x2000, 0x2000, 0x20, 2], b"two\0code"));
        dump.extend(record(MOVE, &[0x1000, 0x1000, 0x3000, 0x20, 1], b""));
        let whole = dump.len();
        dump.extend(record(LOAD, &[0x4000, 0x4000, 0x20, 3], b"cut\0code"));
        for length in 0..dump.len() {
            let mut map = PerfMap::default();
            read(&dump[..length], &mut map);
            let name = |address| map.at(address).map(|made| made.name.as_str());
            assert_eq!(name(0x4001), None);
            if length >= whole {
                assert_eq!((name(0x1001), name(0x201f)), (Some("one"), Some("two")));
                assert_eq!(name(0x3001), Some("one"));
            }
        }
        let mut map = PerfMap::default();
        read(b"no dump at all, but longer than a header of one", &mut map);
        assert_eq!(map.at(0), None);
    }
}
