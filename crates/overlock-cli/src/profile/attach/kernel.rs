//! The programs in the kernel: loading them, and taking what they write.

use std::io::Read;
use std::{fmt, fs, io};

use aya::maps::{Array, HashMap, MapData, RingBuf};
use aya::programs::{BtfTracePoint, Iter};
use aya::{Btf, Ebpf, EbpfLoader, Pod};

use super::records::{Record, WAIT_SIZE};
use crate::exit::Exit;
use crate::stat::now_ns;

/// Compiled by `scripts/bpf`.
static OBJECT: &[u8] = aya::include_bytes_aligned!("../../../bpf/waits.bpf.o");

/// The programs at tracepoints, and where. Switches come last: of a wait that is seen the wake-up
/// is seen too.
const PROGRAMS: [(&str, &str); 2] = [("wakes", "sched_waking"), ("switches", "sched_switch")];

/// Records that are taken in one go.
const BATCH: usize = 100_000;

/// The programs, which end with this: nothing but its open files keeps them.
pub struct Programs {
    object: Ebpf,
    events: RingBuf<MapData>,
    began_ns: u64,
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
        for (name, place) in PROGRAMS {
            let program = tracepoint(&mut object, name);
            let loaded = program.load(place, &btf);
            loaded
                .and_then(|()| program.attach())
                .map_err(|error| refused(&error))?;
        }
        let began_ns = now_ns();
        begin(&mut object, &btf).map_err(|error| refused(&*error))?;
        let events = object.take_map("EVENTS").expect("the object has it");
        let events = RingBuf::try_from(events).expect("as it is declared");
        Ok(Self {
            object,
            events,
            began_ns,
        })
    }

    /// The moment from which on they have seen all.
    pub fn began_ns(&self) -> u64 {
        self.began_ns
    }

    /// Hands over the records that are there, up to a number: they may come as fast as they are
    /// taken. Returns whether those were all.
    pub fn drain(&mut self, mut take: impl FnMut(Record)) -> bool {
        for _ in 0..BATCH {
            let Some(bytes) = self.events.next() else {
                return true;
            };
            if let Some(record) = Record::read(&bytes) {
                take(record);
            }
        }
        false
    }

    /// Ends what the kernel does: no more records come.
    pub fn stop(&mut self) -> Result<(), Exit> {
        for (name, _) in PROGRAMS {
            let stopped = tracepoint(&mut self.object, name).unload();
            stopped.map_err(|error| refused(&error))?;
        }
        Ok(())
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

fn tracepoint<'a>(object: &'a mut Ebpf, name: &str) -> &'a mut BtfTracePoint {
    let program = object.program_mut(name).expect("the object has it");
    program.try_into().expect("as its section says")
}

/// Has the kernel note the threads that have no CPU now.
fn begin(object: &mut Ebpf, btf: &Btf) -> Result<(), Box<dyn std::error::Error>> {
    let program = object.program_mut("begins").expect("the object has it");
    let program: &mut Iter = program.try_into()?;
    program.load("task", btf)?;
    let link = program.attach()?;
    let mut threads = program.take_link(link)?.into_file()?;
    loop {
        match threads.read(&mut [0; 64]) {
            // The program writes nothing there.
            Ok(0) => return Ok(()),
            // There are very many threads.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Ok(_) => {}
            Err(error) => return Err(error.into()),
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
    let lockdown = fs::read_to_string("/sys/kernel/security/lockdown").unwrap_or_default();
    let is_root = rustix::process::geteuid().is_root();
    match why(cause(error), is_root, &lockdown) {
        Some(why) => {
            Exit::NotExecutable(format!("`profile PID` looks at the process by BPF: {why}"))
        }
        None => not_taken(error),
    }
}

/// Why BPF is refused, if that is no fault of the programs.
fn why(code: Option<i32>, is_root: bool, lockdown: &str) -> Option<&'static str> {
    if lockdown.contains("[confidentiality]") {
        return Some("the kernel's lockdown forbids that, even to root");
    }
    // Filters of system calls refuse by any of these.
    let is_refused = matches!(code, Some(libc::EPERM | libc::EACCES | libc::ENOSYS));
    is_refused.then_some(match is_root {
        false => "it needs root, or CAP_BPF and CAP_PERFMON",
        true => {
            "CAP_BPF, CAP_PERFMON or the call bpf are withheld from root here, as in containers"
        }
    })
}

fn not_taken(error: &(dyn std::error::Error + 'static)) -> Exit {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_is_missing() {
        let open = "[none] integrity confidentiality\n";
        let says = |code, is_root, lockdown| why(Some(code), is_root, lockdown).unwrap_or_default();
        assert!(says(libc::EPERM, false, open).contains("needs root, or CAP_BPF"));
        assert!(says(libc::EPERM, true, open).contains("containers"));
        assert!(says(libc::ENOSYS, true, "").contains("the call bpf"));
        let locked = "none integrity [confidentiality]\n";
        assert!(says(libc::EINVAL, true, locked).contains("lockdown"));
        assert_eq!(why(Some(libc::EINVAL), true, open), None);
    }
}
