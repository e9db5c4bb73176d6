//! The program that is to run: where it is, and whether a library can be loaded into it.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use object::elf::{ELFCLASS64, FileHeader64, PT_INTERP};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, Object, ObjectSymbol, ReadCache};
use rustix::fs::{Access, access};
use rustix::process::{getegid, geteuid};

use super::watched;
use crate::exit::Exit;

/// Scripts whose interpreter is a script, and so on; the kernel allows five.
const MOST_SCRIPTS: usize = 5;

/// Finds the program of a command as a shell does, and checks it.
pub fn find(words: &[OsString]) -> Result<PathBuf, Exit> {
    let name = words.first().map_or(OsStr::new(""), |name| name);
    let path = locate(name)?;
    if let Some(why) = watched::by_valgrind(words) {
        return Err(not_executable(&path, &why));
    }
    check(&path, MOST_SCRIPTS)?;
    Ok(path)
}

/// Why the kernel did not run it.
pub fn refused(path: &Path, error: &io::Error) -> Exit {
    match error.kind() {
        io::ErrorKind::NotFound => not_found(path.as_os_str()),
        _ => not_executable(path, &error.to_string()),
    }
}

fn locate(name: &OsStr) -> Result<PathBuf, Exit> {
    if name.as_bytes().contains(&b'/') {
        let path = PathBuf::from(name);
        return match executable(&path) {
            Ok(()) => Ok(path),
            Err(error) => Err(refused(&path, &error)),
        };
    }
    if name.is_empty() {
        return Err(not_found(name));
    }
    let mut denied = None;
    // The C library's default without the variable.
    let dirs = env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    for dir in env::split_paths(&dirs) {
        let path = Path::new(".").join(dir).join(name);
        match executable(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                denied = denied.or(Some((path, error)));
            }
            Err(_) => {}
        }
    }
    Err(match denied {
        Some((path, error)) => refused(&path, &error),
        None => not_found(name),
    })
}

fn executable(path: &Path) -> io::Result<()> {
    if fs::metadata(path)?.is_dir() {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "is a directory",
        ));
    }
    Ok(access(path, Access::EXEC_OK)?)
}

fn not_found(name: &OsStr) -> Exit {
    Exit::NotFound(format!("{}: no such program", name.display()))
}

fn not_executable(path: &Path, why: &str) -> Exit {
    Exit::NotExecutable(format!("{}: {why}", path.display()))
}

/// Whether the loader of the program will load the library.
fn check(path: &Path, scripts: usize) -> Result<(), Exit> {
    let Ok(mut file) = File::open(path) else {
        // May be run and not read: then there is nothing to say about it.
        return privileged(path);
    };
    let mut start = [0; 256];
    let length = file.read(&mut start).unwrap_or_default();
    let start = &start[..length];
    if let Some(interpreter) = start.strip_prefix(b"#!") {
        return match interpreter_of(interpreter) {
            Some(interpreter) if scripts > 0 => check(interpreter, scripts - 1),
            _ => Ok(()),
        };
    }
    if !start.starts_with(b"\x7fELF") {
        return Ok(());
    }
    privileged(path)?;
    let no = |why: &str| {
        Err(not_executable(
            path,
            &format!("{why}, so no library of ours can be loaded into it; run it by itself"),
        ))
    };
    if start.get(4) != Some(&ELFCLASS64.0) {
        return no("is not a 64-bit program");
    }
    match interpreter(&file) {
        Ok(None) if is_loader(&file) => Ok(()),
        Ok(None) => no("is statically linked"),
        Ok(Some(loader)) if loader.contains("ld-musl") => no("is linked to musl and not to glibc"),
        // A broken one is for the kernel to refuse.
        Ok(Some(_)) | Err(_) => match watched::by_sanitizer(file) {
            Some(why) => Err(not_executable(path, why)),
            None => Ok(()),
        },
    }
}

/// The first word behind `#!`.
fn interpreter_of(line: &[u8]) -> Option<&Path> {
    let line = line.split(|&byte| byte == b'\n').next()?;
    let mut words = line.split(|byte| matches!(byte, b' ' | b'\t'));
    let word = words.find(|word| !word.is_empty())?;
    Some(Path::new(OsStr::from_bytes(word)))
}

/// The loader that an ELF file names.
fn interpreter(file: &File) -> object::Result<Option<String>> {
    let cache = ReadCache::new(file);
    let header = FileHeader64::<Endianness>::parse(&cache)?;
    let endian = header.endian()?;
    for segment in header.program_headers(endian, &cache)? {
        if segment.p_type(endian) == PT_INTERP {
            let name = segment.data(endian, &cache).unwrap_or_default();
            let name = name.strip_suffix(b"\0").unwrap_or(name);
            return Ok(Some(String::from_utf8_lossy(name).into_owned()));
        }
    }
    Ok(None)
}

/// Whether it is glibc's loader, which is given the program as an argument.
fn is_loader(file: &File) -> bool {
    let cache = ReadCache::new(file);
    object::File::parse(&cache).is_ok_and(|file| {
        let mut symbols = file.dynamic_symbols();
        symbols.any(|symbol| symbol.name() == Ok("_rtld_global") && symbol.is_definition())
    })
}

/// A program that gets more rights than its caller's ignores `LD_PRELOAD`.
fn privileged(path: &Path) -> Result<(), Exit> {
    let Ok(file) = fs::metadata(path) else {
        return Ok(());
    };
    let user = file.mode() & libc::S_ISUID != 0 && file.uid() != geteuid().as_raw();
    let group = file.mode() & libc::S_ISGID != 0 && file.gid() != getegid().as_raw();
    let capable = || {
        let mut value = [0; 64];
        let read = rustix::fs::getxattr(path, "security.capability", &mut value[..]);
        !geteuid().is_root() && read.is_ok()
    };
    let how = match (user, group) {
        (true, _) => "setuid",
        (_, true) => "setgid",
        _ if capable() => "given capabilities by its file",
        _ => return Ok(()),
    };
    Err(not_executable(
        path,
        &format!("is {how}, and ignores LD_PRELOAD for that; run it by itself"),
    ))
}
