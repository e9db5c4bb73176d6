//! The mutants, as mutants/*/*.toml lists them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::Args;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    locks: Vec<String>,
    mutant: Vec<Mutant>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mutant {
    pub name: String,
    pub file: PathBuf,
    pub from: String,
    pub to: String,
    pub breaks: String,
}

/// A mutant, with what its file says.
#[derive(Clone, Debug)]
pub struct Task {
    /// The file's name: `queued`.
    pub group: String,
    pub locks: String,
    pub mutant: Mutant,
}

pub fn read(args: &Args) -> Result<Vec<Task>, String> {
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

pub fn find(folder: &Path, extension: &str, paths: &mut Vec<PathBuf>) -> io::Result<()> {
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
