//! Finding the library that the program is to load.

use std::env;
use std::error::Error;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use object::{Object, ObjectKind, ObjectSymbol, ReadCache};

use overlock_report::output::Output;

use super::loaders;
use crate::exit::Exit;

/// The environment variable that names it.
pub const VARIABLE: &str = "OVERLOCK_LIBRARY";

/// The name of its file.
pub const NAME: &str = "liboverlock_preload.so";

/// The preloaded libraries that the environment names, but for ours. `None` if it names none.
pub fn preloaded_others() -> Option<OsString> {
    let preloaded = env::var_os("LD_PRELOAD")?;
    let others = (preloaded.as_bytes())
        .split(|&byte| byte == b' ' || byte == b':')
        .filter(|path| Path::new(OsStr::from_bytes(path)).file_name() != Some(OsStr::new(NAME)));
    Some(OsString::from_vec(others.collect::<Vec<_>>().join(&b':')))
}

/// The places beside this program's own: a build directory, and where an installation puts it.
const PLACES: [&str; 3] = [".", "../lib/overlock", "../lib"];

/// The library as `build.rs` has built it into this program; empty where it has not.
static BUILT_IN: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/liboverlock_preload.so"));

/// The library's absolute path.
pub fn find(given: Option<&Path>) -> Result<PathBuf, Exit> {
    if let Some(path) = given {
        return absolute(path)
            .map_err(|error| Exit::usage(format!("--library {}: {error}", path.display())));
    }
    let own = env::current_exe()
        .map_err(|error| Exit::Failed(format!("cannot tell where this program is: {error}")))?;
    let dir = own.parent().unwrap_or(Path::new("/"));
    let places = PLACES.map(|place| dir.join(place).join(NAME));
    let found = places.iter().find_map(|place| absolute(place).ok());
    if found.is_none() && !BUILT_IN.is_empty() {
        let cache = cache().ok_or_else(|| {
            Exit::usage(format!(
                "{NAME} is built into this program, but neither XDG_CACHE_HOME nor HOME says where to unpack it; \
                 put it beside this program, or name it by --library or {VARIABLE}"
            ))
        })?;
        return unpacked(BUILT_IN, &cache).map_err(|error| {
            Exit::usage(format!(
                "{NAME} cannot be unpacked in {}: {error}",
                cache.display()
            ))
        });
    }
    found.ok_or_else(|| {
        Exit::usage(format!(
            "{NAME} is not in {0}, {0}/../lib/overlock or {0}/../lib; build it by `cargo build --release -p overlock-preload`, \
             and put it there or name it by --library or {VARIABLE}",
            dir.display()
        ))
    })
}

/// The user's directory for files that can be made anew.
pub fn cache() -> Option<PathBuf> {
    let absolute = |name| {
        env::var_os(name)
            .map(PathBuf::from)
            .filter(|dir| dir.is_absolute())
    };
    absolute("XDG_CACHE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
        .map(|dir| dir.join("overlock"))
}

/// A file with this library in this directory. It stays: the program's children load it, too.
fn unpacked(library: &[u8], cache: &Path) -> io::Result<PathBuf> {
    let mut hasher = DefaultHasher::new();
    library.hash(&mut hasher);
    // Programs that still run keep the file of the version that they were started by.
    let path = cache.join(format!("{:016x}-{NAME}", hasher.finish()));
    DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(cache)?;
    // Nobody else can replace the file between this look and the loader's.
    let (owner, ours) = (
        fs::metadata(cache)?.uid(),
        rustix::process::geteuid().as_raw(),
    );
    if owner != ours {
        return Err(io::Error::other(format!(
            "it belongs to user {owner}, not {ours}"
        )));
    }
    if fs::read(&path).ok().as_deref() != Some(library) {
        Output::open(&path)?.write(|out| out.write_all(library))?;
    }
    Ok(path)
}

fn absolute(path: &Path) -> Result<PathBuf, String> {
    let path = path.canonicalize().map_err(|error| error.to_string())?;
    if !path.is_file() {
        return Err("is not a file".to_owned());
    }
    let file = File::open(&path).map_err(|error| error.to_string())?;
    if takes_over(file).unwrap_or(false) {
        Ok(path)
    } else {
        Err("is no such library for this machine".to_owned())
    }
}

/// Whether it is a library for programs like this one that defines pthread's functions.
fn takes_over(library: File) -> Result<bool, Box<dyn Error>> {
    let cache = ReadCache::new(library);
    let library = object::File::parse(&cache)?;
    let cache = ReadCache::new(File::open("/proc/self/exe")?);
    let own = object::File::parse(&cache)?;
    let defined = |symbol: object::Symbol<'_, '_, _>| {
        symbol.is_definition() && symbol.name() == Ok("pthread_mutex_lock")
    };
    Ok(library.kind() == ObjectKind::Dynamic
        && (library.architecture(), library.is_64()) == (own.architecture(), own.is_64())
        && library.dynamic_symbols().any(defined))
}

/// `LD_PRELOAD` with the library in front of what is there.
pub fn preload(library: &Path) -> Result<OsString, Exit> {
    // The loader knows no way to quote what it splits at.
    let mut preload = match loaders::name(library) {
        Some(name) => name,
        None if loaders::splits(library) => {
            return Err(Exit::usage(format!(
                "{}: LD_PRELOAD takes no path with a space, a colon or a dollar sign; name another by --library",
                library.display()
            )));
        }
        None => library.as_os_str().to_owned(),
    };
    if let Some(others) = env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
        preload.push(":");
        preload.push(others);
    }
    Ok(preload)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_whole_and_made_once() {
        let dir = tempfile::tempdir().unwrap();
        let cache = dir.path().join("cache/overlock");
        let path = unpacked(b"library", &cache).unwrap();
        let inode = fs::metadata(&path).unwrap().ino();
        assert_eq!(unpacked(b"library", &cache).unwrap(), path);
        assert_eq!(fs::metadata(&path).unwrap().ino(), inode);
        fs::write(&path, b"half").unwrap();
        assert_eq!(unpacked(b"library", &cache).unwrap(), path);
        assert_eq!(fs::read(&path).unwrap(), b"library");
        assert_ne!(unpacked(b"another", &cache).unwrap(), path);
    }
}
