//! The sites of the locks' sources: each call of an atomic operation, a wait, a sleep or a kick.
//!
//! A check that never entered a lock's queue says nothing about the queue. So the sites are read
//! from the sources as they were compiled, and the [explorer](crate::explore) counts each access at
//! the place of its call. A run fails if it has not reached a site of a lock's own sources. A
//! compare-exchange must have been seen to succeed, and to fail.
//!
//! Not sites: what is in macros (checks for misuse) and tests, and what only statistics do. A
//! helper with `#[track_caller]` has its sites where it is called.

mod list;

use crate::coverage::Outcome;
pub use list::{IGNORED, SOURCES, UNIT_TESTED, UNREACHABLE, Unreachable};

/// A source of locks.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// Its path, below the folder of the crates.
    pub path: &'static str,
    /// Its text.
    pub text: &'static str,
    /// The locks, each of which must reach all of its sites.
    pub locks: &'static [&'static str],
}

/// A site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    /// Its line, from 1.
    pub line: u32,
    /// Its column, from 1, as [`Location`](std::panic::Location) has it.
    pub column: u32,
    /// The function that it is in.
    pub function: &'static str,
    /// The operation.
    pub call: &'static str,
    /// The line's text.
    pub code: &'static str,
}

impl Site {
    /// The outcomes that it must have.
    pub fn outcomes(&self) -> &'static [Outcome] {
        if self.call.contains("exchange") {
            &[Outcome::Done, Outcome::Refused]
        } else {
            &[Outcome::Reached]
        }
    }

    /// Whether a list means it by `name`: its function's, or a part of its line, which is more than
    /// a name.
    pub fn is_named(&self, name: &str) -> bool {
        let is_part = name.contains(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        self.function == name || is_part && self.code.contains(name)
    }
}

/// Methods of the atomics, and of a lock's own around them.
const METHODS: [&str; 18] = [
    "load",
    "store",
    "swap",
    "exchange",
    "compare_exchange",
    "compare_exchange_weak",
    "fetch_add",
    "fetch_sub",
    "fetch_or",
    "fetch_and",
    "low_store",
    "low_fetch_add",
    "low_compare_exchange",
    "high_swap",
    "byte0_store",
    "byte1_store",
    "byte0_swap",
    "byte0_compare_exchange",
];

/// Functions of the platform `P`, and of the ticket lock's width `W`.
const FUNCTIONS: [&str; 10] = [
    "P::wait_until",
    "P::halt",
    "P::kick",
    "P::requeue",
    "W::draw",
    "W::load",
    "W::serve",
    "W::raise",
    "W::exchange",
    "W::wait_until",
];

impl Source {
    /// Its sites, from the first to the last.
    pub fn sites(&self) -> Vec<Site> {
        let code = code_of(self.text);
        let mut sites = Vec::new();
        let mut function = "";
        for (index, (line, text)) in code.lines().zip(self.text.lines()).enumerate() {
            for (start, end) in words(line) {
                let (before, after) = (&line[..start], &line[end..]);
                if before.ends_with("fn ") {
                    function = &text[start..end];
                }
                let is_call = after.starts_with('(') || after.starts_with("::<");
                let start = match before.as_bytes() {
                    [.., b'.'] if METHODS.contains(&&line[start..end]) => start,
                    [.., b'P' | b'W', b':', b':'] if FUNCTIONS.contains(&&line[start - 3..end]) => {
                        start - 3
                    }
                    _ => continue,
                };
                if is_call && !IGNORED.contains(&function) {
                    sites.push(Site {
                        line: index as u32 + 1,
                        column: start as u32 + 1,
                        function,
                        call: &text[start..end],
                        code: text,
                    });
                }
            }
        }
        sites
    }
}

/// The beginnings and the ends of the words of a line.
fn words(line: &str) -> impl Iterator<Item = (usize, usize)> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut from = 0;
    std::iter::from_fn(move || {
        let start = from + line[from..].find(is_word)?;
        let rest = &line[start..];
        from = start + rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        Some((start, from))
    })
}

/// The text with blanks for all that has no sites. All else stays in its place.
fn code_of(text: &str) -> String {
    let mut code = text.as_bytes().to_vec();
    let mut at = 0;
    while at < code.len() {
        let rest = &code[at..];
        let len = match rest {
            [b'/', b'/', ..] => rest.iter().position(|&c| c == b'\n'),
            [b'"', ..] => (1..rest.len())
                .find(|&end| rest[end] == b'"' && rest[end - 1] != b'\\')
                .map(|end| end + 1),
            _ => Some(0),
        };
        let end = len.map_or(code.len(), |len| at + len);
        blank(&mut code[at..end]);
        at = end.max(at + 1);
    }
    for start in ["#[cfg(test)]", "#[track_caller]", "stat::is_on()", "!("] {
        let mut from = 0;
        while let Some(at) = position(&code[from..], start.as_bytes()).map(|at| from + at) {
            from = at + start.len();
            let is_macro = start == "!(";
            if is_macro && (at == 0 || !code[at - 1].is_ascii_alphanumeric()) {
                continue;
            }
            let begin = if is_macro { at + 1 } else { from };
            let end = end_of(&code, begin, is_macro);
            blank(&mut code[begin..end]);
        }
    }
    String::from_utf8(code).expect("blanks for whole strings and comments")
}

/// The end of the parentheses that begin at `begin`, or of an item or a block: at its semicolon, or
/// behind its braces.
fn end_of(code: &[u8], begin: usize, is_macro: bool) -> usize {
    let mut depth = 0;
    for (index, c) in code.iter().enumerate().skip(begin) {
        match c {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            b';' if depth == 0 => return index,
            _ => {}
        }
        if depth == 0 && (*c == b'}' || is_macro) {
            return index + 1;
        }
    }
    code.len()
}

fn position(code: &[u8], word: &[u8]) -> Option<usize> {
    code.windows(word.len()).position(|window| window == word)
}

fn blank(code: &mut [u8]) {
    code.iter_mut()
        .filter(|c| **c != b'\n')
        .for_each(|c| *c = b' ');
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::{fs, iter};

    use super::*;
    use crate::run::Engine;

    fn sites(text: &'static str) -> Vec<(u32, u32, &'static str, &'static str)> {
        let locks = &[];
        let source = Source {
            path: "",
            text,
            locks,
        };
        let sites = source.sites().into_iter();
        sites
            .map(|site| (site.line, site.column, site.function, site.call))
            .collect()
    }

    #[test]
    fn sites_are_found_where_their_locations_are() {
        let text = "
fn one() {
    self.word.load(Relaxed); // .store(
    while P::wait_until(&x, a).is_ok() && W::exchange::<P>(&y) {}
    check!(self.load(x), \"(\"); self
        .swap(1);
    let load = list.loads();
}
#[track_caller]
fn two(&self) {
    self.load();
}
fn three() {
    if stat::is_on() && self.load() {
        self.store();
    }
    P::kick(&z);
}
#[cfg(test)]
mod tests {
    fn four() { self.load(); }
}
";
        let expected = [
            (3, 15, "one", "load"),
            (4, 11, "one", "P::wait_until"),
            (4, 43, "one", "W::exchange"),
            (6, 10, "one", "swap"),
            (17, 5, "three", "P::kick"),
        ];
        assert_eq!(sites(text), expected);
    }

    fn crates() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates")
    }

    /// Files below `folder` that are not tests.
    fn files(folder: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(folder)
            .expect("a folder")
            .map(|it| it.expect("an entry").path());
        let kept = entries.filter(|path| path.file_stem().is_some_and(|name| name != "tests"));
        kept.flat_map(|path| match path.is_dir() {
            true => files(&path),
            false => vec![path],
        })
        .collect()
    }

    /// Those with sites that are not listed: the sites of `width.rs` are those of its callers.
    #[test]
    fn all_sources_are_listed() {
        let mut left_out = Vec::new();
        for folder in [
            "core/src/sleep",
            "core/src/rw",
            "family/src/spin",
            "family/src/rw",
            "family/src/sleep",
        ] {
            for file in files(&crates().join(format!("overlock-{folder}"))) {
                let text = fs::read_to_string(&file).expect("a source");
                let path = file
                    .strip_prefix(crates())
                    .expect("below")
                    .display()
                    .to_string();
                if !sites(text.leak()).is_empty() && SOURCES.iter().all(|it| it.path != path) {
                    left_out.push(path);
                }
            }
        }
        left_out.sort();
        let expected = [
            "overlock-family/src/spin/faulty.rs",
            "overlock-family/src/spin/pv_ticket/width.rs",
        ];
        assert_eq!(
            left_out, expected,
            "sources with sites that no lock has: add them to SOURCES in \
             lab/model/src/sources/list.rs"
        );
    }

    #[test]
    fn lists_name_locks_and_sites_that_there_are() {
        // A build for single locks leaves locks out.
        let partial = option_env!("OVERLOCK_MODEL_ONLY").is_some();
        let known = Engine::Explore.locks();
        let has = |path: &str, name: &str| {
            let source = SOURCES.iter().find(|source| source.path == path);
            let sites = source.expect(path).sites();
            assert!(
                sites.iter().any(|site| site.is_named(name)),
                "{path}: {name}"
            );
        };
        let locks = SOURCES.iter().flat_map(|source| source.locks);
        for name in locks.chain(UNREACHABLE.iter().flat_map(|it| it.locks)) {
            assert!(
                partial || known.iter().any(|lock| lock.name == *name),
                "{name}"
            );
        }
        for it in UNREACHABLE {
            it.sites.iter().for_each(|name| has(it.source, name));
        }
        for it in UNIT_TESTED {
            has(it.source, it.site);
        }
    }

    /// The text of a test, from its attribute to the brace that ends it.
    fn body_of(text: &str, test: &str) -> Option<String> {
        let lines: Vec<_> = text.lines().collect();
        let head = format!("fn {test}() {{");
        let at = lines.iter().position(|line| line.trim() == head)?;
        let is_test = (lines[..at].iter().rev())
            .take_while(|line| line.trim().starts_with("#["))
            .any(|line| line.trim() == "#[test]");
        let indent = lines[at].len() - lines[at].trim_start().len();
        let end = format!("{}}}", " ".repeat(indent));
        let body = lines[at..].iter().take_while(|line| **line != end);
        is_test.then(|| body.chain(iter::once(&"")).copied().collect())
    }

    #[test]
    fn each_unit_test_is_there_and_asserts_something() {
        for one in UNIT_TESTED {
            let text = fs::read_to_string(crates().join(one.file)).expect(one.file);
            let body = body_of(&text, one.test);
            let body = body.unwrap_or_else(|| panic!("{}: no test {}", one.file, one.test));
            assert!(body.contains("assert"), "{} asserts nothing", one.test);
        }
    }
}
