//! A vCPU, and the thread that it is.

use std::fmt;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::mpsc::Sender;
use std::time::Duration;

use kvm_bindings::{KVM_MAX_CPUID_ENTRIES, kvm_segment};
use kvm_ioctls::{Kvm, VcpuExit, VcpuFd, VmFd};
use rustix::thread::futex;
use vm_memory::{Bytes, GuestAddress, GuestMemoryMmap};
use vmm_sys_util::signal::{SIGRTMIN, register_signal_handler};

use crate::ports;

const CR0_PE_ET_NE_PG: u64 = 0x8000_0031;
const CR4_PAE: u64 = 1 << 5;
const EFER_LME_LMA: u64 = 0x500;
/// Bit 1 is always set; the I/O privilege level is 3, and interrupts are off.
const FLAGS: u64 = 0x3002;

/// Takes what the guest prints.
pub type Print = Box<dyn FnMut(&str) -> io::Result<()> + Send>;

/// State that the threads of a guest share.
pub struct Shared {
    /// Set once all vCPUs have to stop.
    pub stop: AtomicBool,
    /// A word for each vCPU: 1 once it was kicked, until it has noticed.
    kicked: Vec<Line>,
    memory: GuestMemoryMmap,
    print: Mutex<Print>,
}

/// A cache line of its own.
#[repr(align(128))]
struct Line(AtomicU32);

/// Why the first vCPU has stopped.
#[derive(Debug)]
pub enum Stop {
    /// The guest has ended with a code.
    Done(u32),
    /// A vCPU has left the guest without a request.
    Fault(usize, String),
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Shared {
    pub fn new(vcpus: usize, memory: GuestMemoryMmap, print: Print) -> Self {
        Shared {
            stop: AtomicBool::new(false),
            kicked: (0..vcpus).map(|_| Line(AtomicU32::new(0))).collect(),
            memory,
            print: Mutex::new(print),
        }
    }

    /// Ends the sleep of each vCPU, or its next.
    pub fn wake_all(&self) {
        (0..self.kicked.len()).for_each(|vcpu| self.kick(vcpu));
    }

    /// Ends the sleep of a vCPU, or its next. The word is the latch between the two: a vCPU sleeps
    /// only while it is 0.
    fn kick(&self, vcpu: usize) {
        if let Some(Line(word)) = self.kicked.get(vcpu) {
            // Release, pairing with the acquire in `halt`: memory that the kicking vCPU has
            // written is seen. A word that is 1 belongs to a sleep whose end is on its way.
            if word.swap(1, Release) == 0 {
                let _ = futex::wake(word, futex::Flags::PRIVATE, 1);
            }
        }
    }

    fn halt(&self, vcpu: usize, micros: u32) {
        let Line(word) = &self.kicked[vcpu];
        if word.swap(0, Acquire) == 0 {
            let limit = Duration::from_micros(micros.into()).try_into().ok();
            let limit = limit.filter(|_| micros != 0);
            // Any return will do: the guest rechecks.
            let _ = futex::wait(word, futex::Flags::PRIVATE, 0, limit.as_ref());
            word.swap(0, Acquire);
        }
    }

    fn print(&self, at: u32) -> Result<(), String> {
        let text = self.read_line(at).ok_or("prints from nowhere")?;
        let mut print = self.print.lock().map_err(|error| error.to_string())?;
        (*print)(&text).map_err(|error| format!("its output is lost: {error}"))
    }

    /// The text that the guest has at this address: its length and its own address.
    fn read_line(&self, at: u32) -> Option<String> {
        let mut line = [0; 8];
        self.memory
            .read_slice(&mut line, GuestAddress(at.into()))
            .ok()?;
        let length = u32::from_le_bytes(line[..4].try_into().ok()?);
        let address = u32::from_le_bytes(line[4..].try_into().ok()?);
        let mut text = vec![0; length.min(1 << 16) as usize];
        self.memory
            .read_slice(&mut text, GuestAddress(address.into()))
            .ok()?;
        Some(String::from_utf8_lossy(&text).into_owned())
    }
}

/// The signal that ends a run of a vCPU.
pub fn signal() -> i32 {
    SIGRTMIN()
}

extern "C" fn ignore(_: i32, _: *mut libc::siginfo_t, _: *mut std::ffi::c_void) {}

/// Has the signal interrupt a run, and nothing else.
pub fn take_signals() -> Result<(), vmm_sys_util::errno::Error> {
    register_signal_handler(signal(), ignore)
}

/// How a vCPU starts, in long mode.
pub struct Start {
    /// Its number, which RDI holds.
    pub index: usize,
    /// Its first instruction.
    pub entry: u64,
    /// The address that GS points to.
    pub gs: u64,
    /// The address of the page table.
    pub root: u64,
    /// The privilege level.
    pub ring: u8,
}

/// Creates a vCPU.
pub fn create(kvm: &Kvm, vm: &VmFd, start: &Start) -> Result<VcpuFd, kvm_ioctls::Error> {
    let &Start {
        index,
        entry,
        gs,
        root,
        ring,
    } = start;
    let vcpu = vm.create_vcpu(index as u64)?;
    vcpu.set_cpuid2(&kvm.get_supported_cpuid(KVM_MAX_CPUID_ENTRIES)?)?;
    let segment = |selector, kind, base| kvm_segment {
        base,
        limit: u32::MAX,
        selector: selector | u16::from(ring),
        type_: kind,
        present: 1,
        dpl: ring,
        s: 1,
        g: 1,
        ..Default::default()
    };
    let data = |base| kvm_segment {
        db: 1,
        ..segment(0x28, 3, base)
    };
    let mut registers = vcpu.get_sregs()?;
    registers.cr0 = CR0_PE_ET_NE_PG;
    registers.cr3 = root;
    registers.cr4 = CR4_PAE;
    registers.efer = EFER_LME_LMA;
    registers.cs = kvm_segment {
        l: 1,
        ..segment(0x30, 0xb, 0)
    };
    (registers.ss, registers.ds, registers.es, registers.fs) = (data(0), data(0), data(0), data(0));
    registers.gs = data(gs);
    vcpu.set_sregs(&registers)?;
    let mut registers = vcpu.get_regs()?;
    registers.rip = entry;
    registers.rdi = index as u64;
    registers.rflags = FLAGS;
    vcpu.set_regs(&registers)?;
    Ok(vcpu)
}

/// Runs a vCPU until all have to stop. Returns its instruction pointer then, and whether it halted.
pub fn run(mut vcpu: VcpuFd, index: usize, shared: &Shared, stops: &Sender<Stop>) -> (u64, bool) {
    let mut halted = false;
    while !shared.stop.load(Relaxed) {
        halted = false;
        let fault = match vcpu.run() {
            Ok(VcpuExit::IoOut(port, data)) => {
                let value = data.try_into().map_or(0, u32::from_le_bytes);
                halted = port == ports::HALT;
                serve(index, shared, stops, port, value).err()
            }
            // A signal: perhaps the end.
            Err(error) if error.errno() == rustix::io::Errno::INTR.raw_os_error() => None,
            Ok(exit) => Some(format!("{exit:?}")),
            Err(error) => Some(error.to_string()),
        };
        if let Some(fault) = fault {
            // The monitor may have stopped listening.
            let _ = stops.send(Stop::Fault(index, fault));
            break;
        }
    }
    (vcpu.get_regs().map_or(0, |registers| registers.rip), halted)
}

fn serve(
    index: usize,
    shared: &Shared,
    stops: &Sender<Stop>,
    port: u16,
    value: u32,
) -> Result<(), String> {
    match port {
        ports::HALT => shared.halt(index, value),
        ports::KICK => shared.kick(value as usize),
        ports::PUT => shared.print(value)?,
        ports::DONE => {
            // As above.
            let _ = stops.send(Stop::Done(value));
            // The monitor ends this sleep.
            shared.halt(index, 0);
        }
        _ => return Err(format!("writes to port {port:#x}")),
    }
    Ok(())
}
