//! Reports as SARIF 2.1.0, which services for code review read.

use serde_json::{Value, json};

use super::document::Document;
use super::{Report, Spot};

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// The log of a run.
pub fn of(document: &Document<'_>) -> Value {
    let mut rules: Vec<&Report> = Vec::new();
    for report in document.reports {
        if rules.iter().all(|rule| rule.kind != report.kind) {
            rules.push(report);
        }
    }
    let index = |report: &Report| rules.iter().position(|rule| rule.kind == report.kind);
    let results = document.reports.iter();
    let results: Vec<_> = results
        .map(|report| result(report, index(report)))
        .collect();
    let rule = |report: &&Report| {
        json!({
            "id": report.kind,
            "shortDescription": { "text": report.title },
            "defaultConfiguration": { "level": level(report) },
        })
    };
    let unchecked = document.sum.unchecked.iter();
    let unchecked: Vec<_> = unchecked
        .map(|what| json!({ "level": "warning", "message": { "text": what } }))
        .collect();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "overlock check",
                "version": document.overlock,
                "informationUri": env!("CARGO_PKG_REPOSITORY"),
                "rules": rules.iter().map(rule).collect::<Vec<_>>(),
            } },
            "invocations": [{
                "commandLine": document.command.join(" "),
                "executionSuccessful": true,
                "toolExecutionNotifications": unchecked,
            }],
            "results": results,
        }],
    })
}

fn level(report: &Report) -> &'static str {
    match report.warning {
        true => "warning",
        false => "error",
    }
}

fn result(report: &Report, rule: Option<usize>) -> Value {
    let mut stacks = vec![stack("the report", &report.backtrace)];
    for (number, callers) in report.dependencies.iter().enumerate() {
        stacks.push(stack(&format!("dependency #{number}"), callers));
    }
    let mut places = report.places.iter().chain(report.backtrace.first());
    let first = places.next().map(location);
    // Each once.
    let mut others: Vec<Value> = Vec::new();
    for place in report.places.iter().skip(1).map(location) {
        if !others.contains(&place) {
            others.push(place);
        }
    }
    let names: Vec<&str> = report
        .places
        .iter()
        .map(|spot| spot.name.as_str())
        .collect();
    let mut result = json!({
        "ruleId": report.kind,
        "ruleIndex": rule,
        "level": level(report),
        "message": { "text": format!("{}: {}", report.title, names.join(", ")) },
        "locations": first.into_iter().collect::<Vec<_>>(),
        "relatedLocations": others,
        "stacks": stacks,
        "partialFingerprints": { "places/v1": names.join("; ") },
        "properties": { "text": report.text, "suppressWith": report.suppress_with },
    });
    if let Some(line) = &report.suppressed {
        result["suppressions"] = json!([{ "kind": "external", "justification": line }]);
    }
    result
}

fn stack(title: &str, spots: &[Spot]) -> Value {
    let frames = spots.iter().map(|spot| {
        let mut frame = json!({ "location": location(spot) });
        if let Some(module) = &spot.module {
            frame["module"] = json!(module);
        }
        frame
    });
    json!({ "message": { "text": title }, "frames": frames.collect::<Vec<_>>() })
}

fn location(spot: &Spot) -> Value {
    let mut location = json!({ "message": { "text": spot.name } });
    if let Some(function) = &spot.function {
        location["logicalLocations"] = json!([{ "fullyQualifiedName": function }]);
    }
    if let Some(file) = spot.file.as_ref().or(spot.module.as_ref()) {
        location["physicalLocation"] = json!({ "artifactLocation": { "uri": uri(file) } });
        if let (Some(_), Some(line)) = (&spot.file, spot.line.filter(|line| *line > 0)) {
            location["physicalLocation"]["region"] = json!({ "startLine": line });
        }
    }
    location
}

/// A path as a reference of RFC 3986.
fn uri(path: &str) -> String {
    let scheme = if path.starts_with('/') { "file://" } else { "" };
    let mut uri = scheme.to_owned();
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' | b'+' => {
                uri.push(byte.into());
            }
            _ => uri += &format!("%{byte:02X}"),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_anything_in_it_is_a_reference() {
        assert_eq!(uri("/a b/c:d.c"), "file:///a%20b/c%3Ad.c");
        assert_eq!(uri("src/\u{fc}.c"), "src/%C3%BC.c");
    }
}
