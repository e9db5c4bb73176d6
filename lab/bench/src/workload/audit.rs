//! The end of a round: what the workers did against the protected data. It is generic over no
//! lock, and so compiled once.

use crate::error::Error;

/// Adds the workers' counters up, each kind by itself.
pub fn sums<const N: usize>(workers: &[[u64; N]]) -> [u64; N] {
    let mut sums = [0_u64; N];
    for counters in workers {
        for (sum, counter) in sums.iter_mut().zip(counters) {
            *sum = sum.wrapping_add(*counter);
        }
    }
    sums
}

/// Compares pairs of what the operations add up to and what the data say; `torn` of `reads` saw
/// the data between two states.
///
/// # Errors
///
/// [`Error::NotExclusive`] for the first pair that differs, [`Error::Torn`] for a torn read.
pub fn audit(pairs: &[(u64, u64)], reads: u64, torn: u64) -> Result<(), Error> {
    if let Some(&(expected, found)) = pairs.iter().find(|(expected, found)| expected != found) {
        return Err(Error::NotExclusive { expected, found });
    }
    if torn > 0 {
        return Err(Error::Torn { reads, torn });
    }
    Ok(())
}
