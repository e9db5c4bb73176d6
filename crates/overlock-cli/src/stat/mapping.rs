//! A table's file in this process's memory.

use std::fs::File;
use std::io;
use std::ops::Deref;
use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use overlock_stat::{MAGIC, Table, VERSION};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// A table that may be changing.
#[derive(Debug)]
pub struct Mapping(NonNull<Table>);

impl Mapping {
    /// Maps a file, and checks that it is a table of this version.
    pub fn open(path: &Path) -> io::Result<Self> {
        let no = |why: &str| Err(io::Error::new(io::ErrorKind::InvalidData, why));
        let file = File::open(path)?;
        let size = size_of::<Table>();
        if file.metadata()?.len() != size as u64 {
            return no("is no table of this version");
        }
        // SAFETY: a new mapping wherever there is room.
        let address = unsafe {
            mmap(
                ptr::null_mut(),
                size,
                ProtFlags::READ,
                MapFlags::SHARED,
                &file,
                0,
            )
        }?;
        let Some(table) = NonNull::new(address.cast()) else {
            return no("cannot be mapped");
        };
        let mapping = Self(table);
        // Acquire: pairs with the store that ends the program's preparation.
        if mapping.header.magic.load(Acquire) != MAGIC {
            return no("is no table, or is not ready yet");
        }
        if mapping.header.version.load(Relaxed) != VERSION {
            return no("is of another version of overlock");
        }
        Ok(mapping)
    }
}

impl Deref for Mapping {
    type Target = Table;

    fn deref(&self) -> &Table {
        // SAFETY: mapped until this is dropped, and of that size; made of atomics only, which
        // another process may change.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping that `open` has made; references to it do not outlive `self`.
        let unmapped = unsafe { munmap(self.0.as_ptr().cast(), size_of::<Table>()) };
        debug_assert!(unmapped.is_ok());
    }
}
