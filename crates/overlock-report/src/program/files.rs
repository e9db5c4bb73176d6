//! The files that options name.

use std::collections::HashSet;
use std::io::{self, Write};
use std::path::Path;

use crate::Output;

use super::exit::Exit;

/// Checks that no two of these `options` name the same file, and says whether one of them is the
/// standard output.
pub fn distinct(options: &str, given: &[Option<&Path>]) -> Result<bool, Exit> {
    let mut seen = HashSet::new();
    for path in given.iter().flatten() {
        if !seen.insert(path) {
            let name = name(path);
            return Err(Exit::usage(format!("{name} is named by two of {options}")));
        }
    }
    Ok(seen.contains(&Path::new("-")))
}

/// A file that an option names, and that could be opened for writing.
#[derive(Debug)]
pub struct Promised {
    /// The option and the file.
    what: String,
    output: Output,
}

impl Promised {
    /// Checks that it can be.
    pub fn open(option: &str, path: &Path) -> Result<Self, Exit> {
        let what = match path == Path::new("-") {
            true => name(path),
            false => format!("{option} {}", name(path)),
        };
        match Output::open(path) {
            Ok(output) => Ok(Self { what, output }),
            Err(error) => Err(Exit::usage(format!("cannot write {what}: {error}"))),
        }
    }

    /// Writes it. A reader that has left is no failure.
    pub fn write(self, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Exit> {
        match self.output.write(content) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(Exit::Failed(format!("cannot write {}: {error}", self.what)))
            }
            _ => Ok(()),
        }
    }
}

/// The same of an option that may be left out.
pub fn open(option: &str, path: Option<&Path>) -> Result<Option<Promised>, Exit> {
    path.map(|path| Promised::open(option, path)).transpose()
}

/// A file's name for people.
pub fn name(path: &Path) -> String {
    if path == Path::new("-") {
        "the standard output".to_owned()
    } else {
        path.display().to_string()
    }
}
