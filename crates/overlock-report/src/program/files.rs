//! The files that options name.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::Output;

use super::exit::Exit;

/// The files that options name. They are opened at the start, so that a long run does not end in a
/// complaint.
#[derive(Debug)]
pub struct Files<const N: usize> {
    files: [Option<Promised>; N],
    use_stdout: bool,
}

/// A writer of the content of a file.
pub type Content<'a> = &'a dyn Fn(&mut dyn Write) -> io::Result<()>;

impl<const N: usize> Files<N> {
    /// Checks that all of them can be written, and that no two options name the same file.
    pub fn open(given: [(&str, &Option<PathBuf>); N]) -> Result<Self, Exit> {
        let mut seen = HashSet::new();
        for path in given.iter().filter_map(|(_, path)| path.as_deref()) {
            if !seen.insert(whole(path)) {
                let (last, others) = given.split_last().expect("two of them name a file");
                let others: Vec<&str> = others.iter().map(|(option, _)| *option).collect();
                let (name, others) = (name(path), others.join(", "));
                return Err(Exit::usage(format!(
                    "{name} is named by two of {others} and {}",
                    last.0
                )));
            }
        }
        let use_stdout = seen.contains(Path::new("-"));
        let mut files = [const { None }; N];
        for (file, (option, path)) in files.iter_mut().zip(given) {
            *file = path
                .as_deref()
                .map(|path| Promised::open(option, path))
                .transpose()?;
        }
        Ok(Self { files, use_stdout })
    }

    /// Whether one of them is the standard output, which then belongs to it alone.
    pub fn use_stdout(&self) -> bool {
        self.use_stdout
    }

    /// Writes each of them, also where another cannot be written.
    pub fn write(self, contents: [Content<'_>; N]) -> Result<(), Exit> {
        let files = self.files.into_iter().zip(contents);
        let written = files.filter_map(|(file, content)| Some(file?.write(content)));
        let results: Vec<Result<(), Exit>> = written.collect();
        results.into_iter().collect()
    }
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

/// Its path in one form only, so that two names of one file are the same. Its directory may hold no
/// such file yet.
pub fn whole(path: &Path) -> PathBuf {
    if path == Path::new("-") {
        return path.to_owned();
    }
    let dir = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let beside = || Some(fs::canonicalize(dir).ok()?.join(path.file_name()?));
    let known = fs::canonicalize(path).ok().or_else(beside);
    known.unwrap_or_else(|| path.to_owned())
}

/// A file's name for people.
pub fn name(path: &Path) -> String {
    if path == Path::new("-") {
        "the standard output".to_owned()
    } else {
        path.display().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails where one file replaces the other in silence.
    #[test]
    fn two_names_of_one_file_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let open = |one: &str, other: &str| {
            let [one, other] = [one, other].map(|name| Some(dir.path().join(name)));
            Files::open([("--one", &one), ("--other", &other)])
        };
        assert!(open("a", "b").is_ok());
        assert!(open("a", "./a").is_err());
        fs::write(dir.path().join("a"), "").unwrap();
        std::os::unix::fs::symlink("a", dir.path().join("link")).unwrap();
        assert!(open("link", "a").is_err());
    }
}
