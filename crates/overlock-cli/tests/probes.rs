//! The drop-in has glibc's static probes, so that tools which know them go on working.

#[path = "common/preload.rs"]
mod preload;

use std::collections::BTreeMap;
use std::fs;

use object::{Object, ObjectSection, ObjectSegment};
use preload::library;

/// A probe of a note.
#[derive(Debug)]
struct Probe {
    provider: String,
    name: String,
    arguments: usize,
    place: u64,
    semaphore: u64,
}

/// The probes of a library.
fn probes(file: &object::File<'_>) -> Vec<Probe> {
    let notes = file.section_by_name(".note.stapsdt").expect("the notes");
    let mut rest = notes.data().unwrap();
    let mut probes = Vec::new();
    while !rest.is_empty() {
        let word = |at: usize| u32::from_ne_bytes(rest[at..at + 4].try_into().unwrap()) as usize;
        let (owner, length) = (word(0), word(4));
        assert_eq!(word(8), 3, "the kind of note");
        let start = 12 + owner.next_multiple_of(4);
        assert_eq!(&rest[12..12 + owner], b"stapsdt\0");
        let note = &rest[start..start + length];
        let number = |at: usize| u64::from_ne_bytes(note[at * 8..at * 8 + 8].try_into().unwrap());
        let mut texts = note[24..].split(|&byte| byte == 0);
        let mut text = || String::from_utf8(texts.next().unwrap().to_vec()).unwrap();
        probes.push(Probe {
            place: number(0),
            semaphore: number(2),
            provider: text(),
            name: text(),
            arguments: text().split_whitespace().count(),
        });
        rest = &rest[start + length.next_multiple_of(4)..];
    }
    probes
}

/// The instruction at an address.
fn code<'a>(file: &object::File<'a>, at: u64) -> &'a [u8] {
    let mut segments = file.segments();
    let found = segments.find_map(|segment| segment.data_range(at, 4).ok()?);
    found.expect("a place in the file")
}

#[test]
fn the_drop_in_has_the_probes_of_glibc_each_an_instruction_that_does_nothing() {
    const EXPECTED: [(&str, usize); 19] = [
        ("cond_broadcast", 1),
        ("cond_destroy", 1),
        ("cond_init", 2),
        ("cond_signal", 1),
        ("cond_wait", 2),
        ("mutex_acquired", 1),
        ("mutex_clocklock_entry", 3),
        ("mutex_destroy", 1),
        ("mutex_entry", 1),
        ("mutex_init", 1),
        ("mutex_release", 1),
        ("mutex_timedlock_acquired", 1),
        ("mutex_timedlock_entry", 2),
        ("rdlock_acquire_read", 1),
        ("rdlock_entry", 1),
        ("rwlock_destroy", 1),
        ("rwlock_unlock", 1),
        ("wrlock_acquire_write", 1),
        ("wrlock_entry", 1),
    ];
    let bytes = fs::read(library()).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let nop: &[u8] = match cfg!(target_arch = "x86_64") {
        true => &[0x90],
        false => &[0x1f, 0x20, 0x03, 0xd5],
    };
    let mut found = BTreeMap::new();
    for probe in probes(&file) {
        assert_eq!((probe.provider.as_str(), probe.semaphore), ("libc", 0));
        assert!(code(&file, probe.place).starts_with(nop), "{probe:?}");
        found.insert(probe.name, probe.arguments);
    }
    let found: Vec<(&str, usize)> = (found.iter())
        .map(|(name, &count)| (name.as_str(), count))
        .collect();
    assert_eq!(found, EXPECTED);
}
