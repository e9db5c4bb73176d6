//! The demonstration of `cargo run --release`: a program in C with the C library's locks and with
//! ours, the lock that its threads wait for, and the commands for a program of one's own.

mod machine;
mod report;
mod show;

use std::env;
use std::error::Error;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output, Stdio};
use std::thread::available_parallelism;

use machine::Ticks;
use show::Figures;

/// Each round runs the program once with either library's locks.
const ROUNDS: usize = 5;

/// A run's length.
const SECONDS: &str = "0.8";

/// Threads for each CPU.
const OVERCOMMIT: usize = 4;

fn main() -> ExitCode {
    match demonstrate(&mut io::stdout()) {
        Ok(()) => ExitCode::SUCCESS,
        // The reader has seen enough.
        Err(error) if is_closed_pipe(&*error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("overlock-demo: {error}");
            ExitCode::FAILURE
        }
    }
}

fn is_closed_pipe(error: &(dyn Error + 'static)) -> bool {
    let error = error.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

fn demonstrate(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .canonicalize()?;
    writeln!(
        out,
        "\n1. Building `overlock` and a program in C, demo/words.c"
    )?;
    let built = build(&root)?;
    let overlock = built.join("release/overlock");
    let words = compile(&root, &built)?;
    let mut texts = Vec::new();
    for dir in ["crates", "docs", "lab"] {
        machine::texts(&root.join(dir), &mut texts)?;
    }
    texts.sort();

    let cpus = available_parallelism()?.get();
    let threads = OVERCOMMIT * cpus;
    let program = |mut command: Command| {
        command.arg(threads.to_string()).arg(SECONDS).args(&texts);
        command
    };
    let plain = || program(Command::new(&words));
    let ours = |options: &[&str]| {
        let mut command = Command::new(&overlock);
        command.arg("run").args(options).arg("--").arg(&words);
        program(command)
    };

    writeln!(
        out,
        "\n2. Running that program: {threads} threads on {cpus} CPUs put the words of {} files, this\n   \
         repository's own, into one index behind one mutex of pthread. {ROUNDS} rounds of {SECONDS} s each.\n",
        texts.len()
    )?;
    let before = Ticks::now();
    let (mut theirs_runs, mut our_runs) = (Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        let theirs = figures(&mut plain())?;
        let ours = figures(&mut ours(&[]))?;
        writeln!(
            out,
            "   round {round}   C library's locks {:>9.0}   ours {:>9.0}   blocks of text a second",
            theirs.rate, ours.rate
        )?;
        theirs_runs.push(theirs);
        our_runs.push(ours);
    }
    let used = theirs_runs.iter().chain(&our_runs).map(|run| run.cpu).sum();
    let others = before.and_then(|before| before.others(used));

    writeln!(
        out,
        "\n3. Before and after, medians of the rounds and their spread:\n"
    )?;
    write!(out, "{}", show::table(&theirs_runs, &our_runs))?;
    if let Some(share) = others.filter(|&share| share > 0.1) {
        writeln!(
            out,
            "\n   Other programs used {:.0} % of the CPUs meanwhile: on a quiet machine the figures differ.",
            100.0 * share
        )?;
    }

    writeln!(out, "\n4. Where its threads wait: `overlock run --stat`\n")?;
    let output = output(ours(&["--stat"]).stderr(Stdio::piped()))?;
    match report::top(&String::from_utf8_lossy(&output.stderr)) {
        Some(row) => write!(out, "{row}")?,
        None => writeln!(out, "   They did not wait for a lock.")?,
    }

    writeln!(
        out,
        "\n5. For a server of your own:\n\n   \
         {0} run --stat -- ./server    # which locks its threads wait for, and who holds them\n   \
         {0} run -- ./server           # our locks, and nothing else\n   \
         cargo install --locked --path crates/overlock-cli    # `overlock` in your PATH, one file",
        shown(&overlock).display()
    )?;
    Ok(())
}

/// As the user would type it.
fn shown(path: &Path) -> &Path {
    env::current_dir()
        .ok()
        .and_then(|dir| path.strip_prefix(dir).ok())
        .unwrap_or(path)
}

/// Has cargo build the program `overlock`, with its own progress, and returns cargo's directory.
fn build(root: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let own = env::current_exe()?;
    let built = own
        .parent()
        .and_then(Path::parent)
        .ok_or("this program is in no directory of cargo's")?;
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args([
            "build",
            "--release",
            "--package",
            "overlock-cli",
            "--target-dir",
        ])
        .arg(built)
        .current_dir(root)
        .status()?;
    if status.success() {
        Ok(built.to_owned())
    } else {
        Err("`overlock` cannot be built".into())
    }
}

/// Compiles the program into cargo's directory.
fn compile(root: &Path, built: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let words = built.join("words");
    let compiler = env::var_os("CC").unwrap_or_else(|| "cc".into());
    let status = Command::new(&compiler)
        .args(["-O2", "-g", "-pthread", "-o"])
        .arg(&words)
        .arg(root.join("demo/words.c"))
        .status()
        .map_err(|error| format!("{}: {error}; a C compiler is needed", compiler.display()))?;
    if status.success() {
        Ok(words)
    } else {
        Err("demo/words.c cannot be compiled".into())
    }
}

/// Runs the program, which must succeed.
fn output(command: &mut Command) -> Result<Output, Box<dyn Error>> {
    let output = command.stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(output);
    }
    Err(format!(
        "{}: {}, {}{}",
        command.get_program().display(),
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
    .into())
}

/// Runs the program and reads what it prints.
fn figures(command: &mut Command) -> Result<Figures, Box<dyn Error>> {
    let output = output(command.stderr(Stdio::inherit()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    Figures::parse(&text).ok_or_else(|| format!("cannot read '{text}'").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails where `cargo run --release | head` ends with a panic or an error.
    #[test]
    fn a_reader_that_leaves_is_no_failure() {
        let (reader, mut writer) = io::pipe().unwrap();
        drop(reader);
        let error = demonstrate(&mut writer).unwrap_err();
        assert!(is_closed_pipe(&*error), "{error}");
        assert!(!is_closed_pipe(&io::Error::other("another")));
    }
}
