//! `overlock merge`

use std::path::PathBuf;

use overlock_profile::{Merger, json};

use super::kept;
use crate::exit::Exit;
use crate::files::{Content, Files};
use crate::stat::say;

/// Make one profile of several: of a fleet's processes, or of many runs
///
/// Locks are the same if the program, their name, their kind and the function that initialised them
/// are. Functions are the same if the build is, wherever its file lies. The longest 100,000 single
/// waits are kept; each run's times begin at 0.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  overlock merge host-*.json -o fleet.json && overlock report fleet.json --html fleet.html\n\nExit codes: 1 a file cannot be written, 2 bad use, or a profile cannot be read."
)]
pub struct Args {
    /// The profiles
    #[arg(required = true, value_name = "PROFILE")]
    profiles: Vec<PathBuf>,

    /// The file to write; `-` is the standard output
    #[arg(short, long, value_name = "FILE", required = true)]
    output: Option<PathBuf>,
}

/// Merges.
pub fn run(args: &Args) -> Result<(), Exit> {
    let files = Files::open([("--output", &args.output)])?;
    let is_stdout = files.use_stdout();
    let mut merger = Merger::new();
    for path in &args.profiles {
        merger.add(&kept::read(path)?);
    }
    let merged = merger.finish();
    let content: Content = &|out| json::write(out, &merged);
    files.write([content])?;
    if !is_stdout {
        let names = args.output.iter().map(|path| crate::files::name(path));
        say(&format!(
            "overlock: wrote {}, of {} profiles\n",
            names.collect::<String>(),
            args.profiles.len()
        ));
    }
    Ok(())
}
