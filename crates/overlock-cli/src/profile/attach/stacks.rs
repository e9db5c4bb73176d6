//! Stacks that were copied, and the calls in them.

use std::collections::HashMap;
use std::fs::{self, File};
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use framehop::{
    CacheNative, ExplicitModuleSectionInfo, FrameAddress, MayAllocateDuringUnwind,
    UnwindRegsNative, Unwinder, UnwinderNative,
};
use object::{Object, ObjectSection, ObjectSegment, SegmentFlags};

use super::records::Copied;
use crate::stat::{Module, Symbols};

/// The calls of a stack that are kept.
const DEPTH: usize = 64;

/// Looks at the mappings take one part in so many of the time.
const SHARE: u32 = 20;

/// A process's stacks.
pub struct Stacks {
    pid: u32,
    /// The directory of the process's files, as this process sees it.
    root: PathBuf,
    mapped: HashMap<Range<u64>, PathBuf>,
    /// Files that stay open, and their paths as the process sees them, by those that are read.
    opened: HashMap<String, (File, String)>,
    looked: Instant,
    /// The time until the next look, at least.
    pause: Duration,
    unwinder: UnwinderNative<Vec<u8>, MayAllocateDuringUnwind>,
    cache: CacheNative<MayAllocateDuringUnwind>,
    known: HashMap<u64, Vec<u64>>,
    symbols: Symbols,
}

impl Stacks {
    /// Reads what the process has mapped.
    pub fn new(pid: u32) -> Self {
        let mounts = |pid: &str| fs::metadata(format!("/proc/{pid}/ns/mnt")).map(|of| of.ino());
        let own = mounts("self").ok();
        let root = match mounts(&pid.to_string()).ok() == own {
            true => PathBuf::from("/"),
            false => PathBuf::from(format!("/proc/{pid}/root")),
        };
        let mut new = Self {
            pid,
            root,
            mapped: HashMap::new(),
            opened: HashMap::new(),
            looked: Instant::now(),
            pause: Duration::ZERO,
            unwinder: UnwinderNative::new(),
            cache: CacheNative::new(),
            known: HashMap::new(),
            symbols: Symbols::new(),
        };
        new.look();
        if let Some(since_s) = since_s(pid) {
            new.symbols.set_process(pid, since_s);
        }
        new
    }

    /// Reads the mappings that are new.
    fn look(&mut self) {
        let began = Instant::now();
        // A process that has ended has none.
        let maps = fs::read_to_string(format!("/proc/{}/maps", self.pid)).unwrap_or_default();
        for (range, offset, path) in maps.lines().filter_map(code) {
            if self.mapped.get(&range).is_some_and(|known| known == path) {
                continue;
            }
            self.forget(&range);
            let file = self.file(&range, path);
            if let Some(module) = module(&range, offset, &file) {
                self.unwinder.add_module(module);
            }
            self.symbols.add(Module {
                start: range.start,
                end: range.end,
                offset,
                path: file,
            });
            self.mapped.insert(range, path.to_owned());
        }
        self.looked = Instant::now();
        self.pause = SHARE * (self.looked - began);
    }

    /// Forgets the rules of code whose place other code has now, as after `execve`. Its names stay.
    fn forget(&mut self, range: &Range<u64>) {
        let is_there = |old: &Range<u64>| old.start < range.end && range.start < old.end;
        let gone = self.mapped.extract_if(|old, _| is_there(old));
        for (old, _) in gone {
            self.unwinder.remove_module(old.start);
        }
    }

    /// The path by which a mapped file is read. One that only the process has, since it was deleted
    /// or is in another namespace, stays open: it is read once more when the look has ended.
    fn file(&mut self, range: &Range<u64>, path: &Path) -> PathBuf {
        let shown = path.to_string_lossy();
        let place = match shown.strip_suffix(" (deleted)") {
            Some(_) => PathBuf::from(format!(
                "/proc/{}/map_files/{:x}-{:x}",
                self.pid, range.start, range.end
            )),
            None if self.root == Path::new("/") => return path.to_owned(),
            None => self.root.join(path.strip_prefix("/").unwrap_or(path)),
        };
        // Other files than plain ones may never answer.
        let is_file = fs::metadata(&place).is_ok_and(|found| found.is_file());
        let Some(file) = is_file.then(|| File::open(&place).ok()).flatten() else {
            return path.to_owned();
        };
        let opened = format!("/proc/self/fd/{}", file.as_raw_fd());
        let shown = shown.trim_end_matches(" (deleted)").to_owned();
        self.opened.insert(opened.clone(), (file, shown));
        PathBuf::from(opened)
    }

    /// Finds the calls of a stack.
    pub fn add(&mut self, stack: &Copied) {
        if self.known.contains_key(&stack.key) {
            return;
        }
        let mut calls = self.unwind(stack);
        // The last call may be in code that has been mapped since.
        let is_known = |ip: &u64| self.mapped.keys().any(|range| range.contains(ip));
        if !calls.last().is_some_and(is_known) && self.looked.elapsed() > self.pause {
            self.look();
            calls = self.unwind(stack);
        }
        self.known.insert(stack.key, calls);
    }

    /// The return addresses, the innermost first.
    fn unwind(&mut self, stack: &Copied) -> Vec<u64> {
        let mut read = |address: u64| {
            let at = usize::try_from(address.wrapping_sub(stack.sp)).map_err(|_| ())?;
            let bytes = stack.bytes.get(at..).and_then(<[u8]>::first_chunk);
            bytes.copied().map(u64::from_ne_bytes).ok_or(())
        };
        #[cfg(target_arch = "x86_64")]
        let registers = UnwindRegsNative::new(stack.ip, stack.sp, stack.bp);
        #[cfg(target_arch = "aarch64")]
        let registers = UnwindRegsNative::new(stack.lr, stack.sp, stack.bp);
        let mut frames = self
            .unwinder
            .iter_frames(stack.ip, registers, &mut self.cache, &mut read);
        let mut calls = Vec::new();
        while calls.len() < DEPTH
            && let Ok(Some(frame)) = frames.next()
        {
            calls.push(match frame {
                // The system call's own instruction has been left behind, as a call has.
                FrameAddress::InstructionPointer(address) => address,
                FrameAddress::ReturnAddress(address) => address.get(),
            });
        }
        calls
    }

    /// The return addresses of a stack, if it was seen.
    pub fn calls(&self, key: u64) -> Option<&[u64]> {
        self.known.get(&key).map(Vec::as_slice)
    }

    /// Whether the process has the drop-in.
    pub fn is_ours(&self) -> bool {
        let mut paths = self.mapped.values();
        paths.any(|path| {
            let name = path.file_name().unwrap_or_default();
            name.to_string_lossy().starts_with("liboverlock_preload")
        })
    }

    /// The names of the process's code and variables.
    pub fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    /// The path of a file as the process sees it, where it was read elsewhere.
    pub fn shown(&self, path: &str) -> Option<&str> {
        self.opened.get(path).map(|(_, shown)| shown.as_str())
    }
}

impl std::fmt::Debug for Stacks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stacks")
            .field("pid", &self.pid)
            .finish_non_exhaustive()
    }
}

/// When a process began, in seconds since 1970.
fn since_s(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    let ticks: u64 = fields.split(' ').nth(19)?.parse().ok()?;
    let uptime = fs::read_to_string("/proc/uptime").ok()?;
    let uptime_s: u64 = uptime.split('.').next()?.parse().ok()?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let began_s = ticks / rustix::param::clock_ticks_per_second();
    (now.ok()?.as_secs() + began_s).checked_sub(uptime_s)
}

/// A line of `/proc/PID/maps`, if it is a file's code: the addresses, the offset in the file, and
/// its path.
fn code(line: &str) -> Option<(Range<u64>, u64, &Path)> {
    let (range, rest) = line.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let (rights, rest) = rest.split_once(' ')?;
    let (offset, rest) = rest.split_once(' ')?;
    // A path may have spaces.
    let path = rest.get(rest.find('/')?..)?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    let range = number(start)?..number(end)?;
    // The device has a colon, and its numbers no slash.
    rights
        .contains('x')
        .then_some((range, number(offset)?, Path::new(path)))
}

/// The rules by which calls are found in a file's code.
fn module(range: &Range<u64>, offset: u64, path: &Path) -> Option<framehop::Module<Vec<u8>>> {
    let bytes = fs::read(path).ok()?;
    let file = object::File::parse(&*bytes).ok()?;
    let base_svma = file.segments().map(|segment| segment.address()).min()?;
    let segment = file.segments().find(|segment| {
        let (start, size) = segment.file_range();
        // A mapping is of whole pages, and so has the ends of the segments beside its own.
        let is_code = matches!(segment.flags(),
            SegmentFlags::Elf { p_flags, .. } if p_flags.0 & object::elf::PF_X.0 != 0);
        is_code && start < offset + (range.end - range.start) && offset < start + size
    })?;
    // The place of the file's first address.
    let (start, _) = segment.file_range();
    let base_avma = (range.start + start)
        .wrapping_sub(offset)
        .wrapping_sub(segment.address() - base_svma);
    let place = |name: &str| {
        let section = file.section_by_name(name)?;
        Some(section.address()..section.address() + section.size())
    };
    let section = |name: &str| {
        let bytes = file.section_by_name(name)?.uncompressed_data().ok()?;
        Some((place(name)?, bytes.into_owned()))
    };
    let (eh_frame_svma, eh_frame) = section(".eh_frame").unzip();
    let (eh_frame_hdr_svma, eh_frame_hdr) = section(".eh_frame_hdr").unzip();
    let debug_frame = section(".debug_frame").map(|(_, bytes)| bytes);
    let sections = ExplicitModuleSectionInfo {
        base_svma,
        text_svma: place(".text"),
        got_svma: place(".got"),
        eh_frame_svma,
        eh_frame,
        eh_frame_hdr_svma,
        eh_frame_hdr,
        debug_frame,
        ..ExplicitModuleSectionInfo::default()
    };
    let name = path.display().to_string();
    Some(framehop::Module::new(
        name,
        range.clone(),
        base_avma,
        sections,
    ))
}
