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
            let both = ProtFlags::READ | ProtFlags::WRITE;
            // SAFETY: as above.
            let address =
                unsafe { mmap_anonymous(ptr::null_mut(), SIZE, both, MapFlags::PRIVATE) }?;
            let mut mapping = Self::of(address.cast(), Some(file))?;
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
