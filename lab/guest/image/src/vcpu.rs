//! Per-vCPU state, and the protocol of halt and kick.
//!
//! A vCPU that halts [publishes](Publication) the address of the word that it halts on. A kick
//! consumes the publication, and then has the back end wake the vCPU. The back end's wake-up is
//! latched: one that comes before the vCPU sleeps ends that sleep.
//!
//! # No wake-up is lost
//!
//! - HK orders the publication and the recheck of the word against the change of the word and the
//!   search for publications: see [`publication`].
//! - A publication is consumed by one kick, by compare-exchange. So two kicks of one waiter each
//!   wake two vCPUs that halted on the word, not the same one twice.
//! - An interrupt handler that halts replaces the publication of the code that it interrupts, and
//!   restores it. Interrupts stay off from the publication until the back end sleeps, and such a
//!   handler ends that sleep. So the outer halt returns, and its caller rechecks: a kick that has
//!   found the handler's publication in the place of the outer one is not lost.

use core::arch::asm;
use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize};

use overlock_core::platform::Kick;
use overlock_core::{Deadline, Platform};

use crate::backend;
use crate::clock::PvClock;
use crate::interrupts::Off;
use crate::platform::Guest;
use crate::publication::{self, Publication};

/// The most vCPUs of a guest.
pub const MAX_VCPUS: usize = 64;

/// The state of a vCPU. GS points to that of the vCPU itself.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Vcpu {
    /// At offset 0 of GS: [`index`] reads it.
    index: AtomicUsize,
    /// The address of the word that the vCPU halts on.
    halted_on: Publication,
    halts: AtomicU64,
    kicks: AtomicU64,
    unkicked: AtomicU64,
    /// The hypervisor's clock for this vCPU. Null if there is none.
    pub(crate) clock: AtomicPtr<PvClock>,
    /// The name of this vCPU in a kick: its APIC identifier, or its event channel.
    pub(crate) kick_address: AtomicU32,
}

/// The states of all vCPUs, for boot code that points GS there.
pub static STATES: [Vcpu; MAX_VCPUS] = [const { Vcpu::new() }; MAX_VCPUS];
static COUNT: AtomicUsize = AtomicUsize::new(0);
static PARALLELISM: AtomicU32 = AtomicU32::new(0);

/// Counts of a vCPU. At rest, the sums over all vCPUs have `halts == kicks + unkicked`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Halts that slept, or that were kicked before they slept.
    pub halts: u64,
    /// Halted vCPUs that this one has kicked.
    pub kicks: u64,
    /// Halts that ended by a deadline, an interrupt, or a latched wake-up of an earlier halt.
    pub unkicked: u64,
}

impl Vcpu {
    const fn new() -> Self {
        Vcpu {
            index: AtomicUsize::new(0),
            halted_on: Publication(AtomicUsize::new(0)),
            halts: AtomicU64::new(0),
            kicks: AtomicU64::new(0),
            unkicked: AtomicU64::new(0),
            clock: AtomicPtr::new(ptr::null_mut()),
            kick_address: AtomicU32::new(0),
        }
    }

    /// Its counts since boot.
    pub fn counts(&self) -> Counts {
        Counts {
            halts: self.halts.load(Relaxed),
            kicks: self.kicks.load(Relaxed),
            unkicked: self.unkicked.load(Relaxed),
        }
    }

    /// The address of the word that it halts on, or 0. A snapshot.
    pub fn halted_on(&self) -> usize {
        self.halted_on.name()
    }
}

/// All states. Those from [`count`] on belong to no vCPU.
pub fn all() -> &'static [Vcpu; MAX_VCPUS] {
    &STATES
}

/// Enters the vCPU that calls, whose GS points to the state of this index.
pub fn enter(index: usize) {
    STATES[index].index.store(index, Relaxed);
    // Release: whoever counts this vCPU sees its state.
    COUNT.fetch_max(index + 1, Release);
}

/// How many vCPUs have entered.
#[inline]
pub fn count() -> usize {
    COUNT.load(Acquire)
}

/// Sets how many CPUs the hypervisor gives to this guest.
pub fn set_parallelism(cpus: u32) {
    PARALLELISM.store(cpus, Relaxed);
}

/// How many CPUs the hypervisor gives to this guest, as far as it says so. Else one for each vCPU.
#[inline]
pub fn parallelism() -> u32 {
    match PARALLELISM.load(Relaxed) {
        0 => count().max(1) as u32,
        cpus => cpus,
    }
}

/// The number of the vCPU that calls.
#[inline(always)]
pub fn index() -> usize {
    let index: usize;
    // SAFETY: GS points to the vCPU's state, whose first word is its number and never changes.
    unsafe {
        asm!("mov {}, gs:[0]", out(reg) index, options(pure, readonly, nostack, preserves_flags));
    }
    index
}

/// The state of the vCPU that calls.
#[inline]
pub fn this() -> &'static Vcpu {
    &STATES[index()]
}

/// Halts the vCPU that calls: see `Platform::halt`.
///
/// Returns at once if interrupts are off and the back end cannot kick such a vCPU: bare x86-64
/// without `KVM_FEATURE_PV_UNHALT`.
// Not inlined: the report of a hang names it.
#[inline(never)]
pub(crate) fn halt(word: &AtomicU32, expected: u32, until: Option<Deadline>) -> bool {
    let until = until.map(|until| until.instant::<Guest>());
    let is_over = until.is_some_and(|until| until <= Guest::now());
    if word.load(Relaxed) != expected || is_over {
        return false;
    }
    let off = Off::begin();
    if !backend::can_halt(off.were_on(), until.is_some()) {
        return false;
    }
    let own = this();
    let name = ptr::from_ref(word).addr();
    let outer = own.halted_on.begin(name);
    let sleeps = word.load(Relaxed) == expected;
    if sleeps {
        backend::sleep(off.were_on(), until);
    }
    let kicked = own.halted_on.end(name, outer);
    if outer != 0 {
        backend::end_outer_sleep();
    }
    if sleeps || kicked {
        own.halts.fetch_add(1, Relaxed);
    }
    if sleeps && !kicked {
        own.unkicked.fetch_add(1, Relaxed);
    }
    kicked
}

/// Kicks vCPUs that halted on the word at `address`: see `Platform::kick`.
pub(crate) fn kick(address: usize, whom: Kick) {
    publication::word_has_changed();
    // The scan begins after the caller, so that no waiter is always the last.
    let (first, count) = match Guest::tables().slot_of(address) {
        // Only the vCPU of that slot halts on a word of its nodes.
        Some(slot) => (slot, 1),
        None => (index() + 1, count()),
    };
    let total = self::count().max(1);
    for other in (first..first + count).map(|other| other % total) {
        if kick_vcpu(other, address) && whom == Kick::One {
            return;
        }
    }
}

/// Kicks the vCPU if it halts with this publication. Returns whether it did.
fn kick_vcpu(other: usize, name: usize) -> bool {
    let halts = STATES[other].halted_on.consume(name);
    if halts {
        this().kicks.fetch_add(1, Relaxed);
        let _off = Off::begin();
        backend::kick(other);
    }
    halts
}
