//! The mutants, as mutants/*/*.toml lists them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    locks: Vec<String>,
    mutant: Vec<Mutant>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mutant {
    pub name: String,
    pub file: PathBuf,
    pub from: String,
    pub to: String,
    /// The locks that show it, where they are not the file's.
    pub locks: Option<Vec<String>>,
    /// The scenario that shows it, where a search of all would take long.
    pub scenario: Option<String>,
    pub breaks: String,
}

/// A mutant, with what its file says.
#[derive(Clone, Debug)]
pub struct Task {
    /// The file's name: `queued`.
    pub group: String,
    pub locks: String,
    pub mutant: Mutant,
}

/// The mutants of these files, with these names; all where there are none.
pub fn read(root: &Path, files: &[String], names: &[String]) -> Result<Vec<Task>, String> {
    let mut paths = Vec::new();
    find(&root.join("lab/mutants/lists"), "toml", &mut paths)
        .map_err(|error| format!("lab/mutants/lists/: {error}"))?;
    paths.sort();
    let mut tasks = Vec::new();
    for path in paths {
        let group = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if !files.is_empty() && !files.contains(&group) {
            continue;
        }
        let complain = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let text = fs::read_to_string(&path).map_err(|error| complain(&error))?;
        let file: File = toml::from_str(&text).map_err(|error| complain(&error))?;
        tasks.extend(file.mutant.into_iter().map(|mutant| Task {
            group: group.clone(),
            locks: mutant.locks.as_ref().unwrap_or(&file.locks).join(","),
            mutant,
        }));
    }
    tasks.retain(|task| names.is_empty() || names.contains(&task.mutant.name));
    if tasks.is_empty() {
        return Err("there is no such mutant (see --list)".to_owned());
    }
    Ok(tasks)
}

pub fn find(folder: &Path, extension: &str, paths: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            find(&path, extension, paths)?;
        } else if path.extension().is_some_and(|found| found == extension) {
            paths.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pairs of results/orderings.md that no mutant weakens, and why.
    const NOT_WEAKENED: [(&str, &str); 7] = [
        (
            "FC",
            "compiler fences: no checker moves code as a compiler may",
        ),
        (
            "HF",
            "an unlocker's look before its own store: load buffering, which overlock-litmus has",
        ),
        ("HT", "as HF"),
        (
            "HK",
            "of the guest: the explorer's own tests run it, and without either fence they find the loss",
        ),
        (
            "PH",
            "a read-modify-write that comes late, which overlock-litmus has; lab/tla's \
             hashed_before_entry is what a machine would do",
        ),
        (
            "PG",
            "the pool of tickets: a stale link loses a ticket, and is refused by the exchange's tag",
        ),
        ("PT", "as PG"),
    ];

    /// Pairs that stand on something else than the orderings of accesses, which the mutants take
    /// away.
    const BARRIERS: [&str; 2] = ["RK", "WB"];

    /// The text with each ordering replaced by the same word: a mutant that only weakens an
    /// ordering changes nothing else.
    fn without_orderings(text: &str) -> String {
        let text = text.replace("core::sync::atomic::Ordering::", "");
        [
            "Y::ACQUIRE",
            "Relaxed",
            "AcqRel",
            "Acquire",
            "Release",
            "SeqCst",
        ]
        .iter()
        .fold(text, |text, ordering| text.replace(ordering, "_"))
        .split_whitespace()
        .collect()
    }

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }

    /// `QA` in `QA of the guard`.
    fn labels(text: &str) -> impl Iterator<Item = &str> {
        text.split(|letter: char| !letter.is_ascii_alphanumeric())
            .filter(|word| word.len() == 2 && word.bytes().all(|byte| byte.is_ascii_uppercase()))
    }

    fn orderings() -> String {
        fs::read_to_string(root().join("results/orderings.md")).expect("the page")
    }

    /// The names in the first column of the page's tables of the locks' pairs.
    fn pairs(page: &str) -> Vec<&str> {
        let pairs: Vec<_> = page
            .lines()
            .skip_while(|line| *line != "## Shared parts")
            .take_while(|line| *line != "## Beyond the locks")
            .filter_map(|line| line.strip_prefix("| ")?.split(" | ").next())
            .flat_map(labels)
            .collect();
        assert!(pairs.len() > 60, "the page's tables are not found");
        pairs
    }

    #[test]
    fn each_pair_that_a_lock_names_has_a_row() {
        let page = orderings();
        let pairs = pairs(&page);
        let mut paths = Vec::new();
        for part in ["core", "family"] {
            let sources = root().join(format!("crates/overlock-{part}/src"));
            find(&sources, "rs", &mut paths).expect("the sources");
        }
        let mut named = 0;
        for path in paths {
            let text = fs::read_to_string(&path).expect("a source");
            let section = text
                .lines()
                .skip_while(|line| !line.starts_with("//! # Orderings"))
                .skip(1)
                .take_while(|line| line.starts_with("//!") && !line.starts_with("//! # "));
            for label in section.flat_map(labels) {
                named += 1;
                assert!(
                    pairs.contains(&label),
                    "{}: {label} has no row in results/orderings.md",
                    path.display()
                );
            }
        }
        assert!(named > 60, "the sources' sections are not found");
    }

    #[test]
    fn each_pair_of_orderings_is_weakened_by_a_mutant() {
        let page = orderings();
        let mutants = read(&root(), &[], &[]).expect("the mutants");
        let weakens =
            |mutant: &Mutant| without_orderings(&mutant.from) == without_orderings(&mutant.to);
        let breaks = |label: &str| {
            mutants.iter().any(|Task { mutant, .. }| {
                (BARRIERS.contains(&label) || weakens(mutant))
                    && labels(&mutant.breaks).any(|one| one == label)
            })
        };
        for label in pairs(&page) {
            let excused = NOT_WEAKENED.iter().any(|(one, _)| *one == label);
            assert_ne!(
                excused,
                breaks(label),
                "{label}: a mutant, or a reason in NOT_WEAKENED"
            );
        }
    }

    /// The locks of the registry, by name.
    fn registry() -> Vec<&'static str> {
        macro_rules! names {
            ($($name:ident: $($rest:ident)::+ $(, $word:ident)*;)*) => { [$(stringify!($name)),*] };
        }
        let [spin, sleep, rw] = [
            overlock_family::spin_locks!(names).to_vec(),
            overlock_family::sleep_locks!(names).to_vec(),
            overlock_family::rw_locks!(names).to_vec(),
        ];
        [spin, sleep, rw].concat()
    }

    #[test]
    fn each_lock_of_the_registry_has_mutants() {
        let tasks = read(&root(), &[], &[]).expect("the mutants");
        for name in registry() {
            let mut locks = tasks.iter().flat_map(|task| task.locks.split(','));
            assert!(
                locks.any(|lock| lock == name),
                "{name}: no file of mutants/ names it"
            );
        }
    }

    #[test]
    fn a_page_of_the_book_names_each_lock_of_the_registry() {
        let mut paths = Vec::new();
        find(&root().join("docs/design"), "md", &mut paths).expect("the pages");
        let pages: Vec<String> = paths
            .iter()
            .map(|path| fs::read_to_string(path).expect("a page"))
            .collect();
        for name in registry() {
            let name = format!("`{name}`");
            assert!(
                pages.iter().any(|page| page.contains(&name)),
                "{name}: no page of docs/design names it"
            );
        }
    }

    #[test]
    fn each_mutant_fits_the_sources() {
        for task in read(&root(), &[], &[]).expect("the mutants") {
            let path = root().join(&task.mutant.file);
            let text = fs::read_to_string(&path).expect("a file of core");
            let Task { group, mutant, .. } = &task;
            assert_eq!(
                text.matches(&mutant.from).count(),
                1,
                "{group} {}",
                mutant.name
            );
            assert_ne!(mutant.from, mutant.to, "{group} {}", mutant.name);
        }
    }
}
