//! From names to locks.

use std::fmt;

use super::{Entry, all};

/// A word that names no lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoSuchLock(String);

impl fmt::Display for NoSuchLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = all().iter().map(|entry| entry.name).collect();
        write!(
            f,
            "unknown lock '{}'; the locks are all, models, {}",
            self.0,
            names.join(", ")
        )
    }
}

impl std::error::Error for NoSuchLock {}

/// The locks that the words name, each once, in the order of the list. `-` and `_` are the same.
/// `all` names all but the models of other people's locks, and `models` those.
///
/// # Errors
///
/// The first word that names none.
pub fn select<'a>(
    words: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<&'static Entry>, NoSuchLock> {
    let mut chosen = vec![false; all().len()];
    for word in words {
        let plain = word.trim().replace('-', "_");
        let mut known = false;
        for (entry, chosen) in all().iter().zip(&mut chosen) {
            let named = match &*plain {
                "all" => !entry.model,
                "models" => entry.model,
                _ => entry.name.replace('-', "_") == plain,
            };
            *chosen |= named;
            known |= named;
        }
        if !known {
            return Err(NoSuchLock(word.trim().to_owned()));
        }
    }
    let entries = all().iter().zip(chosen);
    Ok(entries
        .filter_map(|(entry, chosen)| chosen.then_some(entry))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(words: &[&str]) -> Vec<&'static str> {
        let chosen = select(words.iter().copied()).unwrap();
        chosen.iter().map(|entry| entry.name).collect()
    }

    #[test]
    fn words_name_locks_in_the_order_of_the_list() {
        assert_eq!(
            names(&["kernel_mutex", "ticket", "kernel_mutex"]),
            ["kernel_mutex", "ticket"]
        );
        assert_eq!(names(&["pv-queued"]), ["pv_queued"]);
        assert_eq!(names(&["all"]).len(), all().len());
        let error = select(["kernel_mutexx"]).unwrap_err().to_string();
        assert!(
            error
                .starts_with("unknown lock 'kernel_mutexx'; the locks are all, models, overlock, "),
            "{error}"
        );
    }
}
