//! The platform: every lock of overlock-core runs in a guest by it.

use core::sync::atomic::{
    AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering::SeqCst, fence,
};

use overlock_core::platform::{FutexPlatform, Kick};
use overlock_core::tables::{Storage, Tables};
use overlock_core::{Atomics, Cpu, Deadline, Instant, Platform};
use overlock_family::FamilyPlatform;
use overlock_family::tables::{Storage as FamilyStorage, Tables as FamilyTables};

use crate::vcpu::{self, MAX_VCPUS};
use crate::{backend, clock};

/// The vCPUs of this guest. A vCPU is a CPU to the locks, and a slot.
///
/// # Contract
///
/// That of a [kernel](overlock_core::platform#in-a-kernel). A vCPU calls this only after
/// [`vcpu::enter`], and keeps its slot for ever. A lock that handlers take is held with interrupts
/// off: see [`interrupts`](crate::interrupts). A non-maskable interrupt must neither halt nor kick:
/// it may have interrupted a kick between the two halves of its command.
#[derive(Clone, Copy, Debug)]
pub struct Guest;

/// Two tickets for each fast queue spinlock that lives at a time.
const LOCK_TICKETS: usize = 128;

static STORAGE: Storage<Guest, MAX_VCPUS> = Storage::new();

static FAMILY: FamilyStorage<Guest, MAX_VCPUS, { MAX_VCPUS.div_ceil(8) }, LOCK_TICKETS> =
    FamilyStorage::new();

impl FamilyPlatform for Guest {
    fn family_tables() -> FamilyTables<Guest> {
        FamilyTables::new(&FAMILY)
    }
}

impl Atomics for Guest {
    type U8 = AtomicU8;
    type U16 = AtomicU16;
    type U32 = AtomicU32;
    type U64 = AtomicU64;
    type Usize = AtomicUsize;
}

impl Platform for Guest {
    fn halt(word: &AtomicU32, expected: u32, until: Option<Deadline>) -> bool {
        vcpu::halt(word, expected, until)
    }

    fn kick(word: *const AtomicU32, whom: Kick) {
        vcpu::kick(word.addr(), whom);
    }

    #[inline(always)]
    fn cpu() -> Cpu {
        Cpu(vcpu::index() as u32)
    }

    #[inline]
    fn preempted(cpu: Cpu) -> bool {
        (cpu.0 as usize) < vcpu::count() && backend::preempted(cpu.0 as usize)
    }

    #[inline]
    fn now() -> Instant {
        Instant::from_nanos(clock::now())
    }

    #[inline]
    fn ticks() -> u64 {
        clock::ticks()
    }

    #[inline]
    fn parallelism() -> u32 {
        vcpu::parallelism()
    }

    #[inline(always)]
    fn tables() -> Tables<Guest> {
        Tables::new(&STORAGE)
    }

    #[inline(always)]
    fn slot() -> Option<usize> {
        Some(vcpu::index())
    }

    #[inline]
    fn slots_in_use() -> usize {
        vcpu::count()
    }
}

impl FutexPlatform for Guest {
    // A guest has no cheaper way to fence its other vCPUs than by an interrupt to each. So both
    // halves are full fences.
    #[inline(always)]
    fn light_barrier() {
        fence(SeqCst);
    }

    #[inline(always)]
    fn heavy_barrier() {
        fence(SeqCst);
    }
}
