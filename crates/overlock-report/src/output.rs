//! Files that are there whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

mod beside;

use beside::Beside;

/// A file to write at the end of the run. Opening it checks at the start that this will be
/// possible.
#[derive(Debug)]
pub struct Output(Target);

#[derive(Debug)]
enum Target {
    /// `-`
    Stdout,
    /// A device or a pipe: nothing to replace.
    Stream(File),
    /// Replaced by a [file beside it](Beside).
    File(PathBuf),
}

impl Output {
    /// Gets ready to write `path`; `-` is the standard output.
    ///
    /// # Errors
    ///
    /// If the file could not be written. Nothing changes before [`write`](Self::write), in any
    /// case, so a run that is killed leaves nothing behind.
    pub fn open(path: &Path) -> io::Result<Self> {
        if path == Path::new("-") {
            return Ok(Self(Target::Stdout));
        }
        // A link stays a link; what it points at is replaced.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        match fs::metadata(&path) {
            Ok(existing) => {
                // Fails for directories and for files that may not be written: replacing one would
                // be possible, and not what its owner meant.
                let file = OpenOptions::new().append(true).open(&path)?;
                if !existing.is_file() {
                    return Ok(Self(Target::Stream(file)));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        drop(Beside::new(&path)?);
        Ok(Self(Target::File(path)))
    }

    /// Writes the file, all of it.
    ///
    /// # Errors
    ///
    /// If that fails after all; a file that was there before is then untouched.
    pub fn write(self, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        match self.0 {
            Target::Stdout => buffered(io::stdout().lock(), content),
            Target::Stream(file) => buffered(file, content),
            Target::File(path) => {
                beside::sweep(&path);
                let file = Beside::new(&path)?;
                buffered(file.file(), content)?;
                file.replace(&path)
            }
        }
    }
}

fn buffered(
    out: impl Write,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    content(&mut out)?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(dir: &Path) -> usize {
        fs::read_dir(dir).unwrap().count()
    }

    #[test]
    fn nothing_is_left_unless_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out.json");
        drop(Output::open(&path).unwrap());
        assert_eq!(entries(dir.path()), 0);
        let broken = Output::open(&path).unwrap().write(|out| {
            out.write_all(b"half")?;
            Err(io::Error::other("no more"))
        });
        assert!(broken.is_err());
        assert_eq!(entries(dir.path()), 0);
    }

    #[test]
    fn a_file_is_replaced_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out.json");
        fs::write(&path, "old").unwrap();
        let output = Output::open(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        output.write(|out| out.write_all(b"new")).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(entries(dir.path()), 1);
    }

    #[test]
    fn a_link_stays_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        Output::open(&link)
            .unwrap()
            .write(|out| out.write_all(b"new"))
            .unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
    }

    #[test]
    fn places_that_cannot_be_written_are_refused_at_once() {
        let dir = tempfile::tempdir().unwrap();
        assert!(Output::open(dir.path()).is_err());
        assert!(Output::open(&dir.path().join("missing/out")).is_err());
        assert!(Output::open(Path::new("/proc/overlock")).is_err());
    }

    #[test]
    fn devices_are_written_and_not_replaced() {
        Output::open(Path::new("/dev/null"))
            .unwrap()
            .write(|out| out.write_all(b"gone"))
            .unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }
}
