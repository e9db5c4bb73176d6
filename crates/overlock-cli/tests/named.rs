//! Programs with locks of their own, which have names.

#[path = "common/preload.rs"]
mod preload;

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use overlock_profile::Profile;
use preload::library;

/// The example `stat` of crate overlock.
fn example() -> PathBuf {
    static EXAMPLE: OnceLock<PathBuf> = OnceLock::new();
    let build = || {
        let built = library();
        let dir = built.parent().unwrap();
        let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "-q", "-p", "overlock", "--features", "stat"]);
        cargo.args(["--example", "stat", "--target-dir"]);
        cargo.arg(dir.parent().unwrap());
        if !cfg!(debug_assertions) {
            cargo.arg("--release");
        }
        assert!(cargo.current_dir(manifest).status().unwrap().success());
        dir.join("examples/stat")
    };
    EXAMPLE.get_or_init(build).clone()
}

fn overlock() -> Command {
    Command::new(assert_cmd::cargo::cargo_bin!("overlock"))
}

/// Fails where the program's own locks are not in the table, where their names are not, and where
/// the callers that name a row are functions of the locks.
#[test]
fn a_profile_has_the_locks_of_the_program_by_their_names() {
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("p.json");
    let mut profile = overlock();
    profile.arg("profile").arg("--json").arg(&json);
    profile.arg("--library").arg(library());
    let output = profile.arg("--").arg(example()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    // The program's own figures.
    let words: Vec<_> = text.split_whitespace().collect();
    let pool = words.iter().position(|&word| word == "pool").unwrap();
    assert_eq!(words[pool..pool + 3], ["pool", "mutex", "400"], "{text}");
    // The profile.
    let profile: Profile = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    let is_pool = |lock: u32| profile.locks[lock as usize].name == "pool";
    let wait = profile.waits.iter().find(|wait| is_pool(wait.lock));
    let wait = wait.unwrap_or_else(|| panic!("{errors}"));
    let stack = profile.stacks[wait.stack as usize].0.iter();
    let mut functions = stack.map(|&frame| profile.frames[frame as usize].function.as_str());
    assert!(
        functions.any(|function| function.contains("query")),
        "{errors}"
    );
    assert!(errors.contains("pool, acquired in query"), "{errors}");
}

/// Fails where a file is left that nobody has asked for.
#[test]
fn the_table_is_made_where_the_environment_asks_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let run = |value| {
        let mut program = Command::new(example());
        program.env("OVERLOCK_STAT", value);
        program.env("OVERLOCK_STAT_DIR", dir.path());
        assert!(program.output().unwrap().status.success());
        fs::read_dir(dir.path()).unwrap().count()
    };
    assert_eq!(run("0"), 0);
    assert_eq!(run("1"), 1);
    let report = overlock().arg("report").arg(dir.path()).output().unwrap();
    let text = String::from_utf8_lossy(&report.stdout) + String::from_utf8_lossy(&report.stderr);
    let line = text.lines().find(|line| line.contains("pool"));
    assert!(line.is_some_and(|line| line.contains("query")), "{text}");
}
