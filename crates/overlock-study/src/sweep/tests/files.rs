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
        refused(Store::open(&path, &grid), says);
        assert_eq!(fs::read_to_string(&path).unwrap(), content);
    };
    check("{}", "is no file of `overlock sim sweep`");
    check("seven\n", "is no file of `overlock sim sweep`");
    let other = |from: &str, to: &str| whole.replacen(from, to, 1);
    check(&other(r#""version":1"#, r#""version":2"#), "is of format 2");
    let program = format!(r#""program":"{}""#, env!("CARGO_PKG_VERSION"));
    check(
        &other(&program, r#""program":"0.0.9""#),
        "is of overlock 0.0.9",
    );
    check(
        &other(r#""seeds":[1]"#, r#""seeds":[2]"#),
        "line 2 is not of this grid",
    );
    let (first, rest) = whole.split_once('\n').unwrap();
    let seeds = first.replacen(r#""seeds":[1]"#, r#""seeds":[2,3]"#, 1) + "\n";
    check(&seeds, "is of another grid, with seeds 2,3");
    let name = first.replacen(r#""kvm""#, r#""xen""#, 1) + "\n";
    check(&name, "line 1 is damaged: unknown name 'xen'");
    check(&format!("{first}\n\n{rest}"), "line 2 is damaged");
    check(&(whole.clone() + "{}\n"), "is damaged");
    let line = rest.lines().next().unwrap();
    let twice = format!(
        "{whole}{}\n",
        line.replacen(r#""jain":1.0"#, r#""jain":0.5"#, 1)
    );
    check(&twice, "contradicts one before");
    refused(
        Store::open(Path::new("/dev/null"), &grid),
        "results need a file",
    );
}

#[test]
fn parts_that_do_not_fit_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let grid = grid(&[4], 2);
    sweep(&path("a"), &grid, Shard::WHOLE);
    let text = fs::read_to_string(path("a")).unwrap();
    fs::write(
        path("b"),
        text.replacen(r#""jain":1.0"#, r#""jain":0.5"#, 1),
    )
    .unwrap();
    let parts = [part(&path("a")), part(&path("b"))];
    refused(merge(parts), "they are of different builds");
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
