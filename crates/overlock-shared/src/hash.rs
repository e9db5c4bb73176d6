//! Hash tables of fixed size, without removal.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// An item of a table, which holds its key's hash.
pub trait Keyed {
    /// The hash of its key; 0 while the item is free.
    fn key(&self) -> &AtomicU64;
}

/// The item for a key.
#[derive(Debug)]
pub enum Place<'a, T> {
    /// The key's item with its index.
    Known(usize, &'a T),
    /// A free item with its index, now the key's. The caller has to write the other fields.
    New(usize, &'a T),
}

/// The number of items that are tried for a key.
const REACH: usize = 32;

/// Returns a hash of all of the words, which is never 0. It alone identifies a key: among 8192 keys
/// two are the same once in 2^38 tables.
fn key(words: &[u64]) -> u64 {
    let mix = |hash: u64, word: &u64| {
        let mixed = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ mixed >> 32
    };
    words.iter().fold(0x51_7c_c1_b7, mix).max(1)
}

/// Returns the item for the key `words`; `None` if all items in reach are taken.
pub fn place<'a, T: Keyed>(table: &'a [T], words: &[u64]) -> Option<Place<'a, T>> {
    let key = key(words);
    for step in 0..REACH {
        let index = (key as usize).wrapping_add(step) % table.len();
        let item = &table[index];
        // Relaxed, here and below: only the key itself is read; the other fields have their own
        // flag.
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
    fn a_key_keeps_its_item_until_the_table_is_full() {
        let table: [Item; 64] = core::array::from_fn(|_| Item(AtomicU64::new(0)));
        let mut lost = 0;
        for number in 0..100 {
            match place(&table, &[7, number]) {
                Some(Place::New(index, _)) => {
                    let again = place(&table, &[7, number]);
                    assert!(matches!(again, Some(Place::Known(same, _)) if same == index));
                }
                Some(Place::Known(..)) => panic!("two keys in one item"),
                None => lost += 1,
            }
        }
        assert!((36..64).contains(&lost), "{lost}");
    }
}
