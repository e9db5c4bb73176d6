//! `overlock-lab bench grid`: our locks against each of those that people use today, by the worst
//! cell.
//!
//! | module | what is there |
//! |---|---|
//! | [`shape`] | the rows: what threads do with a lock |
//! | [`plan`], [`run`], [`hogs`] | rounds, their order, and what goes on around them |
//! | [`check`] | whether the loops cost the same around every lock |
//! | [`figures`], [`summary`] | medians of paired ratios, and what they come to |
//! | [`report`] | text, SVG, Markdown, JSON |

pub mod check;
pub mod figures;
pub mod hogs;
pub mod plan;
pub mod report;
pub mod run;
pub mod shape;
pub mod summary;

use crate::registry::{Entry, Family, NoSuchLock, Origin, select};

/// Which locks a grid measures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Ours, and all that people use today.
    Usual,
    /// Ours, and one of each kin of those.
    Short,
    /// Those that these words name.
    Named(Vec<String>),
}

/// One of each kin, where time is short.
const SHORT: &[&str] = &["std", "parking_lot", "usync", "glibc"];

/// The selected locks of a family: the one that is judged, then those that it is compared with,
/// then the limit, if there is one. A word that names no lock of this family adds none.
///
/// Judged is the type that we recommend, or else the first of ours that was named.
pub fn contestants(family: Family, choice: &Choice) -> Vec<&'static Entry> {
    let words: Vec<&str> = match choice {
        Choice::Usual => family.rivals().iter().copied().chain(["usync"]).collect(),
        Choice::Short => SHORT.to_vec(),
        Choice::Named(words) => words.iter().map(String::as_str).collect(),
    };
    let known = |word: &&str| select(family, [*word]).is_ok();
    let words = words.into_iter().filter(known);
    let mut locks = select(family, words).expect("only words that are known are left");
    let judged = locks
        .iter()
        .position(|entry| entry.name == family.ours())
        .or_else(|| locks.iter().position(|entry| entry.origin == Origin::Ours));
    let judged = match judged {
        Some(index) => locks.remove(index),
        None => select(family, [family.ours()]).expect("a test looks for it")[0],
    };
    locks.insert(0, judged);
    locks.extend(family.limit());
    locks
}

/// Checks that each of the words names a lock of one of the families.
///
/// # Errors
///
/// [`NoSuchLock`] for the first that does not.
pub fn check_names(families: &[Family], words: &[String]) -> Result<(), NoSuchLock> {
    for word in words {
        let mut results = families
            .iter()
            .map(|&family| select(family, [word.as_str()]));
        let first = results.next();
        if !matches!(first, Some(Ok(_)) | None)
            && results.all(|result| result.is_err())
            && let Some(Err(error)) = first
        {
            return Err(error);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(family: Family, choice: &Choice) -> Vec<&'static str> {
        let locks = contestants(family, choice);
        locks.iter().map(|entry| entry.name).collect()
    }

    fn named(words: &[&str]) -> Choice {
        Choice::Named(words.iter().map(|&word| word.to_owned()).collect())
    }

    #[test]
    fn ours_comes_first_and_the_limit_last() {
        for family in Family::ALL {
            let all = names(family, &Choice::Usual);
            assert_eq!(all[0], family.ours());
            for peer in ["std", "parking_lot", "parking_lot-0.12", "usync", "glibc"] {
                assert!(all.contains(&peer), "{family:?}: {all:?}");
            }
            assert_eq!(all.last() == Some(&"none"), family.limit().is_some());
            let short = names(family, &Choice::Short);
            assert!(short.len() < all.len());
        }
    }

    #[test]
    fn what_is_named_is_measured() {
        let mutex = |words: &[&str]| names(Family::Exclusive, &named(words));
        assert_eq!(mutex(&["std"]), ["overlock-mutex", "std", "none"]);
        let two = mutex(&["hybrid", "std"]);
        assert_eq!(two, ["hybrid", "std", "none"]);
        let both = mutex(&["hybrid", "overlock-mutex"]);
        assert_eq!(both, ["overlock-mutex", "hybrid", "none"]);
        // A name of another family.
        assert_eq!(mutex(&["glibc-writer"]), ["overlock-mutex", "none"]);
    }

    #[test]
    fn a_name_must_be_known_somewhere() {
        let check = |word: &str| check_names(&Family::ALL, &[word.to_owned()]);
        assert_eq!(check("glibc-writer"), Ok(()));
        assert!(check("nonsense").is_err());
    }
}
