//! Steps of a walk that were found before: how to go from a frame to its caller, by the address of
//! the call. To find them anew takes ten times as long.
//!
//! A step has what nearly all frames need: where the frame address, the return address and the
//! caller's frame pointer are. Others are not kept here. Slots have no lock: each has two words, of
//! which one is the address and the other word together, so that halves of two steps are none.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::cfi::{FP, Row, Rule, SP};

/// The number of slots. The calls on the way to a program's busy locks are fewer.
const SLOTS: usize = 4096;

struct Slot {
    /// The address, with the bits of the step inverted in it.
    check: AtomicU64,
    /// 0 while the slot is free.
    step: AtomicU64,
}

static KNOWN: [Slot; SLOTS] = [const {
    Slot {
        check: AtomicU64::new(0),
        step: AtomicU64::new(0),
    }
}; SLOTS];

/// A step. Offsets are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The register that leads to the frame address: the frame pointer, or the stack pointer.
    pub by_pointer: bool,
    /// Whether the frame address is the word there, or the sum itself.
    pub is_loaded: bool,
    pub offset: i32,
    /// The return address, from the frame address on.
    pub caller: i32,
    /// The caller's frame pointer, likewise; `None` if it is the present one.
    pub pointer: Option<i32>,
}

impl Step {
    /// `None` for a row that needs more.
    pub fn of(row: &Row, ra: usize) -> Option<Self> {
        let base = row.register;
        let saved = |rule: Rule| ![Rule::SAME, Rule::UNKNOWN].contains(&rule);
        let (caller, pointer) = (row.rules[ra], row.rules[FP]);
        if (base != FP && base != SP) || !saved(caller) || pointer == Rule::UNKNOWN {
            return None;
        }
        Some(Self {
            by_pointer: base == FP,
            is_loaded: row.is_loaded,
            offset: i32::try_from(row.offset).ok()?,
            caller: caller.0,
            pointer: saved(pointer).then_some(pointer.0),
        })
    }

    /// In one word, with a mark of the object; `None` if it does not fit.
    fn packed(self, object: u64) -> Option<u64> {
        let words = |offset: i32, bits: u32| {
            let words = offset / 8;
            let half = 1_i32 << (bits - 1);
            let fits = offset % 8 == 0 && (-half + 1..half).contains(&words);
            fits.then(|| u64::from(words as u32) & ((1 << bits) - 1))
        };
        let pointer = match self.pointer {
            Some(offset) => words(offset, SMALL)?,
            None => NO_POINTER,
        };
        Some(
            1 | u64::from(self.by_pointer) << 1
                | u64::from(self.is_loaded) << 2
                | words(self.offset, LARGE)? << 3
                | words(self.caller, SMALL)? << (3 + LARGE)
                | pointer << (3 + LARGE + SMALL)
                | (object & OBJECT) << (3 + LARGE + 2 * SMALL),
        )
    }

    fn unpacked(word: u64) -> Self {
        let bytes = |from: u32, bits: u32| {
            let word = (word << (64 - from - bits)) as i64 >> (64 - bits);
            word as i32 * 8
        };
        let pointer = 3 + LARGE + SMALL;
        let is_same = word >> pointer & ((1 << SMALL) - 1) == NO_POINTER;
        Self {
            by_pointer: word & 2 != 0,
            is_loaded: word & 4 != 0,
            offset: bytes(3, LARGE),
            caller: bytes(3 + LARGE, SMALL),
            pointer: (!is_same).then(|| bytes(pointer, SMALL)),
        }
    }
}

/// Bits of the offset of a frame address, in words, and of those from there on.
const LARGE: u32 = 22;
const SMALL: u32 = 12;
/// The least value, which is no offset.
const NO_POINTER: u64 = 1 << (SMALL - 1);
/// The other bits tell objects apart that were loaded at one address after each other.
const OBJECT: u64 = (1 << (61 - LARGE - 2 * SMALL)) - 1;

fn slot(address: usize) -> &'static Slot {
    let hash = (address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    &KNOWN[(hash >> 40) as usize % SLOTS]
}

fn mark(object: usize) -> u64 {
    (object as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
}

/// The step from a call, in an object with its unwind information there.
pub fn known(address: usize, object: usize) -> Option<Step> {
    let slot = slot(address);
    // Relaxed: the words check each other.
    let (check, step) = (slot.check.load(Relaxed), slot.step.load(Relaxed));
    let is_it = step != 0 && check == address as u64 ^ !step;
    let is_objects = step >> (3 + LARGE + 2 * SMALL) == mark(object) & OBJECT;
    (is_it && is_objects).then(|| Step::unpacked(step))
}

/// Keeps a step.
pub fn keep(address: usize, object: usize, step: Step) {
    if let Some(step) = step.packed(mark(object)) {
        let slot = slot(address);
        slot.check.store(address as u64 ^ !step, Relaxed);
        slot.step.store(step, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_come_back_as_they_were_and_for_their_object_alone() {
        let mut address = 0x7f00_1234_5678;
        for by_pointer in [false, true] {
            for pointer in [None, Some(-16), Some(-16368), Some(8)] {
                for offset in [8, 16, 4096, -64, 1 << 22] {
                    address += 5;
                    let step = Step {
                        by_pointer,
                        is_loaded: by_pointer,
                        offset,
                        caller: -8,
                        pointer,
                    };
                    assert_eq!(known(address, 0x1000), None);
                    keep(address, 0x1000, step);
                    assert_eq!(known(address, 0x1000), Some(step));
                    assert_eq!(known(address, 0x2000), None);
                    assert_eq!(known(address + 1, 0x1000), None);
                }
            }
        }
        let odd = Step {
            by_pointer: false,
            is_loaded: false,
            offset: 12,
            caller: -8,
            pointer: None,
        };
        assert_eq!(odd.packed(0), None);
        assert_eq!(
            Step {
                offset: i32::MAX & !7,
                ..odd
            }
            .packed(0),
            None
        );
    }
}
