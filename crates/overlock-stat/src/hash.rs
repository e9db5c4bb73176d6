//! Hash tables of a fixed size, in which nothing is ever removed.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What has its key's hash in itself.
pub trait Keyed {
    /// Of what it is about; 0 while it is free.
    fn key(&self) -> &AtomicU64;
}

/// Where a key belongs.
#[derive(Debug)]
pub enum Place<'a, T> {
    /// It is there, with its number.
    Known(usize, &'a T),
    /// It has just been given this one, and its names are the caller's to write.
    New(usize, &'a T),
}

/// How far from its place something may be.
const REACH: usize = 32;

/// A hash of all of the words, and never 0. The keys are told apart by it alone: among 8192 of them
/// two are the same once in 2^38 tables.
fn key(words: &[u64]) -> u64 {
    let mix = |hash: u64, word: &u64| {
        let mixed = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ mixed >> 32
    };
    words.iter().fold(0x51_7c_c1_b7, mix).max(1)
}

/// The place of what `words` name; `None` where all in reach are taken.
pub fn place<'a, T: Keyed>(table: &'a [T], words: &[u64]) -> Option<Place<'a, T>> {
    let key = key(words);
    for step in 0..REACH {
        let index = (key as usize).wrapping_add(step) % table.len();
        let item = &table[index];
        // Relaxed, here and below: the key is all there is to see; the names have their own flag.
        let mut seen = item.key().load(Relaxed);
        if seen == 0 {
            match item.key().compare_exchange(0, key, Relaxed, Relaxed) {
                Ok(_) => return Some(Place::New(index, item)),
                Err(other) => seen = other,
            }
        }
        if seen == key {
            return Some(Place::Known(index, item));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Item(AtomicU64);

    impl Keyed for Item {
        fn key(&self) -> &AtomicU64 {
            &self.0
        }
    }

    #[test]
    fn a_key_has_one_place_until_there_is_none() {
        let table: [Item; 64] = core::array::from_fn(|_| Item(AtomicU64::new(0)));
        let mut lost = 0;
        for number in 0..100 {
            match place(&table, &[7, number]) {
                Some(Place::New(index, _)) => {
                    let again = place(&table, &[7, number]);
                    assert!(matches!(again, Some(Place::Known(same, _)) if same == index));
                }
                Some(Place::Known(..)) => panic!("two keys in one place"),
                None => lost += 1,
            }
        }
        assert!((36..64).contains(&lost), "{lost}");
    }
}
