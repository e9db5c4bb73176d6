//! `overlock-litmus`: what Arm and RISC-V make of the locks' orderings.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use overlock_litmus::{classics, is_allowed, pairs, parse, report};

/// Judges litmus tests of Arm and RISC-V: those of the literature, and one or more for each pair of
/// orderings of the locks, right and broken.
///
/// Exits with 1 if a verdict is not as it must be, and with 2 if a test cannot be read.
#[derive(Debug, Parser)]
#[command(name = "overlock-litmus", version)]
struct Args {
    /// Judge these files instead, in herd7's format.
    files: Vec<PathBuf>,
    /// Write the tests there, a file each, and verdicts.txt, for herd7.
    #[arg(long, value_name = "DIR")]
    write: Option<PathBuf>,
    /// Write the table there instead, as a page of Markdown.
    #[arg(long, value_name = "FILE")]
    table: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("overlock-litmus: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(args: &Args) -> Result<ExitCode, String> {
    if !args.files.is_empty() {
        for path in &args.files {
            let text = fs::read_to_string(path);
            let text = text.map_err(|error| format!("{}: {error}", path.display()))?;
            let test = parse::test(&text)?;
            println!("{} {}", test.name, report::verdict(is_allowed(&test)));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let (pairs, _) = pairs::read()?;
    if let Some(directory) = &args.write {
        report::write(&pairs, directory)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut faults = Vec::new();
    let classics = classics::all();
    for classic in &classics {
        let test = parse::test(classic.text)?;
        let allowed = is_allowed(&test);
        if allowed != classic.allowed {
            faults.push(format!("{}: {}", test.name, report::verdict(allowed)));
        }
    }
    let (page, more) = report::table(&pairs)?;
    faults.extend(more);
    match &args.table {
        Some(path) => {
            fs::write(path, page).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        None => print!("{page}"),
    }
    if faults.is_empty() {
        let number = classics.len();
        println!("All are as they must be, and so are {number} tests of the literature.");
    }
    for fault in &faults {
        eprintln!("{fault}, and must not be");
    }
    Ok(ExitCode::from(u8::from(!faults.is_empty())))
}
