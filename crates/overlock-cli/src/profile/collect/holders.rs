//! The stacks of holders, of which the call site alone is known where the program did not record
//! the callers.

use std::collections::HashMap;

use overlock_profile::{Frame, Interner, Profile};
use overlock_shared::Table;

use super::kept::{Kept, Key, Total};
use crate::stat::{self, Sampled, Symbols};

/// Names for the addresses of a process, in a document.
pub struct Namer<'a> {
    pub table: &'a Table,
    pub symbols: &'a Symbols,
    pub profile: &'a mut Profile,
    pub interner: &'a mut Interner,
}

/// The holders of all waits.
#[derive(Debug, Default)]
pub struct Holders {
    stacks: HashMap<Key, Option<u32>>,
    /// Of those that no waiter has met with callers: the stacks of sampled acquisitions, with their
    /// weights.
    likely: HashMap<Key, Vec<(u32, u64)>>,
}

impl Holders {
    /// Adds those of a process, whose waits are [attributed](Kept::attribute).
    pub fn add(&mut self, process: usize, kept: &Kept, namer: &mut Namer<'_>) {
        let sampled = Sampled::of(namer.table);
        let mut known: HashMap<(u32, u32), Vec<u32>> = HashMap::new();
        let of_sums = kept.totals.keys().filter(|key| key.process == process);
        for key in of_sums.clone() {
            let (site, number) = key.held_at;
            if number != 0 {
                known.entry((key.entry, site)).or_default().push(number);
            }
        }
        let of_singles = kept.all().map(|single| single.key());
        let of_singles = of_singles.filter(|key| key.process == process);
        for key in of_sums.copied().chain(of_singles) {
            if self.stacks.contains_key(&key) {
                continue;
            }
            let (site, number) = key.held_at;
            let known = known.get(&(key.entry, site));
            let stack = match known {
                _ if number != 0 || site == 0 => namer.stack(site, number),
                Some(numbers) => {
                    let stacks = numbers.iter();
                    let stacks = stacks.filter_map(|&number| namer.stack(site, number));
                    let stacks: Vec<u32> = stacks.collect();
                    namer.common(site, &stacks)
                }
                None => {
                    let likely = sampled.likely(namer.table, key.entry, site).iter();
                    let likely = likely
                        .filter_map(|&(number, weight)| Some((namer.stack(site, number)?, weight)));
                    let likely: Vec<(u32, u64)> = likely.collect();
                    let stacks: Vec<u32> = likely.iter().map(|&(stack, _)| stack).collect();
                    if !likely.is_empty() {
                        self.likely.insert(key, likely);
                    }
                    namer.common(site, &stacks)
                }
            };
            self.stacks.insert(key, stack);
        }
    }

    /// That of a single wait, as far as it is known.
    pub fn stack(&self, key: &Key) -> Option<u32> {
        self.stacks.get(key).copied().flatten()
    }

    /// The waits by the holders that may have caused them: each has one at least.
    pub fn divided(&self, key: &Key, total: Total) -> Vec<(Option<u32>, Total)> {
        let likely = self.likely.get(key).map_or(&[][..], Vec::as_slice);
        let weights: Vec<u64> = likely.iter().map(|&(_, weight)| weight).collect();
        let counts = stat::divided(total.waits, &weights);
        let (mut stacks, mut shares) = (Vec::new(), (Vec::new(), Vec::new()));
        for (&(stack, weight), count) in likely.iter().zip(counts) {
            if count > 0 {
                stacks.push(Some(stack));
                shares.0.push(count);
                shares.1.push(weight);
            }
        }
        if stacks.is_empty() {
            return vec![(self.stack(key), total)];
        }
        let (counts, weights) = shares;
        let shares = total.divided(&counts, &weights);
        stacks.into_iter().zip(shares).collect()
    }
}

impl Namer<'_> {
    /// The stack with this number, or of the call site alone. `None` without either.
    fn stack(&mut self, site: u32, number: u32) -> Option<u32> {
        let site = self.symbols.whole(site).unwrap_or(0);
        let addresses = stat::addresses(self.table, number, site);
        let calls: Vec<_> = (addresses.iter())
            .map(|&address| self.symbols.frames(address))
            .collect();
        let frames = calls.iter().flat_map(|frames| frames.iter());
        (!calls.is_empty()).then(|| self.interner.stack(self.profile, frames))
    }

    /// The frames that these have in common, from their call site on: a holder there is one of
    /// them. A wrapper alone is the same for all locks, so that has a caller without a name.
    fn common(&mut self, site: u32, stacks: &[u32]) -> Option<u32> {
        let (first, others) = match stacks {
            [one] => return Some(*one),
            [first, others @ ..] => (*first, others),
            [] => (self.stack(site, 0)?, &[][..]),
        };
        let frames = |stack: u32| &self.profile.stacks[stack as usize].0;
        let length = others.iter().fold(frames(first).len(), |length, &other| {
            let pairs = frames(first)[..length].iter().zip(frames(other));
            pairs.take_while(|(one, other)| one == other).count()
        });
        let common = &frames(first)[..length];
        let frames = common.iter();
        let frames = frames.map(|&frame| self.profile.frames[frame as usize].clone());
        let mut frames: Vec<Frame> = frames.collect();
        let wrapper = frames.last()?;
        if frames.iter().all(|frame| frame.is_wrapper) {
            let function = stat::caller_of(&wrapper.function);
            frames.push(Frame {
                function,
                ..Frame::default()
            });
        }
        Some(self.interner.stack(self.profile, &frames))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails where the time of a holder that has no wait is lost.
    #[test]
    fn few_waits_for_many_likely_holders_keep_their_time() {
        let key = Key {
            process: 0,
            entry: 3,
            held_at: (7, 0),
        };
        let mut holders = Holders::default();
        let likely = (0..10).map(|stack| (stack, 100)).collect();
        holders.likely.insert(key, likely);
        for waits in [1, 2, 3, 10, 25] {
            let total = Total {
                waits,
                wait_ns: 21_582,
                ..Total::default()
            };
            let shares = holders.divided(&key, total);
            assert!(shares.iter().all(|(_, share)| share.waits > 0));
            let sum =
                |of: fn(&Total) -> u64| shares.iter().map(|(_, share)| of(share)).sum::<u64>();
            let sums = (sum(|share| share.waits), sum(|share| share.wait_ns));
            assert_eq!(sums, (waits, 21_582));
        }
        let other = Key { entry: 4, ..key };
        assert_eq!(holders.divided(&other, Total::default()).len(), 1);
    }
}
