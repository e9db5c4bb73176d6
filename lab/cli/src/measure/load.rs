//! How many threads, or vCPUs.

use crate::exit::Exit;
use crate::number::whole;

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
    /// By the `numbers` that `option` was given, else by the levels of `--overcommit`.
    pub fn new(option: &str, numbers: &[String], overcommit: &[String]) -> Result<Self, Exit> {
        if numbers.is_empty() {
            let levels = overcommit.iter().map(|text| level(text));
            levels.collect::<Result<_, _>>().map(Self::Overcommit)
        } else {
            let threads = numbers.iter().map(|text| {
                if text.trim().ends_with(['x', 'X']) && level(text).is_ok() {
                    return Err(Exit::usage(format!(
                        "{option} {text}: must be a whole number; for each CPU it is --overcommit {text}"
                    )));
                }
                whole(option, text, 1, usize::MAX)
            });
            threads.collect::<Result<_, _>>().map(Self::Threads)
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

/// A level of overcommit, with or without its x.
fn level(text: &str) -> Result<f64, Exit> {
    let bare = text.trim().trim_end_matches(['x', 'X']);
    match bare.parse() {
        Ok(level) if level > 0.0 && level <= MANY => Ok(level),
        _ => Err(Exit::usage(format!(
            "--overcommit {text}: must be threads for each CPU, above 0 and up to {MANY}, such as 1x or 2.5x"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(result: Result<impl std::fmt::Debug, Exit>) -> String {
        match result.unwrap_err() {
            Exit::Usage(message) => message,
            other => panic!("not bad use: {other:?}"),
        }
    }

    #[test]
    fn levels_may_have_their_x() {
        assert_eq!(level("2x").unwrap(), 2.0);
        assert_eq!(level(" 0.5 ").unwrap(), 0.5);
        for nonsense in ["0x", "-1x", "x", "", "NaN", "inf", "two"] {
            assert!(message(level(nonsense)).contains("such as 1x or 2.5x"));
        }
    }

    #[test]
    fn a_level_is_no_number_of_threads() {
        let load = |text: &str| message(Load::new("--vcpus", &[text.to_owned()], &[]));
        let text = load("0.5x");
        assert!(
            text.ends_with("for each CPU it is --overcommit 0.5x"),
            "{text}"
        );
        assert_eq!(load("x"), "--vcpus x: must be a whole number of at least 1");
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
        let text = message(Load::Threads(vec![101]).threads(2.0, (100, "a test")));
        assert!(
            text.contains("more than this machine allows: 1 to 100 (a test)"),
            "{text}"
        );
    }
}
