//! Debug files: names and lines that distributions ship apart from programs, as gdb finds them.
//!
//! In order: by the build id, by the debug link (beside the file, in `.debug` there, and below
//! `/usr/lib/debug`), and else the small symbol table that is compressed into the file itself
//! (`.gnu_debugdata`). A file found by its name must be of the same build.

use std::fs::{self, File};
use std::io::{Cursor, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use addr2line::Loader;
use object::{Object, ObjectSection, ReadCache};

/// The directory of debug files.
const DIR: &str = "/usr/lib/debug";

/// The most bytes that a packed symbol table may have.
const MOST_UNPACKED: usize = 64 << 20;

/// The loaders for a program's or a library's names, the best first.
pub fn loaders(path: &Path) -> Vec<Loader> {
    loaders_below(path, Path::new(DIR))
}

fn loaders_below(path: &Path, dir: &Path) -> Vec<Loader> {
    let debug = apart(path, dir).and_then(|debug| loader(&debug, dir));
    let own = || loader(path, dir);
    let embedded = || embedded(path);
    match debug {
        // It has the symbols and the lines.
        Some(debug) => [Some(debug), own()].into_iter().flatten().collect(),
        None => [embedded(), own()].into_iter().flatten().collect(),
    }
}

/// With the file that several debug files have their common part in.
fn loader(path: &Path, dir: &Path) -> Option<Loader> {
    let common = with_object(path, |object| {
        let (name, id) = object.gnu_debugaltlink().ok()??;
        let named = path.parent()?.join(std::ffi::OsStr::from_bytes(name));
        let all = [named, by_build_id(id, dir)?];
        all.into_iter()
            .find(|file| is_file(file) && has_id(file, id))
    });
    match common {
        Some(common) => Loader::new_with_sup(path, Some(common)).ok(),
        None => Loader::new(path).ok(),
    }
}

/// The debug file.
fn apart(path: &Path, dir: &Path) -> Option<PathBuf> {
    with_object(path, |object| {
        let id = object.build_id().ok().flatten();
        let by_id = id.and_then(|id| by_build_id(id, dir));
        if let Some(found) = by_id.filter(|file| is_file(file)) {
            return Some(found);
        }
        let (name, sum) = object.gnu_debuglink().ok()??;
        let name = std::ffi::OsStr::from_bytes(name);
        let whole = path.canonicalize().ok()?;
        let beside = whole.parent()?;
        let below = dir.join(beside.strip_prefix("/").ok()?);
        let all = [
            beside.join(name),
            beside.join(".debug").join(name),
            below.join(name),
        ];
        let is_same = |file: &PathBuf| match id {
            Some(id) if has_any_id(file) => has_id(file, id),
            _ => fs::read(file).is_ok_and(|bytes| crc32fast::hash(&bytes) == sum),
        };
        all.into_iter()
            .find(|file| *file != whole && is_file(file) && is_same(file))
    })
}

/// `/usr/lib/debug/.build-id/xx/yyyy.debug`
fn by_build_id(id: &[u8], dir: &Path) -> Option<PathBuf> {
    let (first, rest) = id.split_first()?;
    let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
    Some(dir.join(format!(".build-id/{first:02x}/{rest}.debug")))
}

/// The symbol table in the file itself, unpacked.
fn embedded(path: &Path) -> Option<Loader> {
    let packed = with_object(path, |object| {
        // A whole symbol table has more.
        if object.symbols().next().is_some() {
            return None;
        }
        let section = object.section_by_name(".gnu_debugdata")?;
        section.data().ok().map(<[u8]>::to_vec)
    })?;
    let mut unpacked = Bounded(Vec::new());
    lzma_rs::xz_decompress(&mut Cursor::new(packed), &mut unpacked).ok()?;
    // Mapped, and so readable after its name is gone.
    let mut file = tempfile::NamedTempFile::new().ok()?;
    file.write_all(&unpacked.0).ok()?;
    Loader::new(file.path()).ok()
}

/// Memory that a packed file cannot fill.
struct Bounded(Vec<u8>);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.0.len() + bytes.len() > MOST_UNPACKED {
            return Err(std::io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn has_id(path: &Path, id: &[u8]) -> bool {
    with_object(path, |object| {
        (object.build_id().ok()? == Some(id)).then_some(())
    })
    .is_some()
}

fn has_any_id(path: &Path) -> bool {
    with_object(path, |object| object.build_id().ok()?.map(|_| ())).is_some()
}

/// A path may come from another user, and lead to what never answers.
pub fn is_file(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file())
}

/// Looks at an object file, if it is one.
pub fn with_object<T>(
    path: &Path,
    look: impl FnOnce(&object::File<'_, &ReadCache<File>>) -> Option<T>,
) -> Option<T> {
    if !is_file(path) {
        return None;
    }
    let cache = ReadCache::new(File::open(path).ok()?);
    look(&object::File::parse(&cache).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn done(command: &mut Command) {
        assert!(command.status().unwrap().success(), "{command:?}");
    }

    fn names(path: &Path, dir: &Path) -> bool {
        let at = with_object(path, |object| Some(object.entry())).unwrap();
        let loaders = loaders_below(path, dir);
        loaders
            .iter()
            .any(|loader| loader.find_symbol(at).is_some())
    }

    /// Fails where one of the ways does not lead to the names of a stripped program.
    #[test]
    fn names_are_found_in_files_apart() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("p.c"), "int main(void) { return 0; }\n").unwrap();
        let (program, debug) = (at("p"), at("p.debug"));
        let cc = || Command::new(std::env::var("CC").unwrap_or_else(|_| "cc".into()));
        done(
            cc().args(["-g", "-Wl,--build-id"])
                .arg(at("p.c"))
                .arg("-o")
                .arg(&program),
        );
        done(
            Command::new("objcopy")
                .arg("--only-keep-debug")
                .args([&program, &debug]),
        );
        done(Command::new("strip").arg(&program));
        assert!(!names(&program, dir.path()));
        // By the build id.
        let id = with_object(&program, |object| Some(object.build_id().ok()??.to_vec())).unwrap();
        let by_id = by_build_id(&id, dir.path()).unwrap();
        fs::create_dir_all(by_id.parent().unwrap()).unwrap();
        fs::copy(&debug, &by_id).unwrap();
        assert!(names(&program, dir.path()));
        fs::remove_file(by_id).unwrap();
        assert!(!names(&program, dir.path()));
        // By the link, but not to another build.
        let link = format!("--add-gnu-debuglink={}", debug.display());
        done(Command::new("objcopy").arg(link).arg(&program));
        assert!(names(&program, dir.path()));
        fs::create_dir(at(".debug")).unwrap();
        fs::rename(&debug, at(".debug/p.debug")).unwrap();
        assert!(names(&program, dir.path()));
        fs::write(at("p.c"), "int main(void) { return 1; }\n").unwrap();
        done(
            cc().args(["-g", "-Wl,--build-id"])
                .arg(at("p.c"))
                .arg("-o")
                .arg(at(".debug/p.debug")),
        );
        assert!(!names(&program, dir.path()));
    }

    /// Fails where the packed symbol table is not read.
    #[test]
    fn names_are_found_in_the_packed_symbol_table() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("p.c"), "int main(void) { return 0; }\n").unwrap();
        let cc = std::env::var("CC").unwrap_or_else(|_| "cc".into());
        let program = at("p");
        done(Command::new(cc).arg(at("p.c")).arg("-o").arg(&program));
        done(
            Command::new("objcopy")
                .arg("--strip-debug")
                .args([&program, &at("mini")]),
        );
        let mut packed = Vec::new();
        let mini = fs::read(at("mini")).unwrap();
        lzma_rs::xz_compress(&mut mini.as_slice(), &mut packed).unwrap();
        fs::write(at("mini.xz"), packed).unwrap();
        done(Command::new("strip").arg(&program));
        assert!(!names(&program, dir.path()));
        let section = format!(".gnu_debugdata={}", at("mini.xz").display());
        done(
            Command::new("objcopy")
                .args(["--add-section", &section])
                .arg(&program),
        );
        assert!(names(&program, dir.path()));
    }
}
