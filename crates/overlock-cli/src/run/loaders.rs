//! A name for the library that each loader takes for what it can load.
//!
//! Every process that the program starts inherits `LD_PRELOAD`, whatever its loader is. musl's
//! would load the library and then end the program, for want of glibc's functions, and a 32-bit
//! loader would complain. glibc's replace `$LIB` in a name by the directory of their libraries,
//! which differs between them; musl's do not, and pass over a file that does not exist. So the
//! name is `FOLDER/$LIB/NAME`, and the folder has what fits for each directory that `$LIB` may be:
//! a link to the library, or for 32-bit loaders a library without contents.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

use super::empty;
use super::library::{NAME, cache};

/// The file behind one of the names.
#[derive(Clone, Copy, Debug, Hash, PartialEq)]
enum Content {
    /// A link to the library.
    Library,
    /// A library without contents.
    Empty,
}

/// The name, for `LD_PRELOAD`; `None` if there is no place for the folder.
pub fn name(library: &Path) -> Option<OsString> {
    let contents = contents();
    let folder = places()
        .iter()
        .filter(|place| !splits(place))
        .find_map(|place| folder(place, library, &contents).ok())?;
    let mut name = folder.into_os_string();
    name.push("/$LIB/");
    name.push(NAME);
    Some(name)
}

/// Whether a loader would take it for several names, or replace a part of it.
pub fn splits(path: &Path) -> bool {
    let bytes = path.as_os_str().as_bytes();
    bytes.iter().any(|byte| matches!(byte, b' ' | b':' | b'$'))
}

/// Directories that may hold folders. Root's programs may become other users', who cannot look into
/// root's home.
fn places() -> Vec<PathBuf> {
    let user = geteuid();
    let own = match user.is_root() {
        true => Some(PathBuf::from("/run/overlock")),
        false => cache(),
    };
    let temporary = PathBuf::from(format!("/tmp/overlock-{}", user.as_raw()));
    own.into_iter().chain([temporary]).collect()
}

/// The directories that `$LIB` may be, and the files that their loaders can load.
fn contents() -> Vec<(PathBuf, Content)> {
    let machine = env::consts::ARCH;
    let mut names = vec![
        // A script that expands the variable itself.
        PathBuf::from("."),
        PathBuf::from("lib64"),
        PathBuf::from(format!("lib/{machine}-linux-gnu")),
    ];
    names.extend(own_directory());
    let mut empty = Vec::new();
    if machine == "x86_64" {
        empty.extend(["lib32", "lib/i386-linux-gnu"]);
    }
    // On some systems the directory of 32-bit libraries, on others that of all.
    match is_32_bit(Path::new("/lib/libc.so.6")) {
        true if machine == "x86_64" => empty.push("lib"),
        true => {}
        false => names.push(PathBuf::from("lib")),
    }
    names.sort();
    names.dedup();
    let libraries = names.into_iter().map(|name| (name, Content::Library));
    let empty = empty.into_iter().map(|name| (name.into(), Content::Empty));
    libraries.chain(empty).collect()
}

/// The directory of the C library that this program itself has loaded.
fn own_directory() -> Option<PathBuf> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let path = maps
        .lines()
        .filter_map(|line| line.find('/').map(|start| Path::new(&line[start..])))
        .find(|path| path.ends_with("libc.so.6"))?;
    let dir = path.parent()?;
    let dir = dir.strip_prefix("/usr").or_else(|_| dir.strip_prefix("/"));
    dir.ok()
        .filter(|dir| dir.starts_with("lib") || dir.starts_with("lib64"))
        .map(Path::to_owned)
}

fn is_32_bit(library: &Path) -> bool {
    let mut start = [0; 5];
    let read = File::open(library).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && start == *b"\x7fELF\x01"
}

/// The folder for this library in this place, which is made if it is not there or not whole.
fn folder(place: &Path, library: &Path, contents: &[(PathBuf, Content)]) -> io::Result<PathBuf> {
    own(place)?;
    let mut hasher = DefaultHasher::new();
    (library, contents).hash(&mut hasher);
    let folder = place.join(format!("{PREFIX}{:016x}", hasher.finish()));
    if is_whole(&folder, library, contents) {
        return Ok(folder);
    }
    forget(place);
    let made = tempfile::Builder::new().prefix(".new.").tempdir_in(place)?;
    fill(made.path(), library, contents)?;
    if fs::rename(made.path(), &folder).is_err() {
        // Another process has made it, or somebody has taken a part of it away.
        if !is_whole(&folder, library, contents) {
            fs::remove_dir_all(&folder)?;
            fs::rename(made.path(), &folder)?;
        }
    }
    Ok(folder)
}

const PREFIX: &str = "loaders.";

/// Makes the directory, which nobody else can change.
fn own(place: &Path) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(place)?;
    let found = fs::symlink_metadata(place)?;
    let ours = geteuid().as_raw();
    if !found.is_dir() || found.uid() != ours || found.mode() & 0o022 != 0 {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    open(place)
}

/// Lets others look into root's directory, whatever the umask.
fn open(dir: &Path) -> io::Result<()> {
    if !geteuid().is_root() || fs::metadata(dir)?.mode() & 0o777 == 0o755 {
        return Ok(());
    }
    fs::set_permissions(dir, Permissions::from_mode(0o755))
}

fn is_whole(folder: &Path, library: &Path, contents: &[(PathBuf, Content)]) -> bool {
    contents.iter().all(|(dir, content)| {
        let file = folder.join(dir).join(NAME);
        match content {
            Content::Library => fs::read_link(file).is_ok_and(|to| to == library),
            Content::Empty => fs::read(file).is_ok_and(|bytes| bytes == empty::library()),
        }
    })
}

fn fill(folder: &Path, library: &Path, contents: &[(PathBuf, Content)]) -> io::Result<()> {
    open(folder)?;
    for (dir, content) in contents {
        let mut path = folder.to_owned();
        for part in dir {
            path.push(part);
            if !path.is_dir() {
                fs::create_dir(&path)?;
            }
            open(&path)?;
        }
        let file = path.join(NAME);
        match content {
            Content::Library => symlink(library, file)?,
            Content::Empty => {
                fs::write(&file, empty::library())?;
                fs::set_permissions(&file, Permissions::from_mode(0o644))?;
            }
        }
    }
    Ok(())
}

/// Removes folders for libraries that are no longer there.
fn forget(place: &Path) {
    let Ok(entries) = fs::read_dir(place) else {
        return;
    };
    for folder in entries.flatten().map(|entry| entry.path()) {
        let name = folder.file_name().unwrap_or_default();
        let is_one = name.as_bytes().starts_with(PREFIX.as_bytes());
        let link = folder.join(NAME);
        if is_one && fs::symlink_metadata(&link).is_ok() && !link.exists() {
            // One that stays does no harm.
            let _ = fs::remove_dir_all(folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTENTS: [(&str, Content); 3] = [
        (".", Content::Library),
        ("lib/here", Content::Library),
        ("lib32", Content::Empty),
    ];

    fn made(place: &Path, library: &Path) -> io::Result<PathBuf> {
        folder(
            place,
            library,
            &CONTENTS.map(|(dir, content)| (dir.into(), content)),
        )
    }

    #[test]
    fn the_folder_is_made_once_and_mended() {
        let dir = tempfile::tempdir().unwrap();
        let (place, library) = (dir.path().join("place"), dir.path().join("a library"));
        fs::write(&library, "library").unwrap();
        let folder = made(&place, &library).unwrap();
        let inode = fs::metadata(&folder).unwrap().ino();
        assert_eq!(
            fs::read(folder.join("lib/here").join(NAME)).unwrap(),
            b"library"
        );
        assert_eq!(made(&place, &library).unwrap(), folder);
        assert_eq!(fs::metadata(&folder).unwrap().ino(), inode);
        fs::remove_file(folder.join("lib32").join(NAME)).unwrap();
        assert_eq!(made(&place, &library).unwrap(), folder);
        assert!(folder.join("lib32").join(NAME).exists());
        fs::remove_file(&library).unwrap();
        let another = made(&place, &dir.path().join("another")).unwrap();
        assert!(another.exists() && !folder.exists());
        assert_eq!(fs::read_dir(&place).unwrap().count(), 1);
    }

    /// Fails where another user could put a library of theirs in the place of ours.
    #[test]
    fn a_place_that_others_can_change_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("place");
        fs::create_dir(&place).unwrap();
        fs::set_permissions(&place, Permissions::from_mode(0o777)).unwrap();
        assert!(made(&place, Path::new("/library")).is_err());
        fs::set_permissions(&place, Permissions::from_mode(0o700)).unwrap();
        let link = dir.path().join("link");
        symlink(&place, &link).unwrap();
        assert!(made(&link, Path::new("/library")).is_err());
        assert!(made(&place, Path::new("/library")).is_ok());
    }
}
