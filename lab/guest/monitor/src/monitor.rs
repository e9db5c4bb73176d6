//! The monitor.

use std::fmt;
use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{num::NonZero, sync::Arc};

use kvm_bindings::kvm_userspace_memory_region;
use kvm_ioctls::{Kvm, VmFd};
use vm_memory::{Bytes, GuestAddress, GuestMemoryBackend, GuestMemoryMmap};
use vmm_sys_util::signal::Killable;

use crate::image::{Image, NotAnImage};
use crate::vcpu::{self, Shared, Start, Stop};

/// Bytes of the guest's memory.
const MEMORY: u64 = 64 << 20;

/// Between two questions whether the caller wants the end.
const ASK_AGAIN: Duration = Duration::from_millis(50);

/// The guest's page tables: its memory at its own addresses.
pub(crate) const ROOT: u64 = 0x1000;
const DIRECTORIES: u64 = 0x2000;
const PAGES: u64 = 0x3000;
const PRESENT_WRITABLE_USER: u64 = 0b111;
const LARGE: u64 = 1 << 7;

/// The most vCPUs of the image, and the longest boot line.
const MOST_VCPUS: usize = 64;
const MOST_LINE: usize = 1024;

/// Between two signals to a thread that does not stop: one may have come just before it entered the
/// guest.
const SIGNAL_AGAIN: Duration = Duration::from_millis(1);

/// A guest to run.
#[derive(Debug)]
pub struct Settings<'a> {
    /// Its vCPUs.
    pub vcpus: usize,
    pub line: &'a str,
    /// How long it may run.
    pub limit: Duration,
}

/// The end of a guest that has ended itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    pub code: u32,
    /// The place of each vCPU then.
    pub places: Vec<Place>,
}

/// Why a guest has not run to its end.
#[derive(Debug)]
pub enum Error {
    /// The file is no image.
    Image(NotAnImage),
    /// The settings do not fit the image.
    Settings(&'static str),
    /// KVM, or memory, is not to be had.
    Host(&'static str, io::Error),
    /// A vCPU has left the guest for a reason that is none of its requests.
    Fault(Place, String),
    /// The time was over, or the caller wanted the end. Names the place of each vCPU.
    Limit(Vec<Place>),
}

/// The place of a vCPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The number of the vCPU.
    pub vcpu: usize,
    /// Its instruction pointer.
    pub rip: u64,
    /// The function there, and the distance from its beginning.
    pub function: Option<String>,
    pub halted: bool,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.halted { "halts" } else { "runs" };
        write!(f, "vCPU {} {state} at {:#x}", self.vcpu, self.rip)?;
        match &self.function {
            Some(function) => write!(f, " in {function}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Image(error) => error.fmt(f),
            Error::Settings(what) => f.write_str(what),
            Error::Host(what, error) => write!(f, "{what}: {error}"),
            Error::Fault(place, what) => write!(f, "{place}: {what}"),
            Error::Limit(places) => {
                f.write_str("the guest has not ended in time")?;
                places.iter().try_for_each(|place| write!(f, "\n{place}"))
            }
        }
    }
}

impl std::error::Error for Error {}

pub(crate) fn host<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> Error {
    move |error| Error::Host(what, error.into())
}

pub(crate) fn kvm(what: &'static str) -> impl FnOnce(kvm_ioctls::Error) -> Error {
    move |error| Error::Host(what, io::Error::from_raw_os_error(error.errno()))
}

/// Runs a guest, and gives each text that it prints to `print`, whose error ends it.
///
/// It ends early once `is_cancelled` says so. All threads of it have ended when this returns.
///
/// # Errors
///
/// Each [`Error`].
pub fn run(
    file: &[u8],
    settings: &Settings<'_>,
    print: impl FnMut(&str) -> io::Result<()> + Send + 'static,
    is_cancelled: impl Fn() -> bool,
) -> Result<End, Error> {
    let image = Image::parse(file).map_err(Error::Image)?;
    if !(1..=MOST_VCPUS).contains(&settings.vcpus) {
        return Err(Error::Settings("a guest has 1 to 64 vCPUs"));
    }
    if settings.line.len() > MOST_LINE {
        return Err(Error::Settings("the boot line is too long"));
    }
    vcpu::take_signals().map_err(host("no signal for vCPUs"))?;
    let kvm_device = Kvm::new().map_err(kvm("/dev/kvm"))?;
    let vm = kvm_device.create_vm().map_err(kvm("no virtual machine"))?;
    let memory = memory(&vm)?;
    load(&image, &memory)?;
    let mut vcpus = Vec::new();
    for index in 0..settings.vcpus {
        let start = Start {
            index,
            entry: image.entry,
            gs: image.states + image.state_size * index as u64,
            root: ROOT,
            ring: 3,
        };
        let vcpu = vcpu::create(&kvm_device, &vm, &start);
        vcpus.push(vcpu.map_err(kvm("no vCPU"))?);
    }
    let khz = vcpus[0].get_tsc_khz().map_err(kvm("no frequency"))?;
    write_boot(&image, &memory, settings, khz.into())?;

    let shared = Arc::new(Shared::new(settings.vcpus, memory, Box::new(print)));
    let (stops, stopped) = mpsc::channel();
    let mut threads = Vec::new();
    for (index, vcpu) in vcpus.into_iter().enumerate() {
        let (own, stops) = (shared.clone(), stops.clone());
        let thread = thread::Builder::new().name(format!("vcpu {index}"));
        match thread.spawn(move || vcpu::run(vcpu, index, &own, &stops)) {
            Ok(thread) => threads.push(thread),
            Err(error) => {
                end(&shared, threads);
                return Err(host("no thread for a vCPU")(error));
            }
        }
    }
    drop(stops);
    let first = wait(&stopped, settings.limit, is_cancelled);
    let places = end(&shared, threads);
    let place = |(vcpu, (rip, halted)): (usize, &(u64, bool))| Place {
        vcpu,
        rip: *rip,
        function: image.describe(*rip),
        halted: *halted,
    };
    let all = || places.iter().enumerate().map(place).collect();
    match first {
        Some(Stop::Done(code)) => Ok(End {
            code,
            places: all(),
        }),
        Some(Stop::Fault(index, what)) => Err(Error::Fault(place((index, &places[index])), what)),
        None => Err(Error::Limit(all())),
    }
}

/// The first reason of a vCPU to stop, or none if the time is over or the caller wants the end.
fn wait(
    stopped: &Receiver<Stop>,
    limit: Duration,
    is_cancelled: impl Fn() -> bool,
) -> Option<Stop> {
    let begin = Instant::now();
    loop {
        let left = limit.saturating_sub(begin.elapsed());
        match stopped.recv_timeout(left.min(ASK_AGAIN)) {
            Ok(stop) => return Some(stop),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) if left.is_zero() || is_cancelled() => return None,
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// Stops all vCPUs. Returns the instruction pointer of each, and whether it halted.
fn end(shared: &Shared, threads: Vec<JoinHandle<(u64, bool)>>) -> Vec<(u64, bool)> {
    shared.stop.store(true, Relaxed);
    shared.wake_all();
    for thread in &threads {
        while !thread.is_finished() {
            // One that ends just now needs no signal.
            let _ = thread.kill(vcpu::signal());
            thread::sleep(SIGNAL_AGAIN);
        }
    }
    let places = threads
        .into_iter()
        .map(|thread| thread.join().unwrap_or_default());
    places.collect()
}

pub(crate) fn memory(vm: &VmFd) -> Result<GuestMemoryMmap, Error> {
    let memory = GuestMemoryMmap::from_ranges(&[(GuestAddress(0), MEMORY as usize)])
        .map_err(|error| Error::Host("no memory", io::Error::other(error)))?;
    let host_address = memory
        .get_host_address(GuestAddress(0))
        .map_err(|error| Error::Host("no memory", io::Error::other(error)))?;
    let region = kvm_userspace_memory_region {
        slot: 0,
        flags: 0,
        guest_phys_addr: 0,
        memory_size: MEMORY,
        userspace_addr: host_address.addr() as u64,
    };
    // SAFETY: the mapping is as large, and outlives the machine: `Shared` holds it as long as a
    // vCPU runs.
    unsafe { vm.set_user_memory_region(region) }.map_err(kvm("no memory"))?;
    Ok(memory)
}

pub(crate) fn write(memory: &GuestMemoryMmap, at: u64, bytes: &[u8]) -> Result<(), Error> {
    memory
        .write_slice(bytes, GuestAddress(at))
        .map_err(|_| Error::Settings("the image does not fit the guest's memory"))
}

fn load(image: &Image<'_>, memory: &GuestMemoryMmap) -> Result<(), Error> {
    for segment in &image.segments {
        write(memory, segment.address, segment.bytes)?;
    }
    map(memory)
}

/// Writes the page tables.
pub(crate) fn map(memory: &GuestMemoryMmap) -> Result<(), Error> {
    let entry = |at: u64, value: u64| write(memory, at, &value.to_le_bytes());
    entry(ROOT, DIRECTORIES | PRESENT_WRITABLE_USER)?;
    entry(DIRECTORIES, PAGES | PRESENT_WRITABLE_USER)?;
    for page in 0..MEMORY >> 21 {
        entry(PAGES + 8 * page, page << 21 | PRESENT_WRITABLE_USER | LARGE)?;
    }
    Ok(())
}

fn write_boot(
    image: &Image<'_>,
    memory: &GuestMemoryMmap,
    settings: &Settings<'_>,
    khz: u64,
) -> Result<(), Error> {
    let cpus = thread::available_parallelism().map_or(1, NonZero::get);
    let words = [
        settings.vcpus as u64,
        cpus as u64,
        khz,
        settings.line.len() as u64,
    ];
    for (word, at) in words.into_iter().zip((image.boot..).step_by(8)) {
        write(memory, at, &word.to_le_bytes())?;
    }
    write(memory, image.line, settings.line.as_bytes())
}
