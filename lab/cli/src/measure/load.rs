//! How many threads, or vCPUs.

use overlock_bench::machine::most_threads;

use crate::exit::Exit;
use crate::number::{ANY, whole};

/// More threads for each CPU than any machine has a use for.
const MANY: f64 = 1e6;

/// How many threads.
#[derive(Debug)]
pub enum Load {
    Threads(Vec<usize>),
    /// For each CPU.
    Overcommit(Vec<f64>),
}

impl Load {
    /// By the numbers that were given, else by the levels of overcommit.
    pub fn new(numbers: &[usize], overcommit: &[f64]) -> Self {
        if numbers.is_empty() {
            Self::Overcommit(overcommit.to_vec())
        } else {
            Self::Threads(numbers.to_vec())
        }
    }

    /// The numbers of threads on `cpus`: each once, in order, and no more than `most`, for that
    /// reason.
    pub fn threads(&self, cpus: f64, (most, reason): (usize, &str)) -> Result<Vec<usize>, Exit> {
        let mut threads = match self {
            Self::Threads(threads) => threads.clone(),
            Self::Overcommit(levels) => levels
                .iter()
                .map(|level| ((level * cpus).round() as usize).max(1))
                .collect(),
        };
        threads.sort_unstable();
        threads.dedup();
        match threads.last() {
            Some(last) if *last > most => Err(Exit::usage(format!(
                "{last} threads are more than this machine allows: 1 to {most} ({reason})"
            ))),
            _ => Ok(threads),
        }
    }
}

/// Refuses more threads than this machine allows.
pub fn check_threads(threads: usize) -> Result<(), Exit> {
    Load::Threads(vec![threads])
        .threads(1.0, most_threads())
        .map(drop)
}

/// Parses a number of threads.
pub fn count(text: &str) -> Result<usize, String> {
    if text.trim().ends_with(['x', 'X']) && level(text).is_ok() {
        return Err(format!(
            "must be a whole number; for each CPU it is --overcommit {text}"
        ));
    }
    whole(1, ANY)(text)
}

/// Parses a level of overcommit, with or without its x.
pub fn level(text: &str) -> Result<f64, String> {
    let text = text.trim();
    let bare = text.strip_suffix(['x', 'X']).unwrap_or(text);
    match bare.parse() {
        Ok(level) if level > 0.0 && level <= MANY => Ok(level),
        _ => Err(format!(
            "must be threads for each CPU, above 0 and up to {MANY}, such as 1x or 2.5x"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_may_have_their_x() {
        assert_eq!(level("2x").unwrap(), 2.0);
        assert_eq!(level(" 0.5 ").unwrap(), 0.5);
        for nonsense in ["0x", "-1x", "x", "2xx", "", "NaN", "inf", "two"] {
            assert!(level(nonsense).unwrap_err().contains("such as 1x or 2.5x"));
        }
    }

    #[test]
    fn a_level_is_no_number_of_threads() {
        let text = count("0.5x").unwrap_err();
        assert!(
            text.ends_with("for each CPU it is --overcommit 0.5x"),
            "{text}"
        );
        assert_eq!(
            count("x").unwrap_err(),
            "must be a whole number of at least 1"
        );
    }

    #[test]
    fn overcommit_becomes_threads() {
        let load = Load::Overcommit(vec![2.0, 1.0, 1.0, 0.1]);
        let most = (100, "a test");
        assert_eq!(load.threads(2.0, most).unwrap(), [1, 2, 4]);
        assert_eq!(load.threads(0.5, most).unwrap(), [1]);
    }

    #[test]
    fn more_threads_than_the_machine_has_are_refused() {
        let refused = Load::Threads(vec![101]).threads(2.0, (100, "a test"));
        let Err(Exit::Usage(text)) = refused else {
            panic!("not bad use: {refused:?}")
        };
        assert!(
            text.contains("more than this machine allows: 1 to 100 (a test)"),
            "{text}"
        );
    }
}
