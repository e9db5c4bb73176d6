//! Holders of which the call site alone is known: of a lock that threads wait for often, the
//! program records the callers of some acquisitions only.
//!
//! Which ones does not depend on who holds the lock or for how long. So the waits for the others
//! are divided among the stacks that are known at the same call site, in proportion to the waits
//! for these. Without such waits the share of a stack is the time for which the lock was held from
//! there, by the samples of acquisitions.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use overlock_shared::{Entry, Table};

/// Divides a number in proportion to weights, without a remainder.
pub fn divided(whole: u64, weights: &[u64]) -> Vec<u64> {
    let all: u128 = weights.iter().map(|&weight| u128::from(weight)).sum();
    let mut before = 0_u128;
    let share = |sum: u128| (u128::from(whole) * sum).checked_div(all).unwrap_or(0) as u64;
    let shares = weights.iter().map(|&weight| {
        let from = share(before);
        before += u128::from(weight);
        share(before) - from
    });
    shares.collect()
}

/// The holders of waits: a place, the lower half of a call site, and the number of its stack, 0
/// where that is not known. For each that has no number, and others with the same place and site
/// have one, calls `divide` with its own index and theirs.
pub fn without_callers<P: Copy + Eq + Hash>(
    holders: &[(P, u32, u32)],
    mut divide: impl FnMut(usize, &[usize]),
) {
    let mut known: HashMap<(P, u32), Vec<usize>> = HashMap::new();
    for (index, &(place, site, stack)) in holders.iter().enumerate() {
        if stack != 0 {
            known.entry((place, site)).or_default().push(index);
        }
    }
    for (index, &(place, site, stack)) in holders.iter().enumerate() {
        if stack == 0
            && site != 0
            && let Some(those) = known.get(&(place, site))
        {
            divide(index, those);
        }
    }
}

/// Waits that a holder has caused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holder {
    /// The index of the waiters' entry.
    pub entry: u32,
    /// The lower half of its call site; 0 where that is not known.
    pub site: u32,
    /// The number of its stack; 0 where that is not known.
    pub stack: u32,
    pub waits: u64,
    pub wait_ns: u64,
}

/// The holders that a table has, with callers as far as these are known.
pub fn holders(table: &Table) -> Vec<Holder> {
    // Acquire: pairs with the store after its names were written.
    let ready = (table.holders.iter()).filter(|holder| holder.ready.load(Acquire) != 0);
    let ready = ready.map(|holder| Holder {
        entry: holder.entry.load(Relaxed),
        site: holder.site.load(Relaxed),
        stack: holder.stack.load(Relaxed),
        waits: holder.waits.load(Relaxed),
        wait_ns: holder.wait_ns.load(Relaxed),
    });
    let mut all: Vec<Holder> = ready.collect();
    let name = |holder: &Holder| (holder.entry, holder.site, holder.stack);
    let names: Vec<_> = all.iter().map(name).collect();
    without_callers(&names, |unknown, known| {
        let weights = |of: fn(&Holder) -> u64| -> Vec<u64> {
            known.iter().map(|&index| of(&all[index])).collect()
        };
        let (counts, times) = (weights(|one| one.waits), weights(|one| one.wait_ns));
        let Holder { waits, wait_ns, .. } = std::mem::take(&mut all[unknown]);
        let shares = divided(waits, &counts)
            .into_iter()
            .zip(divided(wait_ns, &times));
        for (&index, (waits, wait_ns)) in known.iter().zip(shares) {
            all[index].waits += waits;
            all[index].wait_ns += wait_ns;
        }
    });
    all.retain(|holder| holder.waits > 0);
    let sampled = Sampled::of(table);
    let with_samples = all.iter().flat_map(|holder| sampled.divided(table, holder));
    with_samples.collect()
}

/// The stacks of sampled acquisitions by lock and call site, each with the time for which the lock
/// was held from there.
#[derive(Debug)]
pub struct Sampled(HashMap<(Lock, u32), Vec<(u32, u64)>>);

/// Locks that are one to the table: a variable, or those that were initialised at one place.
type Lock = (u64, u64, u32);

fn lock(entry: &Entry) -> Lock {
    let init = entry.init.load(Relaxed);
    let object = match init {
        0 => entry.object.load(Relaxed),
        _ => 0,
    };
    (object, init, entry.init_stack.load(Relaxed))
}

impl Sampled {
    /// Those of a table.
    pub fn of(table: &Table) -> Self {
        let mut all: HashMap<_, Vec<_>> = HashMap::new();
        for entry in &table.entries {
            // Acquire: pairs with the store after its names were written.
            let is_ready = entry.ready.load(Acquire) != 0;
            let (stack, held_ns) = (entry.stack.load(Relaxed), entry.hold_ns.load(Relaxed));
            if is_ready && stack != 0 && held_ns > 0 {
                let site = entry.site.load(Relaxed) as u32;
                all.entry((lock(entry), site))
                    .or_default()
                    .push((stack, held_ns));
            }
        }
        Self(all)
    }

    /// The stacks that an owner at this call site may have had, for which waiters at the entry
    /// waited.
    pub fn likely(&self, table: &Table, entry: u32, site: u32) -> &[(u32, u64)] {
        let entry = table.entries.get(entry as usize).filter(|_| site != 0);
        let likely = entry.and_then(|entry| self.0.get(&(lock(entry), site)));
        likely.map_or(&[], Vec::as_slice)
    }

    /// The holder, or those that it may have been.
    fn divided(&self, table: &Table, holder: &Holder) -> Vec<Holder> {
        let likely = match holder.stack {
            0 => self.likely(table, holder.entry, holder.site),
            _ => &[],
        };
        if likely.is_empty() {
            return vec![*holder];
        }
        let held: Vec<u64> = likely.iter().map(|&(_, held_ns)| held_ns).collect();
        let shares = divided(holder.waits, &held).into_iter();
        let shares = shares.zip(divided(holder.wait_ns, &held));
        let with = |(&(stack, _), (waits, wait_ns)): (&(u32, u64), (u64, u64))| Holder {
            stack,
            waits,
            wait_ns,
            ..*holder
        };
        likely.iter().zip(shares).map(with).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_to_the_whole() {
        assert_eq!(divided(100, &[1, 3]), [25, 75]);
        assert_eq!(divided(10, &[1, 1, 1]).iter().sum::<u64>(), 10);
        let most = u64::MAX >> 2;
        assert_eq!(divided(most, &[most, 0, most]).iter().sum::<u64>(), most);
        assert_eq!(divided(7, &[0, 0]), [0, 0]);
    }

    #[test]
    fn those_of_the_same_place_and_site_stand_for_a_holder_without_callers() {
        let holders = [
            (1, 7, 0),
            (1, 7, 3),
            (2, 7, 4),
            (1, 7, 5),
            (1, 0, 0),
            (1, 8, 0),
        ];
        let mut found = Vec::new();
        without_callers(&holders, |index, those| found.push((index, those.to_vec())));
        assert_eq!(found, [(0, vec![1, 3])]);
    }
}
