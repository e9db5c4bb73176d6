//! The file in which a process shows its single waits.

use std::fs::{self, OpenOptions};
use std::io;
use std::mem::{self, offset_of};
use std::ops::Deref;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use overlock_shared::{
    GAVE_UP, IS_LOCK, NOT_MEASURED, ObjectKind, PREFIX, RECORDS, Record, SPUN, SUMMED, WAITS_MAGIC,
    WAITS_PREFIX, WAITS_VERSION, Waits,
};
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

use crate::stat::{Compact, Ended as Tables, Mapping};

/// A wait that has ended, as the process has recorded it.
#[derive(Clone, Debug, PartialEq)]
pub struct Ended {
    /// The index of its entry in the process's table.
    pub entry: u32,
    pub kind: ObjectKind,
    pub tid: u32,
    /// The thread that held the lock when it began; 0 where that is not known.
    pub holder: u32,
    /// The lower half of the holder's call site, and the number of its stack.
    pub held_at: (u32, u32),
    pub passed: u32,
    pub gave_up: bool,
    pub is_lock: bool,
    /// The waiter never slept.
    pub has_spun: bool,
    pub object: u64,
    pub began_ns: u64,
    pub ended_ns: u64,
    pub released_ns: Option<u64>,
    /// The holder's CPU time during it.
    pub ran_ns: Option<u64>,
    /// Short waits, of which it is the longest, and the sum of their times.
    pub summed: Option<(u64, u64)>,
}

impl Ended {
    fn of(record: &Record) -> Option<Self> {
        let flags = record.flags.load(Relaxed);
        let began_ns = record.began_ns.load(Relaxed);
        let tid = record.tid.load(Relaxed);
        // A new owner may not have left its name yet, and then the last one's is there.
        let holder = Some(record.holder.load(Relaxed)).filter(|&holder| holder != tid);
        let (released, ran) = (
            record.released_ns.load(Relaxed),
            record.ran_ns.load(Relaxed),
        );
        let summed = (flags & SUMMED != 0).then_some((ran, released));
        let is_single = |_: &u64| summed.is_none();
        Some(Self {
            entry: record.entry.load(Relaxed),
            kind: record.kind()?,
            tid,
            holder: holder.unwrap_or(0),
            held_at: (
                record.holder_site.load(Relaxed),
                record.holder_stack.load(Relaxed),
            ),
            passed: record.passed.load(Relaxed),
            gave_up: flags & GAVE_UP != 0,
            is_lock: flags & IS_LOCK != 0,
            has_spun: flags & SPUN != 0,
            object: record.object.load(Relaxed),
            began_ns,
            ended_ns: record.ended_ns.load(Relaxed).max(began_ns),
            released_ns: Some(released).filter(|&ns| ns != 0).filter(is_single),
            ran_ns: Some(ran).filter(|&ns| ns != NOT_MEASURED).filter(is_single),
            summed,
        })
    }

    /// Its length.
    pub fn ns(&self) -> u64 {
        self.ended_ns - self.began_ns
    }

    /// For how long one thread held the lock meanwhile, as far as that is known.
    pub fn held_ns(&self) -> Option<u64> {
        let is_one = self.kind == ObjectKind::Mutex && self.passed == 0 && !self.gave_up;
        let released_ns = self.released_ns.filter(|_| is_one)?;
        released_ns.checked_sub(self.began_ns)
    }

    /// Whether it was for something to happen.
    pub fn is_event(&self) -> bool {
        self.kind.is_event() && !self.is_lock
    }
}

/// The mapped file.
#[derive(Debug)]
pub struct Ring {
    waits: NonNull<Waits>,
    path: PathBuf,
    /// The process's table.
    table: PathBuf,
    /// The same once its file is gone.
    taken: Option<Arc<Compact>>,
    /// The number of the next record.
    next: u64,
    /// Earlier ones that were not written yet.
    unwritten: Vec<u64>,
}

// SAFETY: the mapping belongs to no thread.
unsafe impl Send for Ring {}

impl Ring {
    /// Maps a file. One of another user is refused: its creator may shorten it, and an access to a
    /// shortened mapping is fatal.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(path)?;
        let metadata = file.metadata()?;
        let is_ours = metadata.uid() == rustix::process::geteuid().as_raw();
        let size = size_of::<Waits>();
        if !metadata.is_file() || metadata.len() != size as u64 || !is_ours {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let both = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping wherever there is room.
        let mapped = unsafe { mmap(ptr::null_mut(), size, both, MapFlags::SHARED, &file, 0) }?;
        let ring = Self {
            waits: NonNull::new(mapped.cast()).ok_or(io::ErrorKind::InvalidData)?,
            path: path.to_owned(),
            table: beside(path),
            taken: None,
            next: 0,
            unwritten: Vec::new(),
        };
        // Acquire: pairs with the store that ends the program's preparation.
        let is_ready = ring.header.magic.load(Acquire) == WAITS_MAGIC
            && ring.header.version.load(Relaxed) == WAITS_VERSION;
        is_ready
            .then_some(ring)
            .ok_or(io::ErrorKind::InvalidData.into())
    }

    /// The path of the process's table.
    pub fn table_path(&self) -> &Path {
        &self.table
    }

    /// The process's table.
    pub fn table(&self) -> io::Result<Mapping> {
        match &self.taken {
            Some(table) => table.expand(),
            None => Mapping::open(&self.table),
        }
    }

    /// Replaces the files of a process that has ended by what is in them, without the records: all
    /// were drained. Returns the path that is free then.
    pub fn leave_files(&mut self, tables: &mut Tables) -> Option<PathBuf> {
        let (path, mut copy) = (self.path.clone(), None);
        let table = tables.take(&self.table, || {
            copy = copied(&path).ok();
            // Before the table, whose number a new one may take.
            copy.is_some() && fs::remove_file(&path).is_ok()
        })?;
        self.taken = Some(table);
        let mapped = mem::replace(&mut self.waits, copy?);
        unmap(mapped);
        Some(path)
    }

    /// Takes all waits that have ended since the last call.
    pub fn drain(&mut self, mut take: impl FnMut(Ended)) {
        let until = self.header.next.0.load(Relaxed);
        // Those of earlier laps are left out, and so is what a broken file says.
        let first = until.saturating_sub(RECORDS as u64);
        let known = mem::take(&mut self.unwritten);
        let known = known.into_iter().filter(|&number| number >= first);
        let mut unwritten = Vec::new();
        for number in known.chain(self.next.max(first)..until) {
            let record = &self.records[number as usize % RECORDS];
            let lap = number / RECORDS as u64;
            // Acquire: pairs with the store of the thread that has written it (W-full).
            let state = record.state.load(Acquire);
            if state.is_multiple_of(2) {
                unwritten.push(number);
                continue;
            }
            // One that was left out may be written in a later lap.
            let ended = Ended::of(record).filter(|_| state == lap * 2 + 1);
            // Release: the next lap's thread writes after this (W-free).
            record.state.store((lap + 1) * 2, Release);
            if let Some(ended) = ended {
                take(ended);
            }
        }
        (self.next, self.unwritten) = (until, unwritten);
    }
}

const _: () = assert!(offset_of!(Waits, records).is_multiple_of(Compact::BLOCK));

/// A copy of a file in memory, without the records.
fn copied(path: &Path) -> io::Result<NonNull<Waits>> {
    let file = OpenOptions::new().read(true).open(path)?;
    let compact = Compact::read(&file, offset_of!(Waits, records))?;
    let (both, size) = (ProtFlags::READ | ProtFlags::WRITE, size_of::<Waits>());
    // SAFETY: a new mapping wherever there is room.
    let mapped = unsafe { mmap_anonymous(ptr::null_mut(), size, both, MapFlags::PRIVATE) }?;
    let waits: NonNull<Waits> = NonNull::new(mapped.cast()).ok_or(io::ErrorKind::InvalidData)?;
    // SAFETY: of that size, and nobody else has it yet; made of integers.
    compact.put(unsafe { slice::from_raw_parts_mut(waits.as_ptr().cast(), size) });
    Ok(waits)
}

/// Unmaps what [`Ring::open`] or [`copied`] has mapped, to which there are no references.
fn unmap(waits: NonNull<Waits>) {
    // SAFETY: such a mapping, of that size; the callers give it up.
    let unmapped = unsafe { munmap(waits.as_ptr().cast(), size_of::<Waits>()) };
    debug_assert!(unmapped.is_ok());
}

/// The table that has the same number.
fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().as_bytes();
    let number = name.strip_prefix(WAITS_PREFIX.as_bytes()).unwrap_or(name);
    let name = [PREFIX.as_bytes(), number].concat();
    path.with_file_name(std::ffi::OsStr::from_bytes(&name))
}

impl Deref for Ring {
    type Target = Waits;

    fn deref(&self) -> &Waits {
        // SAFETY: mapped until this is dropped, and of that size; made of atomics only, which
        // another process may change.
        unsafe { self.waits.as_ref() }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        unmap(self.waits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_taken_once_and_its_place_is_free_for_the_next_lap() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("overlock-waits.7.1");
        let file = fs::File::create_new(&path).unwrap();
        file.set_len(size_of::<Waits>() as u64).unwrap();
        assert!(Ring::open(&path).is_err());
        use std::os::unix::fs::FileExt;
        file.write_all_at(&WAITS_MAGIC.to_ne_bytes(), 0).unwrap();
        file.write_all_at(&WAITS_VERSION.to_ne_bytes(), 8).unwrap();
        let mut ring = Ring::open(&path).unwrap();
        assert!(ring.table.ends_with("overlock-stat.7.1"));
        let write = |ring: &Ring, number: usize| {
            let record = &ring.records[number];
            record.kind.store(ObjectKind::Mutex as u32, Relaxed);
            record.tid.store(number as u32, Relaxed);
            record.state.store(1, Relaxed);
        };
        let taken = |ring: &mut Ring| {
            let mut tids = Vec::new();
            ring.drain(|ended| tids.push(ended.tid));
            tids
        };
        // The second is not written yet.
        ring.header.next.0.store(3, Relaxed);
        write(&ring, 0);
        write(&ring, 2);
        assert_eq!(taken(&mut ring), [0, 2]);
        write(&ring, 1);
        assert_eq!(taken(&mut ring), [1]);
        assert_eq!(taken(&mut ring), [0; 0]);
        assert_eq!(ring.records[1].state.load(Relaxed), 2);
        // One that is never written is left out, and so is what it has when it is.
        ring.header.next.0.store(4, Relaxed);
        assert_eq!(taken(&mut ring), [0; 0]);
        let lap = RECORDS as u64;
        ring.header.next.0.store(lap + 4, Relaxed);
        write(&ring, 3);
        assert_eq!(taken(&mut ring), [0; 0]);
        assert_eq!(ring.records[3].state.load(Relaxed), 4);
        ring.header.next.0.store(u64::MAX, Relaxed);
        assert_eq!(taken(&mut ring), [0; 0]);
    }
}
