//! The back end: how this guest's hypervisor halts and kicks a vCPU. The image chooses it at boot.
//!
//! Halts and kicks are slow paths, so each of them finds the back end by a load and a branch.

use core::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};

use overlock_core::Instant;

use crate::{kvm, ring3, xen};

/// The back ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Backend {
    /// Bare x86-64 in ring 0: KVM, another full virtualisation, or hardware.
    Kvm = 1,
    /// A paravirtual guest of Xen.
    Xen,
    /// Ring 3 of a monitor that takes port writes for hypercalls.
    Ring3,
}

static CHOSEN: AtomicU8 = AtomicU8::new(0);
static IGNORES_PREEMPTION: AtomicBool = AtomicBool::new(false);

/// Chooses the back end, once, before the first lock.
pub fn choose(backend: Backend) {
    CHOSEN.store(backend as u8, Relaxed);
}

/// The back end of this guest. [`Backend::Kvm`] before the choice.
#[inline]
pub fn chosen() -> Backend {
    match CHOSEN.load(Relaxed) {
        2 => Backend::Xen,
        3 => Backend::Ring3,
        _ => Backend::Kvm,
    }
}

/// The hypervisor's name in reports.
pub fn hypervisor() -> &'static str {
    match chosen() {
        Backend::Kvm => kvm::hypervisor(),
        Backend::Xen => "xen",
        Backend::Ring3 => "kvm-ring3",
    }
}

/// Whether a kick, and the deadline if there is one, end a sleep of this vCPU.
pub fn can_halt(interrupts_on: bool, has_deadline: bool) -> bool {
    match chosen() {
        Backend::Kvm => kvm::can_halt(interrupts_on, has_deadline),
        Backend::Xen | Backend::Ring3 => true,
    }
}

/// Sleeps until a kick, the deadline or an interrupt. Called with interrupts off, and returns so;
/// `interrupts_on` says whether they may come in between.
pub(crate) fn sleep(interrupts_on: bool, until: Option<Instant>) {
    match chosen() {
        Backend::Kvm => kvm::sleep(interrupts_on, until),
        Backend::Xen => xen::sleep(interrupts_on, until),
        Backend::Ring3 => ring3::sleep(until),
    }
}

/// Called in a handler whose halt has interrupted another halt of this vCPU: that one must end.
pub(crate) fn end_outer_sleep() {
    match chosen() {
        Backend::Xen => xen::end_outer_sleep(),
        // The interrupt has ended the `hlt`, between which and `sti` none can come.
        Backend::Kvm | Backend::Ring3 => {}
    }
}

/// Ends the sleep of a vCPU, or its next one if it does not sleep now. Called with interrupts off.
pub(crate) fn kick(vcpu: usize) {
    match chosen() {
        Backend::Kvm => kvm::kick(vcpu),
        Backend::Xen => xen::kick(vcpu),
        Backend::Ring3 => ring3::kick(vcpu),
    }
}

/// Has [`Platform::preempted`](overlock_core::Platform::preempted) answer false from now on: what
/// its answers are worth is measured against that.
pub fn ignore_preemption() {
    IGNORES_PREEMPTION.store(true, Relaxed);
}

/// Whether the hypervisor has taken the CPU from this vCPU. False if it does not say.
pub(crate) fn preempted(vcpu: usize) -> bool {
    if IGNORES_PREEMPTION.load(Relaxed) {
        return false;
    }
    match chosen() {
        Backend::Kvm => kvm::preempted(vcpu),
        Backend::Xen => xen::preempted(vcpu),
        Backend::Ring3 => false,
    }
}

/// Turns interrupts of this vCPU off. Returns whether they were on.
#[inline]
pub(crate) fn interrupts_off() -> bool {
    match chosen() {
        Backend::Kvm => kvm::interrupts_off(),
        Backend::Xen => xen::interrupts_off(),
        Backend::Ring3 => false,
    }
}

/// Turns interrupts of this vCPU on.
#[inline]
pub(crate) fn interrupts_on() {
    match chosen() {
        Backend::Kvm => kvm::interrupts_on(),
        Backend::Xen => xen::interrupts_on(),
        Backend::Ring3 => {}
    }
}

/// Whether interrupts of this vCPU are on.
pub(crate) fn interrupts_are_on() -> bool {
    match chosen() {
        Backend::Kvm => kvm::interrupts_are_on(),
        Backend::Xen => xen::interrupts_are_on(),
        Backend::Ring3 => false,
    }
}

/// Has a timer interrupt this vCPU once, after `nanos` nanoseconds. Nothing without interrupts.
pub fn set_timer(nanos: u64) {
    match chosen() {
        Backend::Kvm => kvm::set_timer(nanos),
        Backend::Xen => xen::set_timer(nanos),
        Backend::Ring3 => {}
    }
}

/// Interrupts a vCPU. Nothing without interrupts.
pub fn call(vcpu: usize) {
    match chosen() {
        Backend::Kvm => kvm::call(vcpu),
        Backend::Xen => xen::call(vcpu),
        Backend::Ring3 => {}
    }
}
