//! The programs in the kernel: loading them, and taking what they write.

use std::{fmt, io};

use aya::maps::{Array, HashMap, MapData, RingBuf};
use aya::programs::BtfTracePoint;
use aya::{Btf, Ebpf, EbpfLoader, Pod};

use super::records::{Record, WAIT_SIZE};
use crate::exit::Exit;

/// Compiled by `scripts/bpf`.
static OBJECT: &[u8] = aya::include_bytes_aligned!("../../../bpf/waits.bpf.o");

/// The programs, which end with this: nothing but its open files keeps them.
pub struct Programs {
    object: Ebpf,
    events: RingBuf<MapData>,
}

#[derive(Clone, Copy)]
#[repr(transparent)]
struct Bytes([u64; WAIT_SIZE / 8]);

// SAFETY: integers.
unsafe impl Pod for Bytes {}

impl fmt::Debug for Programs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Programs").finish_non_exhaustive()
    }
}

/// Records that found no room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    pub offs: u64,
    pub waits: u64,
    pub stacks: u64,
}

impl Programs {
    /// Has the kernel run them from now on.
    pub fn start(pid: u32) -> Result<Self, Exit> {
        let btf = Btf::from_sys_fs().map_err(|_| {
            Exit::Failed(
                "the kernel does not describe its types (CONFIG_DEBUG_INFO_BTF), which `profile PID` needs"
                    .to_owned(),
            )
        })?;
        let mut object = EbpfLoader::new()
            .btf(Some(&btf))
            .override_global("TARGET", &pid.cast_signed(), true)
            .override_global("FUTEX", &(libc::SYS_futex as i32), true)
            .load(OBJECT)
            .map_err(|error| refused(&error))?;
        // Switches come last: of a wait that is seen the wake-up is seen too.
        for (program, tracepoint) in [("wakes", "sched_waking"), ("switches", "sched_switch")] {
            let program = object.program_mut(program).expect("the object has it");
            let program: &mut BtfTracePoint = program.try_into().expect("as its section says");
            let loaded = program.load(tracepoint, &btf);
            loaded
                .and_then(|()| program.attach())
                .map_err(|error| refused(&error))?;
        }
        let events = object.take_map("EVENTS").expect("the object has it");
        let events = RingBuf::try_from(events).expect("as it is declared");
        Ok(Self { object, events })
    }

    /// Hands over all records that are there.
    pub fn drain(&mut self, mut take: impl FnMut(Record)) {
        while let Some(bytes) = self.events.next() {
            if let Some(record) = Record::read(&bytes) {
                take(record);
            }
        }
    }

    /// Hands over the times without a CPU that have not ended.
    pub fn unfinished(&self, mut take: impl FnMut(Record)) {
        let away = self.object.map("AWAY").expect("the object has it");
        let away: HashMap<_, u32, Bytes> = away.try_into().expect("as it is declared");
        for (_, Bytes(numbers)) in away.iter().flatten() {
            let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_ne_bytes()).collect();
            if let Some(record) = Record::read(&bytes) {
                take(record);
            }
        }
    }

    /// The records that were lost until now.
    pub fn lost(&self) -> Lost {
        let lost = self.object.map("LOST").expect("the object has it");
        let lost: Array<_, u64> = lost.try_into().expect("as it is declared");
        let [offs, waits, stacks] = [0, 1, 2].map(|at| lost.get(&at, 0).unwrap_or_default());
        Lost {
            offs,
            waits,
            stacks,
        }
    }
}

/// The number of the system's error behind another.
fn cause(error: &(dyn std::error::Error + 'static)) -> Option<i32> {
    let mut next = Some(error);
    while let Some(error) = next {
        let system = error.downcast_ref::<io::Error>();
        if let Some(code) = system.and_then(io::Error::raw_os_error) {
            return Some(code);
        }
        next = error.source();
    }
    None
}

fn refused(error: &(dyn std::error::Error + 'static)) -> Exit {
    if matches!(cause(error), Some(libc::EPERM | libc::EACCES)) {
        return Exit::NotExecutable(
            "`profile PID` looks at the process by BPF: it needs root, or CAP_BPF and CAP_PERFMON"
                .to_owned(),
        );
    }
    let mut why = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        why = format!("{why}: {error}");
        next = error.source();
    }
    // The verifier's log has many lines.
    let why = why.lines().next().unwrap_or_default();
    Exit::Failed(format!(
        "the kernel does not take the BPF programs, for which it has to be Linux 5.15 or later: {why}"
    ))
}
