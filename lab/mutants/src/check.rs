//! A mutant's life: built in a copy of the sources, and tried by one check after the other.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;

use serde::Serialize;

use crate::list::{Mutant, Task, find};
use crate::lock;

/// The fate of a mutant.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    pub group: String,
    pub name: String,
    pub breaks: String,
    /// Which check noticed; none has where it is missing.
    pub caught_by: Option<String>,
    /// Why it could not be tried.
    pub error: Option<String>,
}

/// The checks, in the order in which they are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Check {
    /// The explorer, for a short time.
    Quick,
    /// The unit tests of the crates with locks.
    UnitTests,
    /// The explorer, for a longer time.
    Thorough,
}

impl Check {
    const ALL: [Self; 3] = [Self::Quick, Self::UnitTests, Self::Thorough];

    /// How far the explorer goes; farther where it has one scenario only.
    fn effort(self, one_scenario: bool) -> [&'static str; 6] {
        let [departures, executions, walks] = match (self, one_scenario) {
            (Self::Quick | Self::UnitTests, _) => ["2", "3000", "500"],
            (Self::Thorough, false) => ["3", "150000", "20000"],
            (Self::Thorough, true) => ["3", "150000", "2000000"],
        };
        [
            "--departures",
            departures,
            "--executions",
            executions,
            "--walks",
            walks,
        ]
    }

    /// Seconds after which it has failed: a mutant may loop where the explorer has no hold on it.
    /// The unbroken sources pass within them, or the verdict is an error.
    fn limit(self) -> u32 {
        match self {
            Self::UnitTests => 60,
            Self::Quick => 600,
            Self::Thorough => 2400,
        }
    }
}

/// The checks that were seen to pass on the sources as they are: what fails on a mutant is the
/// mutant's doing.
pub type Sound = Mutex<BTreeSet<Key>>;

/// A check, and what it runs on: the locks, and the scenario where it is not all of them.
pub type Key = (Check, String, Option<String>);

fn key(task: &Task, check: Check) -> Key {
    (check, task.locks.clone(), task.mutant.scenario.clone())
}

/// The packages with locks, and the checker.
const PARTS: [&str; 3] = [
    "crates/overlock-core",
    "crates/overlock-family",
    "lab/model",
];

/// A copy of what a mutant is built from, with a target directory of its own.
pub struct Copy {
    root: PathBuf,
    target: PathBuf,
    /// Those that a mutant has to pass to survive.
    checks: &'static [Check],
}

impl Copy {
    pub fn new(root: &Path, job: usize, thorough: bool) -> Result<Self, String> {
        let complain = |error: io::Error| format!("copying the sources: {error}");
        let base = root.join("target/mutants");
        fs::create_dir_all(&base).map_err(complain)?;
        let base = base.canonicalize().map_err(complain)?;
        let copy = Copy {
            root: base.join(format!("sources-{job}")),
            target: base.join(format!("build-{job}")),
            checks: if thorough {
                &Check::ALL
            } else {
                &Check::ALL[..2]
            },
        };
        for part in PARTS {
            let mut paths = Vec::new();
            for extension in ["rs", "toml"] {
                find(&root.join(part), extension, &mut paths).map_err(complain)?;
            }
            for path in paths {
                let name = path.strip_prefix(root).unwrap_or(&path);
                copy.restore(root, name).map_err(complain)?;
            }
        }
        for name in ["Cargo.lock", "rust-toolchain.toml"] {
            if root.join(name).exists() {
                copy.restore(root, Path::new(name)).map_err(complain)?;
            }
        }
        let manifest = fs::read_to_string(root.join("Cargo.toml")).map_err(complain)?;
        let mut manifest: toml::Table = manifest
            .parse()
            .map_err(|error| format!("Cargo.toml: {error}"))?;
        let members = toml::Value::try_from(PARTS).map_err(|error| error.to_string())?;
        if let Some(workspace) = manifest
            .get_mut("workspace")
            .and_then(toml::Value::as_table_mut)
        {
            workspace.insert("members".to_owned(), members);
            workspace.remove("exclude");
            workspace.remove("default-members");
        }
        fs::write(copy.root.join("Cargo.toml"), manifest.to_string()).map_err(complain)?;
        Ok(copy)
    }

    /// Brings a file of the copy up to date, and leaves it alone where it is: builds go by the time
    /// of change.
    fn restore(&self, root: &Path, name: &Path) -> io::Result<()> {
        let (text, to) = (fs::read(root.join(name))?, self.root.join(name));
        if fs::read(&to).is_ok_and(|old| old == text) {
            return Ok(());
        }
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(to, text)
    }

    pub fn try_mutant(&self, task: &Task, sound: &Sound) -> Verdict {
        let (caught_by, error) = match self.fate(task, sound) {
            Ok(caught_by) => (caught_by, None),
            Err(error) => (None, Some(error)),
        };
        Verdict {
            group: task.group.clone(),
            name: task.mutant.name.clone(),
            breaks: task.mutant.breaks.clone(),
            caught_by,
            error,
        }
    }

    fn fate(&self, task: &Task, sound: &Sound) -> Result<Option<String>, String> {
        let Mutant { file, from, to, .. } = &task.mutant;
        let complain = |error: io::Error| format!("{}: {error}", file.display());
        let path = self.root.join(file);
        let text = fs::read_to_string(&path).map_err(complain)?;
        match text.matches(from).count() {
            1 => {}
            times => {
                return Err(format!(
                    "its text occurs {times} times in {}",
                    file.display()
                ));
            }
        }
        fs::write(&path, text.replacen(from, to, 1)).map_err(complain)?;
        let caught = self.build(task).and_then(|()| self.first_to_fail(task));
        fs::write(&path, text).map_err(complain)?;
        let Some((check, culprit)) = caught? else {
            return Ok(None);
        };
        let key = key(task, check);
        if !lock(sound).contains(&key) {
            self.build(task)?;
            if let Some(culprit) = self.run(task, check)? {
                return Err(format!("without the mutant too: {culprit}"));
            }
            lock(sound).insert(key);
        }
        Ok(Some(culprit))
    }

    /// Builds the explorer from the copy as it is.
    fn build(&self, task: &Task) -> Result<(), String> {
        let mut cargo = self.cargo(task);
        cargo.args(["build", "--profile", "mutant", "-p", "overlock-model"]);
        cargo.args(["--bin", "overlock-model"]);
        let build = output(&mut cargo)?;
        if build.status.success() {
            return Ok(());
        }
        let errors = String::from_utf8_lossy(&build.stderr);
        let first = errors.lines().find(|line| line.starts_with("error"));
        Err(format!("it does not compile: {}", first.unwrap_or("error")))
    }

    /// Which check fails, and on what; none does where all pass.
    fn first_to_fail(&self, task: &Task) -> Result<Option<(Check, String)>, String> {
        for &check in self.checks {
            if let Some(culprit) = self.run(task, check)? {
                return Ok(Some((check, culprit)));
            }
        }
        Ok(None)
    }

    /// Runs the check. Returns the error that it fails on, if it does.
    fn run(&self, task: &Task, check: Check) -> Result<Option<String>, String> {
        let mut command = match check {
            Check::UnitTests => {
                let mut build = self.cargo(task);
                build.args(UNIT_TESTS).arg("--no-run");
                if !output(&mut build)?.status.success() {
                    return Err("its unit tests do not compile".to_owned());
                }
                let mut tests = bounded(self.cargo(task), check.limit());
                tests.args(UNIT_TESTS);
                tests
            }
            Check::Quick | Check::Thorough => {
                let checker = Command::new(self.target.join("mutant/overlock-model"));
                let mut checker = bounded(checker, check.limit());
                checker.args(["--engines", "explore", "--jobs", "1", "--fail-fast"]);
                checker
                    .args(["--locks", &task.locks])
                    .args(check.effort(task.mutant.scenario.is_some()));
                if let Some(scenario) = &task.mutant.scenario {
                    checker.args(["--scenarios", scenario]);
                }
                checker
            }
        };
        judge(check, &output(&mut command)?)
    }

    fn cargo(&self, task: &Task) -> Command {
        let mut cargo = Command::new("cargo");
        cargo
            .current_dir(&self.root)
            .env("CARGO_TARGET_DIR", &self.target)
            .env("OVERLOCK_MODEL_ONLY", &task.locks)
            .env("OVERLOCK_MODEL_ENGINES", "explore");
        cargo
    }
}

/// The unit tests of the crates with locks, for cargo.
const UNIT_TESTS: [&str; 6] = [
    "test",
    "-p",
    "overlock-core",
    "-p",
    "overlock-family",
    "--lib",
];

/// The exit code of coreutils' `timeout` where it had to end a command.
const OUT_OF_TIME: i32 = 124;

/// The exit code of the explorer where its options make no sense: a scenario of the list that does
/// not exist, say.
const NOT_BEGUN: i32 = 2;

/// The command, killed with its children if it takes longer than so many seconds.
fn bounded(command: Command, seconds: u32) -> Command {
    let mut timeout = Command::new("timeout");
    timeout.arg(seconds.to_string()).arg(command.get_program());
    if let Some(folder) = command.get_current_dir() {
        timeout.current_dir(folder);
    }
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            timeout.env(name, value);
        }
    }
    timeout
}

fn output(command: &mut Command) -> Result<Output, String> {
    let name = command.get_program().display().to_string();
    command.output().map_err(|error| format!("{name}: {error}"))
}

/// Returns the error that an ended check failed on, if it did.
fn judge(check: Check, output: &Output) -> Result<Option<String>, String> {
    match output.status.code() {
        Some(0) => Ok(None),
        Some(OUT_OF_TIME) => Ok(Some("does not end".to_owned())),
        Some(NOT_BEGUN) if check != Check::UnitTests => {
            let text = String::from_utf8_lossy(&output.stderr);
            Err(text.lines().next().unwrap_or("error").to_owned())
        }
        _ => Ok(Some(culprit(output))),
    }
}

/// The first line of a check's output that says what failed.
fn culprit(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text
        .lines()
        .find(|line| line.contains(" fails on explore") || line.contains(" ... FAILED"))
        .unwrap_or("the checker ended early");
    line.trim()
        .trim_start_matches("test ")
        .replace(" ... FAILED", "")
        .replace(" fails on explore", "")
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::*;

    fn ended(code: i32, stdout: &str, stderr: &str) -> Output {
        Output {
            status: ExitStatus::from_raw(code << 8),
            stdout: stdout.into(),
            stderr: stderr.into(),
        }
    }

    #[test]
    fn a_check_that_has_not_begun_catches_nothing() {
        let misspelt = ended(2, "", "error: there is no scenario `biassed`\n");
        assert_eq!(
            judge(Check::Quick, &misspelt),
            Err("error: there is no scenario `biassed`".to_owned())
        );
        let fails = ended(1, "\nkernel_mutex: two fails on explore: a deadlock\n", "");
        assert_eq!(
            judge(Check::Quick, &fails),
            Ok(Some("kernel_mutex: two: a deadlock".to_owned()))
        );
        assert_eq!(judge(Check::Thorough, &ended(0, "", "")), Ok(None));
        let for_ever = judge(Check::UnitTests, &ended(OUT_OF_TIME, "", ""));
        assert_eq!(for_ever, Ok(Some("does not end".to_owned())));
    }

    /// Fails where the copy's manifest still names a package that is not copied.
    #[test]
    fn cargo_understands_the_copy() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let copy = Copy::new(&root, usize::MAX, false).expect("a copy");
        let mut cargo = Command::new(env!("CARGO"));
        cargo.current_dir(&copy.root);
        let read = cargo.args(["metadata", "--no-deps", "--format-version", "1"]);
        let read = output(read).expect("cargo");
        assert!(
            read.status.success(),
            "{}",
            String::from_utf8_lossy(&read.stderr)
        );
    }

    #[test]
    fn a_scenario_that_passes_says_nothing_of_another() {
        let task = |scenario: Option<&str>| Task {
            group: "overlock".to_owned(),
            locks: "overlock".to_owned(),
            mutant: Mutant {
                locks: None,
                name: "a test".to_owned(),
                file: PathBuf::new(),
                from: String::new(),
                to: String::new(),
                scenario: scenario.map(str::to_owned),
                breaks: String::new(),
            },
        };
        let keys = [None, Some("leaves"), Some("claims")].map(|it| key(&task(it), Check::Quick));
        assert_eq!(BTreeSet::from(keys).len(), 3);
    }
}
