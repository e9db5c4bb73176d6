//! The pairs of orderings of results/orderings.md, as programs.

use serde::Deserialize;

use crate::program::Program;

/// The lists.
const LISTS: [&str; 5] = [
    include_str!("../pairs/shared.toml"),
    include_str!("../pairs/spin.toml"),
    include_str!("../pairs/sleep.toml"),
    include_str!("../pairs/rw.toml"),
    include_str!("../pairs/beyond.toml"),
];

/// A file of pairs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    pair: Vec<Entry>,
    #[serde(default)]
    excused: Vec<Excused>,
}

/// A row without a test.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Excused {
    /// The heading.
    pub of: String,
    /// The row's first cell.
    pub name: String,
    /// Why there is none.
    pub why: String,
}

/// A pair of a file. A release and the acquire that sees it stand for several tests of sections: a
/// section's stores reach the next one's loads and come before its stores, and its loads do not see
/// the next one's stores. With `between`, another thread has changed the word since.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    of: String,
    name: String,
    #[serde(default)]
    initial: String,
    #[serde(default)]
    release: String,
    #[serde(default)]
    acquire: String,
    #[serde(default)]
    sees: String,
    #[serde(default)]
    between: String,
    #[serde(default)]
    then: String,
    #[serde(default)]
    sees_then: String,
    #[serde(default)]
    test: Vec<Written>,
}

/// A test that a file spells out.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    threads: Vec<String>,
    never: String,
}

/// A pair, with its tests.
#[derive(Debug)]
pub struct Pair {
    /// The heading in results/orderings.md.
    pub of: String,
    /// The row's first cell there.
    pub name: String,
    /// Programs with an outcome that never happens.
    pub tests: Vec<Program>,
}

/// The pairs, and the rows without a test.
pub fn read() -> Result<(Vec<Pair>, Vec<Excused>), String> {
    let (mut pairs, mut excused) = (Vec::new(), Vec::new());
    for text in LISTS {
        let list: List = toml::from_str(text).map_err(|error| error.to_string())?;
        for entry in list.pair {
            let tests = tests(&entry);
            let tests = tests.map_err(|error| format!("{}, {}: {error}", entry.of, entry.name))?;
            pairs.push(Pair {
                of: entry.of,
                name: entry.name,
                tests,
            });
        }
        excused.extend(list.excused);
    }
    Ok((pairs, excused))
}

fn tests(entry: &Entry) -> Result<Vec<Program>, String> {
    let mut all = Vec::new();
    let mut add = |threads: &[String], never: &str| {
        all.push(Program::parse(threads, &entry.initial, never)?);
        Ok::<_, String>(())
    };
    let Entry {
        release,
        acquire,
        sees,
        between,
        then,
        sees_then,
        ..
    } = entry;
    if !release.is_empty() {
        // A section, the next one, and what the second must not find.
        for (first, second, found) in [
            ("data = 1", "b = data", "b=0"),
            ("data = 1", "data = 2", "data=1"),
            ("b = data", "data = 1", "b=1"),
        ] {
            let threads = [
                format!("{first}; {release}"),
                format!("{acquire}; {second}"),
            ];
            add(&threads, &format!("{sees} {found}"))?;
        }
        if !between.is_empty() {
            let threads = [
                format!("data = 1; {release}"),
                between.clone(),
                format!("{then}; b = data"),
            ];
            add(&threads, &format!("{sees_then} b=0"))?;
        }
    }
    for test in &entry.test {
        add(&test.threads, &test.never)?;
    }
    if all.is_empty() {
        return Err("no test".to_owned());
    }
    Ok(all)
}
