//! `overlock-mutants`: breaks one line of overlock-core after the other, and shows that a check notices each.
//!
//! The lines are in `mutants/*/*.toml`: those that prevent a known race, or carry an ordering that is needed. Each is changed in a copy of the
//! sources, the checkers run on the locks that the file names, and one of them must fail: the explorer first, for a short and
//! then for a longer time, then the unit tests of core. A mutant that survives fails the run.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use serde::{Deserialize, Serialize};

/// Breaks one line of overlock-core after the other, and shows that a check notices each.
///
/// Exits with 1 where a mutant survives, and with 2 where one does not fit the sources or does not compile.
#[derive(Debug, Parser)]
#[command(name = "overlock-mutants", version)]
struct Args {
    /// Only the mutants of these files (`queued` for mutants/spin/queued.toml).
    #[arg(long, value_delimiter = ',', value_name = "FILES")]
    only: Vec<String>,
    /// Only the mutants with these names.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    names: Vec<String>,
    /// Show the mutants.
    #[arg(long)]
    list: bool,
    /// Mutants that are tried at a time, each in a copy of its own [default: one for each CPU].
    #[arg(long)]
    jobs: Option<usize>,
    /// Write the table there, as Markdown.
    #[arg(long, value_name = "FILE")]
    table: Option<PathBuf>,
    /// Write the results there, as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// The project's root.
    #[arg(long, value_name = "DIR", default_value = ".")]
    root: PathBuf,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    locks: Vec<String>,
    mutant: Vec<Mutant>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mutant {
    name: String,
    file: PathBuf,
    from: String,
    to: String,
    breaks: String,
}

/// A mutant, with what its file says.
#[derive(Clone, Debug)]
struct Task {
    /// The file's name: `queued`.
    group: String,
    locks: String,
    mutant: Mutant,
}

#[derive(Clone, Debug, Serialize)]
struct Verdict {
    group: String,
    name: String,
    breaks: String,
    /// Which check noticed; none has where it is missing.
    caught_by: Option<String>,
    /// Why it could not be tried.
    error: Option<String>,
}

/// How far the explorer goes, at first and where that does not suffice.
const EFFORTS: [&[&str]; 2] = [
    &[
        "--departures",
        "2",
        "--executions",
        "3000",
        "--walks",
        "500",
    ],
    &[
        "--departures",
        "3",
        "--executions",
        "150000",
        "--walks",
        "20000",
    ],
];

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(code) => code,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
    }
}

fn run(args: &Args) -> Result<ExitCode, String> {
    let tasks = read(args)?;
    if args.list {
        for task in &tasks {
            println!(
                "{:<22} {:<60} {}",
                task.group, task.mutant.name, task.mutant.breaks
            );
        }
        return Ok(ExitCode::SUCCESS);
    }
    let jobs = args
        .jobs
        .unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from));
    let bar = ProgressBar::new(tasks.len() as u64).with_style(
        ProgressStyle::with_template("{elapsed_precise} {wide_bar} {pos}/{len} {msg}")
            .map_err(|error| error.to_string())?,
    );
    let next = AtomicUsize::new(0);
    let verdicts = Mutex::new(BTreeMap::new());
    let result: Result<(), String> = thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs.max(1))
            .map(|job| {
                let (tasks, next, verdicts, bar) = (&tasks, &next, &verdicts, &bar);
                scope.spawn(move || -> Result<(), String> {
                    let copy = Copy::new(&args.root, job)?;
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        let Some(task) = tasks.get(index) else {
                            return Ok(());
                        };
                        let verdict = copy.try_mutant(task);
                        bar.inc(1);
                        let end = verdict.error.clone().or_else(|| verdict.caught_by.clone());
                        let line = format!(
                            "{} {}: {}",
                            verdict.group,
                            verdict.name,
                            end.as_deref().unwrap_or("SURVIVES")
                        );
                        bar.suspend(|| eprintln!("{line}"));
                        lock(verdicts).insert(index, verdict);
                    }
                })
            })
            .collect();
        for worker in workers {
            worker
                .join()
                .map_err(|_| "a worker panicked".to_owned())??;
        }
        Ok(())
    });
    bar.finish_and_clear();
    result?;
    let verdicts: Vec<_> = lock(&verdicts).values().cloned().collect();
    let table = table(&verdicts);
    if let Some(path) = &args.table {
        write(path, &table)?;
    } else {
        print!("{table}");
    }
    if let Some(path) = &args.json {
        let text = serde_json::to_string_pretty(&verdicts).map_err(|error| error.to_string())?;
        write(path, &(text + "\n"))?;
    }
    let errors = verdicts
        .iter()
        .filter(|verdict| verdict.error.is_some())
        .count();
    let alive = verdicts
        .iter()
        .filter(|verdict| verdict.error.is_none() && verdict.caught_by.is_none())
        .count();
    println!(
        "{} mutants, {alive} survive, {errors} could not be tried",
        verdicts.len()
    );
    Ok(match (alive, errors) {
        (0, 0) => ExitCode::SUCCESS,
        (_, 0) => ExitCode::from(1),
        _ => ExitCode::from(2),
    })
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

fn read(args: &Args) -> Result<Vec<Task>, String> {
    let mut paths = Vec::new();
    find(&args.root.join("mutants"), "toml", &mut paths)
        .map_err(|error| format!("mutants/: {error}"))?;
    paths.sort();
    let mut tasks = Vec::new();
    for path in paths {
        let group = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if !args.only.is_empty() && !args.only.contains(&group) {
            continue;
        }
        let complain = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let text = fs::read_to_string(&path).map_err(|error| complain(&error))?;
        let file: File = toml::from_str(&text).map_err(|error| complain(&error))?;
        let locks = file.locks.join(",");
        tasks.extend(file.mutant.into_iter().map(|mutant| Task {
            group: group.clone(),
            locks: locks.clone(),
            mutant,
        }));
    }
    tasks.retain(|task| args.names.is_empty() || args.names.contains(&task.mutant.name));
    if tasks.is_empty() {
        return Err("there is no such mutant (see --list)".to_owned());
    }
    Ok(tasks)
}

fn find(folder: &Path, extension: &str, paths: &mut Vec<PathBuf>) -> io::Result<()> {
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

/// A copy of what a mutant is built from, with a target directory of its own.
struct Copy {
    root: PathBuf,
    target: PathBuf,
}

impl Copy {
    fn new(root: &Path, job: usize) -> Result<Self, String> {
        let complain = |error: io::Error| format!("copying the sources: {error}");
        let base = root.join("target/mutants");
        fs::create_dir_all(&base).map_err(complain)?;
        let base = base.canonicalize().map_err(complain)?;
        let copy = Copy {
            root: base.join(format!("sources-{job}")),
            target: base.join(format!("build-{job}")),
        };
        for part in ["crates/overlock-core", "crates/overlock-model"] {
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
        let members = toml::Value::try_from(["crates/overlock-core", "crates/overlock-model"])
            .map_err(|error| error.to_string())?;
        if let Some(workspace) = manifest
            .get_mut("workspace")
            .and_then(toml::Value::as_table_mut)
        {
            workspace.insert("members".to_owned(), members);
            workspace.remove("exclude");
        }
        fs::write(copy.root.join("Cargo.toml"), manifest.to_string()).map_err(complain)?;
        Ok(copy)
    }

    /// Brings a file of the copy up to date, and leaves it alone where it is: builds go by the time of change.
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

    fn try_mutant(&self, task: &Task) -> Verdict {
        let mut verdict = Verdict {
            group: task.group.clone(),
            name: task.mutant.name.clone(),
            breaks: task.mutant.breaks.clone(),
            caught_by: None,
            error: None,
        };
        let path = self.root.join(&task.mutant.file);
        match fs::read_to_string(&path) {
            Err(error) => verdict.error = Some(format!("{}: {error}", task.mutant.file.display())),
            Ok(text) => match text.matches(&task.mutant.from).count() {
                1 => {
                    let broken = text.replacen(&task.mutant.from, &task.mutant.to, 1);
                    match fs::write(&path, broken)
                        .map_err(|error| error.to_string())
                        .and_then(|()| self.check(task))
                    {
                        Ok(caught_by) => verdict.caught_by = caught_by,
                        Err(error) => verdict.error = Some(error),
                    }
                    if let Err(error) = fs::write(&path, text) {
                        verdict.error = Some(error.to_string());
                    }
                }
                times => {
                    verdict.error = Some(format!(
                        "its text occurs {times} times in {}",
                        task.mutant.file.display()
                    ))
                }
            },
        }
        verdict
    }

    /// Which check fails on the copy as it is; none does where all pass.
    fn check(&self, task: &Task) -> Result<Option<String>, String> {
        let build = self.cargo(
            task,
            &[
                "build",
                "--profile",
                "mutant",
                "-p",
                "overlock-model",
                "--bin",
                "overlock-model",
            ],
        )?;
        if !build.status.success() {
            let errors = String::from_utf8_lossy(&build.stderr);
            let first = errors
                .lines()
                .find(|line| line.starts_with("error"))
                .unwrap_or("error");
            return Err(format!("it does not compile: {first}"));
        }
        for effort in EFFORTS {
            let output = Command::new(self.target.join("mutant/overlock-model"))
                .args([
                    "--engines",
                    "explore",
                    "--jobs",
                    "1",
                    "--fail-fast",
                    "--locks",
                    &task.locks,
                ])
                .args(effort)
                .output()
                .map_err(|error| format!("the checker: {error}"))?;
            if !output.status.success() {
                return Ok(Some(culprit(&output, "fails on")));
            }
        }
        let tests = self.cargo(
            task,
            &[
                "test",
                "-p",
                "overlock-core",
                "--lib",
                "--features",
                "busted",
            ],
        )?;
        Ok((!tests.status.success()).then(|| culprit(&tests, "FAILED")))
    }

    fn cargo(&self, task: &Task, arguments: &[&str]) -> Result<Output, String> {
        Command::new("cargo")
            .args(arguments)
            .current_dir(&self.root)
            .env("CARGO_TARGET_DIR", &self.target)
            .env("OVERLOCK_MODEL_ONLY", &task.locks)
            .env("OVERLOCK_MODEL_ENGINES", "explore")
            .output()
            .map_err(|error| format!("cargo: {error}"))
    }
}

/// The first line of a check's output that says what failed.
fn culprit(output: &Output, mark: &str) -> String {
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text
        .lines()
        .find(|line| line.contains(mark))
        .unwrap_or("the checker ended early");
    let line = line
        .trim()
        .trim_start_matches("test ")
        .replace(" ... FAILED", "");
    line.replace(" fails on explore", "")
}

fn table(verdicts: &[Verdict]) -> String {
    let mut text = String::from("| lock | mutant | breaks | caught by |\n|---|---|---|---|\n");
    for verdict in verdicts {
        let end = match (&verdict.error, &verdict.caught_by) {
            (Some(error), _) => format!("**not tried**: {error}"),
            (None, Some(caught_by)) => caught_by.clone(),
            (None, None) => "**survives**".to_owned(),
        };
        let cells = [&verdict.group, &verdict.name, &verdict.breaks, &end]
            .map(|cell| cell.replace('|', "\\|"));
        text += &format!("| {} |\n", cells.join(" | "));
    }
    text
}
