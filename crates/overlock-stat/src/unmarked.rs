//! Steps of a walk through code without unwind information: what JIT compilers make, and some
//! assembly.
//!
//! Its frame pointer leads on if it keeps one; a trampoline has its return address at the top of
//! its stack. Either may be any value, so that the caller has to be known by itself. It is an
//! address behind an instruction that calls, in the object that has called for the code: an
//! interpreter calls its scripts, and they call it. Or it is code without an object, near this, or
//! where a chain of frames goes on.

use core::ptr;

use crate::cfi::{self, FP, Found, REGISTERS, SP};
use crate::unwind::{ADDRESS, Range, Registers, is_static};

/// Addresses that programs have.
const CODE: core::ops::Range<usize> = 1 << 16..1 << 47;

/// The most between pieces of code that a JIT compiler has made.
const NEAR: usize = 1 << 28;

/// Goes from the frame of a call at `address` to its caller, of which it returns the address.
/// `last` is the object of the last frame that was in one.
pub fn step(
    address: usize,
    registers: &mut Registers,
    last: &Range,
    load: impl Fn(usize) -> Option<usize>,
) -> Option<usize> {
    let (sp, pointer) = (registers[SP], registers[FP]);
    let is_made = !is_static(address);
    let by_pointer = || {
        let (before, caller) = (load(pointer)?, load(pointer.checked_add(8)?)?);
        Some((caller & ADDRESS, before, pointer + 16))
    };
    let by_stack = |at: usize| Some((load(at)? & ADDRESS, pointer, at.checked_add(8)?));
    let returns = |found: &(usize, usize, usize)| is_return(found.0, last);
    let is_near = |caller: usize| is_made && caller.abs_diff(address) < NEAR;
    // The next frame is where frames are.
    let is_chain =
        |&(_, before, above): &(usize, usize, usize)| before >= above && load(before).is_some();
    // Code of no object, and no data of the stack.
    let is_code = |&(caller, ..): &(usize, usize, usize)| {
        CODE.contains(&caller) && !is_static(caller) && load(caller & !7).is_none()
    };
    let found = (by_pointer())
        .filter(|found| returns(found) || is_near(found.0) && is_chain(found) && is_code(found))
        // With a word that aligns the stack, or without.
        .or_else(|| by_stack(sp).filter(|found| is_made && returns(found)))
        .or_else(|| by_stack(sp.wrapping_add(8)).filter(|found| is_made && returns(found)))
        .or_else(|| {
            by_pointer().filter(|found| (is_near(found.0) || is_chain(found)) && is_code(found))
        });
    let (caller, before, sp) = found?;
    // The others are lost, as this code has saved them anywhere.
    *registers = [0; REGISTERS];
    registers[FP] = before;
    registers[SP] = sp;
    Some(caller)
}

/// Whether it is the address of the object's code behind an instruction that calls.
fn is_return(address: usize, object: &Range) -> bool {
    let call = address.wrapping_sub(1);
    if !(object.start..object.end).contains(&call) {
        return false;
    }
    // SAFETY: the object stays loaded, and the address is in it.
    let found = unsafe { cfi::row(object.frames, call) };
    // SAFETY: as above.
    let start = unsafe { cfi::start(object.frames, call) };
    let (Found::Rules(..), Some(start)) = (found, start) else {
        return false;
    };
    let byte = |back: usize| {
        let at = address.wrapping_sub(back);
        let code = ptr::with_exposed_provenance::<u8>(at);
        // SAFETY: within a function of the object, and so mapped; no linker of a system with glibc
        // makes code that cannot be read.
        (at >= start && at < address).then(|| unsafe { code.read() })
    };
    is_call(byte)
}

/// Whether a calling instruction ends here. `byte` has those before, by their distance.
#[cfg(target_arch = "x86_64")]
fn is_call(byte: impl Fn(usize) -> Option<u8>) -> bool {
    let is_indirect = |length: usize| {
        byte(length) == Some(0xff) && byte(length - 1).is_some_and(|mode| mode >> 3 & 7 == 2)
    };
    byte(5) == Some(0xe8) || [2, 3, 4, 6, 7].into_iter().any(is_indirect)
}

/// Whether a calling instruction ends here. `byte` has those before, by their distance.
#[cfg(target_arch = "aarch64")]
fn is_call(byte: impl Fn(usize) -> Option<u8>) -> bool {
    let bytes = [byte(4), byte(3), byte(2), byte(1)];
    let [Some(a), Some(b), Some(c), Some(d)] = bytes else {
        return false;
    };
    let instruction = u32::from_le_bytes([a, b, c, d]);
    instruction & 0xfc00_0000 == 0x9400_0000 || instruction & 0xffff_fc1f == 0xd63f_0000
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unwind;

    /// The step from code that was made, with these words on the stack.
    fn after(registers: &Registers, stack: &[usize], last: &Range) -> Option<[usize; 3]> {
        let mut registers = *registers;
        let base = stack.as_ptr().addr();
        let load = |at: usize| {
            let index = at.checked_sub(base)? / 8;
            (at % 8 == 0).then(|| stack.get(index).copied())?
        };
        let caller = step(0x1_0000_1000, &mut registers, last, load)?;
        Some([caller, registers[FP], registers[SP] - base])
    }

    /// Fails where a word that is no return address is taken for one.
    #[test]
    fn callers_are_told_from_other_words() {
        unwind::start(unwind::tests::found());
        let own = callers_are_told_from_other_words as *const () as usize;
        let Some(object) = unwind::find(own) else {
            return;
        };
        assert!(!is_return(own, &object) && !is_return(0x1000, &object));
        let mut stack = [0; 8];
        let mut registers = [0; REGISTERS];
        registers[SP] = stack.as_ptr().addr();
        registers[FP] = registers[SP] + 32;
        stack[1] = own;
        stack[4] = 77;
        stack[5] = 5 << 30;
        assert_eq!(after(&registers, &stack, &object), None);
        // Near, without an object.
        stack[5] = 0x1_0000_2000;
        let near = Some([0x1_0000_2000, 77, 48]);
        assert_eq!(after(&registers, &stack, &object), near);
        stack[5] = 0;
        stack[1] = behind_a_call();
        let trampolines = Some([stack[1], registers[FP], 16]);
        assert_eq!(after(&registers, &stack, &object), trampolines);
        assert_eq!(after(&registers, &stack, &Range::default()), None);
    }

    #[inline(never)]
    fn behind_a_call() -> usize {
        let address: usize;
        #[cfg(target_arch = "x86_64")]
        // SAFETY: leaves the stack as it was.
        unsafe {
            core::arch::asm!("call 2f", "2:", "pop {}", out(reg) address);
        }
        #[cfg(target_arch = "aarch64")]
        // SAFETY: changes the link register alone, and says so.
        unsafe {
            core::arch::asm!("bl 2f", "2:", "mov {}, x30", out(reg) address, out("x30") _);
        }
        address
    }
}
