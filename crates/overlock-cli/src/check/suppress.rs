//! Suppressions: lines that name reports to leave out, as sanitizers have them.

use super::{Report, Spot};
use crate::stat;

/// The lines of a file.
#[derive(Debug, Default)]
pub struct Suppressions(Vec<Line>);

#[derive(Debug)]
struct Line {
    kind: String,
    pattern: String,
}

/// Kinds of reports that `deadlock:` stands for.
const DEADLOCKS: [&str; 8] = [
    "order",
    "order-of-one",
    "class",
    "recursion",
    "read-recursion",
    "signal",
    "signal-chain",
    "deadlock",
];

/// Other kinds of reports, each with a line of its own.
const OTHERS: [&str; 3] = ["release", "exit", "sleep"];

impl Suppressions {
    /// The lines of a file. Empty ones and those that begin with # say nothing.
    pub fn parse(text: &str) -> Result<Self, String> {
        let lines = text.lines().map(str::trim).enumerate();
        let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let parsed = lines.map(|(number, line)| {
            let wrong = |what: &str| Err(format!("line {}: {what}: {line}", number + 1));
            let Some((kind, pattern)) = line.split_once(':') else {
                return wrong("no colon behind a kind");
            };
            let known = OTHERS.contains(&kind) || DEADLOCKS.contains(&kind);
            if !known && !["called_from", "module"].contains(&kind) {
                return wrong("no such kind");
            }
            if pattern.is_empty() {
                return wrong("no pattern");
            }
            let [kind, pattern] = [kind, pattern].map(str::to_owned);
            Ok(Line { kind, pattern })
        });
        parsed.collect::<Result<_, _>>().map(Self)
    }

    /// The first line that names the report.
    pub fn matching(&self, report: &Report) -> Option<String> {
        let line = self.0.iter().find(|line| line.names(report))?;
        Some(format!("{}:{}", line.kind, line.pattern))
    }
}

impl Line {
    fn names(&self, report: &Report) -> bool {
        let has = |text: &Option<String>| {
            let text = text.as_deref();
            text.is_some_and(|text| matches(&self.pattern, text))
        };
        let is_there = |spot: &Spot| {
            has(&spot.function)
                || has(&spot.file)
                || has(&spot.module)
                || matches(&self.pattern, &spot.name)
        };
        match self.kind.as_str() {
            "called_from" => {
                let mut all = report.callers().chain(&report.places);
                all.any(|spot| has(&spot.function))
            }
            "module" => report.places.iter().any(|spot| has(&spot.module)),
            kind => {
                let is_kind = kind == report.kind
                    || kind == "deadlock" && DEADLOCKS.contains(&report.kind.as_str());
                let mut places = report.places.iter().chain(report.backtrace.first());
                is_kind && places.any(is_there)
            }
        }
    }
}

/// Whether the pattern is in the text. A star stands for any characters, ^ at the beginning and $
/// at the end for those of the text.
fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, at_start) = match pattern.strip_prefix('^') {
        Some(rest) => (rest, true),
        None => (pattern, false),
    };
    let (pattern, at_end) = match pattern.strip_suffix('$') {
        Some(rest) => (rest, true),
        None => (pattern, false),
    };
    let parts: Vec<&str> = pattern.split('*').collect();
    let mut rest = text;
    for (number, part) in parts.iter().enumerate() {
        let is_last = number + 1 == parts.len();
        let found = match (number == 0 && at_start, is_last && at_end) {
            (true, true) => (rest == *part).then_some(0),
            (true, false) => rest.starts_with(part).then_some(0),
            (false, true) => rest.ends_with(part).then(|| rest.len() - part.len()),
            (false, false) => rest.find(part),
        };
        let Some(at) = found else { return false };
        rest = rest.get(at + part.len()..).unwrap_or_default();
    }
    true
}

/// A line that names the report: by the function where its lock is acquired, else by its module.
/// The function of a wrapper would name the reports of all its locks, and its caller does instead.
pub fn line_for(report: &Report) -> String {
    let kind = match DEADLOCKS.contains(&report.kind.as_str()) {
        true => "deadlock",
        false => &report.kind,
    };
    let first = report.places.iter().chain(report.backtrace.first());
    // Not one of a line by itself.
    let is_line = |name: &&String| !name.contains(char::is_control);
    let function = |spot: &'_ Spot| spot.function.clone().filter(|name| is_line(&name));
    let own = |spot: &&Spot| !spot.is_wrapper;
    if let Some(function) = first.clone().filter(own).find_map(function) {
        return format!("{kind}:{function}");
    }
    let callers = report.callers().filter(own).filter_map(function);
    let begins = |name: &String| name == "main" || stat::begins_thread(name);
    if let Some(caller) = { callers }.find(|name| !begins(name)) {
        return format!("called_from:{caller}");
    }
    if let Some(function) = first.clone().find_map(function) {
        return format!("{kind}:{function}");
    }
    let mut names = first.clone().filter(|spot| spot.module.is_none());
    if let Some(spot) = names.next() {
        return format!("{kind}:{}", spot.name);
    }
    let mut modules = first.filter_map(|spot| spot.module.as_ref());
    let module = modules.next().map_or("", |path| path.as_str());
    format!("module:{}", module.rsplit('/').next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_part_of_a_text_unless_it_says_where() {
        for (pattern, text, is_match) in [
            ("lock", "my_lock_all", true),
            ("^lock", "my_lock", false),
            ("^my*all$", "my_lock_all", true),
            ("lock$", "my_lock_all", false),
            ("a*b*a", "aba", true),
            ("a*b*a", "ab", false),
            ("^a$", "aa", false),
            ("f(char*)", "f(char*)", true),
            ("*", "", true),
        ] {
            assert_eq!(matches(pattern, text), is_match, "{pattern} {text}");
        }
    }

    /// Fails where one line leaves out the reports of all locks behind a wrapper.
    #[test]
    fn the_line_names_no_wrapper() {
        let spot = |function: &str, is_wrapper| Spot {
            function: Some(function.to_owned()),
            is_wrapper,
            ..Spot::default()
        };
        let wrapper = || spot("uv_mutex_lock", true);
        let mut report = Report {
            kind: "order".to_owned(),
            places: vec![wrapper(), wrapper()],
            backtrace: vec![wrapper(), spot("transfer", false), spot("main", false)],
            ..Report::default()
        };
        assert_eq!(line_for(&report), "called_from:transfer");
        let lines = Suppressions::parse("called_from:transfer").unwrap();
        assert!(lines.matching(&report).is_some());
        report.places[1] = spot("audit", false);
        assert_eq!(line_for(&report), "deadlock:audit");
        report.places.truncate(1);
        report.backtrace.remove(1);
        // Nothing else is known.
        assert_eq!(line_for(&report), "deadlock:uv_mutex_lock");
    }

    #[test]
    fn a_wrong_line_is_named() {
        assert!(Suppressions::parse("# a comment\n\ndeadlock:f\n").is_ok());
        for wrong in ["deadlock", "deadlok:f", "module:"] {
            let said = Suppressions::parse(&format!("\n{wrong}\n")).unwrap_err();
            assert!(said.contains("line 2") && said.contains(wrong), "{said}");
        }
    }
}
