//! Start as a paravirtual guest of Xen: the notes, the first vCPU's entry, and the others.

use core::arch::global_asm;
use core::ptr;

use overlock_guest::backend::{self, Backend};
use overlock_guest::{interrupts, vcpu, xen};

use super::STACK;
use crate::coordinator;

global_asm!(
    r#"
    .macro note type, length
    .balign 4
    .long 4, \length, \type
    .asciz "Xen"
    .endm

    .pushsection .notes.xen, "a", @note
    note 6, 9                       // GUEST_OS
    .asciz "overlock"
    note 5, 8                       // XEN_VERSION
    .asciz "xen-3.0"
    note 8, 8                       // LOADER
    .asciz "generic"
    note 9, 4                       // PAE_MODE
    .asciz "yes"
    note 3, 8                       // VIRT_BASE
    .quad 0
    note 4, 8                       // PADDR_OFFSET
    .quad 0
    note 1, 8                       // ENTRY
    .quad xen_entry
    .balign 4
    .popsection

    .pushsection .text.boot, "ax"
    .global xen_entry
xen_entry:                          // the start structure in RSI
    cld
    lea rsp, [stacks + (1 << 15)]   // STACK
    mov rdi, rsi
    xor ebp, ebp
    call start_on_xen
    ud2

    .global xen_events
xen_events:                         // RCX and R11 on the stack, then a frame as for iretq
    pop rcx
    pop r11
    cld
    push rax
    push rcx
    push rdx
    push rsi
    push rdi
    push r8
    push r9
    push r10
    push r11
    push rbp
    mov rbp, rsp
    mov rdi, [rbp + 10 * 8]         // the frame's RIP
    and rsp, -16
    call handle_on_xen
    mov rsp, rbp
    pop rbp
    pop r11
    pop r10
    pop r9
    pop r8
    pop rdi
    pop rsi
    pop rdx
    pop rcx
    pop rax
    push 0                          // flags: not from a system call
    push rcx
    push r11
    push rax
    mov eax, 23                     // iret
    syscall

    .global xen_faults
xen_faults:
    ud2
    .popsection
    "#
);

unsafe extern "C" {
    fn xen_events();
    fn xen_faults();
}

/// `start_info`, up to the command line.
#[repr(C)]
struct StartInfo {
    magic: [u8; 32],
    pages: u64,
    shared_info: u64,
    flags: u32,
    store: [u64; 2],
    console: [u64; 2],
    page_table: u64,
    page_table_frames: u64,
    frame_list: u64,
    module_start: u64,
    module_length: u64,
    command_line: [u8; 1024],
}

/// `vcpu_guest_context`.
#[repr(C, align(16))]
struct Context {
    fpu: [u8; 512],
    flags: u64,
    registers: Registers,
    traps: [[u64; 2]; 256],
    ldt: [u64; 2],
    gdt_frames: [u64; 16],
    gdt_entries: u64,
    kernel_ss: u64,
    kernel_sp: u64,
    control: [u64; 8],
    debug: [u64; 8],
    event_callback: u64,
    failsafe_callback: u64,
    syscall_callback: u64,
    vm_assist: u64,
    fs_base: u64,
    gs_base_kernel: u64,
    gs_base_user: u64,
}

/// `cpu_user_regs`, as far as a new vCPU needs it.
#[repr(C)]
struct Registers {
    general: [u64; 14],
    rdi: u64,
    error_code_and_vector: u64,
    rip: u64,
    cs_and_mask: u64,
    flags: u64,
    rsp: u64,
    ss: u64,
    others: [u64; 4],
}

const _: () = assert!(size_of::<Registers>() == 25 * 8);

const IN_KERNEL: u64 = 1 << 2;
const KERNEL_CS: u64 = 0xe033;
const KERNEL_SS: u64 = 0xe02b;
const INTERRUPTS_ON: u64 = 1 << 9;

#[unsafe(no_mangle)]
extern "C" fn start_on_xen(info: &StartInfo) -> ! {
    // SAFETY: the first vCPU, which Xen has started here.
    unsafe { xen::set_gs(ptr::from_ref(&vcpu::all()[0]).addr()) };
    vcpu::enter(0);
    backend::choose(Backend::Xen);
    // SAFETY: the start structure ends its line with a zero byte, and no other vCPU runs.
    unsafe {
        super::copy_line((&raw const info.command_line).cast());
        xen::start(info.shared_info);
    }
    let options = super::options();
    for vcpu in 1..options.vcpus() {
        // SAFETY: the page table that Xen has built is in use by this vCPU.
        assert!(unsafe { start_other(info, vcpu) }, "Xen has no vCPU {vcpu}");
    }
    coordinator::run(&options)
}

unsafe fn start_other(info: &StartInfo, vcpu: usize) -> bool {
    // The list of machine frames is indexed by the guest's own frames, which lie in memory as they
    // are numbered.
    let frames = ptr::with_exposed_provenance::<u64>(info.frame_list as usize);
    // SAFETY: Xen's list has all frames.
    let root = unsafe { frames.add(info.page_table as usize >> 12).read() };
    let stack = super::STACKS.0.get().addr() + (vcpu + 1) * STACK;
    let mut context = const {
        // SAFETY: plain numbers.
        unsafe { core::mem::zeroed::<Context>() }
    };
    context.flags = IN_KERNEL;
    context.registers.rdi = vcpu as u64;
    context.registers.rip = start_other_on_xen as *const () as u64;
    context.registers.cs_and_mask = KERNEL_CS;
    context.registers.flags = INTERRUPTS_ON;
    // As a call would leave it.
    context.registers.rsp = stack as u64 - 8;
    context.registers.ss = KERNEL_SS;
    context.kernel_ss = KERNEL_SS;
    context.kernel_sp = stack as u64;
    context.control[3] = root << 12;
    context.gs_base_kernel = ptr::from_ref(&vcpu::all()[vcpu]).addr() as u64;
    // SAFETY: the context above.
    unsafe { xen::start_other(vcpu, ptr::from_ref(&context).cast()) }
}

extern "C" fn start_other_on_xen(index: usize) -> ! {
    vcpu::enter(index);
    // SAFETY: once on each vCPU, after `enter`. The code above is made for Xen's calls.
    unsafe {
        xen::start_vcpu();
        xen::set_callbacks(
            xen_events as *const () as usize,
            xen_faults as *const () as usize,
        );
    }
    interrupts::enable();
    coordinator::work()
}

#[unsafe(no_mangle)]
extern "C" fn handle_on_xen(rip: u64) {
    xen::handle(coordinator::timer, || coordinator::call(rip));
}
