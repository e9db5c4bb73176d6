//! A paravirtual guest of Xen: event channels, by Xen's public interface.
//!
//! A vCPU halts by `SCHEDOP_poll` on an event channel of its own, which stays masked: the poll ends
//! when the channel is pending, whether interrupts are on or off. A kick is `EVTCHNOP_send`.
//!
//! Interrupts are upcalls for two more channels of each vCPU: its timer, and calls of other vCPUs.
//! One may come between the moment at which a halt turns upcalls on and its poll. If the handler
//! halts then, it may consume the outer halt's event, or hide its publication from a kicker. So a
//! handler's halt leaves the channel pending for an outer one, which then rechecks.

use core::arch::asm;
use core::cell::UnsafeCell;
use core::ptr;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicU64};

use overlock_core::{Instant, Platform};

use crate::clock::{self, PvClock};
use crate::platform::Guest;
use crate::vcpu;

const SET_CALLBACKS: usize = 4;
const UPDATE_VA_MAPPING: usize = 14;
const XEN_VERSION: usize = 17;
const CONSOLE_IO: usize = 18;
const VCPU_OP: usize = 24;
const SET_SEGMENT_BASE: usize = 25;
const SCHED_OP: usize = 29;
const EVENT_CHANNEL_OP: usize = 32;

const SEGMENT_BASE_GS_KERNEL: usize = 2;
const FLUSH_THIS_PAGE: usize = 2;

const SHUTDOWN: usize = 2;
const POLL: usize = 3;
const SHUTDOWN_REBOOT: u32 = 1;

const BIND_VIRQ: usize = 1;
const BIND_IPI: usize = 7;
const VIRQ_TIMER: u32 = 0;
const SEND: usize = 4;

const INITIALISE: usize = 0;
const UP: usize = 1;
const REGISTER_RUNSTATE: usize = 5;
const STOP_PERIODIC_TIMER: usize = 7;
const SET_SINGLESHOT_TIMER: usize = 8;

/// A vCPU that Xen does not run although it could.
const RUNNABLE: u32 = 1;

/// The vCPUs whose state lies in the shared page.
pub const MAX_VCPUS: usize = 32;

/// `vcpu_info`: the state that a vCPU shares with Xen.
#[derive(Debug)]
#[repr(C)]
struct VcpuInfo {
    upcall_pending: AtomicU8,
    upcall_mask: AtomicU8,
    _pad: [u8; 6],
    pending_selector: AtomicU64,
    _arch: [u64; 2],
    time: UnsafeCell<PvClock>,
}

/// The page that the guest shares with Xen, up to the event channels.
#[derive(Debug)]
#[repr(C)]
struct SharedInfo {
    vcpus: [VcpuInfo; MAX_VCPUS],
    pending: [AtomicU64; 64],
    mask: [AtomicU64; 64],
}

/// `vcpu_runstate_info`.
#[derive(Debug)]
#[repr(C, align(64))]
struct RunState {
    state: AtomicU32,
    _pad: u32,
    _entry_time: AtomicU64,
    _times: [AtomicU64; 4],
}

/// A page for the shared page to be mapped at.
#[derive(Debug)]
#[repr(C, align(4096))]
struct Window([AtomicU8; 4096]);

static WINDOW: Window = Window([const { AtomicU8::new(0) }; 4096]);
static SHARED: AtomicPtr<SharedInfo> = AtomicPtr::new(ptr::null_mut());
static RUN_STATES: [RunState; MAX_VCPUS] = [const {
    RunState {
        state: AtomicU32::new(0),
        _pad: 0,
        _entry_time: AtomicU64::new(0),
        _times: [const { AtomicU64::new(0) }; 4],
    }
}; MAX_VCPUS];

/// The channels of each vCPU's interrupts: its timer's, and that of calls.
static TIMERS: [AtomicU32; MAX_VCPUS] = [const { AtomicU32::new(0) }; MAX_VCPUS];
static CALLS: [AtomicU32; MAX_VCPUS] = [const { AtomicU32::new(0) }; MAX_VCPUS];

/// A hypercall of two or three arguments.
///
/// # Safety
///
/// The guest is one of Xen, and the arguments are right for the call.
unsafe fn hypercall(number: usize, first: usize, second: usize, third: usize) -> isize {
    let result: isize;
    // SAFETY: the caller's promise. `syscall` in a paravirtual kernel is a hypercall.
    unsafe {
        asm!("syscall", inout("rax") number => result, inout("rdi") first => _,
            inout("rsi") second => _, inout("rdx") third => _, out("rcx") _, out("r11") _,
            out("r8") _, out("r10") _);
    }
    result
}

/// Points GS to the state of the first vCPU, which Xen has started.
///
/// # Safety
///
/// Once, before anything else, by the first vCPU of a guest of Xen.
pub unsafe fn set_gs(address: usize) {
    // SAFETY: the caller's promise.
    unsafe { hypercall(SET_SEGMENT_BASE, SEGMENT_BASE_GS_KERNEL, address, 0) };
}

/// Starts the back end on the first vCPU. `shared_info` is the machine address of the shared page.
///
/// # Safety
///
/// Once, by the first vCPU, with that address.
pub unsafe fn start(shared_info: u64) {
    const PRESENT_WRITABLE_USER: usize = 0b111;
    let window = ptr::from_ref(&WINDOW);
    let entry = shared_info as usize | PRESENT_WRITABLE_USER;
    // SAFETY: the window is a page of its own, which nobody else uses.
    let result = unsafe {
        hypercall(
            UPDATE_VA_MAPPING,
            window.expose_provenance(),
            entry,
            FLUSH_THIS_PAGE,
        )
    };
    assert!(result == 0, "Xen does not map its shared page: {result}");
    SHARED.store(window.cast_mut().cast(), Relaxed);
    // SAFETY: the caller's promise.
    unsafe { start_vcpu() };
}

/// Starts the back end on the vCPU that calls.
///
/// # Safety
///
/// After [`vcpu::enter`], once on each vCPU.
pub unsafe fn start_vcpu() {
    let own = vcpu::index();
    let state = ptr::from_ref(&RUN_STATES[own]).addr() as u64;
    // SAFETY: the area lives for ever, and nothing else is there.
    unsafe {
        vcpu_op(
            REGISTER_RUNSTATE,
            own,
            ptr::from_ref(&state).expose_provenance(),
        );
        vcpu_op(STOP_PERIODIC_TIMER, own, 0);
        clock::use_page(shared().vcpus[own].time.get());
    }
    // SAFETY: the structures of the two calls, whose last word is the port.
    let [kick, call, timer] = unsafe {
        [
            bind(BIND_IPI, [own as u32, 0, 0], 1),
            bind(BIND_IPI, [own as u32, 0, 0], 1),
            bind(BIND_VIRQ, [VIRQ_TIMER, own as u32, 0], 2),
        ]
    };
    shared().mask[kick as usize / 64].fetch_or(1 << (kick % 64), SeqCst);
    vcpu::this().kick_address.store(kick, Relaxed);
    CALLS[own].store(call, Relaxed);
    TIMERS[own].store(timer, Relaxed);
}

/// Binds an event channel. Returns its port.
unsafe fn bind(operation: usize, mut arguments: [u32; 3], port: usize) -> u32 {
    let address = ptr::from_mut(&mut arguments).expose_provenance();
    // SAFETY: the caller's promise.
    let result = unsafe { hypercall(EVENT_CHANNEL_OP, operation, address, 0) };
    assert!(result == 0, "Xen gives no event channel: {result}");
    arguments[port]
}

/// Sets the code that Xen calls for interrupts of this vCPU, and for faults while it does.
///
/// # Safety
///
/// The code is made for that, and ends by a call of [`handle`] and Xen's `iret`.
pub unsafe fn set_callbacks(events: usize, faults: usize) {
    // SAFETY: the caller's promise. There is no user mode, so nothing makes system calls.
    unsafe { hypercall(SET_CALLBACKS, events, faults, 0) };
}

/// Handles the interrupts that have come. Called with interrupts off.
pub fn handle(timer: impl Fn(), call: impl Fn()) {
    let own = vcpu::index();
    // Pending is cleared before the channels are read: what comes later calls again.
    while own_info().upcall_pending.swap(0, SeqCst) != 0 {
        own_info().pending_selector.swap(0, SeqCst);
        if take(TIMERS[own].load(Relaxed)) {
            timer();
        }
        if take(CALLS[own].load(Relaxed)) {
            call();
        }
    }
}

/// Clears a channel. Returns whether it was pending.
///
/// SeqCst, a full barrier: a kick whose event this clears has changed its word before, and the next
/// halt's recheck sees that.
fn take(port: u32) -> bool {
    let bit = 1 << (port % 64);
    shared().pending[port as usize / 64].fetch_and(!bit, SeqCst) & bit != 0
}

/// Has the timer interrupt this vCPU once, after `nanos` nanoseconds.
pub(crate) fn set_timer(nanos: u64) {
    let end = [Guest::now().plus_nanos(nanos).as_nanos(), 0];
    // SAFETY: the structure of the call.
    unsafe {
        vcpu_op(
            SET_SINGLESHOT_TIMER,
            vcpu::index(),
            ptr::from_ref(&end).expose_provenance(),
        );
    }
}

/// Sends an interrupt to a vCPU.
pub(crate) fn call(vcpu: usize) {
    send(CALLS[vcpu].load(Relaxed));
}

/// Starts another vCPU with a context in the form of `vcpu_guest_context`.
///
/// # Safety
///
/// The context is valid, and its code is made for this vCPU.
pub unsafe fn start_other(vcpu: usize, context: *const u8) -> bool {
    shared().vcpus[vcpu].upcall_mask.store(1, SeqCst);
    // SAFETY: the caller's promise.
    unsafe {
        vcpu_op(INITIALISE, vcpu, context.expose_provenance()) == 0 && vcpu_op(UP, vcpu, 0) == 0
    }
}

/// Prints on Xen's console.
pub fn put(text: &str) {
    // SAFETY: a write (0) of so many bytes from there.
    unsafe { hypercall(CONSOLE_IO, 0, text.len(), text.as_ptr().expose_provenance()) };
}

/// Ends the machine, by a reboot: an emulator that does not reboot ends.
pub fn shut_down() -> ! {
    loop {
        let reason = SHUTDOWN_REBOOT;
        // SAFETY: the structure of the call.
        unsafe {
            hypercall(
                SCHED_OP,
                SHUTDOWN,
                ptr::from_ref(&reason).expose_provenance(),
                0,
            )
        };
    }
}

unsafe fn vcpu_op(operation: usize, vcpu: usize, argument: usize) -> isize {
    // SAFETY: the caller's promise.
    unsafe { hypercall(VCPU_OP, operation, vcpu, argument) }
}

fn shared() -> &'static SharedInfo {
    // SAFETY: set before the first use, mapped for ever. Xen writes into atomics and cells only.
    unsafe { &*SHARED.load(Relaxed) }
}

/// `sched_poll`.
#[repr(C)]
struct PollArguments {
    ports: *const u32,
    number: u32,
    timeout: u64,
}

pub(crate) fn sleep(interrupts_on: bool, until: Option<Instant>) {
    let port = vcpu::this().kick_address.load(Relaxed);
    let arguments = PollArguments {
        ports: &raw const port,
        number: 1,
        // Xen's time is the clock's.
        timeout: until.map_or(0, |until| until.as_nanos().max(1)),
    };
    if interrupts_on {
        self::interrupts_on();
    }
    // SAFETY: the structure of the call; the ports are valid during it.
    unsafe {
        hypercall(
            SCHED_OP,
            POLL,
            ptr::from_ref(&arguments).expose_provenance(),
            0,
        );
    }
    interrupts_off();
    take(port);
}

/// Ends the sleep that the halt of a handler has interrupted, if it has not begun yet.
pub(crate) fn end_outer_sleep() {
    let port = vcpu::this().kick_address.load(Relaxed);
    shared().pending[port as usize / 64].fetch_or(1 << (port % 64), SeqCst);
}

pub(crate) fn kick(vcpu: usize) {
    send(vcpu::all()[vcpu].kick_address.load(Relaxed));
}

fn send(port: u32) {
    // SAFETY: the structure of the call.
    unsafe {
        hypercall(
            EVENT_CHANNEL_OP,
            SEND,
            ptr::from_ref(&port).expose_provenance(),
            0,
        );
    }
}

pub(crate) fn preempted(vcpu: usize) -> bool {
    RUN_STATES
        .get(vcpu)
        .is_some_and(|area| area.state.load(Relaxed) == RUNNABLE)
}

fn own_info() -> &'static VcpuInfo {
    &shared().vcpus[vcpu::index()]
}

pub(crate) fn interrupts_are_on() -> bool {
    own_info().upcall_mask.load(Relaxed) == 0
}

pub(crate) fn interrupts_off() -> bool {
    // A swap is a barrier to the compiler as well: nothing moves out of the section.
    own_info().upcall_mask.swap(1, SeqCst) == 0
}

pub(crate) fn interrupts_on() {
    own_info().upcall_mask.store(0, SeqCst);
    if own_info().upcall_pending.load(SeqCst) != 0 {
        // Any hypercall delivers what came while they were off.
        // SAFETY: asks for the version.
        unsafe { hypercall(XEN_VERSION, 0, 0, 0) };
    }
}

const _: () = assert!(size_of::<VcpuInfo>() == 64 && size_of::<PvClock>() == 32);
