//! A table's file in this process's memory.

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Deref;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use overlock_shared::{MAGIC, Table, VERSION};
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

/// A table that may be changing.
#[derive(Debug)]
pub struct Mapping {
    table: NonNull<Table>,
    /// The file of a table of another user, which is then a copy: its creator may shorten it, and
    /// an access to a shortened mapping is fatal.
    copied: Option<File>,
}

const SIZE: usize = size_of::<Table>();

impl Mapping {
    /// Maps a file, and checks that it is a table of this version.
    pub fn open(path: &Path) -> io::Result<Self> {
        // O_NONBLOCK: a FIFO without a writer does not block the open.
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() || metadata.len() != SIZE as u64 {
            return no("is no table of this version");
        }
        let is_ours = metadata.uid() == rustix::process::geteuid().as_raw();
        let mapping = if is_ours {
            // SAFETY: a new mapping wherever there is room.
            let address = unsafe {
                mmap(
                    ptr::null_mut(),
                    SIZE,
                    ProtFlags::READ,
                    MapFlags::SHARED,
                    &file,
                    0,
                )
            }?;
            Self::of(address.cast(), None)?
        } else {
            let mut mapping = Self::anonymous(Some(file))?;
            mapping.update()?;
            mapping
        };
        // Acquire: pairs with the store that ends the program's preparation.
        if mapping.header.magic.load(Acquire) != MAGIC {
            return no("is no table, or is not ready yet");
        }
        if mapping.header.version.load(Relaxed) != VERSION {
            return no("is of another version of overlock");
        }
        Ok(mapping)
    }

    fn of(address: *mut Table, copied: Option<File>) -> io::Result<Self> {
        match NonNull::new(address) {
            Some(table) => Ok(Self { table, copied }),
            None => no("cannot be mapped"),
        }
    }

    /// Memory for a copy, all zeros.
    fn anonymous(copied: Option<File>) -> io::Result<Self> {
        let both = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping wherever there is room.
        let address = unsafe { mmap_anonymous(ptr::null_mut(), SIZE, both, MapFlags::PRIVATE) }?;
        Self::of(address.cast(), copied)
    }

    /// Has it show what is counted by now.
    pub fn update(&mut self) -> io::Result<()> {
        let Some(file) = &self.copied else {
            return Ok(());
        };
        // SAFETY: a private mapping of that size, readable and writable, which only `self` uses. A
        // table is made of integers.
        let bytes = unsafe { slice::from_raw_parts_mut(self.table.as_ptr().cast(), SIZE) };
        file.read_exact_at(bytes, 0)
    }
}

/// Bytes of a block: a line of a cache.
const BLOCK: usize = 64;

/// Bytes that are read at once.
const PIECE: usize = 1 << 16;

/// Bytes that are passed over at once.
const PAGE: usize = 1 << 12;

const _: () = assert!(SIZE.is_multiple_of(BLOCK));

/// A copy of a file without the blocks that are zero, which most are.
#[derive(Debug)]
pub struct Compact {
    blocks: Vec<(usize, [u8; BLOCK])>,
}

impl Compact {
    /// The size of what is read is a multiple of it.
    pub const BLOCK: usize = BLOCK;

    /// Reads the first bytes of a file.
    pub fn read(file: &File, size: usize) -> io::Result<Self> {
        let mut blocks = Vec::new();
        let mut piece = vec![0; PIECE];
        for start in (0..size).step_by(PIECE) {
            let piece = &mut piece[..PIECE.min(size - start)];
            file.read_exact_at(piece, start as u64)?;
            for (page, at) in piece.chunks(PAGE).zip((start..).step_by(PAGE)) {
                if page == &[0; PAGE][..page.len()] {
                    continue;
                }
                let (lines, _) = page.as_chunks::<BLOCK>();
                let lines = lines.iter().zip((at..).step_by(BLOCK));
                let said = lines.filter(|(line, _)| **line != [0; BLOCK]);
                blocks.extend(said.map(|(line, at)| (at, *line)));
            }
        }
        Ok(Self { blocks })
    }

    /// Puts them where there are zeros.
    pub fn put(&self, bytes: &mut [u8]) {
        for (at, line) in &self.blocks {
            bytes[*at..*at + BLOCK].copy_from_slice(line);
        }
    }

    /// The table as it was.
    pub fn expand(&self) -> io::Result<Mapping> {
        let mapping = Mapping::anonymous(None)?;
        // SAFETY: a private mapping of that size, which nobody else has yet. A table is made of
        // integers.
        let bytes = unsafe { slice::from_raw_parts_mut(mapping.table.as_ptr().cast(), SIZE) };
        self.put(bytes);
        Ok(mapping)
    }
}

fn no<T>(why: &str) -> io::Result<T> {
    Err(io::Error::new(io::ErrorKind::InvalidData, why))
}

impl Deref for Mapping {
    type Target = Table;

    fn deref(&self) -> &Table {
        // SAFETY: mapped until this is dropped, and of that size; made of atomics only, which
        // another process may change.
        unsafe { self.table.as_ref() }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping that `open` has made; references to it do not outlive `self`.
        let unmapped = unsafe { munmap(self.table.as_ptr().cast(), SIZE) };
        debug_assert!(unmapped.is_ok());
    }
}
