//! The speed of a guest's instructions in ring 0 and in ring 3.
//!
//! Some KVMs emulate ring 0 one instruction at a time (`kvm_pvm`). They offer the same features as
//! others, so only a measurement tells.

use std::time::{Duration, Instant};

use kvm_ioctls::{Kvm, VcpuExit};

use crate::monitor::{Error, ROOT, kvm, map, memory, write};
use crate::vcpu::{self, Start};

/// The address of the code, outside the page tables.
const CODE: u64 = 0x10_0000;

/// Iterations of the loop, of two instructions each.
pub const ITERATIONS: u32 = 10_000;

/// The loop is timed so often, and the fastest counts: the host may interrupt the others.
const TRIALS: usize = 3;

/// Ring 0 is emulated if it takes so many times as long as ring 3. An emulated instruction takes
/// hundreds of times as long, and the exit at the end of the loop takes the same time in both.
const EMULATED: u32 = 10;

/// The times of the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speed {
    /// In ring 0.
    pub ring0: Duration,
    /// In ring 3.
    pub ring3: Duration,
}

impl Speed {
    /// Measures both.
    ///
    /// # Errors
    ///
    /// If KVM does not run the loop.
    pub fn measure() -> Result<Self, Error> {
        Ok(Speed {
            ring0: time(0)?,
            ring3: time(3)?,
        })
    }

    /// Whether KVM emulates ring 0.
    pub fn is_emulated(&self) -> bool {
        self.ring0 > self.ring3 * EMULATED
    }
}

/// The time of the loop in a ring.
fn time(ring: u8) -> Result<Duration, Error> {
    let device = Kvm::new().map_err(kvm("/dev/kvm"))?;
    let vm = device.create_vm().map_err(kvm("no virtual machine"))?;
    let memory = memory(&vm)?;
    map(&memory)?;
    write(&memory, CODE, &code())?;
    let start = Start {
        index: 0,
        entry: CODE,
        gs: 0,
        root: ROOT,
        ring,
    };
    let mut vcpu = vcpu::create(&device, &vm, &start).map_err(kvm("no vCPU"))?;
    let mut fastest = Duration::MAX;
    for _ in 0..TRIALS {
        let begin = Instant::now();
        match vcpu.run() {
            Ok(VcpuExit::IoOut(..)) => fastest = fastest.min(begin.elapsed()),
            Ok(exit) => {
                let why = format!("{exit:?}");
                return Err(Error::Host(
                    "a short loop fails",
                    std::io::Error::other(why),
                ));
            }
            Err(error) => return Err(kvm("a short loop fails")(error)),
        }
    }
    Ok(fastest)
}

/// Counts down, and leaves the guest by a port write, again and again.
fn code() -> Vec<u8> {
    // mov ecx, ITERATIONS
    let mut code = vec![0xb9];
    code.extend(ITERATIONS.to_le_bytes());
    // dec ecx; jnz to it; out 0x80, eax; jmp to the beginning
    code.extend([0xff, 0xc9, 0x75, 0xfc, 0xe7, 0x80, 0xeb, 0xf3]);
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emulation_is_told_by_the_ratio() {
        let speed = |ring0, ring3| Speed {
            ring0: Duration::from_micros(ring0),
            ring3: Duration::from_micros(ring3),
        };
        assert!(!speed(15, 10).is_emulated());
        assert!(speed(20_000, 10).is_emulated());
    }

    #[test]
    fn both_rings_run_the_loop() {
        if Kvm::new().is_err() {
            eprintln!("skipped: /dev/kvm cannot be opened");
            return;
        }
        let speed = Speed::measure().unwrap();
        eprintln!("{speed:?}");
        assert!(speed.ring3 < Duration::from_secs(1));
    }
}
