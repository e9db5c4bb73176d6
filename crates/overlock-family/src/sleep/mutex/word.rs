//! The owner word: the owner, the CPU that it was on, and what its unlock has to do.

use overlock_core::node::{MAX_SLOTS, NodeId};
use overlock_core::platform::{Cpu, Platform};

/// The list is not empty.
pub(super) const WAITERS: u32 = 1;
/// The next unlock hands off to the first of the list.
pub(super) const HANDOFF: u32 = 2;
/// The mutex was handed off to the node in the owner field, whose thread has not taken it yet.
pub(super) const PICKUP: u32 = 4;
pub(super) const FLAGS: u32 = WAITERS | HANDOFF | PICKUP;

const CPU_SHIFT: u32 = 3;
/// CPU + 1; 0 where it is not known, or too high for 13 bits.
const CPU_MASK: u32 = 0x1fff;
const OWNER_SHIFT: u32 = 16;
/// The owner field of a thread without a slot. No node has this name.
const ANONYMOUS: u16 = 1;

/// Returns the word of a mutex that the caller owns, without flags.
#[inline(always)]
pub(super) fn mine<P: Platform>() -> u32 {
    let Cpu(cpu) = P::cpu();
    let cpu = if cpu < CPU_MASK { cpu + 1 } else { 0 };
    u32::from(me::<P>().unwrap_or(ANONYMOUS)) << OWNER_SHIFT | cpu << CPU_SHIFT
}

/// Returns the caller's name as an owner: the first node of its slot, in whichever context it
/// locks. [`NodeId::new`] would check the slot's range once more, on the fast path.
#[inline(always)]
fn me<P: Platform>() -> Option<u16> {
    P::slot()
        .filter(|&slot| slot < MAX_SLOTS)
        .map(|slot| (slot as u16 + 1) << 2)
}

fn owner(word: u32) -> u16 {
    (word >> OWNER_SHIFT) as u16
}

#[inline(always)]
pub(super) fn is_free(word: u32) -> bool {
    word >> OWNER_SHIFT == 0
}

/// Whether the caller is known to be the owner.
pub(super) fn is_mine<P: Platform>(word: u32) -> bool {
    word & PICKUP == 0 && me::<P>() == Some(owner(word))
}

/// Whether the caller may be the owner. One of the two may have no slot, or not have had one.
pub(super) fn may_be_mine<P: Platform>(word: u32) -> bool {
    let nameless = owner(word) == ANONYMOUS || me::<P>().is_none();
    word & PICKUP == 0 && !is_free(word) && (nameless || is_mine::<P>(word))
}

/// The CPU that the owner was on when it took the mutex.
pub(super) fn cpu(word: u32) -> Cpu {
    // Unknown is 0, so u32::MAX.
    Cpu((word >> CPU_SHIFT & CPU_MASK).wrapping_sub(1))
}

/// Returns the word of a mutex that is handed off to `id`; others may wait behind it.
pub(super) fn handed_to(id: NodeId) -> u32 {
    u32::from(id.bits()) << OWNER_SHIFT | PICKUP | WAITERS
}

pub(super) fn is_handed_to(word: u32, id: NodeId) -> bool {
    word & PICKUP != 0 && owner(word) == id.bits()
}

/// Returns `word` without waiters, for a child of fork: the owner, or free where the mutex was
/// handed off to a waiter that had not taken it.
pub(super) fn without_waiters(word: u32) -> u32 {
    if word & PICKUP == 0 { word & !FLAGS } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use overlock_core::toy::{SLOTS, Toy, as_thread, on_cpu};

    #[test]
    fn the_word_names_the_owner_and_its_cpu() {
        assert_eq!((cpu(0), is_free(0)), (Cpu::UNKNOWN, true));
        let word = as_thread(5, mine::<Toy>);
        assert_eq!(word & FLAGS, 0);
        assert_eq!((owner(word), cpu(word)), (NodeId::new(5, 0).bits(), Cpu(5)));
        as_thread(5, || {
            assert!(is_mine::<Toy>(word) && may_be_mine::<Toy>(word))
        });
        as_thread(4, || {
            assert!(!is_mine::<Toy>(word) && !may_be_mine::<Toy>(word))
        });
        assert!(!may_be_mine::<Toy>(0) && !is_free(word | WAITERS) && is_free(WAITERS));
        for (number, seen) in [
            (0x1ffe, Cpu(0x1ffe)),
            (0x1fff, Cpu::UNKNOWN),
            (u32::MAX, Cpu::UNKNOWN),
        ] {
            on_cpu(number);
            assert_eq!(cpu(mine::<Toy>()), seen);
        }
    }

    #[test]
    fn a_thread_without_a_slot_owns_without_a_name() {
        let word = as_thread(SLOTS, mine::<Toy>);
        assert!(!is_free(word));
        assert!(NodeId::from_bits(owner(word)).is_none());
        assert!(may_be_mine::<Toy>(word) && !is_mine::<Toy>(word));
        as_thread(SLOTS, || {
            assert!(may_be_mine::<Toy>(word) && !is_mine::<Toy>(word))
        });
    }

    #[test]
    fn a_mutex_handed_off_to_a_node_is_not_its_threads_yet() {
        for context in 0..2 {
            let id = NodeId::new(3, context);
            let word = handed_to(id);
            assert!(!is_free(word) && is_handed_to(word, id));
            assert!(!is_handed_to(word, NodeId::new(3, 1 - context)));
            assert!(!is_handed_to(word & !PICKUP, id));
            as_thread(3, || {
                assert!(!is_mine::<Toy>(word) && !may_be_mine::<Toy>(word))
            });
        }
    }
}
