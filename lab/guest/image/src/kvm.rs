//! Bare x86-64 in ring 0, under KVM, under another full virtualisation, or on hardware.
//!
//! A vCPU halts by `sti; hlt`. A kick is `KVM_HC_KICK_CPU` if CPUID offers
//! `KVM_FEATURE_PV_UNHALT`, else an interrupt of the local APIC. The interrupt is latched: the
//! halting side holds interrupts off until the `hlt` itself. So without the feature a vCPU whose
//! interrupts are off cannot halt.
//!
//! The registers are those of Intel's manual, volume 3, chapter "Advanced Programmable Interrupt
//! Controller"; the features, registers and hypercalls of KVM those of its documentation.

use core::arch::asm;
use core::cell::UnsafeCell;
use core::ptr;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering::Relaxed};

use overlock_core::platform::Pause;
use overlock_core::{Instant, Platform};

use crate::clock::{self, PvClock};
use crate::platform::Guest;
use crate::vcpu::{self, MAX_VCPUS};
use crate::x86::{cpuid, has_leaf, outb, rdmsr, rdtsc, wrmsr};

pub const KICK: u8 = 0x40;
/// The interrupt of the local APIC's timer.
pub const TIMER: u8 = 0x41;
/// An interrupt for the image's own use: [`backend::call`](crate::backend::call) sends it.
pub const CALL: u8 = 0x42;
/// The interrupt that the local APIC raises when it has withdrawn another.
pub const SPURIOUS: u8 = 0xff;

const MSR_SYSTEM_TIME: u32 = 0x4b56_4d01;
const MSR_STEAL_TIME: u32 = 0x4b56_4d03;
const MSR_APIC_BASE: u32 = 0x1b;

const FEATURES: u32 = 0x4000_0001;
const FREQUENCIES: u32 = 0x4000_0010;
const FEATURE_CLOCKSOURCE2: u32 = 1 << 3;
const FEATURE_STEAL_TIME: u32 = 1 << 5;
const FEATURE_PV_UNHALT: u32 = 1 << 7;

const HC_KICK_CPU: u64 = 5;

const APIC: usize = 0xfee0_0000;
const APIC_ID: usize = 0x20;
const APIC_EOI: usize = 0xb0;
const APIC_SPURIOUS: usize = 0xf0;
const APIC_COMMAND: usize = 0x300;
const APIC_COMMAND_HIGH: usize = 0x310;
const APIC_TIMER: usize = 0x320;
const APIC_TIMER_COUNT: usize = 0x380;
const APIC_TIMER_NOW: usize = 0x390;
const APIC_TIMER_DIVIDE: usize = 0x3e0;
const DIVIDE_BY_16: u32 = 0b0011;
const TIMER_MASKED: u32 = 1 << 16;
const COMMAND_PENDING: u32 = 1 << 12;
const COMMAND_ASSERT: u32 = 1 << 14;
const TO_ALL_OTHERS: u32 = 0b11 << 18;
const INIT: u32 = 0b101 << 8;
const STARTUP: u32 = 0b110 << 8;

/// The masks of the PC's first interrupt controllers.
const LEGACY_MASKS: [u16; 2] = [0x21, 0xa1];

/// The event timer of the IA-PC HPET specification.
const HPET: usize = 0xfed0_0000;
const HPET_CONFIGURATION: usize = 0x10;
const HPET_COUNTER: usize = 0xf0;

/// The steal-time page of a vCPU.
#[derive(Debug)]
#[repr(C, align(64))]
struct StealTime {
    steal: AtomicU64,
    version: AtomicU32,
    flags: AtomicU32,
    preempted: AtomicU8,
}

/// A clock page that KVM writes.
#[repr(C, align(64))]
struct ClockPage(UnsafeCell<PvClock>);

// SAFETY: only the hypervisor writes it, and `PvClock::read` is made for that.
unsafe impl Sync for ClockPage {}

static STEAL: [StealTime; MAX_VCPUS] = [const {
    StealTime {
        steal: AtomicU64::new(0),
        version: AtomicU32::new(0),
        flags: AtomicU32::new(0),
        preempted: AtomicU8::new(0),
    }
}; MAX_VCPUS];
static CLOCKS: [ClockPage; MAX_VCPUS] =
    [const { ClockPage(UnsafeCell::new(PvClock::new())) }; MAX_VCPUS];

static PV_UNHALT: AtomicBool = AtomicBool::new(false);
static AMD: AtomicBool = AtomicBool::new(false);
/// Counts of the local APIC's timer in a millisecond.
static TIMER_RATE: AtomicU32 = AtomicU32::new(0);

fn signature() -> [u8; 12] {
    let leaf = cpuid(0x4000_0000);
    let mut bytes = [0; 12];
    for (place, word) in bytes
        .chunks_exact_mut(4)
        .zip([leaf.ebx, leaf.ecx, leaf.edx])
    {
        place.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

fn has_hypervisor() -> bool {
    cpuid(1).ecx & 1 << 31 != 0
}

fn features() -> u32 {
    let is_kvm = has_hypervisor() && signature() == *b"KVMKVMKVM\0\0\0";
    if is_kvm { cpuid(FEATURES).eax } else { 0 }
}

/// The hypervisor's name in reports.
pub(crate) fn hypervisor() -> &'static str {
    if !has_hypervisor() {
        return "none";
    }
    match &signature() {
        b"KVMKVMKVM\0\0\0" => "kvm",
        b"TCGTCGTCGTCG" => "tcg",
        _ => "other",
    }
}

/// Starts the back end on the first vCPU.
///
/// # Safety
///
/// Once, in ring 0, with interrupts off, with the first 4 GiB mapped as they are.
pub unsafe fn start() {
    AMD.store(cpuid(0).ecx == u32::from_le_bytes(*b"cAMD"), Relaxed);
    PV_UNHALT.store(features() & FEATURE_PV_UNHALT != 0, Relaxed);
    for port in LEGACY_MASKS {
        // SAFETY: masks the interrupts that firmware has left enabled.
        unsafe { outb(port, 0xff) };
    }
    // SAFETY: the caller's promise.
    unsafe { start_vcpu() };
    if !clock::is_set() {
        // SAFETY: as above.
        unsafe { set_frequency() };
    }
    // SAFETY: as above.
    unsafe { calibrate_timer() };
}

/// Starts the back end on the vCPU that calls.
///
/// # Safety
///
/// As for [`start`], after [`vcpu::enter`].
pub unsafe fn start_vcpu() {
    let own = vcpu::index();
    let features = features();
    // SAFETY: the pages lie at their physical addresses, for ever; bit 0 enables them.
    unsafe {
        if features & FEATURE_CLOCKSOURCE2 != 0 {
            let page = CLOCKS[own].0.get();
            wrmsr(MSR_SYSTEM_TIME, page.addr() as u64 | 1);
            clock::use_page(page);
        }
        if features & FEATURE_STEAL_TIME != 0 {
            wrmsr(MSR_STEAL_TIME, ptr::from_ref(&STEAL[own]).addr() as u64 | 1);
        }
    }
    // SAFETY: the local APIC is where it is after reset, and this enables it.
    unsafe {
        wrmsr(MSR_APIC_BASE, rdmsr(MSR_APIC_BASE) | 1 << 11);
        write(APIC_SPURIOUS, 1 << 8 | u32::from(SPURIOUS));
        write(APIC_TIMER_DIVIDE, DIVIDE_BY_16);
        write(APIC_TIMER, u32::from(TIMER));
        vcpu::this()
            .kick_address
            .store(read(APIC_ID) >> 24, Relaxed);
    }
}

/// Wakes all other vCPUs, which begin at `page` (a number of 4 KiB) in real mode.
///
/// # Safety
///
/// As for [`start`], and there is code for them.
pub unsafe fn start_others(page: u8) {
    // SAFETY: the caller's promise. The waits are those of Intel's protocol.
    unsafe {
        command(0, TO_ALL_OTHERS | COMMAND_ASSERT | INIT);
        Guest::pause(Pause::Delay(10_000_000));
        for _ in 0..2 {
            command(
                0,
                TO_ALL_OTHERS | COMMAND_ASSERT | STARTUP | u32::from(page),
            );
            Guest::pause(Pause::Delay(200_000));
        }
    }
}

/// Sends [`CALL`] to a vCPU.
pub(crate) fn call(vcpu: usize) {
    let _off = crate::interrupts::Off::begin();
    interrupt(vcpu, CALL);
}

/// Ends the handling of an interrupt.
pub fn end_of_interrupt() {
    // SAFETY: called by handlers of interrupts of the local APIC.
    unsafe { write(APIC_EOI, 0) };
}

/// Has the timer interrupt this vCPU once, after `nanos` nanoseconds.
pub(crate) fn set_timer(nanos: u64) {
    let rate = u64::from(TIMER_RATE.load(Relaxed));
    let count = (u128::from(nanos) * u128::from(rate)).div_ceil(1_000_000);
    // SAFETY: the back end runs in ring 0, and the vector has a handler.
    unsafe { write(APIC_TIMER_COUNT, count.clamp(1, u32::MAX.into()) as u32) };
}

pub(crate) fn can_halt(interrupts_on: bool, has_deadline: bool) -> bool {
    // The timer cannot wake a vCPU whose interrupts are off; KVM_HC_KICK_CPU can.
    interrupts_on || PV_UNHALT.load(Relaxed) && !has_deadline
}

pub(crate) fn sleep(interrupts_on: bool, until: Option<Instant>) {
    if let Some(until) = until {
        set_timer(until.nanos_since(Guest::now()));
    }
    // SAFETY: all interrupts have handlers. `sti` takes effect after the next instruction, so that
    // no interrupt comes between the two.
    unsafe {
        if interrupts_on {
            asm!("sti", "hlt", "cli");
        } else {
            asm!("hlt");
        }
    }
}

pub(crate) fn kick(vcpu: usize) {
    if !PV_UNHALT.load(Relaxed) {
        return interrupt(vcpu, KICK);
    }
    let apic = u64::from(vcpu::all()[vcpu].kick_address.load(Relaxed));
    // RBX is LLVM's own, so it is exchanged around the call.
    macro_rules! hypercall {
        ($instruction:literal) => {
            asm!("xchg r8, rbx", $instruction, "xchg r8, rbx",
                inout("rax") HC_KICK_CPU => _, inout("r8") 0u64 => _, in("rcx") apic)
        };
    }
    // SAFETY: KVM takes this hypercall, which names a vCPU of the guest.
    unsafe {
        if AMD.load(Relaxed) {
            hypercall!("vmmcall");
        } else {
            hypercall!("vmcall");
        }
    }
}

pub(crate) fn preempted(vcpu: usize) -> bool {
    STEAL[vcpu].preempted.load(Relaxed) & 1 != 0
}

pub(crate) fn interrupts_are_on() -> bool {
    let flags: u64;
    // SAFETY: reads the flags.
    unsafe { asm!("pushfq", "pop {}", out(reg) flags, options(preserves_flags)) };
    flags & 1 << 9 != 0
}

pub(crate) fn interrupts_off() -> bool {
    let on = interrupts_are_on();
    // SAFETY: in ring 0. Without `nomem`, so that nothing moves out of the section.
    unsafe { asm!("cli", options(nostack, preserves_flags)) };
    on
}

pub(crate) fn interrupts_on() {
    // SAFETY: in ring 0, and all interrupts have handlers.
    unsafe { asm!("sti", options(nostack, preserves_flags)) };
}

/// Sends a fixed interrupt. Called with interrupts off: a handler must not come between the two
/// halves of the command.
fn interrupt(vcpu: usize, vector: u8) {
    let apic = vcpu::all()[vcpu].kick_address.load(Relaxed);
    // SAFETY: the vector has a handler.
    unsafe { command(apic, COMMAND_ASSERT | u32::from(vector)) };
}

unsafe fn command(apic: u32, command: u32) {
    // SAFETY: the caller's promise.
    unsafe {
        while read(APIC_COMMAND) & COMMAND_PENDING != 0 {
            core::hint::spin_loop();
        }
        write(APIC_COMMAND_HIGH, apic << 24);
        write(APIC_COMMAND, command);
    }
}

unsafe fn read(register: usize) -> u32 {
    // SAFETY: the caller's promise: the local APIC is mapped there.
    unsafe { ptr::with_exposed_provenance::<u32>(APIC + register).read_volatile() }
}

unsafe fn write(register: usize, value: u32) {
    // SAFETY: as in `read`.
    unsafe { ptr::with_exposed_provenance_mut::<u32>(APIC + register).write_volatile(value) };
}

/// Finds the frequency of the time-stamp counter: from CPUID, else by the event timer, whose
/// register says its own.
unsafe fn set_frequency() {
    // SAFETY: the caller's promise.
    let khz = khz_of_cpuid().unwrap_or_else(|| unsafe { khz_by_hpet() });
    clock::set_frequency(khz);
}

fn khz_of_cpuid() -> Option<u64> {
    if has_hypervisor() && has_leaf(FREQUENCIES) {
        return Some(cpuid(FREQUENCIES).eax.into()).filter(|khz| *khz != 0);
    }
    let crystal = has_leaf(0x15).then(|| cpuid(0x15));
    let khz = crystal
        .filter(|leaf| leaf.eax != 0)
        .map(|leaf| u64::from(leaf.ecx) * u64::from(leaf.ebx) / u64::from(leaf.eax) / 1_000);
    let base = has_leaf(0x16).then(|| u64::from(cpuid(0x16).eax & 0xffff) * 1_000);
    khz.filter(|khz| *khz != 0).or(base).filter(|khz| *khz != 0)
}

/// The frequency by the event timer. Each reading of it lies between two of the counter, and of
/// many the tightest counts: a host that deschedules the vCPU does not spoil the result.
unsafe fn khz_by_hpet() -> u64 {
    let register = |at: usize| ptr::with_exposed_provenance_mut::<u64>(HPET + at);
    // SAFETY: the caller's promise: the timer is mapped there, if there is one.
    let period = unsafe { register(0).read_volatile() } >> 32;
    // The specification's maximum is 100 ns.
    assert!(
        (1..=100_000_000).contains(&period),
        "no clock: neither KVM's, nor CPUID's frequencies, nor an HPET"
    );
    // SAFETY: as above. Bit 0 starts the counter.
    unsafe {
        let configuration = register(HPET_CONFIGURATION);
        configuration.write_volatile(configuration.read_volatile() | 1);
    }
    let reading = || {
        let readings = (0..50).map(|_| {
            let before = rdtsc();
            // SAFETY: as above.
            let time = unsafe { register(HPET_COUNTER).read_volatile() };
            let after = rdtsc();
            (after - before, before + (after - before) / 2, time)
        });
        readings.min().unwrap_or_default()
    };
    let (_, begin, first) = reading();
    let mut last = first;
    while (last - first) * period < 20_000_000_000_000 {
        core::hint::spin_loop();
        // SAFETY: as above.
        last = unsafe { register(HPET_COUNTER).read_volatile() };
    }
    let (_, end, last) = reading();
    let femtoseconds = u128::from(last - first) * u128::from(period);
    (u128::from(end - begin) * 1_000_000_000_000 / femtoseconds) as u64
}

/// Counts the local APIC's timer for some milliseconds.
unsafe fn calibrate_timer() {
    // SAFETY: the caller's promise.
    unsafe {
        write(APIC_TIMER, TIMER_MASKED | u32::from(TIMER));
        write(APIC_TIMER_COUNT, u32::MAX);
        let begin = (read(APIC_TIMER_NOW), Guest::now());
        Guest::pause(Pause::Delay(5_000_000));
        let end = (read(APIC_TIMER_NOW), Guest::now());
        let counts = u64::from(begin.0 - end.0);
        let rate = counts * 1_000_000 / end.1.nanos_since(begin.1).max(1);
        TIMER_RATE.store(rate.max(1) as u32, Relaxed);
        write(APIC_TIMER_COUNT, 0);
        write(APIC_TIMER, u32::from(TIMER));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The contract of `Platform::halt`. Fails where a vCPU halts whose interrupts are off, without
    /// a way to end that.
    #[test]
    fn with_interrupts_off_a_vcpu_halts_only_if_a_kick_ends_it() {
        for (pv_unhalt, interrupts_on, has_deadline, can) in [
            (false, true, false, true),
            (false, true, true, true),
            (false, false, false, false),
            (false, false, true, false),
            (true, true, false, true),
            (true, true, true, true),
            (true, false, false, true),
            // A kick would end it, but the timer would not.
            (true, false, true, false),
        ] {
            PV_UNHALT.store(pv_unhalt, Relaxed);
            assert_eq!(can_halt(interrupts_on, has_deadline), can);
        }
    }
}
