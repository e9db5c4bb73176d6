//! Many words in a row.

use std::array;
use std::ops::Index;

use crate::world::Word;

/// Words of a chunk.
const CHUNK: usize = 16;

/// Words that begin where a cache line does, wherever memory happens to be free: a word's
/// neighbours on its line are the same in each run.
#[derive(Debug)]
pub struct Words<C>(Vec<Chunk<C>>);

#[repr(align(128))]
#[derive(Debug)]
struct Chunk<C>([C; CHUNK]);

impl<C: Word> Words<C> {
    /// So many words, by their index.
    pub fn new(count: usize, value: impl Fn(usize) -> u64) -> Self {
        let chunk = |start| {
            Chunk(array::from_fn(|place| {
                let index = start + place;
                C::new(if index < count { value(index) } else { 0 })
            }))
        };
        Self((0..count).step_by(CHUNK).map(chunk).collect())
    }

    /// The word at a place, if there is one.
    pub fn get(&self, index: usize) -> Option<&C> {
        self.0.get(index / CHUNK)?.0.get(index % CHUNK)
    }
}

impl<C: Word> Index<usize> for Words<C> {
    type Output = C;

    fn index(&self, index: usize) -> &C {
        &self.0[index / CHUNK].0[index % CHUNK]
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    #[test]
    fn words_begin_with_a_line() {
        let words: Words<AtomicU64> = Words::new(17, |index| index as u64 + 5);
        assert_eq!((words[0].get(), words[16].get()), (5, 21));
        assert!(std::ptr::from_ref(&words[0]).addr().is_multiple_of(128));
        assert!(words.get(16).is_some() && words.get(32).is_none());
        assert_eq!(
            Words::<AtomicU64>::new(0, |_| 0).get(0).map(Word::get),
            None
        );
    }
}
