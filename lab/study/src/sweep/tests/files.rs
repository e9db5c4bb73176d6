//! Files that are refused: what is in them is something else, or does not fit.

use super::*;

#[test]
fn other_files_are_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let grid = grid(&[4], 1);
    let whole = String::from_utf8(whole(&dir, &grid)).unwrap();
    let path = dir.path().join("other");
    let check = |content: &str, says: &str| {
        fs::write(&path, content).unwrap();
        refused(Store::open(&path, &build(), &grid), says);
        assert_eq!(fs::read_to_string(&path).unwrap(), content);
    };
    check("{}", "is no file of `overlock-lab sim sweep`");
    check("seven\n", "is no file of `overlock-lab sim sweep`");
    let version = whole.replacen(r#""version":4"#, r#""version":1"#, 1);
    check(&version, "line 1 is of format 1");
    let (first, rest) = whole.split_once('\n').unwrap();
    let header = |from: &str, to: &str| first.replacen(from, to, 1);
    let seeds = header(r#""seeds":[1]"#, r#""seeds":[2,3]"#);
    check(&format!("{seeds}\n{rest}"), "line 2 is not of this grid");
    check(&format!("{seeds}\n"), "is of another grid, with seeds 2,3");
    let name = header(r#""kvm""#, r#""xen""#);
    check(
        &format!("{name}\n"),
        "line 1 is of no grid: this program does not know 'xen'",
    );
    check(&format!("{first}\n\n{rest}"), "line 2 is damaged");
    check(&(whole.clone() + "{}\n"), "is damaged: missing field");
    let line = rest.lines().next().unwrap();
    let other = line.replacen(r#""jain":1.0"#, r#""jain":0.5"#, 1);
    check(&format!("{whole}{other}\n"), "contradicts one before");
    refused(
        Store::open(Path::new("/dev/null"), &build(), &grid),
        "results need a file",
    );
}

/// Builds that differ from [`build`], each in one field.
fn builds() -> [Build; 5] {
    let with = |change: fn(&mut Build)| {
        let mut other = build();
        change(&mut other);
        other
    };
    [
        with(|build| build.program = "0.0.9".to_owned()),
        with(|build| build.commit = "988955d".to_owned()),
        with(|build| build.changes = Some("89abcdef".to_owned())),
        with(|build| build.profile = "checker".to_owned()),
        with(|build| build.checks = true),
    ]
}

/// Fails where a part of the build is not compared by resuming or by `merge`.
#[test]
fn other_builds_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let grid = grid(&[4], 1);
    let content = whole(&dir, &grid);
    let path = dir.path().join("whole");
    for other in builds() {
        fs::write(&path, &content).unwrap();
        refused(Store::open(&path, &other, &grid), "line 1 is of overlock");
        assert_eq!(fs::read(&path).unwrap(), content);
        let mut merged = merge([part(&path)]).unwrap().unwrap();
        merged.build = other.clone();
        let copy = dir.path().join("copy");
        fs::write(&copy, bytes(&merged)).unwrap();
        let both = [part(&path), part(&copy)];
        refused(merge(both), &format!("line 1 is of {other}, whose"));
    }
}

/// Fails where a build that is unknown counts as equal to another one.
#[test]
fn unknown_builds_do_not_mix() {
    let dir = tempfile::tempdir().unwrap();
    let grid = grid(&[4], 1);
    let path = dir.path().join("unknown");
    let unknown = Build {
        commit: build::UNKNOWN.to_owned(),
        ..build()
    };
    drop(Store::open(&path, &unknown, &grid).unwrap());
    let says = "it may be another build";
    refused(Store::open(&path, &unknown, &grid), says);
    refused(merge([part(&path), part(&path)]), says);
    assert!(merge([part(&path)]).unwrap().is_some());
}

#[test]
fn parts_that_do_not_fit_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let grid = grid(&[4], 2);
    sweep(&path("a"), &grid, Shard::WHOLE);
    let mut other = part(&path("a"));
    let Outcome::Measured(first) = &other.lines[0].outcome else {
        panic!("it was measured")
    };
    let mut measured = first.clone();
    measured.jain = 0.5;
    other.lines[0].outcome = Outcome::Measured(measured);
    let parts = [part(&path("a")), other];
    refused(merge(parts), "although both are of one build");
    sweep(&path("c"), &self::grid(&[4, 5], 2), Shard::WHOLE);
    let parts = [part(&path("a")), part(&path("c"))];
    refused(merge(parts), "is of another grid, with vcpus 4,5");
    // The same results twice do no harm.
    let merged = merge([part(&path("a")), part(&path("a"))])
        .unwrap()
        .unwrap();
    assert_eq!(merged.duplicates, grid.points().len());
    assert!(merge([]).unwrap().is_none());
}
