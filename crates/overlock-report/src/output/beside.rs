//! Files that are written beside the one that they replace.
//!
//! Such a file has no name before it is whole, so a process that is killed leaves none. Some file
//! systems have no files without a name. There, and for the moment between the new name and the
//! replacement, the file has a name of its own, and a lock that ends with its process. The next
//! process that writes there removes files that nobody has locked.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::{io, iter};

use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags, flock, linkat, open};
use rustix::io::Errno;
use rustix::process::geteuid;
use tempfile::{Builder, NamedTempFile};

const PREFIX: &str = ".overlock-";
const SUFFIX: &str = ".tmp";

/// The random characters between the two.
const RANDOM: usize = 8;

/// How often another process may take a file for one that was left.
const ATTEMPTS: usize = 8;

/// A file in the directory of another one, gone when dropped.
#[derive(Debug)]
pub enum Beside {
    Nameless(File),
    Named(NamedTempFile),
}

impl Beside {
    /// A new file, with the permissions of the one that it is to replace, or of a new one.
    pub fn new(path: &Path) -> io::Result<Self> {
        let new = match nameless(directory(path)) {
            Some(file) => Self::Nameless(file?),
            None => Self::Named(named(directory(path))?),
        };
        if let Ok(existing) = fs::metadata(path) {
            new.file().set_permissions(existing.permissions())?;
        }
        Ok(new)
    }

    pub fn file(&self) -> &File {
        match self {
            Self::Nameless(file) => file,
            Self::Named(file) => file.as_file(),
        }
    }

    /// Gives it the name, which another file may have.
    pub fn replace(self, path: &Path) -> io::Result<()> {
        let file = match self {
            Self::Nameless(file) => file,
            Self::Named(file) => {
                file.persist(path)?;
                return Ok(());
            }
        };
        let link = |path: &Path| {
            let file = in_proc(&file);
            linkat(CWD, file, CWD, path, AtFlags::SYMLINK_FOLLOW).map_err(io::Error::from)
        };
        match link(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            done => return done,
        }
        // No call replaces a file by one without a name. Nobody else can have the lock yet.
        _ = take(&file);
        names().make_in(directory(path), link)?.persist(path)?;
        Ok(())
    }
}

fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// The path by which a file without a name gets one.
fn in_proc(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// `None` where files need names.
fn nameless(directory: &Path) -> Option<io::Result<File>> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    // Before the umask.
    let file = match open(directory, flags, Mode::from_raw_mode(0o666)) {
        Ok(file) => File::from(file),
        // The last of them comes from kernels that do not know the flag.
        Err(Errno::OPNOTSUPP | Errno::INVAL | Errno::ISDIR) => return None,
        Err(error) => return Some(Err(error.into())),
    };
    Path::new(&in_proc(&file)).exists().then_some(Ok(file))
}

fn names() -> Builder<'static, 'static> {
    let mut names = Builder::new();
    names.prefix(PREFIX).suffix(SUFFIX).rand_bytes(RANDOM);
    names
}

/// Tells other processes that the file is in use. False if one of them takes it for one that was
/// left. Some network's file systems have no locks: there files may be left.
fn take(file: &File) -> bool {
    flock(file, FlockOperation::NonBlockingLockExclusive) != Err(Errno::WOULDBLOCK)
}

fn named(directory: &Path) -> io::Result<NamedTempFile> {
    // Before the umask; temporary files are private otherwise.
    let anybody = fs::Permissions::from_mode(0o666);
    first_taken(|| names().permissions(anybody.clone()).tempfile_in(directory))
}

fn first_taken(make: impl FnMut() -> io::Result<NamedTempFile>) -> io::Result<NamedTempFile> {
    for file in iter::repeat_with(make).take(ATTEMPTS) {
        let file = file?;
        // Before the lock another process may have removed it, or be about to.
        if take(file.as_file()) && file.as_file().metadata()?.nlink() > 0 {
            return Ok(file);
        }
    }
    Err(io::Error::other("its directory is swept all the time"))
}

/// Removes what processes that were killed have left in the directory of `path`.
pub fn sweep(path: &Path) {
    // A file that cannot be read or removed stays.
    let entries = fs::read_dir(directory(path)).into_iter().flatten();
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    for path in paths.filter(|path| path.file_name().is_some_and(is_of_ours)) {
        // Locked until it is removed: else its process may lock it in between.
        if let Ok(Some(_locked)) = left(&path) {
            let _ = fs::remove_file(path);
        }
    }
}

fn is_of_ours(name: &OsStr) -> bool {
    let name = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
    let random = name.and_then(|name| name.strip_suffix(SUFFIX));
    random.is_some_and(|random| {
        random.len() == RANDOM && random.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

/// Returns the file, locked, if it was left.
fn left(path: &Path) -> io::Result<Option<File>> {
    let about = fs::symlink_metadata(path)?;
    if !about.is_file() || about.uid() != geteuid().as_raw() {
        return Ok(None);
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(open(path, flags, Mode::empty())?);
    let is_locked = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
    Ok(is_locked.then_some(file))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::path::PathBuf;

    use super::*;

    fn names(dir: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(dir).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    /// Both sorts, where the file system has both.
    fn each(dir: &Path) -> Vec<Beside> {
        let named = Beside::Named(named(dir).unwrap());
        let nameless = nameless(dir).map(|file| Beside::Nameless(file.unwrap()));
        [Some(named), nameless].into_iter().flatten().collect()
    }

    /// Fails where a process that is killed in the middle leaves a file.
    #[test]
    fn a_file_that_is_being_written_has_no_name_where_that_is_possible() {
        let dir = tempfile::tempdir().unwrap();
        if let Some(file) = nameless(dir.path()) {
            file.unwrap().write_all(b"half").unwrap();
            let file = Beside::new(&dir.path().join("out")).unwrap();
            file.file().write_all(b"half").unwrap();
            assert!(names(dir.path()).is_empty());
        }
    }

    #[test]
    fn files_of_both_sorts_replace_others_and_make_new_ones() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        for text in ["new", "old"] {
            for file in each(dir.path()) {
                file.file().write_all(text.as_bytes()).unwrap();
                file.replace(&path).unwrap();
                assert_eq!(fs::read_to_string(&path).unwrap(), text);
                assert_eq!(names(dir.path()), std::slice::from_ref(&path));
            }
            if text == "new" {
                fs::remove_file(&path).unwrap();
            }
        }
    }

    #[test]
    fn what_a_killed_process_has_left_is_removed_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        let kill = |file: NamedTempFile| {
            let (file, path) = file.into_parts();
            drop(file);
            path.keep().unwrap()
        };
        let gone = kill(named(dir.path()).unwrap());
        let others = [".overlock-rules", ".overlock-abcdefgh.txt", "x.tmp"];
        for other in others {
            fs::write(dir.path().join(other), "").unwrap();
        }
        let in_use = named(dir.path()).unwrap();
        sweep(&path);
        assert!(!gone.exists());
        assert!(in_use.path().exists());
        assert_eq!(names(dir.path()).len(), others.len() + 1);
    }

    /// Fails where a process goes on with a file that another one is about to remove.
    #[test]
    fn a_file_that_is_taken_for_one_that_was_left_is_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let mut locked = Vec::new();
        let file = first_taken(|| {
            let file = super::names().tempfile_in(dir.path())?;
            // The other process has come before the lock.
            if locked.is_empty() {
                locked.extend(left(file.path())?);
            }
            Ok(file)
        });
        let of = |file: &File| file.metadata().unwrap().ino();
        assert_ne!(of(file.as_ref().unwrap().as_file()), of(&locked[0]));
        assert!(left(file.unwrap().path()).unwrap().is_none());
    }
}
