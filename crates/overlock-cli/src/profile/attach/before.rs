//! Waits that began before the look: the kernel's programs see their registers only, and their
//! memory is read here.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

use super::kernel::Programs;
use super::records::{Copied, Record, WORDS, WORDS_BEFORE, Wait};
use super::stacks::Stacks;

/// The bytes of a stack that are read.
const STACK: usize = 16384;

/// The words at the futexes of threads that waited as the look began.
#[derive(Debug, Default)]
pub struct Before(HashMap<u32, [u32; WORDS]>);

impl Before {
    /// Reads them, and the stacks, of the threads that wait still.
    pub fn read(pid: u32, programs: &Programs, stacks: &mut Stacks) -> Self {
        let mut before = Self::default();
        // It needs the right to trace the process, which CAP_BPF does not give.
        let Ok(memory) = File::open(format!("/proc/{pid}/mem")) else {
            return before;
        };
        let read: Vec<(Wait, Copied, [u32; WORDS])> = (waits(programs).into_iter())
            .map(|wait| (wait, stack(&memory, &wait), words(&memory, wait.address)))
            .collect();
        // A thread that was woken meanwhile has later values in its memory.
        let waits = waits(programs);
        for (wait, stack, words) in read {
            if waits.contains(&wait) {
                stacks.add(&stack);
                before.0.insert(wait.off.tid, words);
            }
        }
        before
    }

    /// Gives a wait from before its words in place of the registers.
    pub fn complete(&self, wait: &mut Wait) {
        if wait.is_from_before() {
            wait.words = self.0.get(&wait.off.tid).copied().unwrap_or_default();
        }
    }
}

/// The waits from before that have not ended.
fn waits(programs: &Programs) -> Vec<Wait> {
    let mut waits = Vec::new();
    programs.unfinished(|record| match record {
        Record::Wait(wait) if wait.is_from_before() && wait.off.wake_ns == 0 => waits.push(wait),
        _ => {}
    });
    waits
}

fn stack(memory: &File, wait: &Wait) -> Copied {
    let [ip, sp, bp, lr] = wait.registers();
    let mut bytes = vec![0; STACK];
    // It ends where the stack does.
    let length = memory.read_at(&mut bytes, sp).unwrap_or_default();
    bytes.truncate(length);
    Copied {
        key: wait.key,
        ip,
        sp,
        bp,
        lr,
        bytes,
    }
}

fn words(memory: &File, futex: u64) -> [u32; WORDS] {
    let mut words = [0; WORDS];
    // The page may begin with the futex.
    for from in [0, WORDS_BEFORE] {
        let mut bytes = [0; 4 * WORDS];
        let at = futex.wrapping_sub(4 * (WORDS_BEFORE - from) as u64);
        let length = memory.read_at(&mut bytes[4 * from..], at);
        let length = length.unwrap_or_default();
        if length == 0 {
            continue;
        }
        for (word, four) in words.iter_mut().zip(bytes.chunks_exact(4)) {
            *word = u32::from_ne_bytes(four.try_into().expect("four bytes"));
        }
        break;
    }
    words
}
