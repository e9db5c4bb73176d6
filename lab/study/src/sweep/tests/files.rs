//! Files that are refused: what is in them is something else, or does not fit.

use super::*;

#[test]
fn other_files_are_refused_and_left_alone() {
    let (dir, grid, path) = scene(1);
    let whole = String::from_utf8(whole(&dir, &grid)).unwrap();
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

/// Fails where a build that is unknown counts as equal to another one.
#[test]
fn unknown_builds_do_not_mix() {
    let (_dir, grid, path) = scene(1);
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
